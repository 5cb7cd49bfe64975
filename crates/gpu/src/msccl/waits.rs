//! Waits between operations of a GPU, and the check that the operations may run in place.
//!
//! An operation waits for each earlier operation of another thread block that touches the same memory, if one of the
//! two writes. Their order is that of the schedule, whose proof guarantees it. A wait that other waits imply is
//! omitted.

use std::collections::{BTreeMap, BTreeSet};

use unisono_collective::Kind;

use super::ops::{Buffer, Op, Place};

/// An operation on `count` chunks: step `step` of thread block `block`.
pub struct Work {
    pub op: Op<usize>,
    pub count: u32,
    pub block: usize,
    pub step: usize,
}

/// The positions of input and output in one buffer when a collective runs in place (NCCL's rules). In the output of an
/// allgather, the rank's part is the input; in the input of a reduce-scatter, it is the output.
#[derive(Clone, Copy)]
pub struct Alias {
    pub kind: Kind,
    /// The number of chunks before the rank's part.
    pub shift: u32,
}

impl Alias {
    fn place(self, p: Place) -> Place {
        let shifted = match (self.kind, p.buffer) {
            (_, Buffer::Scratch) => return p,
            (Kind::Allgather, Buffer::Input) | (Kind::ReduceScatter, Buffer::Output) => self.shift,
            _ => 0,
        };
        Place { buffer: Buffer::Output, chunk: p.chunk + shifted }
    }

    /// Returns whether the operations, run in this order in place, have the same results: no operation reads input that
    /// output has overwritten. Returns false for alltoall, gather and scatter.
    pub fn is_safe(self, works: &[Work]) -> bool {
        let known = [Kind::Allgather, Kind::Allreduce, Kind::Broadcast, Kind::Reduce, Kind::ReduceScatter];
        let overwritten = |(n, later): (usize, &Work)| {
            let inputs: Vec<Place> = later.op.reads().filter(|p| p.buffer == Buffer::Input).collect();
            let overlaps = |w: &Work, p: Place, shifted_only: bool| {
                let out = w.op.writes().filter(|o| o.buffer == Buffer::Output).map(|o| self.place(o));
                out.is_some_and(|o| {
                    meet(o, w.count, self.place(p), later.count) && !(shifted_only && o == self.place(p))
                })
            };
            inputs.iter().any(|&p| works[..n].iter().any(|w| overlaps(w, p, false)) || overlaps(later, p, true))
        };
        known.contains(&self.kind) && !works.iter().enumerate().any(overwritten)
    }
}

fn meet(a: Place, a_count: u32, b: Place, b_count: u32) -> bool {
    a.buffer == b.buffer && a.chunk < b.chunk + b_count && b.chunk < a.chunk + a_count
}

/// The latest accesses to a chunk: the last write, and all reads since then.
#[derive(Default)]
struct Touched {
    writer: Option<usize>,
    readers: Vec<usize>,
}

/// Returns, for each operation, the block and step of each operation of another thread block that it must wait for,
/// except those that another wait implies.
pub fn waits(works: &[Work], blocks: usize, alias: Option<Alias>) -> Vec<Vec<(usize, usize)>> {
    let chunks = |p: Place, count: u32| {
        let p = alias.map_or(p, |a| a.place(p));
        (p.chunk..p.chunk + count).map(move |chunk| (p.buffer, chunk))
    };
    let mut touched = BTreeMap::<(Buffer, u32), Touched>::new();
    // For each thread block and each other block: the number of operations of the other block that are complete when
    // the latest operation of the thread block is complete.
    let mut known: Vec<Vec<usize>> = vec![vec![0; blocks]; blocks];
    let mut after: Vec<Vec<usize>> = Vec::with_capacity(works.len());
    let mut all = Vec::with_capacity(works.len());
    for (n, work) in works.iter().enumerate() {
        // The latest accesses to a chunk wait for all earlier accesses, so a wait for the latest ones includes the
        // earlier ones.
        let mut earlier = BTreeSet::new();
        for chunk in work.op.reads().flat_map(|p| chunks(p, work.count)) {
            let touched = touched.entry(chunk).or_default();
            earlier.extend(touched.writer);
            touched.readers.push(n);
        }
        for chunk in work.op.writes().into_iter().flat_map(|p| chunks(p, work.count)) {
            let touched = touched.entry(chunk).or_default();
            earlier.extend(touched.writer.replace(n));
            earlier.extend(touched.readers.drain(..).filter(|&reader| reader != n));
        }
        let mut clock = known[work.block].clone();
        let mut waits = Vec::new();
        for earlier in earlier.into_iter().rev() {
            let w = &works[earlier];
            if w.block != work.block && clock[w.block] <= w.step {
                waits.push((w.block, w.step));
                for (mine, theirs) in clock.iter_mut().zip(&after[earlier]) {
                    *mine = (*mine).max(*theirs);
                }
            }
        }
        clock[work.block] = work.step + 1;
        known[work.block].clone_from(&clock);
        after.push(clock);
        waits.reverse();
        all.push(waits);
    }
    all
}
