//! The rules of well-formed schedules: spans inside buffers; streams with equal counts at both ends, and with one lane
//! at each end; operands that exist and do not overlap.

use std::ops::Range;

use unisono_base::{Diagnostics, InstrId, LaneId, NodeId, StreamId, interrupt::poll, narrow, parallel};

use crate::{
    instrs::{Instr, Operands},
    schedule::{Operand, Schedule},
};

/// State of one end of a stream during the check.
#[derive(Clone)]
struct End {
    passed: u64,
    lane: Option<LaneId>,
}

impl End {
    /// Adds an instruction that pushes or pops at this end. Returns true if its lane differs from that of the previous
    /// instruction.
    fn pass(&mut self, lane: LaneId, len: u32) -> bool {
        self.passed += u64::from(len);
        self.lane.replace(lane).is_some_and(|before| before != lane)
    }
}

/// The least number of instructions of a schedule that two threads check.
const LONG: usize = 1 << 14;

/// Returns true if the instructions of `nodes`, and the ends of streams at these nodes, have no findings.
fn finds_nothing(schedule: &Schedule, nodes: &Range<u32>) -> bool {
    let mut found = Diagnostics::default();
    let ends = Ends::count(schedule, nodes, &mut found);
    check_instrs(schedule, nodes, &mut found);
    ends.check(schedule, nodes, &mut found);
    found.is_empty()
}

/// Reports all violations of the rules.
pub(crate) fn check(schedule: &Schedule, found: &mut Diagnostics) {
    let all = 0..narrow(schedule.node_count());
    if schedule.instr_count() >= LONG && parallel::cores() > 1 {
        let halves = [0..all.end / 2, all.end / 2..all.end];
        if parallel::map_long(&halves, |nodes| finds_nothing(schedule, nodes)).all(|nothing| nothing) {
            check_deps(schedule, found);
            return;
        }
    }
    // Short schedules, and long schedules with findings, are checked by one thread, so that findings are in a fixed
    // order.
    let ends = Ends::count(schedule, &all, found);
    check_instrs(schedule, &all, found);
    ends.check(schedule, &all, found);
    check_deps(schedule, found);
}

/// Ends of all streams, and the instructions that use streams of other nodes.
struct Ends {
    writers: Vec<End>,
    readers: Vec<End>,
    /// The instructions that push to the stream of another node. `not_sink` has the instructions that pop a stream that
    /// does not lead to their node.
    not_source: Vec<(StreamId, InstrId, NodeId)>,
    not_sink: Vec<(StreamId, InstrId, NodeId)>,
}

impl Ends {
    /// Counts the elements at each end in `nodes`, and reports ends that two lanes use.
    fn count(schedule: &Schedule, nodes: &Range<u32>, found: &mut Diagnostics) -> Self {
        let none = End { passed: 0, lane: None };
        let (mut writers, mut readers) = (vec![none.clone(); schedule.streams.len()], vec![none; schedule.sinks.len()]);
        let (mut not_source, mut not_sink) = (Vec::new(), Vec::new());
        let one_sink_each = schedule.has_one_sink_each();
        let row_of = |s: StreamId, sink: NodeId| {
            if one_sink_each {
                (schedule.sinks[s.index()] == sink).then_some(s.index())
            } else {
                schedule.sink_row(s, sink)
            }
        };
        for node in nodes.clone().map(NodeId) {
            for lane in schedule.lanes(node).map(LaneId::new) {
                for id in schedule.lane_instrs(lane).map(InstrId::new) {
                    poll();
                    let (Instr { len, .. }, sources, sinks) = schedule.whole(id);
                    let mut two_lanes = |stream: StreamId, verb: &str| {
                        found.push("stream-lanes", Some(node), Some(id), || {
                            format!("{stream} is {verb} by two lanes of {node}; its order is then not defined")
                        });
                    };
                    for s in sources.iter().filter_map(Operand::stream) {
                        match row_of(s, node) {
                            Some(row) if readers[row].pass(lane, len) => two_lanes(s, "read"),
                            Some(_) => {}
                            None => not_sink.push((s, id, node)),
                        }
                    }
                    for s in sinks.iter().filter_map(Operand::stream) {
                        if schedule.stream(s).source != node {
                            not_source.push((s, id, node));
                        } else if writers[s.index()].pass(lane, len) {
                            two_lanes(s, "written");
                        }
                    }
                }
            }
        }
        not_source.sort_unstable();
        not_sink.sort_unstable();
        Self { writers, readers, not_source, not_sink }
    }

    /// Reports streams of which an end in `nodes` transfers more or fewer elements than declared, and uses of streams
    /// by other nodes.
    fn check(&self, schedule: &Schedule, nodes: &Range<u32>, found: &mut Diagnostics) {
        let Self { writers, readers, not_source, not_sink } = self;
        check_streams(schedule, nodes, (writers, readers), (not_source, not_sink), found);
    }
}

fn check_instrs(schedule: &Schedule, nodes: &Range<u32>, found: &mut Diagnostics) {
    for node in nodes.clone().map(NodeId) {
        for id in schedule.node_instrs(node).map(InstrId::new) {
            poll();
            check_instr(schedule, node, id, found);
        }
    }
}

fn check_deps(schedule: &Schedule, found: &mut Diagnostics) {
    for &(instr, earlier) in &schedule.deps {
        if instr == earlier {
            found.push("waits-for-itself", Some(schedule.node_of(instr)), Some(instr), || {
                format!("{instr} waits for its own completion")
            });
        }
    }
}

type Stray = [(StreamId, InstrId, NodeId)];

fn check_streams(
    schedule: &Schedule,
    nodes: &Range<u32>,
    (writers, readers): (&[End], &[End]),
    (mut not_source, mut not_sink): (&Stray, &Stray),
    found: &mut Diagnostics,
) {
    for id in schedule.all_streams() {
        poll();
        let stream = schedule.stream(id);
        let written = writers[id.index()].passed;
        if written != u64::from(stream.len) && nodes.contains(&stream.source.0) {
            found.push("stream-length", Some(stream.source), None, || {
                format!("{id} declares {} elements, its source pushes {written}", stream.len)
            });
        }
        for &(_, instr, node) in split_off(&mut not_source, id) {
            found.push("stream-source", Some(node), Some(instr), || {
                format!("{node} pushes to {id}, whose source is {}", stream.source)
            });
        }
        for row in schedule.sink_rows(id) {
            let (sink, popped) = (schedule.sinks[row], readers[row].passed);
            if popped != u64::from(stream.len) && nodes.contains(&sink.0) {
                found.push("stream-count", Some(sink), None, || {
                    format!("{sink} pops {popped} of the {} elements of {id}", stream.len)
                });
            }
        }
        if let Some(&(_, instr, node)) = split_off(&mut not_sink, id).first() {
            found.push("stream-sink", Some(node), Some(instr), || {
                format!("{node} pops {id}, which does not lead to it")
            });
        }
    }
}

/// Removes and returns the entries of stream `id` at the front of a list sorted by streams.
fn split_off<'a>(rest: &mut &'a Stray, id: StreamId) -> &'a Stray {
    let (here, others) = rest.split_at(rest.iter().take_while(|entry| entry.0 == id).count());
    *rest = others;
    here
}

fn check_instr(schedule: &Schedule, node: NodeId, id: InstrId, found: &mut Diagnostics) {
    let (instr, sources, sinks) = schedule.whole(id);
    let mut say = |code, message: String| found.push(code, Some(node), Some(id), || message);
    if sources.is_empty() || sinks.is_empty() {
        say(
            "no-operand",
            format!("{id} has {} sources and {} sinks; it needs one of each", sources.len(), sinks.len()),
        );
    }
    let sizes = [schedule.input_len(node), schedule.output_len(node), schedule.scratch_elements(node)];
    let names = ["in", "out", "tmp"];
    for operand in sources.iter().chain(sinks.iter()) {
        if let Some((buffer, span)) = operand.slice(instr.len)
            && span.end() > u64::from(sizes[buffer])
        {
            let (name, size) = (names[buffer], sizes[buffer]);
            say("outside-buffer", format!("{name}{span} lies outside {name} of {node}, which has {size} elements"));
        }
    }
    for sink in sinks.iter() {
        if let Operand::In(_) = sink {
            say("writes-input", format!("{id} writes to in, which is read-only"));
        }
    }
    check_overlaps(id, instr.len, sources, sinks, &mut say);
}

/// Reports overlaps within an instruction. An instruction may read and write the same element only at the same
/// position.
fn check_overlaps(
    id: InstrId,
    len: u32,
    sources: Operands<'_>,
    sinks: Operands<'_>,
    say: &mut impl FnMut(&'static str, String),
) {
    for (n, sink) in sinks.iter().enumerate() {
        for other in sinks.iter().take(n) {
            let clash = match (sink.slice(len), other.slice(len)) {
                (Some((a, x)), Some((b, y))) => a == b && x.overlaps(y),
                _ => sink == other,
            };
            if clash {
                say("sinks-overlap", format!("{id} writes one place twice"));
            }
        }
        for source in sources.iter() {
            let clash = match (sink.slice(len), source.slice(len)) {
                (Some((a, x)), Some((b, y))) => a == b && x != y && x.overlaps(y),
                _ => sink == source,
            };
            if clash {
                say("shifted-overlap", format!("{id} writes where it still reads other elements"));
            }
        }
    }
    for (n, source) in sources.iter().enumerate() {
        if source.stream().is_some() && sources.iter().take(n).any(|other| other == source) {
            say("stream-twice", format!("{id} names one stream twice among its sources"));
        }
    }
}
