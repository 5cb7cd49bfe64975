//! The builder of a schedule's tables. Instructions may be added in any order of nodes and lanes.
//!
//! The builder rejects only schedules that do not fit into the tables; [`crate::verify`] decides whether they are
//! correct.

use std::ops::Range;

use rustc_hash::FxHashMap;
use unisono_base::{InstrId, LaneId, NodeId, PhaseId, StreamId, interrupt::poll, narrow, parallel};
use unisono_collective::Collective;

use crate::{
    instrs::{Instr, Instrs, PackedOperand, PhaseId16},
    schedule::{Operand, Schedule, Stream},
};

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BuildError {
    #[error("the schedule has {found} {what}; at most {most} fit")]
    TooMany { what: &'static str, found: u64, most: u64 },
    #[error("{what} {found} does not exist; there are {count}")]
    Missing { what: &'static str, found: u32, count: u64 },
    #[error("stream {stream} leads back to its own {node}; name other nodes")]
    ToItself { stream: u32, node: NodeId },
    #[error("stream {stream} leads to {node} twice; name each node once")]
    Twice { stream: u32, node: NodeId },
    #[error("a part for {ranks} ranks is placed on {nodes} nodes; it needs one node a rank")]
    PartNodes { ranks: u32, nodes: usize },
    #[error("the input and output of a part lie in memory; {found} is a stream")]
    PartPlace { found: StreamId },
}

/// The id of no instruction. [`Builder::combine`] returns it for 0 elements or for a node that does not exist.
const NOTHING: InstrId = InstrId(u32::MAX);

/// The index of no place, at the end of a node's list of places.
const NOWHERE: u32 = u32::MAX;

/// The least number of instructions of a schedule that two threads build and sort.
const LONG: usize = 1 << 14;

/// A lane of a node that has instructions.
struct Place {
    node: NodeId,
    lane: u32,
    instrs: u32,
    /// The instruction added last.
    last: InstrId,
    /// The place of the same node that was created before this one, or [`NOWHERE`].
    before: u32,
}

pub struct Builder {
    collective: Collective,
    origin: String,
    phases: Vec<String>,
    /// Index of each name in `phases`.
    phase_ids: FxHashMap<String, usize>,
    phase: u16,
    scratch: Vec<u32>,
    instrs: Instrs,
    /// Index of each distinct shape in `instrs`.
    shapes: FxHashMap<Instr, u32>,
    places: Vec<Place>,
    /// Index of each node and lane in `places`.
    place_ids: FxHashMap<(NodeId, u32), u32>,
    /// Place of each instruction, in order of insertion.
    place_of: Vec<u32>,
    /// For each node, its place that was created last, or [`NOWHERE`].
    newest: Vec<u32>,
    /// Number of operands of all instructions.
    operands: u64,
    /// The streams. `capacity` is 1 if an instruction names the stream, otherwise 0, until [`Builder::finish`] sets it.
    streams: Vec<Stream>,
    bounded: Vec<(StreamId, u32)>,
    sinks: Vec<NodeId>,
    deps: Vec<(InstrId, InstrId)>,
    /// For each call of [`Builder::join_lanes`], the id of the first instruction added after the call.
    joins: Vec<InstrId>,
    error: Option<BuildError>,
    keeps_unused: bool,
    /// The nodes whose instructions are added. Instructions of other nodes are dropped.
    kept: Range<u32>,
}

impl Place {
    fn is(&self, node: NodeId, lane: u32) -> bool {
        (self.node, self.lane) == (node, lane)
    }
}

impl Builder {
    pub fn new(collective: Collective) -> Self {
        Self {
            collective,
            origin: String::new(),
            phases: Vec::new(),
            phase_ids: FxHashMap::default(),
            phase: 0,
            scratch: vec![0; collective.ranks as usize],
            instrs: Instrs::default(),
            shapes: FxHashMap::default(),
            places: Vec::new(),
            place_ids: FxHashMap::default(),
            place_of: Vec::new(),
            newest: vec![NOWHERE; collective.ranks as usize],
            operands: 0,
            streams: Vec::new(),
            bounded: Vec::new(),
            sinks: Vec::new(),
            deps: Vec::new(),
            joins: Vec::new(),
            error: None,
            keeps_unused: false,
            kept: 0..u32::MAX,
        }
    }

    /// Runs `emit`, which adds about `instrs` instructions. If there are many instructions and a core is idle, two
    /// threads run `emit`, each for the instructions of one half of the nodes ([`Builder::keeps`]). The result is the
    /// same. `emit` must make the same calls each time, but may leave out instructions of nodes that the builder does
    /// not keep. It must not use ids of earlier instructions, and must not join lanes.
    ///
    /// # Errors
    ///
    /// Returns the errors of `emit`.
    pub fn in_halves<E: Send>(
        &mut self,
        instrs: u64,
        emit: impl Fn(&mut Builder) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        if instrs >= LONG as u64 && parallel::with_idle(2, |threads| threads > 1) {
            let middle = narrow::<u32>(self.node_count()) / 2;
            let half = |kept: Range<u32>| {
                let mut part = self.part(kept);
                let made = emit(&mut part).is_ok() && part.error.is_none();
                part.sort();
                made.then_some(part)
            };
            let halves = parallel::both(|| half(0..middle), || half(middle..u32::MAX));
            if let (Some(first), Some(second)) = halves
                && self.fits(&first, &second)
            {
                self.append(first);
                self.append(second);
                return Ok(());
            }
        }
        // One thread adds all instructions if the builder was not split. It also does so if a part has an error, to
        // find the first error.
        emit(self)
    }

    /// Returns true if instructions of the node are added.
    pub fn keeps(&self, node: NodeId) -> bool {
        self.kept.contains(&node.0)
    }

    /// Returns a builder without instructions that continues this one for the nodes `kept`.
    fn part(&self, kept: Range<u32>) -> Self {
        Self {
            phases: self.phases.clone(),
            phase_ids: self.phase_ids.clone(),
            phase: self.phase,
            scratch: self.scratch.clone(),
            newest: vec![NOWHERE; self.newest.len()],
            streams: self.streams.iter().map(|s| Stream { len: 0, capacity: 0, ..*s }).collect(),
            sinks: self.sinks.clone(),
            kept,
            ..Self::new(self.collective)
        }
    }

    /// Returns true if the tables can hold this builder and two of its parts.
    fn fits(&self, first: &Self, second: &Self) -> bool {
        let all = [self, first, second];
        let len = |at: usize| all.iter().filter_map(|b| b.streams.get(at)).map(|s| u64::from(s.len)).sum::<u64>();
        all.iter().map(|b| b.operands).sum::<u64>() < u64::from(u32::MAX)
            && (0..first.streams.len()).all(|at| len(at) <= u64::from(u32::MAX))
    }

    /// Appends the instructions of a part whose tables are sorted.
    fn append(&mut self, part: Self) {
        let before = narrow::<u32>(self.instrs.len());
        self.newest.resize(part.newest.len(), NOWHERE);
        for at in part.places_in_order() {
            let Place { node, lane, instrs, .. } = part.places[at];
            let place = self.place(node, lane);
            self.places[place as usize].instrs += instrs;
            self.place_of.resize(self.place_of.len() + instrs as usize, place);
            self.places[place as usize].last = InstrId::new(self.place_of.len() - 1);
        }
        if before == 0 {
            (self.shapes, self.instrs) = (part.instrs.known(), part.instrs);
        } else {
            let all = (0..part.instrs.len()).map(InstrId::new);
            all.for_each(|id| self.instrs.push_from(&part.instrs, id, &mut self.shapes));
        }
        self.operands += part.operands;
        let after = |id: InstrId| InstrId(before + id.0);
        self.deps.extend(part.deps.into_iter().map(|(instr, earlier)| (after(instr), after(earlier))));
        if self.streams.len() < part.streams.len() {
            let added = &part.streams[self.streams.len()..];
            self.streams.extend(added.iter().map(|s| Stream { len: 0, capacity: 0, ..*s }));
            self.sinks = part.sinks;
        }
        for (stream, of_part) in self.streams.iter_mut().zip(&part.streams) {
            stream.len += of_part.len;
            stream.capacity = stream.capacity.max(of_part.capacity);
        }
        (self.phases, self.phase_ids, self.phase) = (part.phases, part.phase_ids, part.phase);
        self.scratch = part.scratch;
        self.bounded.extend(part.bounded.into_iter().filter(|_| part.kept.start == 0));
    }

    /// Continues a finished schedule as part of another collective on the same ranks, such as the reduce of an
    /// allreduce. If a rank gains an output that its scratch memory fits into, its `Tmp` operands become `Out`
    /// operands.
    pub fn resume(mut schedule: Schedule, collective: Collective) -> Self {
        let mut b = Self::new(collective);
        let gained = |node: NodeId| schedule.output_len(node) == 0 && node.0 < collective.ranks;
        let fits = |node: NodeId| schedule.scratch_elements(node) <= collective.output_len(node.0);
        let moved: Vec<bool> = schedule.all_nodes().map(|node| gained(node) && fits(node)).collect();
        b.newest.resize(schedule.node_count(), NOWHERE);
        b.scratch = moved.iter().zip(&schedule.scratch).map(|(&moved, &s)| if moved { 0 } else { s }).collect();
        let bounded = schedule.streams.iter().enumerate().filter(|(_, s)| s.capacity != s.len);
        b.bounded = bounded.map(|(n, s)| (StreamId::new(n), s.capacity)).collect();
        (b.shapes, b.instrs) = (schedule.instrs.known(), std::mem::take(&mut schedule.instrs));
        b.streams = schedule.streams.iter().map(|stream| Stream { capacity: 0, ..*stream }).collect();
        for node in schedule.all_nodes() {
            for (lane, row) in schedule.lanes(node).enumerate() {
                for id in schedule.lane_instrs(LaneId::new(row)).map(InstrId::new) {
                    for operand in b.instrs.operands_mut(id) {
                        b.operands += 1;
                        match operand.get() {
                            Operand::Tmp(start) if moved[node.index()] => *operand = Operand::Out(start).into(),
                            Operand::Stream(s) => b.streams[s.index()].capacity = 1,
                            _ => {}
                        }
                    }
                    b.extend_lane(node, narrow(lane));
                }
            }
        }
        b.origin = schedule.origin;
        for (at, name) in schedule.phases.iter().enumerate() {
            b.phase_ids.entry(name.clone()).or_insert(at);
        }
        b.phases = schedule.phases;
        b.sinks = schedule.sinks;
        b.deps = schedule.deps;
        b
    }

    pub fn collective(&self) -> &Collective {
        &self.collective
    }

    pub fn origin(&mut self, origin: &str) -> &mut Self {
        self.origin = one_line(origin);
        self
    }

    /// Keeps streams that no instruction names. Other lines of a file, such as a placement, may name them by their ids.
    pub fn keep_unused_streams(&mut self) {
        self.keeps_unused = true;
    }

    /// Reserves memory for about `instrs` instructions and `streams` streams.
    pub fn reserve(&mut self, instrs: usize, streams: usize) {
        self.instrs.reserve(instrs);
        self.place_of.reserve(instrs);
        self.streams.reserve(streams);
        self.sinks.reserve(streams);
    }

    /// Adds a node that computes but is not a rank, such as a switch.
    pub fn switch(&mut self) -> NodeId {
        self.scratch.push(0);
        self.newest.push(NOWHERE);
        NodeId::new(self.scratch.len() - 1)
    }

    pub fn node_count(&self) -> usize {
        self.scratch.len()
    }

    /// Assigns later instructions to the phase `name`, which is created on first use. Characters that the text form
    /// does not accept become `-`.
    pub fn phase(&mut self, name: &str) -> PhaseId {
        let plain = |c: char| {
            if c.is_alphanumeric() || "-_./".contains(c) { c } else { '-' }
        };
        let mut name: String = name.chars().map(plain).collect();
        if name.is_empty() {
            name.push('-');
        }
        let at = self.phase_ids.get(&name).copied().unwrap_or_else(|| {
            self.phase_ids.insert(name.clone(), self.phases.len());
            self.phases.push(name);
            self.phases.len() - 1
        });
        if at > usize::from(u16::MAX) {
            self.fail(BuildError::TooMany { what: "phases", found: at as u64 + 1, most: u64::from(u16::MAX) });
        } else {
            self.phase = narrow(at);
        }
        PhaseId::new(at)
    }

    /// Adds a stream from one node to others. Its length becomes the sum of the lengths of the instructions that push
    /// to it.
    pub fn stream(&mut self, source: NodeId, sinks: &[NodeId]) -> StreamId {
        if self.sinks.len() + sinks.len() >= u32::MAX as usize || self.streams.len() >= u32::MAX as usize - 1 {
            self.fail(BuildError::TooMany {
                what: "stream ends",
                found: (self.sinks.len() + sinks.len()) as u64,
                most: u64::from(u32::MAX - 1),
            });
            return StreamId(0);
        }
        let id = StreamId::new(self.streams.len());
        let first_sink = narrow(self.sinks.len());
        self.sinks.extend_from_slice(sinks);
        self.sinks[first_sink as usize..].sort_unstable();
        for &node in std::iter::once(&source).chain(sinks) {
            self.check_node(node);
        }
        if sinks.contains(&source) {
            self.fail(BuildError::ToItself { stream: id.0, node: source });
        }
        if let Some(twice) = self.sinks[first_sink as usize..].windows(2).find(|pair| pair[0] == pair[1]) {
            self.fail(BuildError::Twice { stream: id.0, node: twice[0] });
        }
        self.streams.push(Stream { source, len: 0, capacity: 0, first_sink });
        id
    }

    /// Limits the elements that are pushed and not yet popped, at each sink of the stream, to `capacity`.
    pub fn capacity(&mut self, stream: StreamId, capacity: u32) {
        self.bounded.push((stream, capacity));
    }

    /// Allocates `elements` of the node's scratch memory and returns the index of the first one.
    pub fn scratch(&mut self, node: NodeId, elements: u32) -> u32 {
        if !self.check_node(node) {
            return 0;
        }
        let start = self.scratch[node.index()];
        match start.checked_add(elements) {
            Some(end) => self.scratch[node.index()] = end,
            None => {
                self.fail(BuildError::TooMany {
                    what: "scratch elements on a node",
                    found: u64::from(start) + u64::from(elements),
                    most: u64::from(u32::MAX),
                });
                // The index is not used, because [`Builder::finish`] returns the error.
                return 0;
            }
        }
        start
    }

    /// Appends `combine(sources) -> sinks` over `len` elements to a lane, and returns its id. If `len` is 0, it adds
    /// nothing and returns an id that [`Builder::after`] ignores. Ids count instructions in order of insertion;
    /// [`Builder::finish`] renumbers them by node and lane.
    pub fn combine(&mut self, node: NodeId, lane: u32, len: u32, sources: &[Operand], sinks: &[Operand]) -> InstrId {
        poll();
        if len == 0 || !self.check_node(node) {
            return NOTHING;
        }
        if self.phases.is_empty() {
            let name = self.collective.kind.name();
            self.phase(name);
        }
        if !self.keeps(node) {
            return NOTHING;
        }
        let id = InstrId::new(self.place_of.len());
        let most = u64::from(u32::MAX - 1);
        if self.operands + (sources.len() + sinks.len()) as u64 > most {
            self.fail(BuildError::TooMany { what: "operands", found: most + 1, most });
            return id;
        }
        for count in [sources.len(), sinks.len()] {
            if count > usize::from(u16::MAX) {
                self.fail(BuildError::TooMany {
                    what: "operands of one instruction",
                    found: count as u64,
                    most: u64::from(u16::MAX),
                });
                return id;
            }
        }
        let first_operand = narrow(self.instrs.operands.len());
        for &operand in sources.iter().chain(sinks) {
            if let Operand::Stream(s) = operand {
                let count = self.streams.len() as u64;
                let Some(stream) = self.streams.get_mut(s.index()) else {
                    self.fail(BuildError::Missing { what: "stream", found: s.0, count });
                    return id;
                };
                stream.capacity = 1;
            }
        }
        self.instrs.operands.extend(sources.iter().chain(sinks).map(|&operand| PackedOperand::from(operand)));
        for &operand in sinks {
            if let Operand::Stream(s) = operand {
                let stream = &mut self.streams[s.index()];
                match stream.len.checked_add(len) {
                    Some(total) => stream.len = total,
                    None => {
                        let found = u64::from(stream.len) + u64::from(len);
                        self.fail(BuildError::TooMany {
                            what: "elements on a stream",
                            found,
                            most: u64::from(u32::MAX),
                        });
                    }
                }
            }
        }
        self.operands += (sources.len() + sinks.len()) as u64;
        let (sources, sinks) = (narrow(sources.len()), narrow(sinks.len()));
        let phase = PhaseId16(self.phase);
        let (id, goes_on) = self.extend_lane(node, lane);
        self.instrs.push(Instr { first_operand, sources, sinks, len, phase, step: 0 }, goes_on, &mut self.shapes);
        id
    }

    /// Adds the next instruction to a lane. Returns its id, and true if the instruction before is in the same lane.
    fn extend_lane(&mut self, node: NodeId, lane: u32) -> (InstrId, bool) {
        let id = InstrId::new(self.place_of.len());
        let (at, goes_on) = match self.place_of.last() {
            Some(&last) if self.places[last as usize].is(node, lane) => (last, true),
            _ => (self.place(node, lane), false),
        };
        let place = &mut self.places[at as usize];
        (place.instrs, place.last) = (place.instrs + 1, id);
        self.place_of.push(at);
        (id, goes_on)
    }

    /// Returns the place of a lane, which is created on first use.
    fn place(&mut self, node: NodeId, lane: u32) -> u32 {
        *self.place_ids.entry((node, lane)).or_insert_with(|| {
            let new = narrow(self.places.len());
            let before = std::mem::replace(&mut self.newest[node.index()], new);
            self.places.push(Place { node, lane, instrs: 0, last: NOTHING, before });
            new
        })
    }

    /// Makes `instr` start only after `earlier` has completed.
    pub fn after(&mut self, instr: InstrId, earlier: InstrId) {
        if instr != NOTHING && earlier != NOTHING {
            self.deps.push((instr, earlier));
        }
    }

    /// Does the same as [`Builder::after`], but for an instruction number that a file states. [`Builder::finish`]
    /// refuses numbers without an instruction.
    pub(crate) fn after_stated(&mut self, instr: InstrId, earlier: InstrId) {
        self.deps.push((instr, earlier));
    }

    /// Returns the last instruction so far of each lane of a node, by the number of the lane.
    pub(crate) fn ends(&self, node: NodeId) -> std::collections::BTreeMap<u32, InstrId> {
        let mut ends = std::collections::BTreeMap::new();
        let mut at = self.newest.get(node.index()).copied().unwrap_or(NOWHERE);
        while let Some(place) = self.places.get(at as usize) {
            ends.insert(place.lane, place.last);
            at = place.before;
        }
        ends
    }

    /// Joins the lanes of each node: later instructions of a node start after all earlier ones have completed.
    pub fn join_lanes(&mut self) {
        self.joins.push(InstrId::new(self.place_of.len()));
    }

    /// Returns the last instruction so far of each lane of a node, in the order of lanes.
    pub fn lane_ends(&self, node: NodeId) -> Vec<InstrId> {
        self.ends(node).into_values().collect()
    }

    /// Adds the dependencies of the joins: the first instruction of each lane after a join waits for the last
    /// instruction before the join of every other lane of its node.
    fn wait_at_joins(&mut self) {
        let mut ends: std::collections::BTreeMap<(NodeId, u32), InstrId> = std::collections::BTreeMap::new();
        let place = |i: usize| {
            let place = &self.places[self.place_of[i] as usize];
            (place.node, place.lane)
        };
        let mut from = 0;
        for (n, &join) in self.joins.iter().enumerate() {
            let to = self.joins.get(n + 1).map_or(self.place_of.len(), |next| next.index());
            ends.extend((from..join.index()).map(|i| (place(i), InstrId::new(i))));
            from = join.index();
            let mut begun = rustc_hash::FxHashSet::default();
            for i in from..to {
                let (node, lane) = place(i);
                if begun.insert((node, lane)) {
                    let others = ends.range((node, 0)..=(node, u32::MAX)).filter(|(place, _)| place.1 != lane);
                    self.deps.extend(others.map(|(_, &end)| (InstrId::new(i), end)));
                }
            }
        }
    }

    fn check_node(&mut self, node: NodeId) -> bool {
        let exists = node.index() < self.scratch.len();
        if !exists {
            self.fail(BuildError::Missing { what: "node", found: node.0, count: self.scratch.len() as u64 });
        }
        exists
    }

    pub(crate) fn fail(&mut self, error: BuildError) {
        self.error.get_or_insert(error);
    }

    /// Sorts instructions by node and lane and returns the schedule. Instructions of one lane keep the order of
    /// insertion.
    ///
    /// # Errors
    /// Returns the first error of the build: an entry that does not fit into the tables, an id that does not exist, a
    /// stream that names a node twice, or a part that cannot be embedded.
    pub fn finish(mut self) -> Result<Schedule, BuildError> {
        for &(instr, earlier) in &self.deps {
            for id in [instr, earlier] {
                if id.index() >= self.place_of.len() {
                    let count = self.place_of.len() as u64;
                    self.error.get_or_insert(BuildError::Missing { what: "instruction", found: id.0, count });
                }
            }
        }
        for &(stream, _) in &self.bounded {
            if stream.index() >= self.streams.len() {
                let count = self.streams.len() as u64;
                self.error.get_or_insert(BuildError::Missing { what: "stream", found: stream.0, count });
            }
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        let used: Vec<bool> = self.streams.iter().map(|s| s.capacity > 0).collect();
        for s in &mut self.streams {
            s.capacity = s.len;
        }
        for &(stream, capacity) in &self.bounded {
            self.streams[stream.index()].capacity = capacity;
        }
        self.wait_at_joins();
        self.instrs.settle(&mut self.shapes);
        let (node_lanes, lane_instrs) = self.sort();
        if !self.keeps_unused {
            self.drop_unused_streams(&used);
        }
        self.deps.sort_unstable();
        self.deps.dedup();
        Ok(Schedule {
            collective: self.collective,
            origin: self.origin,
            phases: self.phases,
            node_lanes,
            lane_instrs,
            scratch: self.scratch,
            instrs: self.instrs,
            streams: self.streams,
            sinks: self.sinks,
            deps: self.deps,
        })
    }

    /// Returns the indices of all places, sorted by node and lane.
    fn places_in_order(&self) -> Vec<usize> {
        let mut sorted: Vec<usize> = (0..self.places.len()).collect();
        sorted.sort_unstable_by_key(|&at| (self.places[at].node, self.places[at].lane));
        sorted
    }

    /// Sorts the tables by node and lane, and returns the tables `node_lanes` and `lane_instrs` of the schedule. Lanes
    /// are renumbered densely, so a skipped lane number costs nothing.
    fn sort(&mut self) -> (Vec<u32>, Vec<u32>) {
        let sorted = self.places_in_order();
        let mut node_lanes = Vec::with_capacity(self.scratch.len() + 1);
        let (mut lane_instrs, mut next, mut end) = (Vec::with_capacity(sorted.len() + 1), vec![0; sorted.len()], 0_u32);
        for at in sorted {
            let place = &self.places[at];
            while node_lanes.len() <= place.node.index() {
                node_lanes.push(narrow(lane_instrs.len()));
            }
            lane_instrs.push(end);
            next[at] = end;
            end += place.instrs;
        }
        node_lanes.resize(self.scratch.len() + 1, narrow(lane_instrs.len()));
        lane_instrs.push(end);
        if !self.place_of.is_sorted_by_key(|&at| next[at as usize]) {
            self.instrs.make_plain(&mut self.shapes);
            // The place of each instruction becomes its new id.
            for id in &mut self.place_of {
                poll();
                let next = &mut next[*id as usize];
                (*id, *next) = (*next, *next + 1);
            }
            let new = |id: InstrId| InstrId(self.place_of[id.index()]);
            let instrs = || self.instrs.sorted(&self.place_of);
            let deps = || {
                let mut deps: Vec<_> = self.deps.iter().map(|&(instr, earlier)| (new(instr), new(earlier))).collect();
                deps.sort_unstable();
                deps
            };
            let is_long = self.place_of.len() >= LONG;
            let (instrs, deps) = if is_long { parallel::both(instrs, deps) } else { (instrs(), deps()) };
            (self.instrs, self.deps) = (instrs, deps);
        }
        self.place_of = Vec::new();
        (node_lanes, lane_instrs)
    }

    /// Removes streams that no instruction names, such as those of empty chunks.
    fn drop_unused_streams(&mut self, used: &[bool]) {
        if used.iter().all(|&u| u) {
            return;
        }
        let mut renamed = vec![StreamId(0); used.len()];
        let (mut streams, mut sinks) = (Vec::new(), Vec::new());
        for (at, stream) in self.streams.iter().enumerate().filter(|&(at, _)| used[at]) {
            poll();
            renamed[at] = StreamId::new(streams.len());
            let end = self.streams.get(at + 1).map_or(self.sinks.len(), |s| s.first_sink as usize);
            let first_sink = narrow(sinks.len());
            sinks.extend_from_slice(&self.sinks[stream.first_sink as usize..end]);
            streams.push(Stream { first_sink, ..*stream });
        }
        (self.streams, self.sinks) = (streams, sinks);
        for operand in &mut self.instrs.operands {
            poll();
            if let Operand::Stream(s) = operand.get() {
                *operand = Operand::Stream(renamed[s.index()]).into();
            }
        }
    }
}

/// Returns the text on one line, as the text form requires: `;` becomes `,`, and each run of blanks and control
/// characters one space.
pub(crate) fn one_line(text: &str) -> String {
    let text = text.replace(';', ",").replace(char::is_control, " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
