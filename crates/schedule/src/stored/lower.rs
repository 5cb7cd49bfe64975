//! Lowers instructions to steps: chooses the memory for messages, and the steps of each instruction. The head of
//! [`super`] explains the result.
//!
//! Parts of instructions are lowered in an order in which the schedule may run, and [`super::rank`] adds waits between
//! clashing accesses. So memory is accessed in the proven order, independently of the lanes, dependencies and streams
//! that imply this order.

use rustc_hash::FxHashMap;
use unisono_base::{InstrId, NodeId, Span, StreamId, interrupt};
use unisono_collective::Kind;

use super::{
    Arrival, Blocking, Departure, MOST_TAGS, Place, RankProgram, StoreError,
    align::alignment,
    cut::Cut,
    rank::{Access, Await, LaneBuild, LanePiece, Rank, Sum},
    touches::region,
};
use crate::schedule::{Operand, Schedule};

pub struct Lowered {
    pub blocking: Blocking,
    pub programs: Vec<RankProgram>,
    /// The number of messages of the lane that receives most.
    pub most_arrivals: u32,
}

/// Lowers a proven schedule, with at most `slots` scratch slots per lane for arriving messages.
pub fn lower(schedule: &Schedule, cut: &Cut, slots: u32) -> Result<Lowered, StoreError> {
    let whole = serves_whole_vectors(schedule.collective().kind);
    let mut lowering = Lowering {
        schedule,
        cut,
        tags: tags(schedule)?,
        aligned: whole,
        messages: FxHashMap::default(),
        ranks: schedule.all_nodes().map(|node| Rank::new(schedule, node, slots)).collect(),
        last_step: vec![0; schedule.instr_count()],
    };
    for &id in &cut.order {
        for (n, (start, len)) in cut.parts(schedule, id).enumerate() {
            interrupt::poll();
            lowering.part(id, start, len, n == 0)?;
        }
    }
    let (aligned, ranks) = (lowering.aligned, lowering.ranks);
    let most_arrivals = ranks.iter().flat_map(|r| &r.lanes).map(|l| l.arrivals.len()).max().unwrap_or(0);
    Ok(Lowered {
        blocking: if aligned { Blocking::Any } else { Blocking::Equal },
        programs: ranks.into_iter().map(|rank| rank.finish(aligned)).collect(),
        most_arrivals: most_arrivals as u32,
    })
}

/// Returns true if a collective's inputs and outputs are whole vectors, not one piece per rank. Then blocks may be cut
/// off at any number of elements.
pub fn serves_whole_vectors(kind: Kind) -> bool {
    matches!(kind, Kind::Broadcast | Kind::Reduce | Kind::Allreduce | Kind::Scan | Kind::Barrier)
}

/// Returns the tag of each stream at each sink: the index of the stream among the streams between the same two ranks.
fn tags(schedule: &Schedule) -> Result<FxHashMap<(StreamId, NodeId), u32>, StoreError> {
    let mut counts: FxHashMap<(NodeId, NodeId), u32> = FxHashMap::default();
    let mut tags = FxHashMap::default();
    for id in schedule.all_streams() {
        let source = schedule.stream(id).source;
        for &sink in schedule.stream_sinks(id) {
            let count = counts.entry((source, sink)).or_default();
            tags.insert((id, sink), *count);
            *count += 1;
            if *count > MOST_TAGS {
                return Err(StoreError::Tags { from: source.0, to: sink.0, found: *count, most: MOST_TAGS });
            }
        }
    }
    Ok(tags)
}

struct Lowering<'a> {
    schedule: &'a Schedule,
    cut: &'a Cut,
    tags: FxHashMap<(StreamId, NodeId), u32>,
    /// True while the data of the collective are whole vectors, each instruction read blocks of one alignment, and each
    /// output block was written at the position of its input block.
    aligned: bool,
    /// First input block of each message, by its stream and first element. An entry is removed when the sink receives
    /// the message, if there is only one sink.
    messages: FxHashMap<(StreamId, u32), u32>,
    ranks: Vec<Rank>,
    /// Row, in its lane, of each instruction's last step so far.
    last_step: Vec<u32>,
}

impl Lowering<'_> {
    fn part(&mut self, id: InstrId, start: u32, len: u32, first: bool) -> Result<(), StoreError> {
        let node = self.cut.flow.node_of(id);
        let lane = self.cut.flow.lane_of(id).0 - self.ranks[node.index()].first_lane;
        let flow = &self.cut.flow;
        let (mut memory, mut streams) = (Vec::new(), Vec::new());
        for (sink, position) in flow.sinks(self.schedule, id) {
            match sink {
                Operand::In(_) => unreachable!("Flow refuses writes to in"),
                Operand::Out(at) => memory.push(Place::Out(at + start)),
                Operand::Tmp(at) => memory.push(Place::Tmp(at + start)),
                Operand::Stream(s) => streams.push((s, position + start)),
            }
        }
        let align = self.align(node, id, start, len, &memory);
        let part = LanePiece { lane, len, align };
        if self.aligned {
            self.messages.extend(streams.iter().map(|&message| (message, align)));
        }
        let operands = self.schedule.sources(id);
        let alone = operands.len() == 1;
        let first_arrival = self.lane(node, lane).arrivals.len() as u32;
        let first_step = self.lane(node, lane).steps.len() as u32;
        let mut sources = Vec::with_capacity(operands.len());
        let mut landed = None;
        for source in operands.iter() {
            let place = match source {
                Operand::In(at) => Place::In(at + start),
                Operand::Out(at) => Place::Out(at + start),
                Operand::Tmp(at) => Place::Tmp(at + start),
                Operand::Stream(stream) => {
                    let direct = memory.iter().copied().find(|&sink| alone && self.is_fresh(node, id, sink, len));
                    // The first step combines the first two sources; each later step adds one source.
                    let consumer = first_step + sources.len().saturating_sub(1) as u32;
                    let place = self.receive(node, &part, stream, direct, consumer)?;
                    if sources.len() < 2 {
                        landed = landed.or(Some(place));
                    }
                    place
                }
            };
            sources.push(place);
        }
        // If a message is received at a sink of the instruction, it is not copied there.
        if let Some(at) = memory.iter().position(|sink| sources[0] == *sink) {
            memory.swap(0, at);
        }
        let target = match (memory.first(), sources.len()) {
            (Some(&sink), _) => Some(sink),
            (None, 1) => None,
            (None, _) => Some(match landed {
                Some(place) => place,
                None => self.staging(node, lane)?,
            }),
        };
        self.steps(node, id, &part, &sources, target, first_arrival, first)?;
        self.depart(node, &part, target.unwrap_or(sources[0]), &streams);
        for &sink in memory.iter().skip(1) {
            let rank = &mut self.ranks[node.index()];
            let first_wait = rank.waits.len();
            rank.step(&part, Sum { a: memory[0], b: None, to: Some(sink), arrivals: 0..0 }, first_wait);
        }
        self.last_step[id.index()] = self.lane(node, lane).steps.len() as u32 - 1;
        Ok(())
    }

    fn lane(&mut self, node: NodeId, lane: u32) -> &mut LaneBuild {
        &mut self.ranks[node.index()].lanes[lane as usize]
    }

    /// Returns the input block at the start of the part, and stores it for the memory that the part writes. If the
    /// sources of the part have no common input block, clears `aligned`. Returns 0 if `aligned` is false.
    fn align(&mut self, node: NodeId, id: InstrId, start: u32, len: u32, memory: &[Place]) -> u32 {
        if !self.aligned {
            return 0;
        }
        let rank = &self.ranks[node.index()];
        let flow = &self.cut.flow;
        let mut found = flow.sources(self.schedule, id).map(|(source, position)| match source {
            Operand::In(at) => Some(at + start),
            Operand::Out(at) => alignment(&rank.shift[0], Span::new(at + start, len)),
            Operand::Tmp(at) => alignment(&rank.shift[1], Span::new(at + start, len)),
            Operand::Stream(s) => {
                let message = (s, position + start);
                let is_last = self.schedule.stream_sinks(s).len() == 1;
                let known = if is_last { self.messages.remove(&message) } else { self.messages.get(&message).copied() };
                Some(known.unwrap_or_else(|| unreachable!("{id} comes after who pushes its input")))
            }
        });
        let align = found.next().flatten();
        let same = found.all(|other| other == align);
        let Some(align) = align.filter(|_| same) else {
            self.aligned = false;
            return 0;
        };
        for &sink in memory {
            let (buffer, span) = region(sink, len);
            let shift = i64::from(align) - i64::from(span.start);
            self.ranks[node.index()].shift[buffer - 1].set(span, shift);
            // The last blocks may be cut off, so an output block must not hold an input block of another index.
            self.aligned &= buffer == 2 || shift == 0;
        }
        align
    }

    /// Returns true if `id` is the first instruction of its rank that accesses `place`, and no other lane accesses
    /// `place`.
    fn is_fresh(&self, node: NodeId, id: InstrId, place: Place, len: u32) -> bool {
        let (buffer, span) = region(place, len);
        self.ranks[node.index()].first[buffer - 1].over(span).all(|(_, _, first)| !first.shared && first.instr == id.0)
    }

    /// Adds the arrival of the next message of a stream, and returns the place where it is received: `direct`, or a
    /// slot of scratch memory. `consumer` is the row, in its lane, of the step that consumes the message.
    fn receive(
        &mut self,
        node: NodeId,
        part: &LanePiece,
        stream: StreamId,
        direct: Option<Place>,
        consumer: u32,
    ) -> Result<Place, StoreError> {
        let tag = self.tags[&(stream, node)];
        let peer = self.schedule.stream(stream).source.0;
        let rank = &mut self.ranks[node.index()];
        let place = match direct {
            Some(place) => place,
            None => {
                let build = &mut rank.lanes[part.lane as usize];
                let at = build.next_slot as usize;
                build.next_slot = (build.next_slot + 1) % build.most_slots;
                let largest = build.largest;
                if at == build.slots.len() {
                    let start = rank.take_scratch(largest, node.0)?;
                    rank.lanes[part.lane as usize].slots.push(start);
                }
                Place::Tmp(rank.lanes[part.lane as usize].slots[at])
            }
        };
        let first_wait = rank.waits.len();
        rank.lands(place, part.len, Access::Arrival(part.lane, consumer), first_wait);
        let waits = first_wait as u32..rank.waits.len() as u32;
        let arrival = Arrival { peer, tag, place, len: part.len, align: part.align, waits };
        rank.lanes[part.lane as usize].arrivals.push(arrival);
        Ok(place)
    }

    /// Returns the scratch memory in which a lane computes intermediate sums and data that it only sends.
    fn staging(&mut self, node: NodeId, lane: u32) -> Result<Place, StoreError> {
        let rank = &mut self.ranks[node.index()];
        let (known, largest) = (rank.lanes[lane as usize].staging, rank.lanes[lane as usize].largest);
        let start = match known {
            Some(start) => start,
            None => rank.take_scratch(largest, node.0)?,
        };
        rank.lanes[lane as usize].staging = Some(start);
        Ok(Place::Tmp(start))
    }

    /// Adds a chain of steps that combine the sources from left to right, two at a time. `first` is true for the first
    /// part of an instruction, which waits for the instruction's dependencies.
    #[expect(clippy::too_many_arguments, reason = "one call, beside what prepares it")]
    fn steps(
        &mut self,
        node: NodeId,
        id: InstrId,
        part: &LanePiece,
        sources: &[Place],
        target: Option<Place>,
        first_arrival: u32,
        first: bool,
    ) -> Result<(), StoreError> {
        let arrivals = first_arrival..self.lane(node, part.lane).arrivals.len() as u32;
        let mut first_wait = self.ranks[node.index()].waits.len();
        if first {
            // A dependency on another node only orders memory accesses, and the waits of these accesses already enforce
            // the order.
            for &(_, earlier) in self.schedule.after(id) {
                let lane = self.cut.flow.lane_of(earlier).0.wrapping_sub(self.ranks[node.index()].first_lane);
                if self.cut.flow.node_of(earlier) == node && lane != part.lane {
                    let wait = Await::Step(lane, self.last_step[earlier.index()]);
                    self.ranks[node.index()].wait(first_wait, wait);
                }
            }
        }
        if let [a] = *sources {
            let to = target.filter(|&to| to != a);
            self.ranks[node.index()].step(part, Sum { a, b: None, to, arrivals }, first_wait);
            return Ok(());
        }
        let target = target.expect("what is combined has a target");
        // An intermediate sum must not overwrite a source of a later step.
        let sum =
            if sources[2.min(sources.len())..].contains(&target) { self.staging(node, part.lane)? } else { target };
        let mut left = sources[0];
        // Messages arrive in the order of the sources, so each step waits for its own messages only.
        let landing: Vec<Place> =
            self.lane(node, part.lane).arrivals[first_arrival as usize..].iter().map(|a| a.place).collect();
        let mut taken = 0;
        for (n, &right) in sources.iter().enumerate().skip(1) {
            let from = taken;
            for place in if n == 1 { &sources[..2] } else { &sources[n..=n] } {
                taken += u32::from(landing.get(taken as usize) == Some(place));
            }
            let to = if n + 1 == sources.len() { target } else { sum };
            let arrivals = first_arrival + from..first_arrival + taken;
            let rank = &mut self.ranks[node.index()];
            rank.step(part, Sum { a: left, b: Some(right), to: Some(to), arrivals }, first_wait);
            first_wait = rank.waits.len();
            left = to;
        }
        debug_assert_eq!(taken as usize, landing.len(), "each message is waited for once");
        Ok(())
    }

    /// Adds the messages that are sent from `place` after the last step of the lane so far.
    fn depart(&mut self, node: NodeId, part: &LanePiece, place: Place, streams: &[(StreamId, u32)]) {
        let rank = &mut self.ranks[node.index()];
        for &(stream, _) in streams {
            for &sink in self.schedule.stream_sinks(stream) {
                let (buffer, span) = region(place, part.len);
                if buffer > 0 {
                    // The last step accessed this place, so it has already waited for all accesses that clash with this
                    // read.
                    rank.touches[buffer - 1].read(span, Access::Departure(rank.departures.len() as u32), |_| {});
                }
                let tag = self.tags[&(stream, sink)];
                rank.departures.push(Departure { peer: sink.0, tag, place, len: part.len, align: part.align });
            }
        }
        let step = rank.lanes[part.lane as usize].steps.last_mut().expect("a step was just added");
        step.departures.end = rank.departures.len() as u32;
    }
}
