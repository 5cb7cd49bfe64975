//! Builds random small schedules that produce the outputs of a collective. The generator starts from a right order, and
//! draws lanes, streams, detours, memory, and dependencies between lanes that access the same memory.

use unisono_base::StreamId;
use unisono_collective::{Collective, Dtype, Kind, Operator, Required, Source};
use unisono_schedule::Operand;

use super::{
    draft::{Draft, DraftRow, DraftStream},
    random::Random,
};

/// The contents of an element of memory: a bit for each rank whose contribution was reduced into it, and the index of
/// the input element.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Held {
    ranks: u8,
    element: u32,
}

/// A written value that no output uses.
const JUNK: Held = Held { ranks: 0, element: 0 };

struct StreamState {
    writer: u32,
    readers: Vec<u32>,
    pending: bool,
}

/// `len` input elements from `start`, reduced over `ranks`.
#[derive(Clone, Copy)]
struct Goal {
    start: u32,
    len: u32,
    ranks: u8,
}

struct Maker<'a> {
    r: &'a mut Random,
    draft: Draft,
    lanes: u32,
    /// Percentage of the necessary dependencies between lanes that are added.
    careful: usize,
    /// For each node, the contents of its output and its scratch memory.
    memory: Vec<[Vec<Option<Held>>; 2]>,
    streams: Vec<StreamState>,
    /// Rows that precede each row, as bits.
    before: Vec<u64>,
    /// Rows that pushed each stream, in order.
    pushed: Vec<Vec<usize>>,
    /// Slices that are read later and must not be overwritten: node, operand, length.
    pinned: Vec<(u32, Operand, u32)>,
    most_rows: usize,
}

/// Returns a random schedule before damage, or none if it became too large.
pub fn draft(r: &mut Random) -> Option<Draft> {
    let kind = match r.below(24) {
        0..=4 => Kind::Allreduce,
        5..=8 => Kind::Reduce,
        9..=11 => Kind::Broadcast,
        12 | 13 => Kind::ReduceScatter,
        14 | 15 => Kind::Allgather,
        16 | 17 => Kind::Alltoall,
        18 => Kind::Barrier,
        19 => Kind::Scan,
        20 | 21 => Kind::Message,
        22 => Kind::Gather,
        _ => Kind::Scatter,
    };
    let blocks = [Kind::ReduceScatter, Kind::Allgather, Kind::Alltoall, Kind::Gather, Kind::Scatter].contains(&kind);
    let ranks = if blocks { r.pick(&[2, 2, 2, 3]) } else { r.pick(&[1, 2, 2, 2, 3, 3, 4]) };
    let elements = if r.chance(1) {
        0
    } else if blocks {
        r.pick(&[1, 1, 2])
    } else {
        r.pick(&[1, 2, 2, 3])
    };
    let operator = if r.chance(25) { Operator::Ordered } else { Operator::Sum };
    let root = r.below(ranks) as u64;
    let c = Collective::new(kind, ranks as u32, elements, root, operator, Dtype::I64).ok()?;
    let switches = if ranks < 2 || (ranks < 4 && r.chance(20)) { 1 } else { 0 };
    let nodes = ranks + switches;
    let scratch: Vec<u32> = (0..nodes).map(|_| r.below(4) as u32).collect();
    let memory = (0..nodes as u32).map(|n| {
        let output = if n < c.ranks { c.output_len(n) } else { 0 };
        [vec![None; output as usize], vec![None; scratch[n as usize] as usize]]
    });
    let mut maker = Maker {
        lanes: r.pick(&[1, 2, 2, 3, 3, 4]),
        careful: r.pick(&[100, 100, 100, 95, 80]),
        memory: memory.collect(),
        streams: Vec::new(),
        before: Vec::new(),
        pushed: Vec::new(),
        pinned: Vec::new(),
        most_rows: 22,
        draft: Draft { collective: c, scratch, streams: Vec::new(), rows: Vec::new() },
        r,
    };
    maker.fill()?;
    let mut draft = maker.draft;
    split(r, &mut draft);
    for s in 0..draft.streams.len() {
        if r.chance(30) {
            let total: u32 = draft.rows.iter().filter(|w| w.sinks.contains(&stream(s))).map(|w| w.len).sum();
            draft.streams[s].capacity = Some(1 + r.below(total as usize + 1) as u32);
        }
    }
    Some(draft)
}

fn stream(s: usize) -> Operand {
    Operand::Stream(StreamId::new(s))
}

impl Maker<'_> {
    fn fill(&mut self) -> Option<()> {
        let c = self.draft.collective;
        let mut pieces = Vec::new();
        for rank in 0..c.ranks {
            for Required { span, input_start, source } in c.required(rank) {
                let ranks: u8 = match source {
                    Source::Copy { rank } => 1 << rank,
                    Source::Reduction { ranks } | Source::AtLeastOnce { ranks } => (1u8 << ranks) - 1,
                };
                let cut =
                    if span.len > 1 && self.r.chance(30) { 1 + self.r.below(span.len as usize - 1) as u32 } else { 0 };
                for (from, to) in [(0, cut), (cut, span.len)] {
                    if from < to {
                        pieces.push((
                            rank,
                            span.start + from,
                            Goal { start: input_start + from, len: to - from, ranks },
                        ));
                    }
                }
            }
        }
        self.r.shuffle(&mut pieces);
        for (rank, at, goal) in pieces {
            while self.r.chance(15) {
                self.noise()?;
            }
            let held = &self.memory[rank as usize][0][at as usize..(at + goal.len) as usize];
            if !holds(held, goal) {
                self.produce(rank, goal, vec![Operand::Out(at)], None, 0)?;
            }
        }
        while self.r.chance(10) {
            self.noise()?;
        }
        Some(())
    }

    /// Adds an instruction without effect on outputs, from written slices to scratch memory or a stream.
    fn noise(&mut self) -> Option<()> {
        let node = self.r.below(self.memory.len()) as u32;
        let len = 1 + self.r.below(2) as u32;
        let mut sources = Vec::new();
        for _ in 0..=self.r.below(2) {
            sources.extend(self.any_slice(node, len));
        }
        if sources.is_empty() {
            return Some(());
        }
        let pins = self.pinned.len();
        self.pinned.extend(sources.iter().map(|&s| (node, s, len)));
        if self.r.chance(40) && self.memory.len() > 1 {
            let to = self.other(node);
            let s = self.stream(node, to);
            if let Some(s) = s {
                let lane = self.streams[s].writer;
                self.emit(node, lane, len, sources, vec![stream(s)], JUNK)?;
                self.drain(s, len, None, JUNK)?;
            }
        } else {
            let lane = self.r.below(self.lanes as usize) as u32;
            let to = self.scratch(node, len);
            self.emit(node, lane, len, sources, vec![to], JUNK)?;
        }
        self.pinned.truncate(pins);
        Some(())
    }

    fn other(&mut self, node: u32) -> u32 {
        let n = self.memory.len() as u32;
        (node + 1 + self.r.below(n as usize - 1) as u32) % n
    }

    fn any_slice(&mut self, node: u32, len: u32) -> Option<Operand> {
        let c = self.draft.collective;
        let input = if node < c.ranks { c.input_len(node) } else { 0 };
        match self.r.below(3) {
            0 if input >= len => Some(Operand::In(self.r.below((input - len + 1) as usize) as u32)),
            buffer => {
                let buffer = buffer.saturating_sub(1);
                let held = &self.memory[node as usize][buffer];
                let at = self.r.below((held.len() + 1).saturating_sub(len as usize));
                let there = held.get(at..at + len as usize)?.iter().all(Option::is_some);
                let at = at as u32;
                there.then_some(if buffer == 0 { Operand::Out(at) } else { Operand::Tmp(at) })
            }
        }
    }

    /// Adds instructions that produce the goal in `sinks` on a node. If a stream is among the sinks, `lane` is the lane
    /// that writes it.
    fn produce(&mut self, node: u32, goal: Goal, mut sinks: Vec<Operand>, lane: Option<u32>, depth: u32) -> Option<()> {
        let pins = self.pinned.len();
        let mut operands = Vec::new();
        if goal.ranks.count_ones() == 1 || self.r.chance(30) && self.find(node, goal).is_some() {
            operands.push(self.obtain(node, goal, depth)?);
        } else {
            for ranks in self.parts(goal.ranks) {
                let operand = self.obtain(node, Goal { ranks, ..goal }, depth + 1)?;
                operands.push(operand);
                self.pinned.push((node, operand, goal.len));
            }
        }
        let mut lane = lane;
        for operand in &mut operands {
            let Operand::Stream(s) = *operand else { continue };
            let reader = self.reader(s.index(), node);
            if lane.is_some_and(|l| l != reader) || self.r.chance(10) {
                let to = self.scratch(node, goal.len);
                self.streams[s.index()].pending = false;
                self.emit(node, reader, goal.len, vec![*operand], vec![to], JUNK)?;
                *operand = to;
                self.pinned.push((node, to, goal.len));
            } else {
                lane = Some(reader);
            }
        }
        let lane = lane.unwrap_or_else(|| self.r.below(self.lanes as usize) as u32);
        while self.r.chance(12) {
            let to = self.scratch(node, goal.len);
            if !sinks.contains(&to) {
                self.pinned.push((node, to, goal.len));
                sinks.push(to);
            }
        }
        self.r.shuffle(&mut sinks);
        for operand in &operands {
            if let Operand::Stream(s) = operand {
                self.streams[s.index()].pending = false;
            }
        }
        self.emit(node, lane, goal.len, operands, sinks, Held { ranks: goal.ranks, element: goal.start })?;
        self.pinned.truncate(pins);
        Some(())
    }

    /// Splits a set of ranks into disjoint parts. If the operator does not commute, the parts are ascending intervals.
    fn parts(&mut self, ranks: u8) -> Vec<u8> {
        let mut one: Vec<u8> = (0..8).map(|b| 1 << b).filter(|b| ranks & b != 0).collect();
        if self.draft.collective.operator.commutative() {
            self.r.shuffle(&mut one);
        }
        let count = if one.len() > 2 && self.r.chance(25) { 3 } else { 2 };
        while one.len() > count {
            let at = self.r.below(one.len() - 1);
            let next = one.remove(at + 1);
            one[at] |= next;
        }
        one
    }

    /// Returns memory of a node that holds the goal; `None` if there is none.
    fn find(&mut self, node: u32, goal: Goal) -> Option<Operand> {
        let c = self.draft.collective;
        if goal.ranks == 1 << node && node < c.ranks && goal.start + goal.len <= c.input_len(node) {
            return Some(Operand::In(goal.start));
        }
        let buffer = self.r.below(2);
        for b in [buffer, 1 - buffer] {
            let held = &self.memory[node as usize][b];
            for at in 0..(held.len() + 1).saturating_sub(goal.len as usize) {
                if holds(&held[at..at + goal.len as usize], goal) {
                    return Some(if b == 0 { Operand::Out(at as u32) } else { Operand::Tmp(at as u32) });
                }
            }
        }
        None
    }

    /// Returns an operand with the goal on a node: a slice, or a stream whose next elements are exactly the goal.
    fn obtain(&mut self, node: u32, goal: Goal, depth: u32) -> Option<Operand> {
        if depth > 6 || self.draft.rows.len() > self.most_rows {
            return None;
        }
        if let Some(found) = self.find(node, goal)
            && self.r.chance(85)
        {
            return Some(found);
        }
        let single = goal.ranks.count_ones() == 1;
        let alone = self.memory.len() == 1;
        if alone || !single && self.r.chance(55) {
            if single {
                return self.find(node, goal);
            }
            let to = self.scratch_or_output(node, goal);
            self.produce(node, goal, vec![to], None, depth + 1)?;
            return Some(to);
        }
        // The data comes from another node: if the goal is the input of one rank, mostly from this rank, otherwise from
        // any node.
        let from = match self.r.chance(80) {
            true if single => goal.ranks.trailing_zeros(),
            _ => self.other(node),
        };
        let from = if from == node { self.other(node) } else { from };
        let Some(s) = self.stream(from, node) else {
            let to = self.scratch_or_output(node, goal);
            return (!single).then(|| self.produce(node, goal, vec![to], None, depth + 1)).flatten().map(|()| to);
        };
        self.streams[s].pending = true;
        let lane = self.streams[s].writer;
        self.produce(from, goal, vec![stream(s)], Some(lane), depth + 1)?;
        self.drain(s, goal.len, Some(node), Held { ranks: goal.ranks, element: goal.start })?;
        if self.r.chance(25) {
            let to = self.scratch_or_output(node, goal);
            self.streams[s].pending = false;
            let lane = self.reader(s, node);
            self.emit(
                node,
                lane,
                goal.len,
                vec![stream(s)],
                vec![to],
                Held { ranks: goal.ranks, element: goal.start },
            )?;
            return Some(to);
        }
        Some(stream(s))
    }

    /// Returns an empty stream between two nodes, or none if there are too many streams.
    fn stream(&mut self, from: u32, to: u32) -> Option<usize> {
        let free =
            |(s, d): (usize, &DraftStream)| d.source == from && d.sinks.contains(&to) && !self.streams[s].pending;
        let known: Vec<usize> = self.draft.streams.iter().enumerate().filter(|&x| free(x)).map(|(s, _)| s).collect();
        if !known.is_empty() && self.r.chance(50) {
            return Some(self.r.pick(&known));
        }
        if self.draft.streams.len() >= 8 {
            return None;
        }
        let mut sinks = vec![to];
        for n in 0..self.memory.len() as u32 {
            if n != from && n != to && self.r.chance(25) {
                sinks.push(n);
            }
        }
        sinks.sort_unstable();
        let readers = sinks.iter().map(|_| self.r.below(self.lanes as usize) as u32).collect();
        let writer = self.r.below(self.lanes as usize) as u32;
        self.draft.streams.push(DraftStream { source: from, sinks, capacity: None });
        self.streams.push(StreamState { writer, readers, pending: false });
        self.pushed.push(Vec::new());
        Some(self.streams.len() - 1)
    }

    fn reader(&self, s: usize, node: u32) -> u32 {
        let at = self.draft.streams[s].sinks.iter().position(|&n| n == node);
        at.map_or(0, |at| self.streams[s].readers[at])
    }

    /// Makes all sinks except `keep` pop the pushed elements, to an output that requires them or to scratch memory.
    fn drain(&mut self, s: usize, len: u32, keep: Option<u32>, held: Held) -> Option<()> {
        for node in self.draft.streams[s].sinks.clone() {
            if Some(node) == keep {
                continue;
            }
            let goal = Goal { start: held.element, len, ranks: held.ranks };
            let to = if held == JUNK { self.scratch(node, len) } else { self.scratch_or_output(node, goal) };
            let lane = self.reader(s, node);
            self.emit(node, lane, len, vec![stream(s)], vec![to], held)?;
        }
        Some(())
    }

    /// Returns the output if it requires the goal, sometimes any free output, otherwise scratch memory.
    fn scratch_or_output(&mut self, node: u32, goal: Goal) -> Operand {
        let c = self.draft.collective;
        if node < c.ranks {
            for Required { span, input_start, source } in c.required(node) {
                let ranks: u8 = match source {
                    Source::Copy { rank } => 1 << rank,
                    Source::Reduction { ranks } | Source::AtLeastOnce { ranks } => (1u8 << ranks) - 1,
                };
                let inside = goal.start >= input_start && goal.start + goal.len <= input_start + span.len;
                let at = (span.start + goal.start).wrapping_sub(input_start);
                if inside && (ranks == goal.ranks || self.r.chance(40)) {
                    let operand = Operand::Out(at);
                    let held = &self.memory[node as usize][0][at as usize..(at + goal.len) as usize];
                    let final_goal = Goal { ranks, ..goal };
                    if held.iter().all(|h| h.is_none())
                        && !holds(held, final_goal)
                        && !self.is_pinned(node, operand, goal.len)
                    {
                        return operand;
                    }
                }
            }
        }
        self.scratch(node, goal.len)
    }

    fn is_pinned(&self, node: u32, operand: Operand, len: u32) -> bool {
        self.pinned.iter().any(|&(n, o, l)| n == node && overlap(o, l, operand, len))
    }

    /// Returns scratch memory, used or new, that no pinned slice overlaps.
    fn scratch(&mut self, node: u32, len: u32) -> Operand {
        let size = self.draft.scratch[node as usize];
        for _ in 0..3 {
            if size >= len && self.r.chance(80) {
                let at = Operand::Tmp(self.r.below((size - len + 1) as usize) as u32);
                if !self.is_pinned(node, at, len) {
                    return at;
                }
            }
        }
        self.draft.scratch[node as usize] += len;
        self.memory[node as usize][1].resize((size + len) as usize, None);
        Operand::Tmp(size)
    }

    /// Adds an instruction, with the dependencies on other lanes that it needs.
    fn emit(
        &mut self,
        node: u32,
        lane: u32,
        len: u32,
        sources: Vec<Operand>,
        sinks: Vec<Operand>,
        held: Held,
    ) -> Option<()> {
        let id = self.draft.rows.len();
        if id >= 40 {
            return None;
        }
        let mut before: u64 = 0;
        for &o in &sources {
            if let Operand::Stream(s) = o {
                for &w in self.pushed[s.index()].last().into_iter() {
                    before |= self.before[w] | 1 << w;
                }
            }
        }
        for (j, row) in self.draft.rows.iter().enumerate() {
            if row.node == node && row.lane == lane {
                before |= self.before[j] | 1 << j;
            }
        }
        let mut after = Vec::new();
        for j in (0..id).rev() {
            let row = &self.draft.rows[j];
            if row.node != node || row.lane == lane {
                continue;
            }
            let meets =
                |a: &[Operand], b: &[Operand]| a.iter().any(|&x| b.iter().any(|&y| overlap(x, len, y, row.len)));
            if !(meets(&sinks, &row.sinks) || meets(&sinks, &row.sources) || meets(&sources, &row.sinks)) {
                continue;
            }
            if before >> j & 1 == 1 && self.r.chance(85) || !self.r.chance(self.careful) {
                continue;
            }
            // A wait for any row that comes after `j`, on any node, is enough.
            let later: Vec<usize> = (j + 1..id).filter(|&k| self.before[k] >> j & 1 == 1).collect();
            let wait = if !later.is_empty() && self.r.chance(25) { self.r.pick(&later) } else { j };
            after.push(wait);
            before |= self.before[wait] | 1 << wait;
        }
        for &o in &sinks {
            match o {
                Operand::Stream(s) => self.pushed[s.index()].push(id),
                Operand::Out(at) => self.write(node, 0, at, len, held),
                Operand::Tmp(at) => self.write(node, 1, at, len, held),
                Operand::In(_) => {}
            }
        }
        self.before.push(before);
        self.draft.rows.push(DraftRow { id, node, lane, len, sources, sinks, after });
        Some(())
    }

    fn write(&mut self, node: u32, buffer: usize, at: u32, len: u32, held: Held) {
        for k in 0..len {
            let new = if held == JUNK { JUNK } else { Held { element: held.element + k, ..held } };
            self.memory[node as usize][buffer][(at + k) as usize] = Some(new);
        }
    }
}

fn holds(held: &[Option<Held>], goal: Goal) -> bool {
    held.iter().zip(goal.start..).all(|(&h, element)| h == Some(Held { ranks: goal.ranks, element }))
}

fn overlap(a: Operand, m: u32, b: Operand, n: u32) -> bool {
    match (a, b) {
        (Operand::In(x), Operand::In(y)) | (Operand::Out(x), Operand::Out(y)) | (Operand::Tmp(x), Operand::Tmp(y)) => {
            x < y + n && y < x + m
        }
        _ => false,
    }
}

fn moved(operand: Operand, by: u32) -> Operand {
    match operand {
        Operand::In(at) => Operand::In(at + by),
        Operand::Out(at) => Operand::Out(at + by),
        Operand::Tmp(at) => Operand::Tmp(at + by),
        Operand::Stream(s) => Operand::Stream(s),
    }
}

/// Divides some instructions in two, so that the two ends of a stream are cut differently.
fn split(r: &mut Random, draft: &mut Draft) {
    let mut at = 0;
    while at < draft.rows.len() {
        if draft.rows[at].len > 1 && r.chance(15) {
            let mut first = draft.rows[at].clone();
            first.len = 1 + r.below(first.len as usize - 1) as u32;
            first.id = draft.rows.iter().map(|r| r.id + 1).max().unwrap_or(0);
            let second = &mut draft.rows[at];
            second.len -= first.len;
            second.after.clear();
            for operand in second.sources.iter_mut().chain(&mut second.sinks) {
                *operand = moved(*operand, first.len);
            }
            draft.rows.insert(at, first);
            at += 1;
        }
        at += 1;
    }
}
