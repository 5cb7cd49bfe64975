//! Traffic patterns of collectives, as Schedgen, the generator of LogGOPSim, writes them. All tags are 0.
//!
//! Patterns have neither proof nor data. They serve to compare simulators with LogGOPSim, and to load a machine.

use unisono_base::{limits, mix, narrow};

use super::{Builder, MOST_TASKS, Task, TaskError, TaskGraph};

/// Builds a dissemination: in round k of ceil(log2 P), each rank sends to the rank 2^k ahead and receives from the rank
/// 2^k behind. The next round waits for the receive (barrier, allreduce of short vectors: Hensgen, Finkel, Manber,
/// 1988).
///
/// # Errors
/// Returns an error if the pattern is too large.
pub fn dissemination(ranks: u32, bytes: u64) -> Result<TaskGraph, TaskError> {
    exchanges(ranks, |rank| {
        let step = |k: u32| 1 << k;
        (0..log2_up(ranks)).map(move |k| (around(rank, step(k), ranks), around(rank, ranks - step(k), ranks), bytes))
    })
}

/// Builds a binomial tree to rank 0: rank r sends to the rank r without its highest bit, once all children of r have
/// sent to r.
///
/// # Errors
/// Returns an error if the pattern is too large.
pub fn binomial_reduce(ranks: u32, bytes: u64) -> Result<TaskGraph, TaskError> {
    let mut b = begin(ranks, 2, 1)?;
    for rank in 0..ranks {
        b.rank();
        let send = rank.checked_ilog2().map(|high| b.task(Task::send(rank - (1 << high), bytes, 0)));
        let first = rank.checked_ilog2().map_or(0, |high| high + 1);
        for child in (first..32).filter_map(|k| rank.checked_add(1 << k)).take_while(|&c| c < ranks) {
            let receive = b.task(Task::receive(child, bytes, 0));
            send.into_iter().for_each(|s| b.requires(s, receive));
        }
    }
    b.finish()
}

/// Builds an all-to-all in which each rank sends to all other ranks, beginning with the next rank. No task waits for
/// another.
///
/// # Errors
/// Returns an error if the pattern is too large.
pub fn linear_alltoall(ranks: u32, bytes: u64) -> Result<TaskGraph, TaskError> {
    let mut b = begin(ranks, 2 * u64::from(ranks), 0)?;
    for rank in 0..ranks {
        b.rank();
        for step in 1..ranks {
            b.task(Task::send(around(rank, step, ranks), bytes, 0));
            b.task(Task::receive(around(rank, ranks - step, ranks), bytes, 0));
        }
    }
    b.finish()
}

/// Builds `count` messages from each rank to its image under a random permutation, drawn by `seed`, that maps no rank
/// to itself. No task waits for another. A single rank sends nothing.
///
/// # Errors
/// Returns an error if the pattern is too large.
pub fn permutation(ranks: u32, bytes: u64, count: u32, seed: u64) -> Result<TaskGraph, TaskError> {
    let mut b = begin(ranks, 2 * u64::from(count), 0)?;
    let to = cycle(ranks, seed);
    let mut from = vec![0; to.len()];
    for (rank, &to) in to.iter().enumerate() {
        from[to as usize] = narrow(rank);
    }
    for rank in 0..ranks as usize {
        b.rank();
        for _ in 0..if ranks > 1 { count } else { 0 } {
            b.task(Task::send(to[rank], bytes, 0));
            b.task(Task::receive(from[rank], bytes, 0));
        }
    }
    b.finish()
}

/// Builds messages `(from, to, bytes)`, all posted at once. No task waits for another.
///
/// # Errors
/// Returns an error if a message names a rank from `ranks` on, or the pattern is too large.
pub fn messages(ranks: u32, messages: &[(u32, u32, u64)]) -> Result<TaskGraph, TaskError> {
    let mut of_ranks: Vec<Vec<Task>> = vec![Vec::new(); ranks as usize];
    for &(from, to, bytes) in messages {
        if let Some(&peer) = [from, to].iter().find(|&&peer| peer >= ranks) {
            return Err(TaskError::NoPeer { kind: "message", peer, ranks });
        }
        of_ranks[from as usize].push(Task::send(to, bytes, 0));
        of_ranks[to as usize].push(Task::receive(from, bytes, 0));
    }
    let mut b = begin(ranks, 2, 0)?;
    for tasks in of_ranks {
        b.rank();
        for task in tasks {
            b.task(task);
        }
    }
    b.finish()
}

/// Draws a random permutation that is a single cycle, so that no rank is mapped to itself (Sattolo, 1986).
pub fn cycle(ranks: u32, seed: u64) -> Vec<u32> {
    let mut to: Vec<u32> = (0..ranks).collect();
    for at in (1..to.len()).rev() {
        let random = mix(seed.wrapping_add(mix(at as u64)));
        to.swap(at, narrow(random % at as u64));
    }
    to
}

/// Builds a gather in which all ranks send to rank 0.
///
/// # Errors
/// Returns an error if the pattern is too large.
pub fn linear_gather(ranks: u32, bytes: u64) -> Result<TaskGraph, TaskError> {
    let mut b = begin(ranks, 2, 0)?;
    for rank in 0..ranks {
        b.rank();
        if rank == 0 {
            (1..ranks).for_each(|from| {
                b.task(Task::receive(from, bytes, 0));
            });
        } else {
            b.task(Task::send(0, bytes, 0));
        }
    }
    b.finish()
}

/// Builds an allreduce around a ring: 2 (P - 1) rounds of chunks of `bytes` / P, rounded down.
///
/// # Errors
/// Returns an error if the pattern is too large.
pub fn ring(ranks: u32, bytes: u64) -> Result<TaskGraph, TaskError> {
    let chunk = bytes / u64::from(ranks.max(1));
    let rounds = 2 * ranks.saturating_sub(1);
    exchanges(ranks, |rank| {
        (0..rounds).map(move |_| (around(rank, 1, ranks), around(rank, ranks.saturating_sub(1), ranks), chunk))
    })
}

/// Builds an allreduce of 2^k ranks: halving with the ranks at distance 1, 2, 4, ..., then doubling in reverse. Bytes
/// are rounded down.
///
/// # Errors
/// Returns an error if the pattern is too large, or if the number of ranks is not a power of two.
pub fn halving_doubling(ranks: u32, bytes: u64) -> Result<TaskGraph, TaskError> {
    let rounds = ranks.max(1).ilog2();
    exchanges(ranks, |rank| {
        let at = move |k: u32| (rank ^ (1 << k), rank ^ (1 << k), bytes >> (k + 1).min(63));
        (0..rounds).map(at).chain((0..rounds).rev().map(at))
    })
}

/// Builds rounds of one send and one receive, `(to, from, bytes)`. Each send waits for the receive before it.
fn exchanges<I: Iterator<Item = (u32, u32, u64)>>(
    ranks: u32,
    rounds: impl Fn(u32) -> I,
) -> Result<TaskGraph, TaskError> {
    let each = if ranks == 0 { 0 } else { rounds(0).count() as u64 };
    let mut b = begin(ranks, 2 * each, each)?;
    for rank in 0..ranks {
        b.rank();
        let mut before = None;
        for (to, from, bytes) in rounds(rank) {
            let send = b.task(Task::send(to, bytes, 0));
            before.into_iter().for_each(|r| b.requires(send, r));
            before = Some(b.task(Task::receive(from, bytes, 0)));
        }
    }
    b.finish()
}

/// Returns the rank `step` ahead on a ring. `rank` and `step` are below `ranks`.
fn around(rank: u32, step: u32, ranks: u32) -> u32 {
    let left = ranks - step;
    if rank < left { rank + step } else { rank - left }
}

/// Returns the least k with 2^k >= `n`.
fn log2_up(n: u32) -> u32 {
    u32::BITS - n.saturating_sub(1).leading_zeros()
}

/// Makes a builder with room for `tasks_each` tasks and `edges_each` edges of each rank. A graph that cannot fit is
/// refused here, before any loop begins.
fn begin(ranks: u32, tasks_each: u64, edges_each: u64) -> Result<Builder, TaskError> {
    let found = u64::from(ranks).saturating_mul(tasks_each);
    if found > MOST_TASKS {
        return Err(TaskError::TooMany { what: "tasks", found, most: MOST_TASKS });
    }
    let edges = u64::from(ranks) * edges_each;
    // The bytes include the memory of a simulator, which needs as much as the graph.
    limits::admit("the traffic", 64 * u128::from(found) + 4 * u128::from(edges), 16 * u128::from(found))?;
    let mut b = Builder::new();
    b.reserve(ranks as usize, narrow(found));
    Ok(b)
}
