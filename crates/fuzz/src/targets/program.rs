//! Programs of other tools.

use unisono_emit::PROGRAM_FORMATS;
use unisono_formats::chakra::to_tasks;
use unisono_plan::workload::graph::Clock;
use unisono_workload::{Queues, WorkloadGraph, chakra, read, read_also};

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget =
    FuzzTarget::new("program", "reads a program of another tool, and puts it on a clock", run)
        .seeds(&[("examples/programs", ".hlo"), ("examples/programs/ddp", ".json"), ("tests/goal", ".goal")])
        .quick_runs(200);

fn run(input: &[u8]) -> bool {
    let files = [("fuzz.0.et".to_owned(), input.to_vec())];
    drop(read_also(PROGRAM_FORMATS, &files, true));
    let Some(graph) = uses::read(read_also(PROGRAM_FORMATS, &files, false)) else { return false };
    let end = |overlap| {
        let clock = Clock::new(&graph, overlap, |_, node| 1.0 + (node % 3) as f64).ok()?;
        Some((0..graph.classes.len()).map(|class| clock.end(class)).fold(0.0, f64::max))
    };
    let times = (end(true), end(false));
    // Queues that start nodes as soon as these are ready may choose a worse order.
    if let (Queues::InOrder, (Some(with), Some(without))) = (graph.queues, times) {
        assert!(with <= without, "overlap makes nothing later");
        assert!(without <= total(&graph), "no node waits where all follow each other");
    }
    // Some programs cannot be written as traces: names of groups and ranks are limited.
    if graph.ranks <= 16
        && let Ok(files) = chakra::write(&graph)
    {
        drop(read(&files, true));
    }
    drop(to_tasks(&graph, 1e-9));
    true
}

/// Returns the time of all nodes one after another.
fn total(graph: &WorkloadGraph) -> f64 {
    let of = |nodes: usize| (0..nodes).map(|node| 1.0 + (node % 3) as f64).sum::<f64>();
    graph.classes.iter().map(|class| of(class.nodes.len())).sum()
}
