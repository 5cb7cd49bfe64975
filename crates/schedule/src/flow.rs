//! Which elements of its stream each stream operand carries: the index that every pass over a schedule starts from.
//!
//! A stream is written by one lane of its source and read, at each sink, by one lane; FIFO order is program order.
//! Building the index is therefore also the check of well-formedness.

use std::ops::Range;

use unisono_base::{Diagnostics, InstrId, LaneId, NodeId, Span, StreamId};

use crate::schedule::{Operand, Schedule};

/// A stretch of a stream that one instruction pushes or pops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// First element, counted from the start of the stream.
    pub start: u32,
    pub instr: InstrId,
}

pub struct Flow {
    /// First stream element of each operand row; 0 for slices.
    position: Vec<u32>,
    lane_of: Vec<LaneId>,
    node_of_lane: Vec<NodeId>,
    writer_rows: Vec<u32>,
    writers: Vec<Piece>,
    reader_rows: Vec<u32>,
    /// Sorted by sink node, then by position.
    readers: Vec<Piece>,
}

impl Flow {
    /// Indexes a schedule and reports whatever is not well-formed. The index is only safe to walk if nothing was.
    pub fn new(schedule: &Schedule, found: &mut Diagnostics) -> Self {
        let mut flow = Self {
            position: vec![0; schedule.operands.len()],
            lane_of: vec![LaneId(0); schedule.instrs.len()],
            node_of_lane: vec![NodeId(0); schedule.lane_count()],
            writer_rows: vec![0; schedule.streams.len() + 1],
            writers: Vec::new(),
            reader_rows: vec![0; schedule.streams.len() + 1],
            readers: Vec::new(),
        };
        flow.count(schedule);
        flow.fill(schedule, found);
        for id in (0..schedule.instrs.len()).map(InstrId::new) {
            check_instr(schedule, flow.node_of(id), id, found);
        }
        flow.check_streams(schedule, found);
        for &(instr, earlier) in &schedule.deps {
            if instr == earlier {
                found.push("waits-for-itself", Some(flow.node_of(instr)), Some(instr), || {
                    format!("{instr} waits for its own completion")
                });
            }
        }
        flow
    }

    fn count(&mut self, schedule: &Schedule) {
        for id in (0..schedule.instrs.len()).map(InstrId::new) {
            for s in schedule.sources(id).iter().filter_map(|o| o.stream()) {
                self.reader_rows[s.index() + 1] += 1;
            }
            for s in schedule.sinks(id).iter().filter_map(|o| o.stream()) {
                self.writer_rows[s.index() + 1] += 1;
            }
        }
        for rows in [&mut self.writer_rows, &mut self.reader_rows] {
            for i in 1..rows.len() {
                rows[i] += rows[i - 1];
            }
        }
        let none = Piece { start: 0, instr: InstrId(0) };
        self.writers = vec![none; self.writer_rows.last().map_or(0, |&n| n as usize)];
        self.readers = vec![none; self.reader_rows.last().map_or(0, |&n| n as usize)];
    }

    fn fill(&mut self, schedule: &Schedule, found: &mut Diagnostics) {
        let streams = schedule.streams.len();
        let mut push = Ends::new(&self.writer_rows[..streams]);
        let mut pop = Ends::new(&self.reader_rows[..streams]);
        for node in schedule.all_nodes() {
            for lane in schedule.lanes(node).map(LaneId::new) {
                self.node_of_lane[lane.index()] = node;
                for id in schedule.lane_instrs(lane).map(InstrId::new) {
                    self.lane_of[id.index()] = lane;
                    let len = schedule.instr(id).len;
                    let (sources, sinks) = schedule.operand_rows(id);
                    for row in sources {
                        if let Some(s) = schedule.operands[row].stream() {
                            let start = pop.take(s, node, lane, len, id, "read", found);
                            self.position[row] = start;
                            self.readers[pop.slot(s)] = Piece { start, instr: id };
                        }
                    }
                    for row in sinks {
                        if let Some(s) = schedule.operands[row].stream() {
                            let start = push.take(s, node, lane, len, id, "written", found);
                            self.position[row] = start;
                            self.writers[push.slot(s)] = Piece { start, instr: id };
                        }
                    }
                }
            }
        }
    }

    fn check_streams(&self, schedule: &Schedule, found: &mut Diagnostics) {
        for id in schedule.all_streams() {
            let stream = schedule.stream(id);
            let total = |pieces: &[Piece]| {
                pieces.last().map_or(0, |p| u64::from(p.start) + u64::from(schedule.instr(p.instr).len))
            };
            let written = total(self.writers(id));
            if written != u64::from(stream.len) {
                found.push("stream-length", Some(stream.source), None, || {
                    format!("{id} declares {} elements, its source pushes {written}", stream.len)
                });
            }
            for p in self.writers(id) {
                let node = self.node_of(p.instr);
                if node != stream.source {
                    found.push("stream-source", Some(node), Some(p.instr), || {
                        format!("{node} pushes to {id}, whose source is {}", stream.source)
                    });
                }
            }
            let mut rest = self.readers(id);
            for &sink in schedule.stream_sinks(id) {
                let here = rest.iter().take_while(|p| self.node_of(p.instr) == sink).count();
                let popped = total(&rest[..here]);
                rest = &rest[here..];
                if popped != u64::from(stream.len) {
                    found.push("stream-count", Some(sink), None, || {
                        format!("{sink} pops {popped} of the {} elements of {id}", stream.len)
                    });
                }
            }
            if let Some(p) = rest.first() {
                let node = self.node_of(p.instr);
                found.push("stream-sink", Some(node), Some(p.instr), || {
                    format!("{node} pops {id}, which does not lead to it")
                });
            }
        }
    }

    pub fn lane_of(&self, id: InstrId) -> LaneId {
        self.lane_of[id.index()]
    }

    pub fn node_of(&self, id: InstrId) -> NodeId {
        self.node_of_lane[self.lane_of[id.index()].index()]
    }

    /// First stream element that operand row `row` carries.
    pub(crate) fn position(&self, row: usize) -> u32 {
        self.position[row]
    }

    /// Instructions that push a stream, in order.
    pub fn writers(&self, id: StreamId) -> &[Piece] {
        &self.writers[rows(&self.writer_rows, id)]
    }

    /// Instructions that pop a stream: by sink, each sink's in order.
    pub fn readers(&self, id: StreamId) -> &[Piece] {
        &self.readers[rows(&self.reader_rows, id)]
    }

    /// Stream operands among an instruction's sources: the stream and the elements popped.
    pub fn pops<'a>(&'a self, schedule: &'a Schedule, id: InstrId) -> impl Iterator<Item = (StreamId, Span)> + 'a {
        self.ends(schedule, id, schedule.operand_rows(id).0)
    }

    /// Stream operands among an instruction's sinks: the stream and the elements pushed.
    pub fn pushes<'a>(&'a self, schedule: &'a Schedule, id: InstrId) -> impl Iterator<Item = (StreamId, Span)> + 'a {
        self.ends(schedule, id, schedule.operand_rows(id).1)
    }

    fn ends<'a>(
        &'a self,
        schedule: &'a Schedule,
        id: InstrId,
        rows: Range<usize>,
    ) -> impl Iterator<Item = (StreamId, Span)> + 'a {
        let len = schedule.instr(id).len;
        rows.filter_map(move |row| {
            let s = schedule.operands[row].stream()?;
            Some((s, Span::new(self.position[row], len)))
        })
    }

    /// The pieces among `pieces` that touch `span`: each ends where the next one starts, as those of one end of a stream do.
    pub fn touching(pieces: &[Piece], span: Span) -> &[Piece] {
        // Most streams are cut alike at both ends into pieces of about one length.
        let guess = (span.start / span.len.max(1)) as usize;
        let from = match pieces.get(guess) {
            Some(p) if p.start == span.start => guess,
            _ => pieces.partition_point(|p| p.start <= span.start).saturating_sub(1),
        };
        let rest = &pieces[from..];
        let to = match rest.get(1) {
            Some(p) if u64::from(p.start) >= span.end() => 1,
            _ => rest.partition_point(|p| u64::from(p.start) < span.end()),
        };
        &rest[..to]
    }

    /// The readers of a stream, one slice a sink.
    pub fn readers_by_sink(&self, id: StreamId) -> impl Iterator<Item = &[Piece]> {
        let mut rest = self.readers(id);
        std::iter::from_fn(move || {
            let node = self.node_of(rest.first()?.instr);
            // Most streams have one sink; else sinks ascend, so each one's end is found by halving.
            let one = rest.last().is_some_and(|p| self.node_of(p.instr) == node);
            let end = if one { rest.len() } else { rest.partition_point(|p| self.node_of(p.instr) <= node) };
            let (here, others) = rest.split_at(end);
            rest = others;
            Some(here)
        })
    }
}

fn rows(starts: &[u32], id: StreamId) -> Range<usize> {
    starts[id.index()] as usize..starts[id.index() + 1] as usize
}

/// Running ends of all streams while a pass walks the instructions by node and lane.
struct Ends {
    next_slot: Vec<u32>,
    /// Elements passed at the node visited last, with that node and lane.
    at: Vec<(u32, Option<(NodeId, LaneId)>)>,
}

impl Ends {
    fn new(first_slots: &[u32]) -> Self {
        Self { next_slot: first_slots.to_vec(), at: vec![(0, None); first_slots.len()] }
    }

    #[expect(clippy::too_many_arguments, reason = "one call in each direction, beside the loop it belongs to")]
    fn take(
        &mut self,
        stream: StreamId,
        node: NodeId,
        lane: LaneId,
        len: u32,
        instr: InstrId,
        verb: &str,
        found: &mut Diagnostics,
    ) -> u32 {
        let at = &mut self.at[stream.index()];
        match at.1 {
            Some((n, l)) if n == node && l != lane => found.push("stream-lanes", Some(node), Some(instr), || {
                format!("{stream} is {verb} by two lanes of {node}; its order is then not defined")
            }),
            Some((n, _)) if n == node => {}
            _ => at.0 = 0,
        }
        at.1 = Some((node, lane));
        let start = at.0;
        at.0 = at.0.saturating_add(len);
        start
    }

    /// The next row of the stream's pieces.
    fn slot(&mut self, stream: StreamId) -> usize {
        let slot = self.next_slot[stream.index()];
        self.next_slot[stream.index()] += 1;
        slot as usize
    }
}

fn check_instr(schedule: &Schedule, node: NodeId, id: InstrId, found: &mut Diagnostics) {
    let instr = schedule.instr(id);
    let (sources, sinks) = (schedule.sources(id), schedule.sinks(id));
    let mut say = |code, message: String| found.push(code, Some(node), Some(id), || message);
    if sources.is_empty() || sinks.is_empty() {
        say(
            "no-operand",
            format!("{id} has {} sources and {} sinks; it needs one of each", sources.len(), sinks.len()),
        );
    }
    let sizes = [schedule.input_len(node), schedule.output_len(node), schedule.scratch_elements(node)];
    let names = ["in", "out", "tmp"];
    for &operand in sources.iter().chain(sinks) {
        if let Some((buffer, span)) = operand.slice(instr.len)
            && span.end() > u64::from(sizes[buffer])
        {
            let (name, size) = (names[buffer], sizes[buffer]);
            say("outside-buffer", format!("{name}{span} lies outside {name} of {node}, which has {size} elements"));
        }
    }
    for &sink in sinks {
        if let Operand::In(_) = sink {
            say("writes-input", format!("{id} writes to in, which is read-only"));
        }
    }
    check_overlaps(id, instr.len, sources, sinks, &mut say);
}

/// Within one instruction element `k` may be read and written at the same place, but not at two.
fn check_overlaps(
    id: InstrId,
    len: u32,
    sources: &[Operand],
    sinks: &[Operand],
    say: &mut impl FnMut(&'static str, String),
) {
    for (n, &sink) in sinks.iter().enumerate() {
        for &other in &sinks[..n] {
            let clash = match (sink.slice(len), other.slice(len)) {
                (Some((a, x)), Some((b, y))) => a == b && x.overlaps(y),
                _ => sink == other,
            };
            if clash {
                say("sinks-overlap", format!("{id} writes one place twice"));
            }
        }
        for &source in sources {
            let clash = match (sink.slice(len), source.slice(len)) {
                (Some((a, x)), Some((b, y))) => a == b && x != y && x.overlaps(y),
                _ => sink == source,
            };
            if clash {
                say("shifted-overlap", format!("{id} writes where it still reads other elements"));
            }
        }
    }
    for (n, &source) in sources.iter().enumerate() {
        if source.stream().is_some() && sources[..n].contains(&source) {
            say("stream-twice", format!("{id} names one stream twice among its sources"));
        }
    }
}
