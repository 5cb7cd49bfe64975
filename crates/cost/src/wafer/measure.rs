//! Computes the cost terms of any placed schedule on its grid.
//!
//! A message belongs to the phase of the instruction that reads it, not to the phase of its sender. A chain of
//! dependent messages may pass through several phases, which each count their own. So the sums of distances and depths
//! of all phases are never less than those of the longest chain.
//!
//! A phase may run on many lines at once (all rows of an X-Y reduce). A line is a set of PEs connected by used links,
//! and each line has terms of its own. Source of the terms: "Near-Optimal Wafer-Scale Reduce", section 3.

use std::collections::BTreeMap;

use unisono_base::{Diagnostic, Diagnostics, InstrId, PhaseId, Span, StreamId, Wavelets, interrupt::poll, narrow};
use unisono_lower::{Distances, OnGrid, Segment, Terms};
use unisono_machine::{Direction, Grid};
use unisono_schedule::{Flow, topological};

/// The terms of one phase: one entry for each set of lines with equal terms, in order of appearance.
#[derive(Clone, PartialEq, Debug)]
pub struct PhaseLines {
    pub name: String,
    pub lines: Vec<Terms>,
}

/// Returns the terms of all phases with messages.
///
/// # Errors
/// Returns the faults of a schedule that is not well-formed, or that cannot run.
pub fn measure(placed: OnGrid) -> Result<Vec<PhaseLines>, Vec<Diagnostic>> {
    let mut found = Diagnostics::default();
    let flow = Flow::new(placed.schedule, &mut found);
    if !found.is_empty() {
        return Err(found.into_vec());
    }
    let order = topological(placed.schedule, &flow, &mut found);
    placed.placement.check(placed.schedule, &mut found);
    if !found.is_empty() {
        return Err(found.into_vec());
    }
    let parts = Parts::new(placed, &flow, &order);
    let mut longest = vec![(0, 0); order.len()];
    let phases = (0..).map(PhaseId).zip(placed.schedule.phases());
    Ok(phases
        .map(|(phase, name)| PhaseLines { name: name.clone(), lines: parts.lines(phase, &mut longest) })
        .filter(|p| p.lines.iter().any(|t| t.depth > 0.0 || t.energy > 0.0))
        .collect())
}

/// The wavelets of one push that one phase reads: a message.
struct Message {
    stream: StreamId,
    wavelets: u64,
}

/// A schedule divided by phases.
struct Parts<'a> {
    placed: OnGrid<'a>,
    flow: &'a Flow,
    distances: Distances,
    order: &'a [InstrId],
    /// The position of each instruction in `order`.
    rank: Vec<u32>,
    /// The instructions of each phase, in topological order.
    instrs: Vec<Vec<InstrId>>,
    /// The messages that each phase reads.
    messages: Vec<Vec<Message>>,
}

impl<'a> Parts<'a> {
    fn new(placed: OnGrid<'a>, flow: &'a Flow, order: &'a [InstrId]) -> Self {
        let schedule = placed.schedule;
        let phases = schedule.phases().len();
        let mut parts = Self {
            placed,
            flow,
            distances: placed.placement.distances(schedule),
            order,
            rank: vec![0; order.len()],
            instrs: (0..phases).map(|_| Vec::new()).collect(),
            messages: (0..phases).map(|_| Vec::new()).collect(),
        };
        for (at, &id) in order.iter().enumerate() {
            parts.rank[id.index()] = narrow::<u32>(at);
            parts.instrs[schedule.phase(id).index()].push(id);
            for (stream, span) in flow.pushes(schedule, id) {
                parts.charge(stream, span);
            }
        }
        parts
    }

    /// Assigns the message of one push to the phase that reads it. If several phases read it, each gets its part.
    fn charge(&mut self, stream: StreamId, span: Span) {
        let schedule = self.placed.schedule;
        let wavelets = |elements| Wavelets::of(elements, schedule.collective().element_bytes()).0;
        let sinks = || self.flow.readers_by_sink(stream).map(|readers| Flow::touching(readers, span));
        let mut phases = sinks().flatten().map(|p| schedule.phase(p.instr));
        let Some(first) = phases.next() else { return };
        if phases.all(|phase| phase == first) {
            let wavelets = wavelets(u64::from(span.len));
            self.messages[first.index()].push(Message { stream, wavelets });
            return;
        }
        // The copies for several sinks share one route. So a phase counts the most wavelets that it reads at one sink.
        let mut most: BTreeMap<PhaseId, u64> = BTreeMap::new();
        for pieces in sinks() {
            let mut here: BTreeMap<PhaseId, u64> = BTreeMap::new();
            for p in pieces {
                let piece = Span::new(p.start, schedule.instr(p.instr).len);
                let common = piece.end().min(span.end()) - u64::from(piece.start.max(span.start));
                *here.entry(schedule.phase(p.instr)).or_default() += common;
            }
            for (phase, elements) in here {
                let so_far = most.entry(phase).or_default();
                *so_far = elements.max(*so_far);
            }
        }
        let messages: Vec<_> = most.into_iter().map(|(phase, elements)| (phase, wavelets(elements))).collect();
        for (phase, wavelets) in messages {
            self.messages[phase.index()].push(Message { stream, wavelets });
        }
    }

    /// Computes, for each instruction of a phase, the most hops and the most messages of that phase on a chain that
    /// ends at the instruction. `longest` has an entry for every instruction.
    fn chains(&self, phase: PhaseId, longest: &mut [(u32, u32)]) {
        let schedule = self.placed.schedule;
        let [Some(first), Some(last)] = [self.instrs[phase.index()].first(), self.instrs[phase.index()].last()] else {
            return;
        };
        let (first, last) = (self.rank[first.index()], self.rank[last.index()]);
        for &id in &self.order[first as usize..=last as usize] {
            poll();
            let node = self.flow.node_of(id);
            let reads_here = schedule.phase(id) == phase;
            let mut most = (0, 0);
            let mut reach = |from: InstrId, hops: u32, messages: u32| {
                // The phase has no message before its first instruction.
                let (h, m) = if self.rank[from.index()] < first { (0, 0) } else { longest[from.index()] };
                most = (most.0.max(h + hops), most.1.max(m + messages));
            };
            let before = InstrId(id.0.wrapping_sub(1));
            if id.0 > 0 && self.flow.lane_of(before) == self.flow.lane_of(id) {
                reach(before, 0, 0);
            }
            for &(_, earlier) in schedule.after(id) {
                reach(earlier, 0, 0);
            }
            for (stream, span) in self.flow.pops(schedule, id) {
                let (hops, messages) =
                    if reads_here { (self.distances.hops(schedule, stream, node), 1) } else { (0, 0) };
                for writer in Flow::touching(self.flow.writers(stream), span) {
                    reach(writer.instr, hops, messages);
                }
            }
            longest[id.index()] = most;
        }
    }

    fn lines(&self, phase: PhaseId, longest: &mut [(u32, u32)]) -> Vec<Terms> {
        let (schedule, placement) = (self.placed.schedule, self.placed.placement);
        let width = schedule.collective().element_bytes();
        let pes = schedule.node_count();
        let mut loads = Loads {
            sent: vec![0; pes],
            received: vec![0; pes],
            work: vec![0; pes],
            links: std::array::from_fn(|_| vec![0; pes]),
            parent: (0..narrow::<u32>(pes)).collect(),
        };
        let (mut deepest, mut farthest) = (vec![0u32; pes], vec![0u32; pes]);
        self.chains(phase, longest);
        for &id in &self.instrs[phase.index()] {
            let node = self.flow.node_of(id).index();
            let wavelets = Wavelets::of(u64::from(schedule.instr(id).len), width).0;
            loads.work[node] += wavelets * (schedule.sources(id).len() as u64 - 1).max(1);
            loads.received[node] += wavelets * self.flow.pops(schedule, id).count() as u64;
            farthest[node] = farthest[node].max(longest[id.index()].0);
            deepest[node] = deepest[node].max(longest[id.index()].1);
        }
        let mut segments = Vec::new();
        for message in &self.messages[phase.index()] {
            poll();
            loads.sent[schedule.stream(message.stream).source.index()] += message.wavelets;
            placement.segments(schedule, message.stream, &mut segments);
            loads.route(placement.grid, &segments, message.wavelets);
        }
        loads.spread(placement.grid);
        loads.terms(&farthest, &deepest)
    }
}

/// The loads of all PEs and links in one phase.
struct Loads {
    /// For each PE, the wavelets that it sends.
    sent: Vec<u64>,
    /// For each PE, the wavelets that it receives.
    received: Vec<u64>,
    /// For each PE, its operations on wavelets.
    work: Vec<u64>,
    /// The wavelets on the link that leaves each PE in each direction.
    links: [Vec<i64>; 4],
    /// A union-find forest of PEs. Two PEs are in one set if loaded links connect them.
    parent: Vec<u32>,
}

impl Loads {
    /// Adds the wavelets of a stream to the link loads, as differences at the two ends of each straight segment.
    /// [`Loads::spread`] sums the differences along the links.
    fn route(&mut self, grid: Grid, segments: &[Segment], wavelets: u64) {
        for s in segments {
            let end = grid.step(s.from, s.direction, s.hops);
            let loads = &mut self.links[s.direction.index()];
            loads[s.from as usize] += wavelets as i64;
            loads[end as usize] -= wavelets as i64;
        }
    }

    fn find(&mut self, mut pe: u32) -> u32 {
        while self.parent[pe as usize] != pe {
            let up = self.parent[self.parent[pe as usize] as usize];
            self.parent[pe as usize] = up;
            pe = up;
        }
        pe
    }

    /// Converts the differences at segment ends into loads of links, and unites the sets of the two PEs of each loaded
    /// link.
    fn spread(&mut self, grid: Grid) {
        for direction in Direction::ALL {
            let mut along = |start: u32, hops: u32| {
                let mut at = 0;
                for hop in 0..=hops {
                    let pe = grid.step(start, direction, hop);
                    let load = &mut self.links[direction.index()][pe as usize];
                    at += *load;
                    *load = at;
                    if at > 0 {
                        let (a, b) = (self.find(pe), self.find(grid.step(pe, direction, 1)));
                        self.parent[a.max(b) as usize] = a.min(b);
                    }
                }
            };
            match direction {
                Direction::East => (0..grid.rows).for_each(|r| along(grid.pe(r, 0), grid.cols - 1)),
                Direction::West => (0..grid.rows).for_each(|r| along(grid.pe(r, grid.cols - 1), grid.cols - 1)),
                Direction::South => (0..grid.cols).for_each(|c| along(grid.pe(0, c), grid.rows - 1)),
                Direction::North => (0..grid.cols).for_each(|c| along(grid.pe(grid.rows - 1, c), grid.rows - 1)),
            }
        }
    }

    /// Returns the terms of all lines, without repetition.
    fn terms(&mut self, farthest: &[u32], deepest: &[u32]) -> Vec<Terms> {
        let pes = self.parent.len();
        let roots: Vec<u32> = (0..narrow::<u32>(pes)).map(|pe| self.find(pe)).collect();
        let mut slot = vec![u32::MAX; pes];
        let mut lines: Vec<Terms> = Vec::new();
        for pe in 0..pes {
            let root = roots[pe] as usize;
            if slot[root] == u32::MAX {
                slot[root] = narrow::<u32>(lines.len());
                lines.push(Terms::default());
            }
            let t = &mut lines[slot[root] as usize];
            t.distance = t.distance.max(f64::from(farthest[pe]));
            t.depth = t.depth.max(f64::from(deepest[pe]));
            t.contention = t.contention.max(self.sent[pe].max(self.received[pe]) as f64);
            t.datapath = t.datapath.max(self.work[pe] as f64);
            for links in &self.links {
                let load = links[pe] as f64;
                t.energy += load;
                t.links += f64::from(u8::from(load > 0.0));
                t.max_link_load = t.max_link_load.max(load);
            }
        }
        let mut different: Vec<Terms> = Vec::new();
        for t in lines {
            if !different.contains(&t) {
                different.push(t);
            }
        }
        different
    }
}
