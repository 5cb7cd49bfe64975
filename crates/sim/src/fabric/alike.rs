//! Tiles that do the same until wavelets cross between tiles: the first of them runs, and the others get copies of its
//! state.
//!
//! A color *crosses* if some router sends it over the edge of a tile. Two tiles are alike if their PEs have the same
//! routes for all colors that do not cross, and if each thread has the same operations up to its first operation with a
//! color that crosses. The states of these PEs are equal, apart from the numbers of operations and queues, until the
//! first of these operations begins that needs no wavelet from another tile. In an X-Y reduce the tiles of all rows are
//! alike until the reduce along the column.

use std::ops::Range;

use unisono_base::{interrupt::poll, narrow};
use unisono_lower::wafer::{End, Port, WaferProgram};

use super::{
    clock::Clock,
    error::SimError,
    pe::takes_pairs,
    tables::{NONE, RAMP},
};

#[derive(Default)]
pub(super) struct Crossing {
    /// True for the colors that cross.
    colors: Vec<bool>,
    tile_pes: u32,
    /// For each tile, the first tile that is alike. After the states have been copied, the tile itself.
    leaders: Vec<u32>,
    /// The first operations, of each thread of a leader and of tiles alike, that use a color that crosses and may begin
    /// before a wavelet has crossed. Entries are sorted `(PE, thread, operation)`; operations are numbered as in the
    /// leader.
    pub first: Vec<(u32, u32, u32)>,
}

impl Crossing {
    /// Finds the tiles of `rows` rows that are alike. If states cannot be copied, each tile is its own leader.
    pub fn new(m: &Clock<'_>, rows: u32, can_copy: bool) -> Self {
        let (p, tile_pes) = (m.program, rows * m.program.grid.cols);
        let pes = narrow::<u32>(p.pe_count());
        let mut c = Self { colors: vec![false; 256], tile_pes, ..Self::default() };
        for pe in 0..pes {
            let row = p.grid.row_col(pe).0;
            for route in p.routes(pe as usize) {
                let over = |port: Port, edge: u32| {
                    row % rows == edge && route.positions().iter().any(|position| position.tx.has(port))
                };
                c.colors[usize::from(route.color)] |= over(Port::North, 0) || over(Port::South, rows - 1);
            }
        }
        let tile = |n: u32| n * tile_pes..((n + 1) * tile_pes).min(pes);
        for n in 0..pes.div_ceil(tile_pes.max(1)) {
            let before = c.leaders.last().copied().unwrap_or(n);
            let is_alike = can_copy
                && tile(n).len() == tile(before).len()
                && tile(before).zip(tile(n)).all(|(a, b)| c.is_alike(p, a as usize, b as usize));
            c.leaders.push(if is_alike { before } else { n });
        }
        for pe in 0..pes {
            let like = c.like(pe);
            for (thread, first) in p.threads(pe as usize).zip(p.threads(like as usize)) {
                let ops = p.thread_ops(thread);
                let at = c.own_ops(p, thread).end;
                // If the first step of an operation takes from a color that crosses, the operation begins after other
                // operations.
                let taken = if at < ops.end { 1 + usize::from(takes_pairs(p, at)) } else { 0 };
                if at < ops.end && !p.sources(at).iter().take(taken).any(|end| c.crosses(end)) {
                    let op = p.thread_ops(first).start + (at - ops.start);
                    c.first.push((like, narrow::<u32>(first), narrow::<u32>(op)));
                }
            }
        }
        c.first.sort_unstable();
        c.first.dedup();
        c
    }

    /// Returns true if a PE runs from the start.
    pub fn runs(&self, pe: u32) -> bool {
        self.like(pe) == pe
    }

    /// Returns the PE at the same position in the leader of the PE's tile.
    fn like(&self, pe: u32) -> u32 {
        let tile = pe / self.tile_pes;
        pe - (tile - self.leaders[tile as usize]) * self.tile_pes
    }

    fn crosses(&self, end: &End) -> bool {
        matches!(end, End::Fabric(color) if self.colors[usize::from(*color)])
    }

    /// Returns the operations of a thread before the first one that names a color that crosses.
    fn own_ops(&self, p: &WaferProgram, thread: usize) -> Range<usize> {
        let ops = p.thread_ops(thread);
        let names = |&op: &usize| p.sources(op).iter().chain(p.sinks(op)).any(|end| self.crosses(end));
        ops.start..ops.clone().find(names).unwrap_or(ops.end)
    }

    fn is_alike(&self, p: &WaferProgram, a: usize, b: usize) -> bool {
        poll();
        let routes = |pe: usize| {
            let all = p.routes(pe);
            all.split_at(all.iter().take_while(|route| !self.colors[usize::from(route.color)]).count())
        };
        let ((own, others), (own_b, others_b)) = (routes(a), routes(b));
        // Rows of colors that cross are last, so the numbers of the other rows are equal. They also end the turns of
        // both routers.
        let all_cross = others.iter().chain(others_b).all(|route| self.colors[usize::from(route.color)]);
        let (first, first_b) = (first_op(p, a), first_op(p, b));
        let same_op = |(x, y): (usize, usize)| {
            let (o, q) = (p.op(x), p.op(y));
            (o.len, o.chunk, o.sinks_in_turn, o.pace) == (q.len, q.chunk, q.sinks_in_turn, q.pace)
                && (o.advance, o.control) == (q.advance, q.control)
                && (p.sources(x), p.sinks(x)) == (p.sources(y), p.sinks(y))
                && p.waits(x).map(|op| op - first).eq(p.waits(y).map(|op| op - first_b))
        };
        let same_thread = |(x, y): (usize, usize)| {
            let (ops, ops_b) = (self.own_ops(p, x), self.own_ops(p, y));
            // If a PE has the same number of operations in both tiles, waits for an operation are also the same.
            ops.start - first == ops_b.start - first_b
                && ops.len() == ops_b.len()
                && (ops.end == p.thread_ops(x).end) == (ops_b.end == p.thread_ops(y).end)
                && ops.zip(ops_b).all(same_op)
        };
        own == own_b
            && others.is_empty() == others_b.is_empty()
            && all_cross
            && p.threads(a).len() == p.threads(b).len()
            && p.threads(a).zip(p.threads(b)).all(same_thread)
    }
}

/// Returns the first operation of a PE; 0 without threads.
fn first_op(p: &WaferProgram, pe: usize) -> usize {
    p.threads(pe).next().map_or(0, |thread| p.thread_ops(thread).start)
}

impl Clock<'_> {
    /// Copies the states of leaders, at the beginning of a cycle, to all tiles that are like them.
    pub(super) fn copy_tiles(&mut self, now: u32) -> Result<(), SimError> {
        self.cycle = now;
        let followers: Vec<u32> = (0..narrow(self.program.pe_count())).filter(|&pe| !self.crossing.runs(pe)).collect();
        if followers.is_empty() {
            return Ok(());
        }
        self.wake_all()?;
        let sorted = (self.router_log.sort(), self.ramp_log.sort());
        for pe in followers {
            poll();
            self.copy_pe(self.crossing.like(pe), pe, sorted);
        }
        for (tile, leader) in (0..).zip(&mut self.crossing.leaders) {
            *leader = tile;
        }
        self.unfinished = self.threads.iter().filter(|t| !t.is_done()).count();
        Ok(())
    }

    fn copy_pe(&mut self, like: u32, pe: u32, sorted: (usize, usize)) {
        let (a, b) = (like as usize, pe as usize);
        let shift = first_op(self.program, b) - first_op(self.program, a);
        for (thread, other) in self.program.threads(a).zip(self.program.threads(b)) {
            let (program, op_places) = (self.program, &self.tables.op_places[..]);
            let (t, ops) = (&self.threads[thread], program.thread_ops(thread));
            self.op_span.copy_within(ops.start..t.op(), ops.start + shift);
            let end = narrow(program.thread_ops(other).end);
            self.threads[other] = t.shifted((program, op_places), narrow(shift), end);
        }
        let (first, other) = (self.tables.pe_rows[a], self.tables.pe_rows[b]);
        for n in 0..(self.tables.pe_rows[a + 1] - first).min(self.tables.pe_rows[b + 1] - other) {
            let (row, copy) = (&self.tables.rows[(first + n) as usize], &self.tables.rows[(other + n) as usize]);
            if self.crossing.colors[usize::from(row.color)] {
                break;
            }
            let (position, outputs) = (row.position, (row.outputs[RAMP], copy.outputs[RAMP]));
            for (from, to) in row.inputs.into_iter().zip(copy.inputs).chain([outputs]).filter(|q| q.0 != NONE) {
                self.tables.queues.copy(from, to);
                self.ramp_log.copy((from, to), narrow(shift), sorted.1);
            }
            self.tables.rows[(other + n) as usize].position = position;
            self.router_log.copy((first + n, other + n), 0, sorted.0);
        }
        let rows = self.tables.pe_rows[b + 1] - other;
        // Bits beyond the last row of a router are not used.
        self.pending[b] = self.pending[a] & narrow::<u64>((1u128 << rows) - 1);
        self.arriving[b] = self.arriving[a];
        (self.thread_turn[b], self.router_turn[b]) = (self.thread_turn[a], self.router_turn[a]);
        (self.tallies[b], self.finish[b]) = (self.tallies[a], self.finish[a]);
        for slot in (0..u64::BITS).filter(|slot| self.noted[a] >> slot & 1 == 1).collect::<Vec<_>>() {
            self.note(pe, slot);
        }
    }
}
