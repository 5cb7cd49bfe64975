//! Tests of embedded schedules: an allreduce in two groups, made of reduces, an exchange of leaders and broadcasts.

use unisono_base::{InstrId, NodeId};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_schedule::{
    Builder, Operand, Schedule,
    interpret::{Element, Options, run},
    verify::{Method, verify},
};

fn of(kind: Kind, ranks: u32, operator: Operator) -> Collective {
    Collective::new(kind, ranks, 4, 0, operator, Dtype::I64).unwrap()
}

/// Returns a reduce: all ranks send to rank 0, which adds the vector's halves in two lanes; streams have capacity 1.
fn reduce(ranks: u32, operator: Operator) -> Schedule {
    let mut b = Builder::new(of(Kind::Reduce, ranks, operator));
    b.phase("up");
    for half in 0..2 {
        let tmp = b.scratch(NodeId(0), 2);
        b.combine(NodeId(0), half, 2, &[Operand::In(2 * half)], &[Operand::Tmp(tmp)]);
        for rank in 1..ranks {
            let s = b.stream(NodeId(rank), &[NodeId(0)]);
            b.capacity(s, 1);
            for k in 0..2 {
                let sum = Operand::Tmp(tmp + k);
                b.combine(NodeId(rank), half, 1, &[Operand::In(2 * half + k)], &[Operand::Stream(s)]);
                b.combine(NodeId(0), half, 1, &[sum, Operand::Stream(s)], &[sum]);
            }
        }
        b.combine(NodeId(0), half, 2, &[Operand::Tmp(tmp)], &[Operand::Out(2 * half)]);
    }
    b.finish().unwrap()
}

/// Returns a broadcast: rank 0 sends to all others at once, through a switch.
fn broadcast(ranks: u32, operator: Operator) -> Schedule {
    let mut b = Builder::new(of(Kind::Broadcast, ranks, operator));
    b.phase("down");
    let switch = b.switch();
    let (up, down) = (b.stream(NodeId(0), &[switch]), b.stream(switch, &(1..ranks).map(NodeId).collect::<Vec<_>>()));
    b.combine(NodeId(0), 3, 4, &[Operand::In(0)], &[Operand::Stream(up)]);
    b.combine(switch, 0, 4, &[Operand::Stream(up)], &[Operand::Stream(down)]);
    for rank in 1..ranks {
        b.combine(NodeId(rank), 1, 4, &[Operand::Stream(down)], &[Operand::Out(0)]);
    }
    b.finish().unwrap()
}

/// Returns an allreduce: groups of three reduce to their first ranks, which reduce to rank 0; broadcasts then go the
/// same way back.
fn two_levels(operator: Operator) -> Schedule {
    let mut b = Builder::new(of(Kind::Allreduce, 6, operator));
    let groups = [[0, 1, 2].map(NodeId), [3, 4, 5].map(NodeId)];
    let leaders = [NodeId(0), NodeId(3)];
    let own = |_: u32| Operand::In(0);
    let out = |_: u32| Operand::Out(0);
    for nodes in &groups {
        b.embed(&reduce(3, operator), nodes, own, out);
    }
    let sums = leaders.map(|n| b.scratch(n, 4));
    b.embed(&reduce(2, operator), &leaders, out, |rank| Operand::Tmp(sums[rank as usize]));
    b.embed(&broadcast(2, operator), &leaders, |_| Operand::Tmp(sums[0]), out);
    b.phase("copy");
    let ends = b.lane_ends(NodeId(0));
    let copy = b.combine(NodeId(0), 0, 4, &[Operand::Tmp(sums[0])], &[Operand::Out(0)]);
    ends.into_iter().for_each(|end| b.after(copy, end));
    for nodes in &groups {
        b.embed(&broadcast(3, operator), nodes, out, out);
    }
    b.finish().unwrap()
}

#[test]
fn two_levels_are_proved_and_compute() {
    for operator in [Operator::Sum, Operator::Ordered] {
        let schedule = two_levels(operator);
        for method in [Method::Exact, Method::Fingerprint] {
            let proof = verify(&schedule, method);
            assert!(proof.holds() && proof.repeatable, "{proof:?}");
        }
        assert_eq!(schedule.phases(), ["up", "down", "copy"]);
        assert_eq!(schedule.node_count(), 6 + 3, "each broadcast has its switch");
        let inputs: Vec<Vec<i64>> = (0..6).map(|r| (0..4).map(|k| (r + 2) << 32 | (10 * r + k)).collect()).collect();
        let fold = |k: usize| inputs[1..].iter().fold(inputs[0][k], |x, y| Element::combine(operator, x, y[k]));
        let want: Vec<i64> = (0..4).map(fold).collect();
        for (chunk, seed) in [(None, 1), (Some(1), 2), (Some(1), 3)] {
            let out = run(&schedule, &inputs, Options { chunk, seed }).unwrap();
            assert_eq!(out[..6], vec![want.clone(); 6], "switches have no output");
        }
    }
}

#[test]
fn a_part_waits_for_all_lanes_of_its_node() {
    let mut b = Builder::new(of(Kind::Allreduce, 1, Operator::Sum));
    let first = b.combine(NodeId(0), 5, 4, &[Operand::In(0)], &[Operand::Out(0)]);
    let mut part = Builder::new(of(Kind::Allreduce, 1, Operator::Sum));
    part.combine(NodeId(0), 2, 4, &[Operand::In(0)], &[Operand::Out(0)]);
    b.embed(&part.finish().unwrap(), &[NodeId(0)], |_| Operand::In(0), |_| Operand::Out(0));
    assert_eq!(first, InstrId(0));
    // The new lane 0 comes first in the tables.
    let schedule = b.finish().unwrap();
    assert_eq!(schedule.dependencies(), &[(InstrId(0), InstrId(1))]);
    assert!(verify(&schedule, Method::Exact).holds());
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let part = reduce(3, Operator::Sum);
    let refused = |nodes: &[NodeId], input: Operand| {
        let mut b = Builder::new(of(Kind::Allreduce, 3, Operator::Sum));
        b.stream(NodeId(0), &[NodeId(1)]);
        b.embed(&part, nodes, |_| input, |_| Operand::Out(0));
        b.finish().unwrap_err().to_string()
    };
    let all = [0, 1, 2].map(NodeId);
    assert_eq!(refused(&all[..2], Operand::In(0)), "a part for 3 ranks is placed on 2 nodes; it needs one node a rank");
    assert_eq!(refused(&[0, 1, 9].map(NodeId), Operand::In(0)), "node 9 does not exist; there are 3");
    assert_eq!(
        refused(&all, Operand::Stream(unisono_base::StreamId(0))),
        "the input and output of a part lie in memory; s0 is a stream"
    );
    assert!(refused(&all, Operand::In(u32::MAX)).contains("elements of a buffer"));
}
