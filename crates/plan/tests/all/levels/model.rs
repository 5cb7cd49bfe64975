//! The model beside packets.

use unisono_machine::Machine;
use unisono_plan::{
    Part,
    workload::graph::{Level, Prices, Step},
};
use unisono_workload::WorkloadGraph;

use super::random::{Random, Style, program};

const STYLE: Style = Style { sides: &[2, 4, 4], nodes: 8, bytes: 10..19, microseconds: 50, uneven: false };

const MACHINES: [&str; 5] = ["fattree-small", "hx2mesh-small", "torus2d-small", "dragonfly-small", "dgx-h100-x8"];

fn seconds(program: &WorkloadGraph, machine: &Machine, level: Level) -> f64 {
    let prices = Prices::new(program, machine, &Part::All).unwrap();
    let report = Step { prices, accelerator: None, overlap: true, level }.report().unwrap();
    report.iteration.seconds
}

/// The number of random programs; `UNISONO_LEVELS_COUNT` sets it.
fn count() -> u64 {
    std::env::var("UNISONO_LEVELS_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(40)
}

/// The times of a step by the model and by flows are within 15 % of that of packets for at least 90 % of random programs.
#[expect(clippy::print_stdout, reason = "the figures of the documentation")]
#[test]
fn the_model_and_flows_are_near_packets() {
    let machines = MACHINES.map(|name| Machine::preset(name).unwrap());
    let mut ratios: [Vec<f64>; 2] = Default::default();
    for seed in 0..count() {
        let mut r = Random(seed);
        let machine = &machines[r.below(MACHINES.len() as u64) as usize];
        let program = program(&mut r, &STYLE);
        let [model, flow, packets] =
            [Level::Model, Level::Flow, Level::Packet].map(|level| seconds(&program, machine, level));
        for (ratios, other) in ratios.iter_mut().zip([model, flow]) {
            ratios.push(if packets > 0.0 { other / packets } else { 1.0 });
        }
    }
    for (ratios, level) in ratios.iter_mut().zip([Level::Model, Level::Flow]) {
        ratios.sort_by(f64::total_cmp);
        let near = ratios.iter().filter(|ratio| (*ratio - 1.0).abs() <= 0.15).count();
        let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
        println!("{}: {near} of {} within 15 %, {least:.3} to {most:.3} times packets", level.name(), ratios.len());
        assert!(near * 10 >= ratios.len() * 9, "{}: {near} of {}", level.name(), ratios.len());
    }
}
