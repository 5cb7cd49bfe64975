//! Random schedules with bounded streams, several lanes and dependencies, judged by the interpreter.
//!
//! * `deadlock_free` holds exactly if the interpreter finishes at the granularity of whole spans. It then finishes at
//!   every granularity: the theorem of `order.rs`.
//! * Without deadlock and race the outputs are the same under every order and granularity.

use proptest::prelude::*;
use unisono_base::NodeId;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_schedule::{
    Builder, Operand, Schedule,
    interpret::{InterpretError, Options, run},
    verify::{Method, verify},
};

const ELEMENTS: u32 = 6;

/// A stream: source, sink, lanes at both ends, lengths that the source pushes and the sink pops, capacity.
type StreamPlan = (u32, u32, u32, u32, Vec<u32>, Vec<u32>, u32);

fn lengths() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
    let cut = |pieces: Vec<bool>| {
        let mut out = vec![1];
        for cut in pieces {
            if cut { out.push(1) } else { *out.last_mut().unwrap() += 1 }
        }
        out
    };
    (0..ELEMENTS as usize).prop_flat_map(move |n| {
        let side = || prop::collection::vec(any::<bool>(), n).prop_map(cut);
        (side(), side())
    })
}

fn streams(nodes: u32) -> impl Strategy<Value = Vec<StreamPlan>> {
    let one = (0..nodes, 1..nodes, 0u32..2, 0u32..2, lengths(), 1..=ELEMENTS)
        .prop_map(move |(from, step, a, b, (push, pop), cap)| (from, (from + step) % nodes, a, b, push, pop, cap));
    prop::collection::vec(one, 1..6)
}

/// Assigns the ends of all streams to their lanes in an order drawn from `order`, with operands drawn from `places`.
fn schedule(nodes: u32, streams: &[StreamPlan], order: &[u32], places: &[u32], waits: &[(u32, u32)]) -> Schedule {
    let c = Collective::new(Kind::Allreduce, nodes, u64::from(ELEMENTS), 0, Operator::Sum, Dtype::I64).unwrap();
    let mut b = Builder::new(c);
    for n in 0..nodes {
        b.scratch(NodeId(n), ELEMENTS);
    }
    let mut ends = Vec::new();
    for (from, to, la, lb, push, pop, cap) in streams {
        let s = b.stream(NodeId(*from), &[NodeId(*to)]);
        b.capacity(s, *cap);
        ends.push((s, *from, *la, push.clone(), true));
        ends.push((s, *to, *lb, pop.clone(), false));
    }
    let mut turn = order.iter().cycle();
    let mut place = places.iter().cycle();
    let mut made = Vec::new();
    while !ends.is_empty() {
        let pick = *turn.next().unwrap() as usize % ends.len();
        let (s, node, lane, pieces, pushes) = &mut ends[pick];
        let len = pieces.remove(0);
        let x = place.next().unwrap();
        let start = x / 4 % (ELEMENTS - len + 1);
        let memory = match x % 4 {
            0 if *pushes => Operand::In(start),
            0 | 1 => Operand::Out(start),
            _ => Operand::Tmp(start),
        };
        let stream = Operand::Stream(*s);
        let (source, sink) = if *pushes { (memory, stream) } else { (stream, memory) };
        made.push(b.combine(NodeId(*node), *lane, len, &[source], &[sink]));
        if pieces.is_empty() {
            ends.swap_remove(pick);
        }
    }
    for &(x, y) in waits {
        let (x, y) = (made[x as usize % made.len()], made[y as usize % made.len()]);
        if x != y {
            b.after(x, y);
        }
    }
    b.finish().unwrap()
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    (2u32..5).prop_flat_map(|nodes| {
        let draws = || prop::collection::vec(any::<u32>(), 1..40);
        let waits = prop::collection::vec((any::<u32>(), any::<u32>()), 0..3);
        (streams(nodes), draws(), draws(), waits)
            .prop_map(move |(s, order, places, waits)| schedule(nodes, &s, &order, &places, &waits))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::soak::cases(3000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn verify_agrees_with_the_interpreter(schedule in any_schedule()) {
        let proof = verify(&schedule, Method::Exact);
        let ill_formed = proof.diagnostics.iter().any(|d| d.code.starts_with("stream") || d.code == "waits-for-itself");
        prop_assume!(!ill_formed);
        let c = *schedule.collective();
        let data: Vec<Vec<i64>> = (0..c.ranks).map(|r| (0..ELEMENTS).map(|k| i64::from(r * 100 + k + 1)).collect()).collect();
        let mut outputs = Vec::new();
        for (chunk, seed) in [(None, 0), (None, 9), (Some(1), 1), (Some(1), 2), (Some(2), 3), (Some(4), 4)] {
            let outcome = run(&schedule, &data, Options { chunk, seed });
            let stuck = matches!(outcome, Err(InterpretError::Stuck { .. }));
            if chunk.is_none() {
                prop_assert_eq!(stuck, !proof.deadlock_free, "{:?}", proof);
            } else if proof.deadlock_free {
                prop_assert!(!stuck, "stuck in chunks of {:?}", chunk);
            }
            outputs.extend(outcome.ok());
        }
        if proof.deadlock_free && proof.race_free {
            for other in &outputs[1..] {
                prop_assert_eq!(&outputs[0], other);
            }
        }
        if !proof.deadlock_free {
            prop_assert!(proof.diagnostics.iter().any(|d| d.code == "deadlock"));
        }
    }

    #[test]
    fn print_then_parse_is_identity(schedule in any_schedule()) {
        let mut text = String::new();
        unisono_schedule::text::print(&schedule, &mut text).unwrap();
        let (read, tail) = unisono_schedule::text::parse(&text).unwrap();
        prop_assert_eq!(&read, &schedule);
        prop_assert_eq!(tail, None);
        let json = serde_json::to_string(&unisono_schedule::json::Document::<()>::of(&schedule)).unwrap();
        let document: unisono_schedule::json::Document<()> = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(document.schedule().unwrap(), schedule);
    }
}
