//! Instructions to steps: where messages land, what each step waits for. See the head of [`super`].

use rustc_hash::FxHashMap;
use unisono_base::{InstrId, LaneId, NodeId, Span, StreamId};
use unisono_collective::Kind;

use super::{Arrival, Blocking, Departure, Lane, MOST_TAGS, Place, RankProgram, Step, StoreError, Wait, cut::Cut};
use crate::schedule::{Operand, Schedule};

pub struct Lowered {
    pub blocking: Blocking,
    pub programs: Vec<RankProgram>,
    /// The most messages that one lane receives.
    pub most_arrivals: u32,
}

/// Lowers a proven schedule with at most `slots` landing slots a lane.
pub fn lower(schedule: &Schedule, cut: &Cut, slots: u32) -> Result<Lowered, StoreError> {
    let whole = matches!(schedule.collective().kind, Kind::Broadcast | Kind::Reduce | Kind::Allreduce | Kind::Barrier);
    let mut lowering = Lowering {
        schedule,
        cut,
        tags: tags(schedule)?,
        aligned: whole,
        messages: FxHashMap::default(),
        ranks: schedule.all_nodes().map(|node| Rank::new(schedule, node, slots)).collect(),
        last_step: vec![(0, 0); schedule.instr_count()],
    };
    for &id in &cut.order {
        for (n, (start, len)) in cut.parts(schedule, id).enumerate() {
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

/// The tag of each stream at each sink: streams from one rank to another are counted.
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
    /// So far every instruction kept to blocks of one alignment, and outputs to their place.
    aligned: bool,
    /// The first input block that a message carries, by its stream and first element.
    messages: FxHashMap<(StreamId, u32), u32>,
    ranks: Vec<Rank>,
    /// Lane and row of each instruction's last step.
    last_step: Vec<(u32, u32)>,
}

const NONE: u32 = u32::MAX;

/// The first instruction that touches a block, and whether those of another lane do too.
#[derive(Clone, Copy)]
struct Touch {
    lane: u32,
    instr: u32,
    lanes: bool,
}

#[derive(Default)]
struct LaneBuild {
    steps: Vec<Step>,
    arrivals: Vec<Arrival>,
    slots: Vec<Slot>,
    next_slot: u32,
    /// As many slots as one instruction needs at once, at least.
    most_slots: u32,
    staging: Option<u32>,
    /// Blocks of the longest instruction.
    largest: u32,
}

struct Slot {
    start: u32,
    last_step: u32,
}

/// As [`Wait`], before steps of all lanes are numbered.
#[derive(Clone, Copy, PartialEq)]
enum Await {
    Step(u32, u32),
    Departure(u32),
}

struct Rank {
    first_lane: u32,
    scratch: u32,
    lanes: Vec<LaneBuild>,
    departures: Vec<Departure>,
    waits: Vec<Await>,
    /// Places that messages leave from and that nothing has overwritten since.
    leaving: Vec<(usize, Span, u32)>,
    touched: [Vec<Touch>; 2],
    /// Input block of what each block of `out` and `tmp` holds.
    align: [Vec<u32>; 2],
}

impl Rank {
    fn new(schedule: &Schedule, node: NodeId, slots: u32) -> Self {
        let lanes = schedule.lanes(node);
        let sizes = [schedule.output_len(node), schedule.scratch_elements(node)];
        let untouched = Touch { lane: NONE, instr: NONE, lanes: false };
        let mut touched = sizes.map(|size| vec![untouched; size as usize]);
        let mut builds = Vec::with_capacity(lanes.len());
        for lane in lanes.clone() {
            let mut build = LaneBuild { most_slots: slots, ..LaneBuild::default() };
            for instr in schedule.lane_instrs(LaneId::new(lane)) {
                let id = InstrId::new(instr);
                let streams = schedule.sources(id).iter().filter(|o| o.stream().is_some()).count();
                build.most_slots = build.most_slots.max(streams as u32);
                build.largest = build.largest.max(schedule.instr(id).len);
                let slices = schedule.sources(id).iter().chain(schedule.sinks(id));
                for (buffer, span) in slices.filter_map(|o| o.slice(schedule.instr(id).len)).filter(|s| s.0 > 0) {
                    for touch in &mut touched[buffer - 1][span.start as usize..span.end() as usize] {
                        if touch.lane == NONE {
                            *touch = Touch { lane: lane as u32, instr: instr as u32, lanes: false };
                        }
                        touch.lanes |= touch.lane != lane as u32;
                    }
                }
            }
            builds.push(build);
        }
        Self {
            first_lane: lanes.start as u32,
            scratch: sizes[1],
            lanes: builds,
            departures: Vec::new(),
            waits: Vec::new(),
            leaving: Vec::new(),
            touched,
            align: sizes.map(|size| vec![NONE; size as usize]),
        }
    }

    fn take_scratch(&mut self, blocks: u32, rank: u32) -> Result<u32, StoreError> {
        let start = self.scratch;
        let most = u64::from(u32::MAX);
        self.scratch = start.checked_add(blocks).ok_or(StoreError::TooMany {
            rank,
            what: "blocks of scratch memory",
            found: u64::from(start) + u64::from(blocks),
            most,
        })?;
        Ok(start)
    }

    /// Notes the waits of whoever overwrites `place`: the messages that leave from there.
    fn overwrites(&mut self, place: Place, len: u32) {
        let (buffer, span) = region(place, len);
        let waits = &mut self.waits;
        self.leaving.retain(|&(b, s, departure)| {
            if b == buffer && s.overlaps(span) {
                waits.push(Await::Departure(departure));
            }
            // Whoever overwrites a part of what is overwritten here comes after this one: else the two would race.
            !(b == buffer && span.start <= s.start && s.end() <= span.end())
        });
    }

    fn finish(mut self, aligned: bool) -> RankProgram {
        let mut program = RankProgram { scratch_blocks: self.scratch, ..RankProgram::default() };
        let mut first_step = Vec::new();
        let mut steps = 0;
        for lane in &self.lanes {
            first_step.push(steps);
            steps += lane.steps.len() as u32;
        }
        for lane in self.lanes.iter_mut().filter(|lane| !lane.steps.is_empty()) {
            let (step, arrival) = (program.steps.len() as u32, program.arrivals.len() as u32);
            for s in &mut lane.steps {
                s.arrivals = s.arrivals.start + arrival..s.arrivals.end + arrival;
                s.align = if aligned { s.align } else { 0 };
            }
            for a in &mut lane.arrivals {
                a.align = if aligned { a.align } else { 0 };
            }
            program.steps.append(&mut lane.steps);
            program.arrivals.append(&mut lane.arrivals);
            let (steps, arrivals) = (step..program.steps.len() as u32, arrival..program.arrivals.len() as u32);
            program.lanes.push(Lane { steps, arrivals });
        }
        for departure in &mut self.departures {
            departure.align = if aligned { departure.align } else { 0 };
        }
        program.departures = self.departures;
        let number = |w: Await| match w {
            Await::Step(lane, row) => Wait::Step(first_step[lane as usize] + row),
            Await::Departure(d) => Wait::Departure(d),
        };
        program.waits = self.waits.into_iter().map(number).collect();
        program
    }
}

fn region(place: Place, len: u32) -> (usize, Span) {
    match place {
        Place::In(start) => (0, Span::new(start, len)),
        Place::Out(start) => (1, Span::new(start, len)),
        Place::Tmp(start) => (2, Span::new(start, len)),
    }
}

/// One part of an instruction, as its node sees it.
struct Part {
    lane: u32,
    len: u32,
    align: u32,
}

impl Lowering<'_> {
    fn part(&mut self, id: InstrId, start: u32, len: u32, first: bool) -> Result<(), StoreError> {
        let node = self.cut.flow.node_of(id);
        let lane = self.cut.flow.lane_of(id).0 - self.ranks[node.index()].first_lane;
        let (rows, sink_rows) = self.schedule.operand_rows(id);
        let (mut memory, mut streams) = (Vec::new(), Vec::new());
        for row in sink_rows {
            match self.schedule.operands[row] {
                Operand::In(_) => unreachable!("Flow refuses writes to in"),
                Operand::Out(at) => memory.push(Place::Out(at + start)),
                Operand::Tmp(at) => memory.push(Place::Tmp(at + start)),
                Operand::Stream(s) => streams.push((s, self.cut.flow.position(row) + start)),
            }
        }
        let align = self.align(node, id, rows.clone(), start, len, &memory);
        let part = Part { lane, len, align };
        for &(stream, position) in &streams {
            self.messages.insert((stream, position), align);
        }
        let alone = rows.len() == 1;
        let first_arrival = self.lane(node, lane).arrivals.len() as u32;
        let mut sources = Vec::with_capacity(rows.len());
        let mut landed = None;
        for row in rows {
            let place = match self.schedule.operands[row] {
                Operand::In(at) => Place::In(at + start),
                Operand::Out(at) => Place::Out(at + start),
                Operand::Tmp(at) => Place::Tmp(at + start),
                Operand::Stream(stream) => {
                    let direct = memory.iter().copied().find(|&sink| alone && self.is_fresh(node, id, sink, len));
                    let place = self.receive(node, &part, stream, direct)?;
                    if sources.len() < 2 {
                        landed = landed.or(Some(place));
                    }
                    place
                }
            };
            sources.push(place);
        }
        // A message that lands where it is wanted need not be copied there.
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
            self.step(node, &part, memory[0], None, Some(sink), 0..0);
        }
        let row = self.lane(node, lane).steps.len() as u32 - 1;
        self.last_step[id.index()] = (lane, row);
        for slot in &mut self.lane(node, lane).slots {
            if sources.contains(&Place::Tmp(slot.start)) {
                slot.last_step = row;
            }
        }
        Ok(())
    }

    fn lane(&mut self, node: NodeId, lane: u32) -> &mut LaneBuild {
        &mut self.ranks[node.index()].lanes[lane as usize]
    }

    /// The input block that the part starts with; notes it for what the part writes.
    fn align(
        &mut self,
        node: NodeId,
        id: InstrId,
        rows: std::ops::Range<usize>,
        start: u32,
        len: u32,
        memory: &[Place],
    ) -> u32 {
        if !self.aligned {
            return 0;
        }
        let of = |rank: &Rank, buffer: usize, at: u32| {
            let held = &rank.align[buffer][at as usize..(at + len) as usize];
            held.iter().zip(held[0]..).all(|(&a, b)| a == b).then_some(held[0])
        };
        let rank = &self.ranks[node.index()];
        let mut found = rows.map(|row| match self.schedule.operands[row] {
            Operand::In(at) => Some(at + start),
            Operand::Out(at) => of(rank, 0, at + start),
            Operand::Tmp(at) => of(rank, 1, at + start),
            Operand::Stream(s) => {
                let position = self.cut.flow.position(row) + start;
                let message = self.messages.get(&(s, position));
                Some(*message.unwrap_or_else(|| unreachable!("{id} comes after who pushes its input")))
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
            let held = &mut self.ranks[node.index()].align[buffer - 1][span.start as usize..span.end() as usize];
            held.iter_mut().zip(align..).for_each(|(h, a)| *h = a);
            // A late block is cut off, so an earlier one has no room at its place.
            self.aligned &= buffer == 2 || span.start == align;
        }
        align
    }

    /// Whether `id` is the first of its rank to touch `place`, and its lane the only one.
    fn is_fresh(&self, node: NodeId, id: InstrId, place: Place, len: u32) -> bool {
        let (buffer, span) = region(place, len);
        let touched = &self.ranks[node.index()].touched[buffer - 1][span.start as usize..span.end() as usize];
        touched.iter().all(|t| !t.lanes && t.instr == id.0)
    }

    /// Adds the arrival of the next message of a stream and returns where it lands.
    fn receive(
        &mut self,
        node: NodeId,
        part: &Part,
        stream: StreamId,
        direct: Option<Place>,
    ) -> Result<Place, StoreError> {
        let tag = self.tags[&(stream, node)];
        let peer = self.schedule.stream(stream).source.0;
        let rank = &mut self.ranks[node.index()];
        let first_wait = rank.waits.len() as u32;
        let place = match direct {
            Some(place) => place,
            None => {
                let build = &mut rank.lanes[part.lane as usize];
                let at = build.next_slot as usize;
                build.next_slot = (build.next_slot + 1) % build.most_slots;
                let largest = build.largest;
                if at == build.slots.len() {
                    let start = rank.take_scratch(largest, node.0)?;
                    rank.lanes[part.lane as usize].slots.push(Slot { start, last_step: 0 });
                } else {
                    let last = build.slots[at].last_step;
                    rank.waits.push(Await::Step(part.lane, last));
                }
                let place = Place::Tmp(rank.lanes[part.lane as usize].slots[at].start);
                rank.overwrites(place, part.len);
                place
            }
        };
        let waits = first_wait..rank.waits.len() as u32;
        let arrival = Arrival { peer, tag, place, len: part.len, align: part.align, waits };
        rank.lanes[part.lane as usize].arrivals.push(arrival);
        Ok(place)
    }

    /// Where the lane computes what only leaves.
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

    /// The sources in a chain of steps, two at a time, from left to right.
    #[expect(clippy::too_many_arguments, reason = "one call, beside what prepares it")]
    fn steps(
        &mut self,
        node: NodeId,
        id: InstrId,
        part: &Part,
        sources: &[Place],
        target: Option<Place>,
        first_arrival: u32,
        first: bool,
    ) -> Result<(), StoreError> {
        let arrivals = first_arrival..self.lane(node, part.lane).arrivals.len() as u32;
        let first_wait = self.ranks[node.index()].waits.len() as u32;
        if first {
            for &(_, earlier) in self.schedule.after(id) {
                let (lane, row) = self.last_step[earlier.index()];
                if lane != part.lane {
                    self.ranks[node.index()].waits.push(Await::Step(lane, row));
                }
            }
        }
        if let [a] = *sources {
            let to = target.filter(|&to| to != a);
            self.step_after(node, part, a, None, to, arrivals, first_wait);
            return Ok(());
        }
        let target = target.expect("what is combined has a target");
        // What a later step still reads must not be overwritten by an earlier sum.
        let sum =
            if sources[2.min(sources.len())..].contains(&target) { self.staging(node, part.lane)? } else { target };
        let mut left = sources[0];
        // Messages come in the order of the sources that they are, so each step waits for its own.
        let landing: Vec<Place> =
            self.lane(node, part.lane).arrivals[first_arrival as usize..].iter().map(|a| a.place).collect();
        let mut taken = 0;
        let mut first_wait = Some(first_wait);
        for (n, &right) in sources.iter().enumerate().skip(1) {
            let from = taken;
            for place in if n == 1 { &sources[..2] } else { &sources[n..=n] } {
                taken += u32::from(landing.get(taken as usize) == Some(place));
            }
            let to = if n + 1 == sources.len() { target } else { sum };
            let arrived = first_arrival + from..first_arrival + taken;
            let waits = first_wait.take().unwrap_or(self.ranks[node.index()].waits.len() as u32);
            self.step_after(node, part, left, Some(right), Some(to), arrived, waits);
            left = to;
        }
        debug_assert_eq!(taken as usize, landing.len(), "each message is waited for once");
        Ok(())
    }

    fn step(
        &mut self,
        node: NodeId,
        part: &Part,
        a: Place,
        b: Option<Place>,
        to: Option<Place>,
        arrivals: std::ops::Range<u32>,
    ) {
        let waits = self.ranks[node.index()].waits.len() as u32;
        self.step_after(node, part, a, b, to, arrivals, waits);
    }

    /// Adds a step whose waits begin at row `first_wait`, with those for what it overwrites.
    #[expect(clippy::too_many_arguments, reason = "the fields of a step")]
    fn step_after(
        &mut self,
        node: NodeId,
        part: &Part,
        a: Place,
        b: Option<Place>,
        to: Option<Place>,
        arrivals: std::ops::Range<u32>,
        first_wait: u32,
    ) {
        let rank = &mut self.ranks[node.index()];
        if let Some(to) = to {
            rank.overwrites(to, part.len);
        }
        let departed = rank.departures.len() as u32;
        let waits = first_wait..rank.waits.len() as u32;
        let step = Step { len: part.len, align: part.align, a, b, to, arrivals, departures: departed..departed, waits };
        rank.lanes[part.lane as usize].steps.push(step);
    }

    /// The messages that leave from `place` after the last step so far.
    fn depart(&mut self, node: NodeId, part: &Part, place: Place, streams: &[(StreamId, u32)]) {
        let rank = &mut self.ranks[node.index()];
        for &(stream, _) in streams {
            for &sink in self.schedule.stream_sinks(stream) {
                let (buffer, span) = region(place, part.len);
                if buffer > 0 {
                    rank.leaving.push((buffer, span, rank.departures.len() as u32));
                }
                let tag = self.tags[&(stream, sink)];
                rank.departures.push(Departure { peer: sink.0, tag, place, len: part.len, align: part.align });
            }
        }
        let step = rank.lanes[part.lane as usize].steps.last_mut().expect("a step was just added");
        step.departures.end = rank.departures.len() as u32;
    }
}
