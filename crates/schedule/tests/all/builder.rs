//! Tests of `builder`.

use unisono_base::{InstrId, NodeId, PhaseId, Random, StreamId, parallel};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_schedule::{Builder, Operand, internals};

fn builder(ranks: u32) -> Builder {
    Builder::new(Collective::new(Kind::Allreduce, ranks, 8, 0, Operator::Sum, Dtype::F32).unwrap())
}

#[test]
fn lanes_are_sorted_and_dense() {
    let mut b = builder(3);
    let c = b.combine(NodeId(2), 7, 8, &[Operand::In(0)], &[Operand::Out(0)]);
    let a = b.combine(NodeId(0), 0, 8, &[Operand::In(0)], &[Operand::Out(0)]);
    b.after(c, a);
    let s = b.finish().unwrap();
    assert_eq!(s.lanes(NodeId(0)), 0..1);
    assert_eq!(s.lanes(NodeId(1)), 1..1);
    assert_eq!(s.node_instrs(NodeId(1)), 1..1);
    assert_eq!(s.lanes(NodeId(2)), 1..2);
    assert_eq!(s.dependencies(), &[(InstrId(1), InstrId(0))]);
}

#[test]
fn lanes_meet_at_a_join() {
    let mut b = builder(2);
    let mut push = |node, lane| b.combine(NodeId(node), lane, 8, &[Operand::In(0)], &[Operand::Out(0)]);
    push(0, 0);
    let [a, c, alone] = [push(0, 0), push(0, 1), push(1, 0)];
    b.join_lanes();
    let mut push = |node, lane| b.combine(NodeId(node), lane, 8, &[Operand::In(0)], &[Operand::Out(0)]);
    let [d, _, e, _] = [push(0, 0), push(0, 0), push(0, 2), push(1, 0)];
    assert_eq!(alone, InstrId(3));
    // After renumbering by node and lane, a is 1, d is 2, c is 4 and e is 5.
    assert_eq!([a, c, d, e].map(|i| i.0), [1, 2, 4, 6]);
    let s = b.finish().unwrap();
    assert_eq!(s.dependencies(), [(2, 4), (5, 1), (5, 4)].map(|(x, y)| (InstrId(x), InstrId(y))));
}

/// Lanes and steps change after random numbers of instructions, often only after many. Lanes ascend in odd rounds.
/// Places wrap around beyond the greatest one.
#[test]
fn instructions_are_found_as_they_were_added() {
    parallel::set_cores(2);
    let mut most_in_runs = 0;
    for round in 0..60_u32 {
        let mut numbers = Random(u64::from(round));
        let mut below = |most: u64| numbers.below(most) as u32;
        let (rare, steps) = (2 + u64::from(round % 6).pow(4), [0, 1, 4, u32::MAX, u32::MAX - 63, 1 << 31]);
        let (mut lane, mut at, mut step) = (0, 0_u32, 0_u32);
        let mut added: Vec<(u32, u32, Vec<Operand>, Vec<Operand>)> = Vec::new();
        for n in 0..18_000 {
            if below(rare) == 0 {
                (at, step) = (below(1 << 32), steps[below(6) as usize]);
                lane = if round % 2 == 1 { n / 3_000 } else { below(6) };
            }
            at = at.wrapping_add(step);
            let [from, to] = [(lane / 2 + 2) % 3, lane / 2 + u32::from(below(rare) == 0)];
            let stream = Operand::Stream(StreamId(from));
            let sources = if below(2 * rare) == 0 { vec![Operand::In(at)] } else { vec![stream, Operand::In(at)] };
            let sinks = match below(4 * rare) {
                0 => vec![Operand::Tmp(at)],
                1 => vec![Operand::Out(below(9))],
                2 => vec![Operand::Stream(StreamId(to % 3))],
                _ => vec![Operand::Out(at.wrapping_add(round % 3)), Operand::Stream(StreamId(lane / 2))],
            };
            added.push((lane, 1 + u32::from(below(2 * rare) == 0), sources, sinks));
        }
        let emit = |b: &mut Builder| -> Result<(), ()> {
            (0..3).for_each(|node| _ = b.stream(NodeId(node), &[NodeId((node + 1) % 3)]));
            for (lane, len, sources, sinks) in &added {
                b.combine(NodeId(lane / 2), lane % 2, *len, sources, sinks);
            }
            Ok(())
        };
        let built = |instrs| {
            let mut b = builder(3);
            b.in_halves(instrs, emit).unwrap();
            b.finish().unwrap()
        };
        let made = built(0);
        let found = (0..made.instr_count()).map(InstrId::new);
        let found = found.map(|id| (made.instr(id).len, made.sources(id).to_vec(), made.sinks(id).to_vec()));
        let mut sorted = added.clone();
        sorted.sort_by_key(|one| one.0);
        assert!(found.eq(sorted.into_iter().map(|(_, len, sources, sinks)| (len, sources, sinks))), "round {round}");
        assert!(built(18_000) == made, "round {round}");
        most_in_runs = most_in_runs.max(made.instr_count() / internals::runs::count(&made));
        let again = Builder::resume(made.clone(), *made.collective()).finish().unwrap();
        assert!(again == made, "round {round}");
    }
    assert!(most_in_runs > 20, "{most_in_runs}");
}

#[test]
fn two_threads_build_what_one_builds() {
    const NODES: u64 = 33;
    for round in 0..6 {
        let emit = |b: &mut Builder| -> Result<(), ()> {
            let (mut numbers, mut last) = (Random(round), [None; NODES as usize]);
            for n in 0..12_000 {
                let mut below = |most: u64| numbers.below(most) as u32;
                let (from, step, lanes, place, len) =
                    (below(NODES), 1 + below(NODES - 1), below(9), below(4), 1 + below(4));
                let to = (from + step) % NODES as u32;
                let (unused, bounded) = (below(50) == 0, below(20) == 0);
                b.phase(if n < 6_000 { "first" } else { "second" });
                let at = b.scratch(NodeId(from), u32::from(n % 10 == 0));
                let stream = b.stream(NodeId(from), &[NodeId(to)]);
                if bounded {
                    b.capacity(stream, len);
                }
                let ends = [(from, lanes % 3), (to, lanes / 3)];
                for (end, (node, lane)) in ends.into_iter().enumerate().filter(|_| !unused) {
                    if b.keeps(NodeId(node)) {
                        let memory = if at > 0 && end == 0 { Operand::Tmp(at - 1) } else { Operand::Out(place) };
                        let mut operands = [memory, Operand::Stream(stream)];
                        operands.rotate_left(end);
                        let made = b.combine(NodeId(node), lane, len, &operands[..1], &operands[1..]);
                        if let Some(earlier) = last[node as usize].replace(made).filter(|_| n % 3 == 0) {
                            b.after(made, earlier);
                        }
                    }
                }
            }
            Ok(())
        };
        let [one, two] = [1, 16].map(|cores| {
            parallel::set_cores(cores);
            let mut b = builder(NODES as u32);
            if round % 2 == 0 {
                b.stream(NodeId(1), &[NodeId(0)]);
                b.combine(NodeId(2), 1, 4, &[Operand::In(0)], &[Operand::Out(0)]);
                b.join_lanes();
            }
            b.in_halves(1 << 20, emit).unwrap();
            b.join_lanes();
            b.combine(NodeId(20), 0, 3, &[Operand::In(0)], &[Operand::Out(0)]);
            b.finish().unwrap()
        });
        assert!(one == two, "round {round}");
    }
}

#[test]
fn phases_are_found_by_name_among_very_many() {
    let mut b = builder(1);
    let mut found = |names: u32| {
        for n in 0..120_000 {
            assert_eq!(b.phase(&format!("phase-{}", n % names)), PhaseId(n % names));
        }
    };
    // A linear search through all names would take 30 times as long for 60,000 names as for 2,000.
    let [few, many] = [2_000, 60_000].map(|names| crate::cpu::least_ns(|| found(names)));
    assert!(many < 10 * few, "{few} ns among few names, {many} ns among many");
    let mut resumed = Builder::resume(b.finish().unwrap(), *builder(1).collective());
    assert_eq!(resumed.phase("phase-59999"), PhaseId(59_999));
    assert_eq!(resumed.phase("another"), PhaseId(60_000));
}

#[test]
fn what_does_not_exist_is_named() {
    let mut b = builder(2);
    b.combine(NodeId(5), 0, 1, &[Operand::In(0)], &[Operand::Out(0)]);
    assert_eq!(b.finish().unwrap_err().to_string(), "node 5 does not exist; there are 2");
    let mut b = builder(2);
    b.combine(NodeId(0), 0, 1, &[Operand::Stream(StreamId(3))], &[Operand::Out(0)]);
    assert_eq!(b.finish().unwrap_err().to_string(), "stream 3 does not exist; there are 0");
}
