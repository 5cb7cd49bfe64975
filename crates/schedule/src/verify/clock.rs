//! Clocks of lanes, propagated through a topological order: the instructions that are over when an instruction starts.
//!
//! An instruction accesses memory from its start to its completion, at any granularity. `J` is ordered after `I` if the
//! completion of `I` precedes the start of `J`. Two rules, applied repeatedly, prove this. With respect to `I`, an
//! instruction is `done` if its end comes after the completion of `I`, and `whole` if its start comes after the
//! completion of `I`:
//!
//! * if an instruction is done, the next instruction of its lane and all instructions that wait for it are whole;
//! * an instruction is done if it pops the last element that a done instruction pushes, or any element that a whole
//!   instruction pushes. It is whole if this element is the first that it pops from the stream.
//!
//! A lane runs in order, so the instructions of a lane that are over before `J` are all instructions up to one of them:
//! the lane's clock at `J`. Each lane has one clock for the start of `J` (`whole`) and one for its end (`done`). A
//! sweep propagates the clocks of [`LANES`] lanes at once to all instructions that they reach, and stores only the
//! clocks of its front. See Mattern, "Virtual Time and Global States of Distributed Systems" (1989).

use unisono_base::{InstrId, LaneId, interrupt};

use super::allowance::Allowance;
use crate::{
    flow::Flow,
    order::{Dependents, next_in_lane},
    schedule::Schedule,
};

/// Number of lanes whose clocks one sweep propagates.
pub const LANES: usize = 128;

/// Two accesses that clash; `earlier` is first in the topological order.
pub struct Clash {
    pub earlier: InstrId,
    pub later: InstrId,
    /// True if the completion of `earlier` is proved to precede the start of `later`.
    pub ordered: bool,
}

struct Step {
    id: InstrId,
    lane: LaneId,
    /// Index of the first edge to its direct successors.
    first_edge: u32,
}

struct Edge {
    /// Position of the successor in the order.
    to: u32,
    /// The clock of the predecessor that holds at the start of the successor; `done` is the clock that holds at the end
    /// of the successor.
    whole: Over,
    done: Over,
}

/// Clock that an edge propagates: none, the clock at the start of the predecessor, or the clock at its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Nothing,
    Whole,
    Done,
}

/// Error of a sweep that exceeds the limits of the proof.
pub struct OverAllowance;

/// Instructions in topological order, with the edges between them. Sweeps read these tables from front to back.
pub struct Clocks<'a> {
    flow: &'a Flow,
    /// The lowest instruction id. `rank` has the position in the order of each instruction from `first` on.
    first: usize,
    rank: Vec<u32>,
    steps: Vec<Step>,
    edges: Vec<Edge>,
    front: Front,
}

impl<'a> Clocks<'a> {
    /// Creates the clocks for the instructions in `order`, whose ids are consecutive; `streams` selects whether streams
    /// order them too.
    pub fn new(
        schedule: &'a Schedule,
        flow: &'a Flow,
        dependents: &Dependents,
        order: &[InstrId],
        streams: bool,
        allowance: &mut Allowance,
    ) -> Result<Self, OverAllowance> {
        let first = order.iter().map(|id| id.index()).min().unwrap_or(0);
        let mut rank = vec![0; order.len()];
        for (at, id) in order.iter().enumerate() {
            rank[id.index() - first] = at as u32;
        }
        let mut steps = Vec::with_capacity(order.len());
        let mut edges: Vec<Edge> = Vec::with_capacity(2 * order.len());
        for &id in order {
            interrupt::poll();
            let before = edges.len();
            steps.push(Step {
                id,
                lane: flow.lane_of(id),
                first_edge: u32::try_from(before).map_err(|_| OverAllowance)?,
            });
            let after = next_in_lane(schedule, flow, id).into_iter().chain(dependents.of(id).iter().copied());
            let after = after.filter_map(|next| rank.get(next.index().checked_sub(first)?));
            edges.extend(after.map(|&to| Edge { to, whole: Over::Done, done: Over::Done }));
            // A stream always leads to other nodes, so clocks of one node ignore streams.
            for (stream, span) in flow.pushes(schedule, id).filter(|_| streams) {
                let last = span.start + (span.len - 1);
                let readers = flow.readers_by_sink(stream).flat_map(|r| Flow::touching(r, span));
                edges.extend(readers.map(|p| Edge {
                    to: rank[p.instr.index() - first],
                    whole: match p.start {
                        start if start >= last => Over::Done,
                        start if start >= span.start => Over::Whole,
                        _ => Over::Nothing,
                    },
                    done: match u64::from(p.start) + u64::from(schedule.instr(p.instr).len) {
                        end if end >= span.end() => Over::Done,
                        _ => Over::Whole,
                    },
                }));
            }
            let new = (edges.len() - before) as u64;
            if !allowance.take(new, new) {
                return Err(OverAllowance);
            }
        }
        allowance.free(edges.len() as u64);
        Ok(Self { flow, first, rank, steps, edges, front: Front::new(order.len()) })
    }

    fn rank(&self, id: InstrId) -> u32 {
        self.rank[id.index() - self.first]
    }

    /// Sets `ordered` of each clash. The earlier accesses must be in at most [`LANES`] lanes.
    pub fn settle(&mut self, clashes: &mut [Clash], allowance: &mut Allowance) -> Result<(), OverAllowance> {
        clashes.sort_unstable_by_key(|c| (self.rank(c.later), c.earlier));
        let Some(last) = clashes.last().map(|c| self.rank(c.later)) else { return Ok(()) };
        let mut lanes: Vec<LaneId> = clashes.iter().map(|c| self.flow.lane_of(c.earlier)).collect();
        lanes.sort_unstable();
        lanes.dedup();
        self.front.start(lanes.len());
        for clash in clashes.iter() {
            self.front.reach(self.rank[clash.earlier.index() - self.first]);
        }
        let mut rest = clashes.iter_mut().peekable();
        let mut clock = vec![0; 2 * lanes.len()];
        let mut over = false;
        while let Some(rank) = self.front.pop(&mut clock) {
            interrupt::poll();
            let Step { id, lane, .. } = self.steps[rank as usize];
            let (whole, done) = clock.split_at_mut(lanes.len());
            while let Some(clash) = rest.next_if(|c| self.rank[c.later.index() - self.first] <= rank) {
                if clash.later == id
                    && let Ok(lane) = lanes.binary_search(&self.flow.lane_of(clash.earlier))
                {
                    clash.ordered = whole[lane] > clash.earlier.0;
                }
            }
            raise(done, whole);
            if let Ok(lane) = lanes.binary_search(&lane) {
                done[lane] = id.0 + 1;
            }
            let end = self.steps.get(rank as usize + 1).map_or(self.edges.len(), |s| s.first_edge as usize);
            let edges = &self.edges[self.steps[rank as usize].first_edge as usize..end];
            over |= !allowance.take(0, (1 + edges.len() * (1 + lanes.len() / 8)) as u64);
            for edge in edges.iter().filter(|e| e.to <= last && !over) {
                let (mine, other) = self.front.reach(edge.to).split_at_mut(lanes.len());
                for (clock, over) in [(mine, edge.whole), (other, edge.done)] {
                    match over {
                        Over::Nothing => {}
                        Over::Whole => raise(clock, whole),
                        Over::Done => raise(clock, done),
                    }
                }
            }
        }
        // The front is empty in both cases, so another sweep may follow.
        if over { Err(OverAllowance) } else { Ok(()) }
    }
}

fn raise(clock: &mut [u32], to: &[u32]) {
    clock.iter_mut().zip(to).for_each(|(mine, &other)| *mine = other.max(*mine));
}

/// The instructions that were reached but not visited yet, by their position, each with its clock.
#[derive(Default)]
struct Front {
    /// One bit for each position. `filled` has one bit for each word of `reached`, set if the word is not 0.
    reached: Vec<u64>,
    filled: Vec<u64>,
    /// All words of `filled` before this index are 0.
    from: usize,
    /// The index in `clocks` of the clock of each reached position. A clock has `width` numbers: first `whole` of each
    /// lane, then `done` of each lane.
    slot: Vec<u32>,
    width: usize,
    clocks: Vec<u32>,
    free: Vec<u32>,
}

impl Front {
    fn new(count: usize) -> Self {
        Self {
            reached: vec![0; count.div_ceil(64)],
            filled: vec![0; count.div_ceil(64 * 64)],
            slot: vec![0; count],
            ..Self::default()
        }
    }

    /// Prepares the front for clocks of `lanes` lanes. It must be empty.
    fn start(&mut self, lanes: usize) {
        self.width = 2 * lanes;
        self.clocks.clear();
        self.free.clear();
    }

    /// Returns the clock of a position, and marks the position as reached.
    fn reach(&mut self, rank: u32) -> &mut [u32] {
        let (at, word) = (rank as usize, rank as usize / 64);
        if self.reached[word] >> (at % 64) & 1 == 0 {
            self.reached[word] |= 1 << (at % 64);
            self.filled[word / 64] |= 1 << (word % 64);
            self.from = self.from.min(word / 64);
            self.slot[at] = self.free.pop().unwrap_or_else(|| {
                let new = self.clocks.len() / self.width;
                self.clocks.resize((new + 1) * self.width, 0);
                new as u32
            });
        }
        self.clock(at)
    }

    fn clock(&mut self, at: usize) -> &mut [u32] {
        &mut self.clocks[self.slot[at] as usize * self.width..][..self.width]
    }

    /// Removes the first reached position, copies its clock to `into`, and returns it; `None` if no position is left.
    fn pop(&mut self, into: &mut [u32]) -> Option<u32> {
        let ahead = self.filled[self.from..].iter().position(|&w| w != 0);
        self.from = ahead.map_or(self.filled.len(), |ahead| self.from + ahead);
        ahead?;
        let word = self.from * 64 + self.filled[self.from].trailing_zeros() as usize;
        let at = word * 64 + self.reached[word].trailing_zeros() as usize;
        self.reached[word] &= self.reached[word] - 1;
        if self.reached[word] == 0 {
            self.filled[self.from] &= self.filled[self.from] - 1;
        }
        self.free.push(self.slot[at]);
        let clock = self.clock(at);
        into.copy_from_slice(clock);
        clock.fill(0);
        Some(at as u32)
    }
}
