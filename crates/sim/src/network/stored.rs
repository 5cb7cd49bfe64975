//! Sums of switches that an accelerator requests and stores to several nodes: the accelerator receives each sum and
//! sends it back. In a task graph such a sum is a reduction followed by messages to several ranks.

use unisono_base::TaskId;
use unisono_lower::tasks::{Kind, TaskGraph};

use super::{Interconnect, Options};

/// Returns the sends of sums that an accelerator stores, in ascending order, with the additional delay of each in
/// picoseconds: a signal plus the path from the switch to the accelerator and back.
pub(super) fn sends(graph: &TaskGraph, net: &Interconnect, options: &Options) -> Vec<(u32, u64)> {
    let Interconnect { plane, timing, computing, .. } = net;
    let mut found = Vec::new();
    for (rank, &place) in (0..).zip(&options.places) {
        if !computing.class(place).is_some_and(|class| class.pulls) {
            continue;
        }
        let hop_ps = plane.leaving(place).map(|link| timing.of(plane.link(link)).hop_ps).max().unwrap_or(0);
        let late_ps = timing.signal_ps.saturating_add(2 * hop_ps);
        for sum in graph.tasks(rank).map(TaskId).filter(|&task| graph.task(task).kind == Kind::Reduce) {
            let waiting = graph.waiting(sum).map(|(task, _)| task);
            let sends: Vec<TaskId> = waiting.filter(|&task| graph.task(task).kind == Kind::Send).collect();
            if sends.windows(2).any(|pair| graph.task(pair[0]).peer != graph.task(pair[1]).peer) {
                found.extend(sends.iter().map(|send| (send.0, late_ps)));
            }
        }
    }
    found.sort_unstable();
    found
}
