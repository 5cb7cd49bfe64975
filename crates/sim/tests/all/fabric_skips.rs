//! Tests of skipped cycles. All results of a run, and every error, must be the same without skipping, and in an oracle
//! that visits every PE in every cycle.

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
use unisono_sim::fabric::{Options, Run, TraceRequest, run};

use crate::{
    fabric_oracle::{self, Counts},
    soak,
};

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

/// A run that ends has the results of the oracle. A run that fails also fails in the oracle.
fn same_as_oracle(name: &str, program: &WaferProgram, options: &Options) {
    let run = run(program, options).ok();
    let counts = run.map(|r| Counts { finish: r.finish, events: r.events, hops: r.hops, stalls: r.stalls });
    assert_eq!(counts, fabric_oracle::run(program, options), "{name}");
}

#[test]
fn every_algorithm_runs_as_without() {
    let mut number = 0;
    for grid in [Grid::new(1, 9), Grid::new(1, 40), Grid::new(4, 4), Grid::new(7, 5), Grid::new(12, 12)] {
        for kind in [Kind::Message, Kind::Broadcast, Kind::Reduce, Kind::Allreduce] {
            for algorithm in ALGORITHMS.iter().map(|a| a.name()) {
                for (elements, queue_depth) in [(64, 4), (300, 1), (300, 2), (300, 3), (300, 4), (300, 5), (300, 8)] {
                    let c = Collective::new(kind, grid.count() as u32, elements, 0, Operator::Sum, Dtype::F32).unwrap();
                    let case = Case::on_grid(c, grid, 5.0);
                    let Ok((algorithm, params)) = resolve(algorithm, &case, &Params::new()) else { continue };
                    number += 1;
                    if !soak::runs(number) {
                        continue;
                    }
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

/// Algorithms whose PEs are nearly always awake, on grids larger than a block. Runs are in blocks from the start, from
/// the time at which they are restless, or never. With a ramp latency of 7 cycles they cannot be packed.
#[test]
fn trees_run_in_blocks_as_without() {
    let cases = [
        (Grid::new(33, 50), 300, 4, 2),
        (Grid::new(26, 24), 701, 2, 0),
        (Grid::new(3, 70), 900, 4, 6),
        (Grid::new(16, 16), 1025, 1, 1),
        (Grid::new(25, 14), 333, 5, 7),
        (Grid::new(13, 29), 64, 11, 2),
        (Grid::new(20, 20), 517, 4, 2),
    ];
    let names = ["kd-tree", "slack-tree", "quad-chain", "quad-two-phase", "two-phase", "x-y", "xy-yx", "tree"];
    let mut number = 0;
    for (grid, elements, queue_depth, ramp_latency) in cases {
        for (kind, name) in [Kind::Reduce, Kind::Allreduce].into_iter().flat_map(|kind| names.map(|name| (kind, name)))
        {
            for params in [Params::new(), Params::new().with("trees", "2"), Params::new().with("chunk", "7")] {
                let c = Collective::new(kind, grid.count() as u32, elements, 0, Operator::Sum, Dtype::F32).unwrap();
                let case = Case::on_grid(c, grid, 5.0);
                let Ok((algorithm, params)) = resolve(name, &case, &params) else { continue };
                number += 1;
                // Except in the long run, one case in twenty runs.
                if !soak::runs(number) || !soak::is_on() && number % 2 == 0 {
                    continue;
                }
                let Ok(placed) = algorithm.build(&case, &params) else { continue };
                let Ok(program) = prove_and_lower(&placed, &wse2()) else { continue };
                let options = Options { queue_depth, ramp_latency, ..Options::default() };
                let in_blocks = |blocks_from| run(&program, &Options { blocks_from, ..options.clone() });
                let never = in_blocks(u32::MAX);
                let name = format!("{name} {params:?}, {kind} of {elements} on {grid}");
                assert_eq!(in_blocks(0), never, "{name}, at once");
                assert_eq!(in_blocks(1), never, "{name}, when restless");
            }
        }
    }
}

/// Grids of several tiles, of which many are alike until wavelets cross the rows. Without control wavelets some
/// programs are stuck or collide; in a traced run no state of a tile is copied.
#[test]
fn rows_that_are_alike_run_as_without() {
    let line = ["chain", "tree", "two-phase", "auto-gen", "star"];
    let mut number = 0;
    for (grid, elements, queue_depth) in
        [(Grid::new(5, 70), 37, 4), (Grid::new(26, 12), 96, 2), (Grid::new(4, 130), 64, 1)]
    {
        for (x, y) in line.iter().flat_map(|x| line.map(|y| (*x, y))) {
            for (kind, name, root) in [
                (Kind::Reduce, "x-y", 0),
                (Kind::Reduce, "x-y", 2 * grid.cols + 3),
                (Kind::Allreduce, "x-y-allreduce", 0),
                (Kind::Scan, "x-y-scan", 0),
            ] {
                let c =
                    Collective::new(kind, grid.count() as u32, elements, u64::from(root), Operator::Sum, Dtype::F32)
                        .unwrap();
                let case = Case::on_grid(c, grid, 5.0);
                let Ok((algorithm, params)) = resolve(name, &case, &Params::new().with("x", x).with("y", y)) else {
                    continue;
                };
                number += 1;
                if !soak::runs(number) {
                    continue;
                }
                let Ok(placed) = algorithm.build(&case, &params) else { continue };
                let Ok(program) = prove_and_lower(&placed, &wse2()) else { continue };
                let name = format!("{name} {x} {y} to {root}, {kind} of {elements} on {grid}");
                let options = Options { queue_depth, ..Options::default() };
                same_for_every_period(&name, &program, &options);
                same_for_every_period(&name, &program.without_controls(), &options);
                same_as_oracle(&name, &program, &options);
                let trace = TraceRequest { pes: vec![0, grid.cols + 1] };
                let traced = run(&program, &Options { trace, ..options.clone() }).unwrap();
                assert_eq!(run(&program, &options).unwrap(), Run { trace: Vec::new(), ..traced }, "{name}, traced");
            }
        }
    }
}

/// Trees on PEs that start at different times and idle at random.
#[test]
fn noisy_trees_run_in_blocks_as_without() {
    let grid = Grid::new(17, 13);
    for (name, elements, noop_probability) in [("kd-tree", 131, 0.0), ("kd-tree", 200, 0.1), ("slack-tree", 77, 0.6)] {
        for kind in [Kind::Reduce, Kind::Allreduce] {
            let c = Collective::new(kind, grid.count() as u32, elements, 0, Operator::Sum, Dtype::I32).unwrap();
            let case = Case::on_grid(c, grid, 5.0);
            let (algorithm, params) = resolve(name, &case, &Params::new()).unwrap();
            let program = prove_and_lower(&algorithm.build(&case, &params).unwrap(), &wse2()).unwrap();
            let start = (0..grid.count() as u32).map(|pe| pe * 37 % 301).collect::<Vec<_>>();
            let options =
                Options { noop_probability, start, trace: TraceRequest { pes: vec![0, 100] }, ..Options::default() };
            let in_blocks = |blocks_from| run(&program, &Options { blocks_from, ..options.clone() }).unwrap();
            assert_eq!(in_blocks(0), in_blocks(u32::MAX), "{name} {kind}, idle {noop_probability}");
            assert_eq!(in_blocks(1), in_blocks(u32::MAX), "{name} {kind}, idle {noop_probability}, when restless");
        }
    }
}

/// Builds a reduce over random trees, one per lane, and a broadcast of the result. The parent of a PE is at most `span`
/// PEs before it. The program may be wrong: two trees may block each other, or race.
fn trees(
    grid: Grid,
    (parents, span): (&[Vec<u32>], u32),
    elements: u32,
    (pace, chunk): (u16, u32),
    sequential: bool,
) -> Option<WaferProgram> {
    let pes = grid.count() as u32;
    let share = elements / parents.len() as u32;
    let elements = u64::from(share) * parents.len() as u64;
    let c = Collective::new(Kind::Allreduce, pes, elements, 0, Operator::Sum, Dtype::I32).unwrap();
    let mut b = Builder::new(c);
    for (lane, draws) in parents.iter().enumerate() {
        let at = lane as u32 * share;
        let parent = |pe: u32| pe - 1 - draws[pe as usize] % pe.min(span);
        let mut up: Vec<_> = (1..pes).map(|pe| b.stream(NodeId(pe), &[NodeId(parent(pe))])).collect();
        up.insert(0, b.stream(NodeId(0), &(1..pes).map(NodeId).collect::<Vec<_>>()));
        for pe in 0..pes {
            let children: Vec<_> =
                (1..pes).filter(|&p| parent(p) == pe).map(|p| Operand::Stream(up[p as usize])).collect();
            let own = (pe == 0).then_some(Operand::Out(at));
            let sinks: Vec<_> = own.into_iter().chain([Operand::Stream(up[pe as usize])]).collect();
            if sequential && children.len() > 1 {
                // The PE adds one child after another, through memory.
                for (n, &child) in children.iter().enumerate() {
                    let sum = if n == 0 { Operand::In(at) } else { Operand::Out(at) };
                    let sinks = if n + 1 == children.len() { &sinks[..] } else { &[Operand::Out(at)] };
                    b.combine(NodeId(pe), lane as u32, share, &[sum, child], sinks);
                }
            } else {
                let sources = [vec![Operand::In(at)], children].concat();
                b.combine(NodeId(pe), lane as u32, share, &sources, &sinks);
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
    #![proptest_config(ProptestConfig { cases: crate::soak::cases(300), failure_persistence: None, ..ProptestConfig::default() })]

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
        if let Some(program) = trees(Grid::new(rows, cols), (&parents, u32::MAX), elements, (pace, chunk), sequential) {
            let options = Options { queue_depth, ramp_latency, start, ..Options::default() };
            same_for_every_period("random trees", &program, &options);
            same_as_oracle("random trees", &program, &options);
            same_for_every_period("random trees without controls", &program.without_controls(), &options);
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::soak::cases(30), failure_persistence: None, ..ProptestConfig::default() })]

    /// Compares numbers of threads on grids on which the sweeps of two or three threads follow each other. Trees of
    /// several lanes may be stuck.
    #[test]
    fn results_do_not_depend_on_the_threads(
        (rows, cols) in (64u32..110, 1u32..3),
        parents in prop::collection::vec(prop::collection::vec(any::<u32>(), 220), 1..4),
        span in 1u32..4,
        elements in 4u32..30,
        (pace, chunk) in (1u16..4, 1u32..9),
        sequential in any::<bool>(),
        (queue_depth, ramp_latency) in (1u32..9, 0u32..7),
        (noop_probability, late) in (prop::sample::select(vec![0.0, 0.3]), 0u32..2),
    ) {
        unisono_base::parallel::set_cores(64);
        let grid = Grid::new(rows, cols);
        if let Some(program) = trees(grid, (&parents, span), elements, (pace, chunk), sequential) {
            let start = (0..late * rows * cols).map(|pe| pe * 37 % 301).collect();
            let trace = TraceRequest { pes: (0..rows * cols).collect() };
            let options = Options { queue_depth, ramp_latency, noop_probability, start, trace, ..Options::default() };
            let on = |jobs| run(&program, &Options { blocks_from: 0, jobs, ..options.clone() });
            let one = on(1);
            prop_assert_eq!(&on(2), &one);
            prop_assert_eq!(&on(3), &one);
            prop_assert_eq!(&run(&program, &Options { blocks_from: u32::MAX, ..options.clone() }), &one);
        }
    }
}
