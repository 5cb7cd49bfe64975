//! Tests of `fabric::packed`.

mod group;

use unisono_algorithms::{Case, Params, resolve};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::wafer::{WaferProgram, prove_and_lower};
use unisono_machine::{Grid, Wafer};
use unisono_sim::{
    fabric::{Options, run},
    internals::{clock::Clock, steady::Steady},
};

fn program(kind: Kind, name: &str, grid: Grid, elements: u64) -> WaferProgram {
    let preset = unisono_machine::Machine::preset("wse2").unwrap();
    let c = Collective::new(kind, grid.count() as u32, elements, 0, Operator::Sum, Dtype::F32).unwrap();
    let case = Case::on_grid(c, grid, 5.0);
    let (algorithm, params) = resolve(name, &case, &Params::new()).unwrap();
    let placed = algorithm.build(&case, &params).unwrap();
    prove_and_lower(&placed, preset.get::<Wafer>().unwrap()).unwrap()
}

fn packs(kind: Kind, name: &str, options: &Options) -> bool {
    Clock::new(&program(kind, name, Grid::new(9, 12), 64), options).unwrap().can_be_packed()
}

#[test]
fn trees_over_a_grid_can_be_packed() {
    for kind in [Kind::Reduce, Kind::Allreduce] {
        for name in ["kd-tree", "slack-tree", "quad-chain", "quad-two-phase", "xy-yx"] {
            assert!(packs(kind, name, &Options::default()), "{name}");
        }
    }
}

#[test]
fn deep_queues_and_long_ramps_cannot_be_counted() {
    assert!(packs(Kind::Reduce, "kd-tree", &Options { queue_depth: 11, ..Options::default() }));
    assert!(!packs(Kind::Reduce, "kd-tree", &Options { queue_depth: 12, ..Options::default() }));
    assert!(packs(Kind::Reduce, "kd-tree", &Options { ramp_latency: 6, ..Options::default() }));
    assert!(!packs(Kind::Reduce, "kd-tree", &Options { ramp_latency: 7, ..Options::default() }));
}

/// A run that is packed after its start has wavelets everywhere at that time.
#[test]
fn restless_runs_are_packed_on_the_way() {
    for (name, rows, cols) in [("kd-tree", 17, 22), ("slack-tree", 12, 21), ("quad-two-phase", 16, 16)] {
        for kind in [Kind::Reduce, Kind::Allreduce] {
            let program = program(kind, name, Grid::new(rows, cols), 500);
            let options = Options::default();
            let mut machine = Clock::new(&program, &options).unwrap();
            assert!(machine.packs_at_once, "{name} {kind}");
            machine.packs_at_once = false;
            machine.steady = Steady::new(options.period, &machine);
            let never = run(&program, &Options { blocks_from: u32::MAX, ..options.clone() });
            assert_eq!(machine.run(), never, "{name} {kind}");
        }
    }
}
