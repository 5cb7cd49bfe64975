//! Cycles that repeat are skipped; every number of a run, and every error, is what it is without, and what an oracle
//! finds that visits every PE in every cycle.

use proptest::prelude::*;
use unisono_algorithms::{ALGORITHMS, Case, Params, resolve};
use unisono_base::NodeId;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::{
    GridPlacement, Placed,
    wafer::{WaferProgram, prove_and_lower},
};
use unisono_machine::{Grid, Machine, Wafer};
use unisono_schedule::{Builder, Operand};
use unisono_sim::fabric::{Options, run};

use crate::fabric_oracle::{self, Counts};

fn wse2() -> Wafer {
    Machine::preset("wse2").unwrap().get::<Wafer>().unwrap().clone()
}

fn same_for_every_period(name: &str, program: &WaferProgram, options: &Options) {
    let all = run(program, &Options { period: 0, ..options.clone() });
    for period in [1, 4, 6, 11] {
        assert_eq!(run(program, &Options { period, ..options.clone() }), all, "{name}, period {period}");
    }
    assert_eq!(run(program, &Options { blocks_from: 0, ..options.clone() }), all, "{name}, in blocks");
}

/// A run that ends has the numbers of the oracle; what stops there stops here.
fn same_as_oracle(name: &str, program: &WaferProgram, options: &Options) {
    let run = run(program, options).ok();
    let counts = run.map(|r| Counts { finish: r.finish, events: r.events, hops: r.hops, stalls: r.stalls });
    assert_eq!(counts, fabric_oracle::run(program, options), "{name}");
}

#[test]
fn every_algorithm_runs_as_without() {
    for grid in [Grid::new(1, 9), Grid::new(1, 40), Grid::new(4, 4), Grid::new(7, 5), Grid::new(12, 12)] {
        for kind in [Kind::Message, Kind::Broadcast, Kind::Reduce, Kind::Allreduce] {
            for algorithm in ALGORITHMS.iter().map(|a| a.name()) {
                for (elements, queue_depth) in [(64, 4), (300, 1), (300, 2), (300, 3), (300, 4), (300, 5), (300, 8)] {
                    let c = Collective::new(kind, grid.count() as u32, elements, 0, Operator::Sum, Dtype::F32).unwrap();
                    let case = Case::on_grid(c, grid, 5.0);
                    let Ok((algorithm, params)) = resolve(algorithm, &case, &Params::new()) else { continue };
                    let Ok(placed) = algorithm.build(&case, &params) else { continue };
                    let Ok(program) = prove_and_lower(&placed, &wse2()) else { continue };
                    let name = format!("{} {kind} on {grid} of {elements}, depth {queue_depth}", algorithm.name());
                    let options = Options { queue_depth, ..Options::default() };
                    same_for_every_period(&name, &program, &options);
                    if grid.count() < 40 && elements < 300 {
                        same_as_oracle(&name, &program, &options);
                        same_as_oracle(&name, &program, &Options { ramp_latency: 7, ..options });
                    }
                }
            }
        }
    }
}

/// Trees of which PEs are awake nearly always, on more rows and columns than a block has: the run goes on in blocks at
/// once, when it proves restless, or never.
#[test]
fn trees_run_in_blocks_as_without() {
    for (grid, elements, depth) in
        [(Grid::new(33, 50), 300, 4), (Grid::new(26, 24), 700, 2), (Grid::new(3, 70), 900, 4)]
    {
        for kind in [Kind::Reduce, Kind::Allreduce] {
            let c = Collective::new(kind, grid.count() as u32, elements, 0, Operator::Sum, Dtype::F32).unwrap();
            let case = Case::on_grid(c, grid, 5.0);
            for name in ["kd-tree", "quad-chain", "x-y"] {
                let Ok((algorithm, params)) = resolve(name, &case, &Params::new()) else { continue };
                let Ok(placed) = algorithm.build(&case, &params) else { continue };
                let program = prove_and_lower(&placed, &wse2()).unwrap();
                let in_blocks = |blocks_from| {
                    run(&program, &Options { queue_depth: depth, blocks_from, ..Options::default() }).unwrap()
                };
                let never = in_blocks(u32::MAX);
                assert_eq!(in_blocks(0), never, "{name} on {grid}, at once");
                assert_eq!(in_blocks(1), never, "{name} on {grid}, when restless");
            }
        }
    }
}

/// A reduce over random trees, one a lane, and a broadcast of what arrived. It need not be right: two trees may well
/// stop each other, or race.
fn trees(
    grid: Grid,
    parents: &[Vec<u32>],
    elements: u32,
    (pace, chunk): (u16, u32),
    sequential: bool,
) -> Option<WaferProgram> {
    let pes = grid.count() as u32;
    let c = Collective::new(Kind::Allreduce, pes, u64::from(elements), 0, Operator::Sum, Dtype::I32).unwrap();
    let mut b = Builder::new(c);
    let share = elements / parents.len() as u32;
    for (lane, draws) in parents.iter().enumerate() {
        let at = lane as u32 * share;
        let parent = |pe: u32| draws[pe as usize] % pe;
        let mut up: Vec<_> = (1..pes).map(|pe| b.stream(NodeId(pe), &[NodeId(parent(pe))])).collect();
        up.insert(0, b.stream(NodeId(0), &(1..pes).map(NodeId).collect::<Vec<_>>()));
        for pe in 0..pes {
            let children: Vec<_> =
                (1..pes).filter(|&p| parent(p) == pe).map(|p| Operand::Stream(up[p as usize])).collect();
            let sink = Operand::Stream(up[pe as usize]);
            if sequential && children.len() > 1 {
                // One child after the other, through memory.
                for (n, &child) in children.iter().enumerate() {
                    let sum = if n == 0 { Operand::In(at) } else { Operand::Out(at) };
                    let sinks = if n + 1 == children.len() { [sink] } else { [Operand::Out(at)] };
                    b.combine(NodeId(pe), lane as u32, share, &[sum, child], &sinks);
                }
            } else {
                let sources = [vec![Operand::In(at)], children].concat();
                b.combine(NodeId(pe), lane as u32, share, &sources, &[sink]);
            }
            if pe > 0 {
                b.combine(NodeId(pe), lane as u32, share, &[Operand::Stream(up[0])], &[Operand::Out(at)]);
            }
        }
    }
    let mut placement = GridPlacement::new(grid);
    (placement.pace, placement.chunk) = (pace, chunk);
    prove_and_lower(&Placed::on_grid(b.finish().ok()?, placement), &wse2()).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_run_as_without(
        (rows, cols) in (1u32..4, 2u32..6),
        parents in prop::collection::vec(prop::collection::vec(any::<u32>(), 15), 1..4),
        elements in 4u32..200,
        pace in 1u16..8,
        chunk in 1u32..9,
        sequential in any::<bool>(),
        (queue_depth, ramp_latency) in (1u32..9, 0u32..5),
        start in prop::collection::vec(0u32..90, 0..15),
    ) {
        if let Some(program) = trees(Grid::new(rows, cols), &parents, elements, (pace, chunk), sequential) {
            let options = Options { queue_depth, ramp_latency, start, ..Options::default() };
            same_for_every_period("random trees", &program, &options);
            same_as_oracle("random trees", &program, &options);
            same_for_every_period("random trees without controls", &program.without_controls(), &options);
        }
    }
}
