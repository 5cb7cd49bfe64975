//! Programs of other tools.

use unisono_plan::workload::graph::Clock;
use unisono_workload::{Queues, WorkloadGraph, read};

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget =
    FuzzTarget::new("program", "reads a program of another tool, and puts it on a clock", run)
        .seeds(&[("examples/programs", ".hlo")])
        .quick_runs(200);

fn run(input: &[u8]) -> bool {
    let files = [("fuzz.0.et".to_owned(), input.to_vec())];
    drop(read(&files, true));
    let Some(graph) = uses::read(read(&files, false)) else { return false };
    let end = |overlap| {
        let clock = Clock::new(&graph, overlap, |_, node| 1.0 + (node % 3) as f64).ok()?;
        Some((0..graph.classes.len()).map(|class| clock.end(class)).fold(0.0, f64::max))
    };
    let times = (end(true), end(false));
    // Queues that take what is ready may take it in a worse order.
    if let (Queues::InOrder, (Some(with), Some(without))) = (graph.queues, times) {
        assert!(with <= without, "overlap makes nothing later");
        assert!(without <= total(&graph), "no node waits where all follow each other");
    }
    true
}

/// The time of all nodes one after the other.
fn total(graph: &WorkloadGraph) -> f64 {
    let of = |nodes: usize| (0..nodes).map(|node| 1.0 + (node % 3) as f64).sum::<f64>();
    graph.classes.iter().map(|class| of(class.nodes.len())).sum()
}
