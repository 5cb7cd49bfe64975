//! The times of the model, compared with packets.

use crate::common::step;

use unisono_machine::Machine;
use unisono_plan::workload::graph::Level;

use super::random::{Random, Style, program};

const STYLE: Style = Style { sides: &[2, 4, 4], nodes: 8, bytes: 10..19, microseconds: 50, uneven: false };

/// The style of programs on up to 64 ranks.
const WIDE: Style = Style { sides: &[2, 4, 8], ..STYLE };

const MACHINES: [&str; 5] = ["fattree-small", "hx2mesh-small", "torus2d-small", "dragonfly-small", "dgx-h100-x8"];

/// Returns the number of random programs, which `UNISONO_LEVELS_COUNT` sets.
fn count() -> u64 {
    std::env::var("UNISONO_LEVELS_COUNT")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(crate::soak::cases(50).into())
}

/// Returns the style of random programs; `UNISONO_LEVELS_WIDE=1` selects up to 64 ranks.
fn style() -> &'static Style {
    if std::env::var_os("UNISONO_LEVELS_WIDE").is_some() { &WIDE } else { &STYLE }
}

fn is_near(ratio: f64) -> bool {
    (ratio - 1.0).abs() <= 0.15
}

/// The times of a step by the model and by flows are within 15 % of that by packets for at least 90 % of random
/// programs.
#[expect(clippy::print_stdout, reason = "the figures of the documentation")]
#[test]
fn the_model_and_flows_are_near_packets() {
    let machines = MACHINES.map(|name| Machine::preset(name).unwrap());
    // Each program's machine, and the times of its step by the model and by flows, divided by that of packets.
    let mut ratios: Vec<(usize, [f64; 2])> = Vec::new();
    for seed in 0..count() {
        let mut r = Random(seed);
        let at = r.below(MACHINES.len() as u64) as usize;
        let program = program(&mut r, style());
        let [model, flow, packets] = [Level::Model, Level::Flow, Level::Packet]
            .map(|level| step(&machines[at], &program, level, true).iteration.seconds);
        ratios.push((at, [model, flow].map(|other| if packets > 0.0 { other / packets } else { 1.0 })));
    }
    for (which, level) in [Level::Model, Level::Flow].into_iter().enumerate() {
        let all = || ratios.iter().map(|(_, of)| of[which]);
        let near = all().filter(|ratio| is_near(*ratio)).count();
        let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        println!("{}: {near} of {} within 15 %, {least:.3} to {most:.3} times packets", level.name(), ratios.len());
        for (at, name) in MACHINES.iter().enumerate() {
            let of_machine = || ratios.iter().filter(|(machine, _)| *machine == at).map(|(_, of)| of[which]);
            println!("  {name}: {} of {}", of_machine().filter(|ratio| is_near(*ratio)).count(), of_machine().count());
        }
        assert!(near * 10 >= ratios.len() * 9, "{}: {near} of {}", level.name(), ratios.len());
    }
}
