//! A schedule as small integers, read through its public accessors, and the check of its form.

use unisono_base::{InstrId, LaneId, NodeId};
use unisono_collective::{Collective, Required};
use unisono_schedule::{Operand, Schedule};

/// Greatest number of events (elements of instructions), which are bits of a set.
pub const MOST_EVENTS: usize = 128;
pub const MOST_LANES: usize = 16;

pub type Set = u128;

#[derive(Clone, Copy)]
pub enum Source {
    /// Memory, by the place of its first element.
    Place(usize),
    Pop(Pop),
}

/// Elements of a stream from `from` on, popped at the sink with index `sink`.
#[derive(Clone, Copy)]
pub struct Pop {
    pub stream: usize,
    pub sink: usize,
    pub from: usize,
}

#[derive(Default)]
pub struct Row {
    pub node: usize,
    pub lane: usize,
    pub len: usize,
    pub sources: Vec<Source>,
    /// First place of each written slice.
    pub writes: Vec<usize>,
    /// The pushed streams, each with its first pushed element.
    pub pushes: Vec<(usize, usize)>,
    pub after: Vec<usize>,
    /// The number of the row's first event.
    pub event: usize,
}

impl Row {
    pub fn reads(&self) -> impl Iterator<Item = usize> + '_ {
        self.sources.iter().filter_map(|s| match s {
            Source::Place(p) => Some(*p),
            Source::Pop(_) => None,
        })
    }

    pub fn pops(&self) -> impl Iterator<Item = Pop> + '_ {
        self.sources.iter().filter_map(|s| match s {
            Source::Place(_) => None,
            Source::Pop(p) => Some(*p),
        })
    }
}

pub struct Stream {
    pub len: usize,
    pub capacity: usize,
    pub sinks: usize,
}

pub struct Model {
    pub collective: Collective,
    /// The rows of each lane.
    pub lanes: Vec<std::ops::Range<usize>>,
    pub rows: Vec<Row>,
    pub streams: Vec<Stream>,
    /// The number of places in all buffers of all nodes.
    pub places: usize,
    /// The first place of each node's input, output and scratch memory.
    pub first: Vec<[usize; 3]>,
    pub events: usize,
}

/// The reason why a schedule has no model.
pub enum Refusal {
    /// The rule that the schedule breaks.
    IllFormed(&'static str),
    /// The schedule is too large for the judge's integers.
    TooLarge,
}

impl Model {
    pub fn new(schedule: &Schedule) -> Result<Self, Refusal> {
        let c = *schedule.collective();
        if c.ranks > super::value::MOST_RANKS || schedule.lane_count() > MOST_LANES {
            return Err(Refusal::TooLarge);
        }
        let mut model = Model {
            collective: c,
            lanes: Vec::with_capacity(schedule.lane_count()),
            rows: Vec::with_capacity(schedule.instr_count()),
            streams: Vec::with_capacity(schedule.stream_count()),
            places: 0,
            first: Vec::with_capacity(schedule.node_count()),
            events: 0,
        };
        for id in schedule.all_streams() {
            let s = schedule.stream(id);
            let sinks = schedule.stream_sinks(id).len();
            model.streams.push(Stream { len: s.len as usize, capacity: s.capacity as usize, sinks });
        }
        let mut sizes = Vec::with_capacity(schedule.node_count());
        for node in schedule.all_nodes() {
            let size = [schedule.input_len(node), schedule.output_len(node), schedule.scratch_elements(node)];
            let size = size.map(|s| s as usize);
            model.first.push([model.places, model.places + size[0], model.places + size[0] + size[1]]);
            model.places += size.iter().sum::<usize>();
            sizes.push(size);
        }
        // The lane of each stream's writer and of each sink's reader, with the number of elements that it has
        // transferred.
        let mut written: Vec<(Option<usize>, usize)> = vec![(None, 0); model.streams.len()];
        let mut read: Vec<Vec<(Option<usize>, usize)>> =
            model.streams.iter().map(|s| vec![(None, 0); s.sinks]).collect();
        for node in schedule.all_nodes() {
            for lane in schedule.lanes(node) {
                let ids = schedule.lane_instrs(LaneId::new(lane));
                model.lanes.push(ids.clone());
                for id in ids {
                    model.row(schedule, node, lane, InstrId::new(id), &sizes, &mut written, &mut read)?;
                }
            }
        }
        for (stream, (row, read)) in written.iter().zip(&read).enumerate() {
            if row.1 != model.streams[stream].len || read.iter().any(|r| r.1 != row.1) {
                return Err(Refusal::IllFormed("every sink pops as many elements as are pushed"));
            }
        }
        if model.events > MOST_EVENTS { Err(Refusal::TooLarge) } else { Ok(model) }
    }

    #[expect(clippy::too_many_arguments, reason = "the state of one pass")]
    fn row(
        &mut self,
        schedule: &Schedule,
        node: NodeId,
        lane: usize,
        id: InstrId,
        sizes: &[[usize; 3]],
        written: &mut [(Option<usize>, usize)],
        read: &mut [Vec<(Option<usize>, usize)>],
    ) -> Result<(), Refusal> {
        let ill = |rule| Err(Refusal::IllFormed(rule));
        let len = schedule.instr(id).len as usize;
        let n = node.index();
        let mut row = Row { node: n, lane, len, event: self.events, ..Row::default() };
        self.events += len;
        let place = |operand: Operand| {
            let (buffer, at) = match operand {
                Operand::In(at) => (0, at as usize),
                Operand::Out(at) => (1, at as usize),
                Operand::Tmp(at) => (2, at as usize),
                Operand::Stream(_) => return Some(None),
            };
            (at + len <= sizes[n][buffer]).then(|| Some(self.first[n][buffer] + at))
        };
        if schedule.sources(id).is_empty() || schedule.sinks(id).is_empty() {
            return ill("an instruction has sources and sinks");
        }
        for operand in schedule.sources(id).iter() {
            let Some(at) = place(operand) else { return ill("a slice lies inside its buffer") };
            match (at, operand) {
                (Some(at), _) => row.sources.push(Source::Place(at)),
                (None, Operand::Stream(s)) => {
                    let stream = s.index();
                    let Some(sink) = schedule.stream_sinks(s).iter().position(|&t| t == node) else {
                        return ill("a stream is popped where it leads to");
                    };
                    if row.pops().any(|p| p.stream == stream) {
                        return ill("an instruction pops a stream once");
                    }
                    let (reader, from) = &mut read[stream][sink];
                    if reader.replace(lane).is_some_and(|l| l != lane) {
                        return ill("a stream is popped by one lane of a node");
                    }
                    row.sources.push(Source::Pop(Pop { stream, sink, from: *from }));
                    *from += len;
                }
                _ => unreachable!("only a stream has no place"),
            }
        }
        for operand in schedule.sinks(id).iter() {
            let Some(at) = place(operand) else { return ill("a slice lies inside its buffer") };
            match (at, operand) {
                (Some(_), Operand::In(_)) => return ill("the input is only read"),
                (Some(at), _) => row.writes.push(at),
                (None, Operand::Stream(s)) => {
                    let stream = s.index();
                    if schedule.stream(s).source != node {
                        return ill("a stream is pushed at its source");
                    }
                    if row.pushes.iter().any(|p| p.0 == stream) {
                        return ill("an instruction writes every place once");
                    }
                    let (writer, from) = &mut written[stream];
                    if writer.replace(lane).is_some_and(|l| l != lane) {
                        return ill("a stream is pushed by one lane");
                    }
                    row.pushes.push((stream, *from));
                    *from += len;
                }
                _ => unreachable!("only a stream has no place"),
            }
        }
        for (k, &a) in row.writes.iter().enumerate() {
            if row.writes[..k].iter().any(|&b| a.abs_diff(b) < len) {
                return ill("an instruction writes every place once");
            }
            if row.reads().any(|b| a != b && a.abs_diff(b) < len) {
                return ill("an instruction writes no place that it reads for another element");
            }
        }
        for dep in schedule.after(id) {
            if dep.1 == id {
                return ill("an instruction does not wait for itself");
            }
            row.after.push(dep.1.index());
        }
        self.rows.push(row);
        Ok(())
    }

    /// Returns true if element `j` of row `a` and element `k` of row `b` access the same place, and one access is a
    /// write.
    pub fn elements_meet(&self, a: usize, j: usize, b: usize, k: usize) -> bool {
        let (a, b) = (&self.rows[a], &self.rows[b]);
        a.node == b.node
            && (a.writes.iter().any(|&w| b.writes.iter().any(|&v| w + j == v + k) || b.reads().any(|v| w + j == v + k))
                || a.reads().any(|r| b.writes.iter().any(|&v| r + j == v + k)))
    }

    /// Returns true if any elements of two rows access the same place, and one access is a write.
    pub fn rows_meet(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.rows[a], &self.rows[b]);
        let meet = |p: usize, q: usize| p < q + b.len && q < p + a.len;
        a.node == b.node
            && (a.writes.iter().any(|&w| b.writes.iter().any(|&v| meet(w, v)) || b.reads().any(|v| meet(w, v)))
                || a.reads().any(|r| b.writes.iter().any(|&v| meet(r, v))))
    }

    /// Returns the required output elements: place, input element, source.
    pub fn required(&self) -> impl Iterator<Item = (usize, usize, unisono_collective::Source)> + '_ {
        (0..self.collective.ranks).flat_map(move |rank| {
            self.collective.required(rank).flat_map(move |Required { span, input_start, source }| {
                let first = self.first[rank as usize][1] + span.start as usize;
                (0..span.len as usize).map(move |k| (first + k, input_start as usize + k, source))
            })
        })
    }

    /// Returns the initial contents: place, rank, input element.
    pub fn inputs(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        (0..self.collective.ranks).flat_map(move |rank| {
            let first = self.first[rank as usize][0];
            (0..self.collective.input_len(rank) as usize).map(move |k| (first + k, rank as usize, k))
        })
    }
}
