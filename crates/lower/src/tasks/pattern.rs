//! Traffic patterns of collectives, as the generator of LogGOPSim (Schedgen) writes them; tag 0 throughout.
//!
//! They carry no proof and no data. They exist to compare with that simulator, and to load a machine.

use unisono_base::{limits, mix, narrow};

use super::{Builder, MOST_TASKS, Task, TaskError, TaskGraph};

/// In round k each rank sends to the one 2^k further on and receives from the one 2^k before, ceil(log2 P) rounds; the
/// next round waits for the receive (barrier, allreduce of short vectors: Hensgen, Finkel, Manber, 1988).
///
/// # Errors
/// Too large.
pub fn dissemination(ranks: u32, bytes: u64) -> Result<TaskGraph, TaskError> {
    exchanges(ranks, |rank| {
        let step = |k: u32| 1 << k;
        (0..log2_up(ranks)).map(move |k| (around(rank, step(k), ranks), around(rank, ranks - step(k), ranks), bytes))
    })
}

/// A binomial tree to rank 0: rank r sends to r less its highest bit, when all its children have sent to it.
///
/// # Errors
/// Too large.
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

/// Each rank sends to all others, the next one first, and nothing waits for anything.
///
/// # Errors
/// Too large.
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

/// Each rank sends `count` messages to one rank and receives them from one, by a random permutation that leaves no rank
/// in its place; the same seed draws the same. Nothing waits for anything; a rank alone sends nothing.
///
/// # Errors
/// Too large.
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

/// A random permutation of one cycle, so that no rank is mapped to itself (Sattolo, 1986).
pub fn cycle(ranks: u32, seed: u64) -> Vec<u32> {
    let mut to: Vec<u32> = (0..ranks).collect();
    for at in (1..to.len()).rev() {
        let random = mix(seed.wrapping_add(mix(at as u64)));
        to.swap(at, narrow(random % at as u64));
    }
    to
}

/// All ranks send to rank 0.
///
/// # Errors
/// Too large.
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

/// An allreduce around a ring: 2 (P - 1) rounds of chunks of `bytes` / P.
///
/// # Errors
/// Too large.
pub fn ring(ranks: u32, bytes: u64) -> Result<TaskGraph, TaskError> {
    let chunk = bytes / u64::from(ranks.max(1));
    let rounds = 2 * ranks.saturating_sub(1);
    exchanges(ranks, |rank| {
        (0..rounds).map(move |_| (around(rank, 1, ranks), around(rank, ranks.saturating_sub(1), ranks), chunk))
    })
}

/// An allreduce of 2^k ranks by halving with the rank 1, 2, 4, ... away, and doubling back.
///
/// # Errors
/// Too large.
pub fn halving_doubling(ranks: u32, bytes: u64) -> Result<TaskGraph, TaskError> {
    let rounds = ranks.max(1).ilog2();
    exchanges(ranks, |rank| {
        let at = move |k: u32| (rank ^ (1 << k), rank ^ (1 << k), bytes >> (k + 1).min(63));
        (0..rounds).map(at).chain((0..rounds).rev().map(at))
    })
}

/// Rounds of one send and one receive, `(to, from, bytes)`; the next round waits for the receive.
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

/// The rank `step` further on; both are below `ranks`.
fn around(rank: u32, step: u32, ranks: u32) -> u32 {
    let left = ranks - step;
    if rank < left { rank + step } else { rank - left }
}

/// The least k with 2^k >= `n`.
fn log2_up(n: u32) -> u32 {
    u32::BITS - n.saturating_sub(1).leading_zeros()
}

/// A builder with room for so many tasks and edges a rank; refused before any loop begins if they cannot fit.
fn begin(ranks: u32, tasks_each: u64, edges_each: u64) -> Result<Builder, TaskError> {
    let found = u64::from(ranks).saturating_mul(tasks_each);
    if found > MOST_TASKS {
        return Err(TaskError::TooMany { what: "tasks", found, most: MOST_TASKS });
    }
    let edges = u64::from(ranks) * edges_each;
    // A simulator has as much again beside the graph.
    limits::admit("the traffic", 64 * u128::from(found) + 4 * u128::from(edges), 16 * u128::from(found))?;
    let mut b = Builder::new();
    b.reserve(ranks as usize, narrow(found));
    Ok(b)
}
