//! Writes GOAL: labels l1, l2, ... in each rank, a tag for every message, and no indentation, which LogGOPSim rejects.

use std::fmt::{self, Write};

use unisono_base::{TaskId, interrupt::poll};
use unisono_lower::tasks::{ANY, Kind, Task, TaskGraph};

/// Writes a task graph. `calc_ns` returns the nanoseconds of each calc and each reduce; both become calcs. Edges follow
/// the tasks of their rank, in the order of the earlier tasks, so that a reader gets the same graph, except for
/// reduces.
///
/// # Errors
/// Returns the errors of `out`.
pub fn write(graph: &TaskGraph, calc_ns: impl Fn(Task) -> u64, out: &mut impl Write) -> fmt::Result {
    writeln!(out, "num_ranks {}", graph.rank_count())?;
    for rank in 0..graph.rank_count() {
        writeln!(out, "\nrank {rank} {{")?;
        let tasks = graph.tasks(rank);
        let label = |id: u32| id - tasks.start + 1;
        for id in tasks.clone() {
            poll();
            write!(out, "l{}: ", label(id))?;
            operation(graph.task(TaskId(id)), &calc_ns, out)?;
        }
        for id in tasks.clone() {
            for (later, started) in graph.waiting(TaskId(id)) {
                let word = if started { "irequires" } else { "requires" };
                writeln!(out, "l{} {word} l{}", label(later.0), label(id))?;
            }
        }
        writeln!(out, "}}")?;
    }
    Ok(())
}

fn operation(task: Task, calc_ns: &impl Fn(Task) -> u64, out: &mut impl Write) -> fmt::Result {
    let Task { kind, peer, tag, amount, cpu, nic } = task;
    match kind {
        Kind::Send => write!(out, "send {amount}b to {peer}")?,
        Kind::Receive if peer == ANY => write!(out, "recv {amount}b from -1")?,
        Kind::Receive => write!(out, "recv {amount}b from {peer}")?,
        Kind::Calc | Kind::Reduce => write!(out, "calc {}", calc_ns(task))?,
    }
    let message = matches!(kind, Kind::Send | Kind::Receive);
    match tag {
        _ if !message => {}
        ANY => write!(out, " tag -1")?,
        _ => write!(out, " tag {tag}")?,
    }
    if cpu > 0 {
        write!(out, " cpu {cpu}")?;
    }
    if nic > 0 && message {
        write!(out, " nic {nic}")?;
    }
    writeln!(out)
}
