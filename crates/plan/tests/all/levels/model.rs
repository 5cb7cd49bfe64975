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
    std::env::var("UNISONO_LEVELS_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(200)
}

/// The model's time of a step is within 15 % of that of packets for at least 90 % of random programs.
#[test]
fn the_model_is_near_packets() {
    let machines = MACHINES.map(|name| Machine::preset(name).unwrap());
    let (mut near, mut all) = (0, 0);
    for seed in 0..count() {
        let mut r = Random(seed);
        let at = r.below(MACHINES.len() as u64) as usize;
        let program = program(&mut r, &STYLE);
        let [model, packets] = [Level::Model, Level::Packet].map(|level| seconds(&program, &machines[at], level));
        let ratio = if packets > 0.0 { model / packets } else { 1.0 };
        all += 1;
        near += usize::from((ratio - 1.0).abs() <= 0.15);
    }
    assert!(near * 10 >= all * 9, "{near} of {all}");
}
