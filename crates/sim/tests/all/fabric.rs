//! The fabric, compared with closed forms and plain arithmetic, and programs that must fail.

mod packed;

use unisono_algorithms::{ALGORITHMS, Case, Means, Params, resolve};
use unisono_base::NodeId;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::{
    GridPlacement, Placed,
    wafer::{End, PeProgram, WaferProgram, lower, prove_and_lower},
};
use unisono_machine::{Grid, Machine, Wafer};
use unisono_schedule::{
    Builder, Operand, Schedule,
    stored::{packed, unpacked},
    verify::{Method, Verified},
};
use unisono_sim::fabric::{Options, Run, SimError, run};

fn wse2() -> Wafer {
    Machine::preset("wse2").unwrap().get::<Wafer>().unwrap().clone()
}

fn program(kind: Kind, grid: Grid, elements: u64, algorithm: &str, params: &Params) -> WaferProgram {
    let c = Collective::new(kind, grid.count() as u32, elements, 0, Operator::Sum, Dtype::F32).unwrap();
    let case = Case::on_grid(c, grid, 5.0);
    let (algorithm, params) = resolve(algorithm, &case, params).unwrap();
    prove_and_lower(&algorithm.build(&case, &params).unwrap(), &wse2()).unwrap()
}

fn simulate(kind: Kind, grid: Grid, elements: u64, algorithm: &str) -> Run {
    let name = format!("{algorithm} {kind} on {grid} of {elements}");
    let program = program(kind, grid, elements, algorithm, &Params::new());
    let run = run(&program, &Options::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(run.result_correct, "{name}: {:?}", run.mismatch);
    run
}

/// B wavelets over h hops take 1 cycle for the sender's operation, 2 for its ramp, h for the hops, 2 for the receiver's
/// ramp, and B for its operations: B + h + 5. Along a chain, every PE adds one hop, two ramps and one operation: B + 6
/// (P - 1).
#[test]
fn uncontended_times_are_the_closed_forms() {
    for pes in [2u32, 4, 16, 64, 512] {
        for elements in [1u64, 2, 16, 256, 4096] {
            let line = Grid::new(1, pes);
            let (p, b) = (u64::from(pes), elements);
            assert_eq!(simulate(Kind::Message, line, b, "message").cycles, b + p + 4, "message {p} {b}");
            assert_eq!(simulate(Kind::Broadcast, line, b, "flood").cycles, b + p + 4, "flood {p} {b}");
            assert_eq!(simulate(Kind::Reduce, line, b, "chain").cycles, b + 6 * (p - 1), "chain {p} {b}");
        }
    }
    assert_eq!(simulate(Kind::Broadcast, Grid::new(7, 9), 100, "flood").cycles, 100 + 14 + 5);
    // The wavelet of the farthest PE comes last, one hop later than in the perfect pipeline of the paper.
    assert_eq!(simulate(Kind::Reduce, Grid::new(1, 512), 1, "star").cycles, 517);
}

/// A PE whose subtree has 2^k PEs takes vectors of subtrees of 2^0, 2^1, ..., 2^(k-1) PEs, in this order, and forwards
/// the last vector as it arrives. Subtree j ends at T_j. Its last element arrives 2^j hops and 2 T_R + 1 cycles later,
/// and each of the k-1-j vectors after it takes B cycles, or waits: T_k = max over j of T_j + 2^j + 5 + (k-1-j) B, with
/// T_0 = B. On each level this is the larger of the path and the vector. On level 0, which leads to a leaf, it is the
/// path.
#[test]
fn the_time_of_a_tree_is_the_larger_of_way_and_vector_on_each_level() {
    let tree = |pes: u32, b: u64| simulate(Kind::Reduce, Grid::new(1, pes), b, "tree").cycles;
    for k in 1..10u32 {
        for b in [1u64, 2, 3, 5, 8, 16, 21, 32, 64, 100, 128, 256, 1000, 4096] {
            let levels: u64 = (1..k).map(|j| (2u64.pow(j) + 5).max(b)).sum();
            assert_eq!(tree(2u32.pow(k), b), b + 6 + levels, "P = {} B = {b}", 2u32.pow(k));
        }
    }
    // Eq. 1: 64.25 + 255 + 40, 512 + 40.
    assert_eq!([tree(256, 16), tree(256, 64)], [330, 592]);
}

#[test]
fn every_algorithm_gives_the_right_result() {
    for grid in [Grid::new(1, 9), Grid::new(4, 4), Grid::new(7, 5), Grid::new(16, 16)] {
        for elements in [1, 7, 64] {
            for algorithm in ["star", "chain", "tree", "two-phase", "two-phase-searched", "auto-gen"] {
                simulate(Kind::Reduce, grid, elements, algorithm);
                simulate(Kind::Allreduce, grid, elements, algorithm);
            }
            if grid.is_line() {
                simulate(Kind::Allreduce, grid, elements, "ring");
            } else {
                for algorithm in ["snake", "kd-tree", "quad-chain", "slack-tree"] {
                    simulate(Kind::Reduce, grid, elements, algorithm);
                    simulate(Kind::Allreduce, grid, elements, algorithm);
                }
                simulate(Kind::Allreduce, grid, elements, "x-y-allreduce");
            }
        }
    }
}

/// 2 n elements of 16 bits have as many wavelets as n elements of 32 bits, and each half is combined separately.
#[test]
fn two_16_bit_integers_share_a_wavelet() {
    let cases = [
        (Kind::Reduce, Grid::new(5, 7), "slack-tree"),
        (Kind::Reduce, Grid::new(8, 8), "kd-tree"),
        (Kind::Allreduce, Grid::new(1, 9), "ring"),
        (Kind::Allreduce, Grid::new(4, 4), "chain"),
        (Kind::Scan, Grid::new(3, 4), "x-y-scan"),
        (Kind::Alltoall, Grid::new(1, 5), "two-way"),
    ];
    let operators = [Operator::Sum, Operator::Prod, Operator::Min, Operator::Max, Operator::And, Operator::Xor];
    for ((kind, grid, name), operator) in cases.into_iter().flat_map(|case| operators.map(|operator| (case, operator)))
    {
        let built = |dtype, unit| {
            let c = Collective::new(kind, grid.count() as u32, 23, 0, operator, dtype).unwrap();
            let case = Case::on_grid(Collective { unit, ..c }, grid, 5.0);
            let (algorithm, params) = resolve(name, &case, &Params::new()).unwrap();
            algorithm.build(&case, &params).unwrap()
        };
        let of_units = built(Dtype::I16, 2);
        let schedule = unpacked(&of_units.schedule);
        assert_eq!((schedule.collective().elements, schedule.collective().unit), (46, 1));
        assert_eq!(packed(&schedule, 2).as_ref(), Some(&of_units.schedule));
        let placed = Placed { schedule, ..of_units };
        let [short, long] = [placed, built(Dtype::I32, 1)].map(|placed| {
            let run = run(&prove_and_lower(&placed, &wse2()).unwrap(), &Options::default()).unwrap();
            assert!(run.result_correct, "{name} {operator} on {grid}: {:?}", run.mismatch);
            run.cycles
        });
        assert_eq!(short, long, "{name} {operator} on {grid}");
        let odd = prove_and_lower(&built(Dtype::I16, 1), &wse2()).unwrap_err();
        assert!(odd.to_string().starts_with("a wavelet carries 2 elements of i16"), "{odd}");
    }
}

/// Short vectors on a grid. The best algorithms of the paper take 157, 182 and 268 cycles.
#[test]
fn slack_trees_are_fast_where_vectors_are_short() {
    let params = Params::new().with("trees", 3).with("children", 3);
    for (side, most) in [(16, 90), (32, 127), (64, 196)] {
        let grid = Grid::new(side, side);
        let run = run(&program(Kind::Reduce, grid, 16, "slack-tree", &params), &Options::default()).unwrap();
        assert!(run.result_correct && run.cycles <= most, "{grid}: {} cycles", run.cycles);
    }
}

/// Leaves of the reduce are paced, but the flood after the reduce is not. The flood takes B + h + 5 cycles.
#[test]
fn a_flood_is_as_fast_after_a_paced_reduce() {
    let grid = Grid::new(16, 16);
    for algorithm in ["kd-tree", "quad-chain", "slack-tree"] {
        let reduce = simulate(Kind::Reduce, grid, 64, algorithm).cycles;
        let both = simulate(Kind::Allreduce, grid, 64, algorithm).cycles;
        assert!(both <= reduce + 64 + 30 + 5, "{algorithm}: {reduce} cycles, with the flood {both}");
    }
}

#[test]
fn a_program_without_its_control_wavelets_stops() {
    let mut stopped = Vec::new();
    for algorithm in ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Grid)) {
        for (kind, grid) in
            algorithm.info().collectives.iter().flat_map(|&k| [Grid::new(1, 32), Grid::new(6, 6)].map(|grid| (k, grid)))
        {
            let c = Collective::new(kind, grid.count() as u32, 16, 0, Operator::Sum, Dtype::F32).unwrap();
            let case = Case::on_grid(c, grid, 5.0);
            if algorithm.supports(&case, &Params::new()).is_err() {
                continue;
            }
            let program = program(kind, grid, 16, algorithm.name(), &Params::new());
            let without = program.without_controls();
            if without == program {
                continue;
            }
            let name = format!("{} {kind} on {grid}", algorithm.name());
            let error = run(&without, &Options::default()).expect_err(&name);
            assert!(matches!(error, SimError::Deadlock { .. } | SimError::Collision { .. }), "{name}: {error}");
            if let SimError::Deadlock { stuck, .. } = &error {
                assert!(stuck.iter().any(|s| s.why.contains("color")), "{name}: {error}");
            }
            stopped.push(algorithm.name());
        }
    }
    stopped.dedup();
    for name in ["auto-gen", "reduce-broadcast", "tree", "two-phase", "x-y", "x-y-allreduce"] {
        assert!(stopped.contains(&name), "{name} sends control wavelets; {stopped:?} did");
    }
}

#[test]
fn queue_depth_changes_time_but_not_results() {
    let times = |algorithm: &str, grid: Grid| {
        let program = program(Kind::Reduce, grid, 200, algorithm, &Params::new());
        [1, 2, 4, 8, 16].map(|queue_depth| {
            let run = run(&program, &Options { queue_depth, ..Options::default() }).unwrap();
            assert!(run.result_correct, "{algorithm}: {:?}", run.mismatch);
            run.cycles
        })
    };
    times("kd-tree", Grid::new(12, 12));
    times("auto-gen", Grid::new(1, 40));
    // A slot is free only in the cycle after its wavelet left. So one slot halves the rate of a link, and two slots do
    // not.
    assert_eq!(times("chain", Grid::new(1, 3)).map(|t| t >= 2 * 200), [true, false, false, false, false]);
}

#[test]
fn noise_makes_runs_longer_and_is_repeatable() {
    let program = program(Kind::Reduce, Grid::new(1, 64), 64, "chain", &Params::new());
    let quiet = run(&program, &Options::default()).unwrap();
    let noisy = |seed| run(&program, &Options { noop_probability: 0.1, seed, ..Options::default() }).unwrap();
    assert!(noisy(1).result_correct && noisy(1).cycles > quiet.cycles);
    assert_eq!(noisy(1), noisy(1));
    assert_ne!(noisy(1).cycles, noisy(2).cycles);
    let late = Options { start: (0..64).map(|pe| if pe == 63 { 1000 } else { 0 }).collect(), ..Options::default() };
    assert_eq!(run(&program, &late).unwrap().cycles, quiet.cycles + 1000);
}

#[test]
fn no_time_goes_under_the_physical_bound() {
    for grid in [Grid::new(1, 17), Grid::new(9, 13)] {
        for elements in [1u64, 40, 300] {
            for algorithm in ["star", "chain", "tree", "two-phase", "auto-gen"] {
                let bound = elements + u64::from(grid.eccentricity(0)) + 5;
                assert!(simulate(Kind::Reduce, grid, elements, algorithm).cycles >= bound, "{algorithm} {grid}");
            }
            let bound = elements + u64::from(grid.eccentricity(0)) + 5;
            assert!(simulate(Kind::Broadcast, grid, elements, "flood").cycles >= bound, "flood {grid}");
            if grid.is_line() {
                assert!(simulate(Kind::Message, grid, elements, "message").cycles >= bound, "message {grid}");
            }
        }
    }
}

/// If the neighbors of a corner along x and y send at the same time, the corner's ramp carries 2 B wavelets, which
/// takes 6 + 2 B cycles, as if both came from one side. The same holds for a corner that sends different wavelets along
/// x and y.
#[test]
fn one_ramp_serves_both_axes_in_turn() {
    for elements in [1u32, 7, 64, 300] {
        let c = Collective::new(Kind::Reduce, 4, u64::from(elements), 0, Operator::Sum, Dtype::I32).unwrap();
        let placement = GridPlacement::new(Grid::new(2, 2));
        let mut b = Builder::new(c);
        let streams = [1, 2].map(|pe| b.stream(NodeId(pe), &[NodeId(0)]));
        let mut sources = vec![Operand::In(0)];
        sources.extend(streams.map(Operand::Stream));
        b.combine(NodeId(0), 0, elements, &sources, &[Operand::Out(0)]);
        for (pe, stream) in [1, 2].into_iter().zip(streams) {
            b.combine(NodeId(pe), 0, elements, &[Operand::In(0)], &[Operand::Stream(stream)]);
        }
        let both = run(&lower_messages(&b.finish().unwrap(), &placement), &Options::default()).unwrap().cycles;
        assert_eq!(both, 6 + 2 * u64::from(elements), "{elements} from x and y");
        let c = Collective::new(Kind::Broadcast, 4, u64::from(elements), 0, Operator::Sum, Dtype::I32).unwrap();
        let mut b = Builder::new(c);
        for (lane, pe) in [(0, 1), (1, 2)] {
            let stream = b.stream(NodeId(0), &[NodeId(pe)]);
            b.combine(NodeId(0), lane, elements, &[Operand::In(0)], &[Operand::Stream(stream)]);
            b.combine(NodeId(pe), 0, elements, &[Operand::Stream(stream)], &[Operand::Out(0)]);
        }
        let sent = run(&lower_messages(&b.finish().unwrap(), &placement), &Options::default()).unwrap().cycles;
        assert!(sent >= 2 * u64::from(elements) + 5, "{elements} to x and y: {sent}");
    }
}

/// Lowers a schedule whose outputs need not be those of its collective.
fn lower_messages(schedule: &Schedule, placement: &GridPlacement) -> WaferProgram {
    let none = vec![Vec::new(); schedule.node_count()];
    lower(&Verified::of_messages(schedule, Method::Auto, &none).unwrap(), placement, &wse2()).unwrap()
}

/// A root between two neighbors can use their first elements in cycle 6. Without own input, element by element, it ends
/// with the last of 2 B wavelets that come down its ramp: 6 + 2 B. With its own input it does two operations an
/// element, so the time is the same. Wavelets of both children arrive alternately. A chunk of C takes every other
/// wavelet at first, and so leaves C - 1 cycles unused, until the queue of the other child is full, which holds depth +
/// T_R = 6 wavelets.
#[test]
fn a_chunk_is_taken_from_one_child_before_the_next() {
    let time = |own: bool, elements: u32, chunk: u32| {
        let c = Collective::new(Kind::Reduce, 3, u64::from(elements), 1, Operator::Sum, Dtype::I32).unwrap();
        let mut b = Builder::new(c);
        let streams = [0, 2].map(|pe| b.stream(NodeId(pe), &[NodeId(1)]));
        let mut sources = streams.map(Operand::Stream).to_vec();
        if own {
            sources.insert(0, Operand::In(0));
        }
        b.combine(NodeId(1), 0, elements, &sources, &[Operand::Out(0)]);
        for (pe, stream) in [0, 2].into_iter().zip(streams) {
            b.combine(NodeId(pe), 0, elements, &[Operand::In(0)], &[Operand::Stream(stream)]);
        }
        let placement = GridPlacement { chunk, ..GridPlacement::new(Grid::new(1, 3)) };
        // Without its own input the root computes another sum than the collective requires.
        let run = run(&lower_messages(&b.finish().unwrap(), &placement), &Options::default()).unwrap();
        assert_eq!(run.result_correct, own, "the root's own input is part of the sum");
        run.cycles
    };
    for elements in [1u32, 7, 64] {
        for own in [true, false] {
            let end = 6 + 2 * u64::from(elements);
            for chunk in [1, 2, 3, 5] {
                let unused = u64::from(chunk.min(elements)) - 1;
                assert_eq!(time(own, elements, chunk), end + unused, "{elements} in chunks of {chunk}, {own}");
            }
            for chunk in [20, 64, u32::MAX] {
                assert!(time(own, elements, chunk) <= end + 6, "{elements} in chunks of {chunk}, {own}");
            }
        }
    }
}

/// Every level of a tree waits for the first chunk of the level below.
#[test]
fn larger_chunks_take_longer_and_give_the_same() {
    for (algorithm, grid) in
        [("kd-tree", Grid::new(16, 16)), ("quad-two-phase", Grid::new(16, 16)), ("xy-yx", Grid::new(6, 9))]
    {
        let times = ["1", "2", "8", "1000"].map(|chunk| {
            let program = program(Kind::Reduce, grid, 256, algorithm, &Params::new().with("chunk", chunk));
            let run = run(&program, &Options::default()).unwrap();
            assert!(run.result_correct, "{algorithm} in chunks of {chunk}: {:?}", run.mismatch);
            run.cycles
        });
        assert_eq!(times[0], simulate(Kind::Reduce, grid, 256, algorithm).cycles);
        // Chunks of one and of two elements may differ by a few cycles in either direction, depending on the order of
        // arrivals at a PE.
        assert!(times[0] <= times[1] + times[1] / 100, "{algorithm}: {times:?}");
        assert!(times[1..].is_sorted() && times[2] > times[0], "{algorithm}: {times:?}");
    }
}

/// Two threads of one PE write the same output while both run, so the result is undefined.
#[test]
fn threads_that_meet_in_memory_are_an_error() {
    let c = Collective::new(Kind::Reduce, 3, 20, 1, Operator::Sum, Dtype::I32).unwrap();
    let program = {
        let mut b = Builder::new(c);
        for (lane, pe) in [0, 2].into_iter().enumerate() {
            let stream = b.stream(NodeId(pe), &[NodeId(1)]);
            b.combine(NodeId(pe), 0, 10, &[Operand::In(0)], &[Operand::Stream(stream)]);
            let at = lane as u32 * 10;
            b.combine(NodeId(1), lane as u32, 10, &[Operand::Stream(stream)], &[Operand::Out(at)]);
        }
        lower_messages(&b.finish().unwrap(), &GridPlacement::new(Grid::new(1, 3)))
    };
    assert!(run(&program, &Options::default()).is_ok());
    // A schedule with this race cannot be proved, so the program is changed instead.
    let moved = |&end: &End| if end == End::Out(10) { End::Out(9) } else { end };
    let step = |op| (*program.op(op), program.sources(op).to_vec(), program.sinks(op).iter().map(moved).collect());
    let pes = (0..program.pe_count()).map(|pe| PeProgram {
        routes: program.routes(pe).to_vec(),
        threads: program.threads(pe).map(|thread| program.thread_ops(thread).map(step).collect()).collect(),
        ..PeProgram::default()
    });
    let raced = WaferProgram::assemble(program.grid, c, program.phases().to_vec(), pes);
    let error = run(&raced, &Options::default()).unwrap_err();
    assert!(matches!(error, SimError::Race { row: 0, col: 1, .. }), "{error}");
}

#[test]
fn a_period_longer_than_it_can_remember_is_refused() {
    let program = program(Kind::Reduce, Grid::new(1, 3), 4, "chain", &Params::new());
    let error = run(&program, &Options { period: 17, ..Options::default() }).unwrap_err();
    assert!(error.to_string().contains("the period is 17"), "{error}");
}
