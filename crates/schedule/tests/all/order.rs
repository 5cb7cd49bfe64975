//! Tests of `order`.

use unisono_base::{Diagnostics, InstrId, NodeId};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_schedule::{
    Builder, Flow, Operand, Schedule,
    internals::order::{Dependents, Runs, depth_first, successors},
    topological,
};

const NODES: u32 = 4;
const LANES: u32 = 2;

/// Returns a schedule with streams of six elements, cut at random at each end, whose pushes and pops are in random
/// order in the lanes of four nodes; with random capacities and dependencies.
fn random(mut draw: impl FnMut(u32) -> u32) -> Schedule {
    let mut b = Builder::new(Collective::new(Kind::Alltoall, NODES, 6, 0, Operator::Sum, Dtype::F32).unwrap());
    let mut lanes = vec![Vec::new(); (NODES * LANES) as usize];
    for _ in 0..1 + draw(4) {
        let source = draw(NODES);
        let sinks: Vec<NodeId> = (0..NODES).filter(|&n| n != source && draw(2) == 0).map(NodeId).collect();
        if sinks.is_empty() {
            continue;
        }
        let stream = b.stream(NodeId(source), &sinks);
        b.capacity(stream, 1 + draw(8));
        for node in sinks.into_iter().chain([NodeId(source)]) {
            let lane = &mut lanes[(node.0 * LANES + draw(LANES)) as usize];
            let (mut at, mut left) = (0, 6);
            while left > 0 {
                let len = 1 + draw(left);
                at += draw(lane.len() as u32 - at + 1);
                lane.insert(at as usize, (stream, len, node.0 == source));
                at += 1;
                left -= len;
            }
        }
    }
    let mut made = Vec::new();
    for (lane, rows) in (0u32..).zip(lanes) {
        for (stream, len, pushes) in rows {
            let (stream, memory) = (Operand::Stream(stream), Operand::Tmp(0));
            let (from, to) = if pushes { (memory, stream) } else { (stream, memory) };
            made.push(b.combine(NodeId(lane / LANES), lane % LANES, len, &[from], &[to]));
        }
    }
    for _ in 0..draw(3).min(made.len() as u32) {
        let [a, c] = [draw(made.len() as u32), draw(made.len() as u32)];
        if a != c {
            b.after(made[a as usize], made[c as usize]);
        }
    }
    for node in (0..NODES).map(NodeId) {
        b.scratch(node, 6);
    }
    b.finish().unwrap()
}

#[test]
fn lanes_run_exactly_where_there_is_no_cycle() {
    let mut numbers = unisono_base::Random(1);
    let mut ends = [0; 2];
    for _ in 0..20_000 {
        let schedule = random(|below| numbers.below(below.into()) as u32);
        let mut found = Diagnostics::default();
        let flow = Flow::new(&schedule, &mut found);
        assert!(found.is_empty(), "{:?}", found.into_vec());
        let mut cycle = Diagnostics::default();
        let all = topological(&schedule, &flow, &mut cycle);
        let runs = Runs::default();
        depth_first(&schedule, &runs, &mut found);
        assert_eq!(found.into_vec(), cycle.clone().into_vec());
        ends[usize::from(cycle.is_empty())] += 1;
        if cycle.is_empty() {
            let mut order = runs.instrs(&schedule);
            let mut rank = vec![0; order.len()];
            order.iter().enumerate().for_each(|(at, id)| rank[id.index()] = at);
            let dependents = Dependents::new(&schedule, &[]);
            for &id in &all {
                successors(&schedule, &flow, &dependents, id, |next| assert!(rank[id.index()] < rank[next.index()]));
            }
            order.sort_unstable();
            assert!(order.into_iter().eq((0..all.len()).map(InstrId::new)));
        }
    }
    assert!(ends.iter().all(|&n| n > 1000), "{ends:?}");
}
