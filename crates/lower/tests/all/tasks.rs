//! Tests of the task graphs of schedules, compared with written lists of tasks.

use unisono_base::{InstrId, NodeId, StreamId, TaskId};
use unisono_collective::{Collective, Dtype, Kind as CollectiveKind, Operator};
use unisono_lower::tasks::{ANY, Builder, Kind, Task, TaskError, TaskGraph, draft, pattern};
use unisono_schedule::{Builder as Schedule, Operand};

const IN: Operand = Operand::In(0);
const OUT: Operand = Operand::Out(0);

fn stream(s: StreamId) -> Operand {
    Operand::Stream(s)
}

/// Returns an empty schedule of an allreduce of 8 elements of 4 bytes.
fn among(ranks: u32) -> Schedule {
    Schedule::new(Collective::new(CollectiveKind::Allreduce, ranks, 8, 0, Operator::Sum, Dtype::F32).unwrap())
}

/// Lists a rank's tasks with the tasks for which each waits; `~` marks waits for a start only.
fn shown(graph: &TaskGraph, rank: u32) -> Vec<String> {
    let first = graph.tasks(rank).start;
    let waits_for = |id: u32| {
        let edges = graph.tasks(rank).flat_map(|e| graph.waiting(TaskId(e)).map(move |(l, started)| (e, l, started)));
        let names = edges
            .filter(|e| e.1.0 == id)
            .map(|(e, _, started)| format!("{}{}", if started { "~" } else { "" }, e - first));
        names.collect::<Vec<_>>().join(" ")
    };
    let show = |id: u32| {
        let Task { kind, peer, tag, amount, .. } = graph.task(TaskId(id));
        let what = match kind {
            Kind::Send => format!("send {amount} to {peer} tag {tag}"),
            Kind::Receive => format!("recv {amount} from {peer} tag {tag}"),
            Kind::Calc | Kind::Reduce => format!("{} {amount}", kind.name()),
        };
        format!("{what}; {}", waits_for(id)).trim_end_matches("; ").to_owned()
    };
    graph.tasks(rank).map(show).collect()
}

#[test]
fn an_exchange() {
    let mut b = among(2);
    let to = [b.stream(NodeId(0), &[NodeId(1)]), b.stream(NodeId(1), &[NodeId(0)])];
    for n in 0..2 {
        b.combine(NodeId(n), 0, 8, &[IN], &[stream(to[n as usize])]);
        b.combine(NodeId(n), 0, 8, &[IN, stream(to[1 - n as usize])], &[OUT]);
    }
    let graph = draft(&b.finish().unwrap()).unwrap();
    assert_eq!(shown(&graph, 0), ["send 32 to 1 tag 0", "recv 32 from 1 tag 1; ~0", "reduce 32; 1"]);
    assert_eq!(shown(&graph, 1), ["send 32 to 0 tag 1", "recv 32 from 0 tag 0; ~0", "reduce 32; 1"]);
}

/// A message has the size of the push that sends it. The instruction that pops a message's first element receives the
/// message.
#[test]
fn pieces() {
    let mut b = among(2);
    let s = b.stream(NodeId(0), &[NodeId(1)]);
    for (start, len) in [(0, 5), (5, 1), (6, 2)] {
        b.combine(NodeId(0), 0, len, &[Operand::In(start)], &[stream(s)]);
    }
    for (start, len) in [(0, 3), (3, 1), (4, 4)] {
        b.combine(NodeId(1), 0, len, &[stream(s), Operand::In(start)], &[Operand::Out(start)]);
    }
    let graph = draft(&b.finish().unwrap()).unwrap();
    assert_eq!(shown(&graph, 0), ["send 20 to 1 tag 0", "send 4 to 1 tag 0; ~0", "send 8 to 1 tag 0; ~1"]);
    assert_eq!(
        shown(&graph, 1),
        [
            "recv 20 from 0 tag 0",
            "reduce 12; 0",
            "reduce 4; 1",
            "recv 4 from 0 tag 0; 2",
            "recv 8 from 0 tag 0; 2",
            "reduce 16; 3 4"
        ]
    );
}

#[test]
fn streams_to_several_nodes_and_several_operands() {
    let mut b = among(3);
    let (all, back) = (b.stream(NodeId(0), &[NodeId(1), NodeId(2)]), [1, 2].map(|n| b.stream(NodeId(n), &[NodeId(0)])));
    let one = b.stream(NodeId(0), &[NodeId(2)]);
    b.combine(NodeId(0), 0, 8, &[IN], &[stream(one), stream(all)]);
    b.combine(NodeId(0), 0, 8, &[IN, stream(back[0]), stream(back[1])], &[OUT]);
    for n in 1..3 {
        b.combine(NodeId(n), 0, 8, &[stream(all)], &[stream(back[n as usize - 1])]);
    }
    b.combine(NodeId(2), 1, 8, &[stream(one)], &[OUT]);
    let graph = draft(&b.finish().unwrap()).unwrap();
    // One empty task separates two sets of tasks.
    assert_eq!(
        shown(&graph, 0),
        [
            "send 32 to 2 tag 3",
            "send 32 to 1 tag 0",
            "send 32 to 2 tag 0",
            "calc 0; ~0 ~1 ~2",
            "recv 32 from 1 tag 1; 3",
            "recv 32 from 2 tag 2; 3",
            "reduce 64; 4 5"
        ]
    );
    assert_eq!(shown(&graph, 2), ["recv 32 from 0 tag 0", "send 32 to 0 tag 2; 0", "recv 32 from 0 tag 3"]);
}

/// An instruction waits for instructions of its node, in any order of lanes. A copy inside a node has no task.
#[test]
fn dependencies() {
    let mut b = among(2);
    let s = [b.stream(NodeId(0), &[NodeId(1)]), b.stream(NodeId(1), &[NodeId(0)])];
    let early = b.combine(NodeId(0), 0, 8, &[OUT], &[stream(s[0])]);
    b.combine(NodeId(0), 1, 8, &[IN], &[Operand::Out(0)]);
    let last = b.combine(NodeId(0), 1, 8, &[stream(s[1])], &[OUT]);
    let copy = b.combine(NodeId(0), 1, 8, &[OUT], &[OUT]);
    b.after(early, copy);
    b.after(early, last);
    b.combine(NodeId(1), 0, 8, &[IN], &[stream(s[1])]);
    b.combine(NodeId(1), 0, 8, &[stream(s[0])], &[OUT]);
    let graph = draft(&b.finish().unwrap()).unwrap();
    assert_eq!(shown(&graph, 0), ["send 32 to 1 tag 0; 1 2", "recv 32 from 1 tag 1", "calc 0; 1"]);
}

/// An instruction that waits for another one begins after its last task, not after its first.
#[test]
fn waits_are_for_whole_instructions() {
    let mut b = among(2);
    let s = [b.stream(NodeId(0), &[NodeId(1)]), b.stream(NodeId(1), &[NodeId(0)])];
    let sum = b.combine(NodeId(0), 0, 8, &[IN, stream(s[1])], &[OUT]);
    let sent = b.combine(NodeId(0), 1, 8, &[OUT], &[stream(s[0])]);
    b.after(sent, sum);
    b.combine(NodeId(1), 0, 8, &[IN], &[stream(s[1])]);
    b.combine(NodeId(1), 0, 8, &[stream(s[0])], &[OUT]);
    let graph = draft(&b.finish().unwrap()).unwrap();
    assert_eq!(shown(&graph, 0), ["recv 32 from 1 tag 1", "reduce 32; 0", "send 32 to 1 tag 0; 1"]);
}

#[test]
fn what_is_refused() {
    let mut b = among(2);
    let copies = [0, 1].map(|n| b.combine(NodeId(n), 0, 8, &[IN], &[OUT]));
    b.after(copies[1], copies[0]);
    let error = draft(&b.finish().unwrap()).unwrap_err();
    assert_eq!(error, TaskError::AcrossNodes { later: NodeId(1), earlier: NodeId(0) });
    let mut b = among(2);
    b.combine(NodeId(0), 0, 9, &[IN], &[OUT]);
    let error = draft(&b.finish().unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("the schedule is not well-formed: outside-buffer"), "{error}");
    assert!(matches!(error, TaskError::Malformed(d) if d.instruction == Some(InstrId(0).0)));

    let mut b = Builder::new();
    b.task(Task::calc(1));
    assert_eq!(b.finish().unwrap_err(), TaskError::NoRank);
    let mut b = Builder::new();
    b.rank();
    let first = b.task(Task::receive(ANY, 1, 0));
    b.rank();
    let second = b.task(Task::send(2, 1, 0));
    let mut other = Builder::new();
    other.rank();
    assert_eq!(b.finish().unwrap_err().to_string(), "a send names rank 2; the ranks are 0 to 1");
    other.requires(first, second);
    assert_eq!(other.finish().unwrap_err(), TaskError::OtherRank { task: first });
    assert!(pattern::linear_alltoall(1 << 20, 8).is_err());
    for (from, to) in (0..5).flat_map(|from| (0..5).map(move |to| (from, to))) {
        let peer = [from, to].into_iter().find(|&peer| peer >= 3);
        let refused = peer.map(|peer| TaskError::NoPeer { kind: "message", peer, ranks: 3 });
        assert_eq!(pattern::messages(3, &[(from, to, 8)]).err(), refused);
    }
    assert_eq!(pattern::dissemination(0, 8).unwrap().rank_count(), 0);
}

#[test]
fn wide_amounts() {
    let mut b = Builder::new();
    b.rank();
    let amounts = [0, u64::from(u32::MAX), 1 << 32, u64::MAX];
    let ids = amounts.map(|n| b.task(Task::calc(n)));
    let graph = b.finish().unwrap();
    assert_eq!(ids.map(|id| graph.task(id).amount), amounts);
}

/// Edges to near tasks are stored in rows and all other edges in tables; the tasks that a task releases, and their
/// order, do not depend on that.
#[test]
fn near_and_far_edges() {
    const AHEAD: [i32; 17] = [-20, -1, 0, 1, 2, 7, 8, 9, 10, 15, 16, 17, 18, 62, 63, 64, 70];
    let pairs = AHEAD.iter().flat_map(|&first| AHEAD.iter().map(move |&second| [first, second]));
    for (pair, edges, started) in pairs.flat_map(|pair| [(pair, 1, false), (pair, 2, false), (pair, 2, true)]) {
        let mut b = Builder::new();
        b.rank();
        for _ in 0..91 {
            b.task(Task::calc(1));
        }
        let [first, second] = pair.map(|ahead| TaskId((20 + ahead) as u32));
        b.requires(first, TaskId(20));
        match (edges, started) {
            (1, _) => {}
            (_, false) => b.requires(second, TaskId(20)),
            (_, true) => b.irequires(second, TaskId(20)),
        }
        let graph = b.finish().unwrap();
        let expected = match (edges, started) {
            (1, _) => vec![(first, false)],
            (_, false) => vec![(first, false), (second, false)],
            (_, true) => vec![(second, true), (first, false)],
        };
        let found = |task| graph.waiting(TaskId(task)).collect::<Vec<_>>();
        assert_eq!(found(20), expected, "{pair:?}");
        assert_eq!(graph.is_start_awaited(TaskId(20)), started);
        assert_eq!((0..91).map(|task| found(task).len()).sum::<usize>(), edges);
        assert_eq!(graph.edge_count(), edges);
    }
}
