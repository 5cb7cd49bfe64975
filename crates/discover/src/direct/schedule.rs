//! The schedule of an exchange by messages, its required contents, and its proof.
//!
//! A rank sends its messages in ascending order of their receivers, without waiting. Without a reduction, the receiver
//! has one lane for each message, so each is received as soon as it arrives. In a reduction, one lane receives and
//! combines partial results, in the order of ranks. The input of a rank contains its messages one after the other or,
//! for a reduction, all cells, at the same offsets on every rank. Its output contains the received data in the same
//! order.
//!
//! **Why the proof of one rank's part is enough.** Consider the schedule of the messages that one rank sends and
//! receives. It contains all instructions that this rank has in the schedule of all messages, in the same order, and
//! the other end of each of its messages. No send waits for a message, and a receive waits only for its own message
//! and, in a reduction, earlier ones. The schedule of all messages is therefore free of deadlock if each part is. An
//! output depends only on messages to its rank, and all these messages are in that rank's part.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use unisono_base::{NodeId, Span, limits::take, narrow};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_schedule::{
    Builder, Operand, Schedule,
    verify::{Expected, Method, Verified},
};

use super::{
    Cell, Direct, DirectExchange, Message,
    part::{RankPart, part},
};
use crate::error::DiscoverError;

/// Returns a datatype for copying, and the number of its elements in `count` elements of `element_bytes` bytes. The
/// datatype is the widest one whose size divides `element_bytes`, or F16 if none does; if the bytes are odd, the last
/// F16 is half empty.
pub fn whole_elements(element_bytes: u64, count: u64) -> (Dtype, u64) {
    let fits = [Dtype::F64, Dtype::F32, Dtype::F16].into_iter().find(|d| element_bytes.is_multiple_of(d.bytes()));
    let dtype = fits.unwrap_or(Dtype::F16);
    (dtype, count.saturating_mul(element_bytes).div_ceil(dtype.bytes()))
}

/// The schedule of an exchange among ranks, and the required contents of its outputs.
#[derive(Clone, Debug)]
pub struct DirectSchedule {
    pub schedule: Schedule,
    /// The expected contents of each rank's output, in ascending order of offsets.
    pub expected: Vec<Vec<Expected>>,
}

impl DirectSchedule {
    /// Builds the schedule. Its collective is an alltoall whose buffers are long enough for all messages, and
    /// `expected` has the required contents, which are not those of an alltoall. Partial results are combined in the
    /// order of ranks, so any associative operator is accepted.
    ///
    /// # Errors
    /// Returns an error if a rank sends or receives 2^32 elements or more, or if the tables are full.
    pub fn new(lengths: &Direct, ranks: u32, element_bytes: u64) -> Result<Self, DiscoverError> {
        let units = |elements| whole_elements(element_bytes, elements).1;
        let longest = match lengths {
            Direct::Messages(messages) => {
                let (mut given, mut got) = (vec![0_u64; ranks as usize], vec![0_u64; ranks as usize]);
                for m in messages {
                    given[m.from as usize] = given[m.from as usize].saturating_add(units(m.elements));
                    got[m.to as usize] = got[m.to as usize].saturating_add(units(m.elements));
                }
                given.into_iter().chain(got).max().unwrap_or(0)
            }
            Direct::Cells(cells) => cells.iter().fold(0_u64, |sum, cell| sum.saturating_add(units(cell.elements))),
        };
        let dtype = whole_elements(element_bytes, 0).0;
        let block = longest.div_ceil(u64::from(ranks));
        let collective = Collective::new(Kind::Alltoall, ranks, block, 0, Operator::Ordered, dtype);
        let mut builder = Builder::new(collective.map_err(|e| too_large(&e.to_string()))?);
        builder.origin("messages");
        let mut made = Making { builder, expected: vec![Vec::new(); ranks as usize] };
        match lengths {
            Direct::Messages(messages) => made.messages(messages, units),
            Direct::Cells(cells) => made.cells(cells, units),
        }
        let schedule = made.builder.finish().map_err(|e| too_large(&e.to_string()))?;
        Ok(Self { schedule, expected: made.expected })
    }
}

struct Making {
    builder: Builder,
    expected: Vec<Vec<Expected>>,
}

impl Making {
    fn messages(&mut self, messages: &[Message], units: impl Fn(u64) -> u64) {
        let builder = &mut self.builder;
        let ranks = self.expected.len();
        builder.reserve(2 * messages.len(), messages.len());
        let (mut given, mut got) = (vec![0_u32; ranks], vec![0_u32; ranks]);
        // Lane 0 of a rank contains its sends, if it has any.
        let mut lanes = vec![0; ranks];
        messages.iter().for_each(|m| lanes[m.from as usize] = 1);
        for m in messages.iter().filter(|m| m.elements > 0) {
            let (from, to, len) = (NodeId(m.from), NodeId(m.to), narrow(units(m.elements)));
            let (input, output) = (given[from.index()], got[to.index()]);
            given[from.index()] += len;
            got[to.index()] += len;
            let stream = Operand::Stream(builder.stream(from, &[to]));
            builder.combine(from, 0, len, &[Operand::In(input)], &[stream]);
            builder.combine(to, lanes[to.index()], len, &[stream], &[Operand::Out(output)]);
            lanes[to.index()] += 1;
            let ranks = vec![(m.from, m.from + 1)];
            self.expected[to.index()].push(Expected { span: Span::new(output, len), input_start: input, ranks });
        }
    }

    fn cells(&mut self, cells: &[Cell], units: impl Fn(u64) -> u64) {
        let builder = &mut self.builder;
        let lens: Vec<u32> = cells.iter().map(|cell| narrow(units(cell.elements))).collect();
        let inputs = starts(&lens);
        let mut rows: Vec<(u32, u32, usize)> = Vec::new();
        for (at, cell) in cells.iter().enumerate() {
            let pairs = u128::from(cell.givers.len()) * u128::from(cell.takers.len());
            take("the list of messages", 32 * (rows.len() as u128 + pairs));
            rows.extend(cell.givers.iter().flat_map(|from| cell.takers.iter().map(move |to| (from, to, at))));
        }
        rows.sort_unstable();
        let mut streams = FxHashMap::default();
        let mut sends = vec![false; self.expected.len()];
        for row in rows.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (from, to) = (NodeId(row[0].0), NodeId(row[0].1));
            if from == to {
                continue;
            }
            let stream = builder.stream(from, &[to]);
            streams.insert((from, to), stream);
            sends[from.index()] = true;
            // Adjacent cells form one span.
            let mut spans: Vec<Span> = Vec::new();
            for &(.., at) in row {
                match spans.last_mut() {
                    Some(last) if last.end() == u64::from(inputs[at]) => last.len += lens[at],
                    _ => spans.push(Span::new(inputs[at], lens[at])),
                }
            }
            let mut source = Operand::In(spans[0].start);
            let len = spans.iter().map(|span| span.len).sum();
            if spans.len() > 1 {
                // A message of several spans is packed first.
                let mut into = builder.scratch(from, len);
                source = Operand::Tmp(into);
                for span in &spans {
                    builder.combine(from, 0, span.len, &[Operand::In(span.start)], &[Operand::Tmp(into)]);
                    into += span.len;
                }
            }
            builder.combine(from, 0, len, &[source], &[Operand::Stream(stream)]);
        }
        rows.sort_unstable_by_key(|&(from, to, at)| (to, from, at));
        for (at, cell) in cells.iter().enumerate() {
            for to in cell.takers.iter() {
                let expected = &mut self.expected[to as usize];
                let start = expected.last().map_or(0, |last| last.span.start + last.span.len);
                let ranks = cell.givers.intervals().to_vec();
                expected.push(Expected { span: Span::new(start, lens[at]), input_start: inputs[at], ranks });
            }
        }
        // For each cell, the last rank that has begun to combine it.
        let mut begun = vec![None; cells.len()];
        for (from, to, at) in rows {
            let (node, out) = (NodeId(to), &self.expected[to as usize]);
            // Outputs contain the cells in the order of inputs.
            let place = out.partition_point(|expected| expected.input_start < inputs[at]);
            let out = Operand::Out(out[place].span.start);
            let own = Operand::In(inputs[at]);
            let part = streams.get(&(NodeId(from), node)).map_or(own, |&stream| Operand::Stream(stream));
            let sources = [out, part];
            let first = begun[at].replace(to) != Some(to);
            builder.combine(node, u32::from(sends[node.index()]), lens[at], &sources[usize::from(first)..], &[out]);
        }
    }
}

fn starts(lens: &[u32]) -> Vec<u32> {
    let after = |at: &mut u32, len: &u32| {
        let start = *at;
        *at += len;
        Some(start)
    };
    lens.iter().scan(0, after).collect()
}

fn too_large(why: &str) -> DiscoverError {
    DiscoverError::Messages(format!("the messages of an exchange are no schedule: {why}"))
}

/// A proved schedule, and the lengths that determine it. Only [`Proofs`] creates one.
pub struct Proven {
    pub(super) schedule: Schedule,
    pub(super) lengths: Direct,
    pub(super) element_bytes: u64,
}

/// The proofs of the distinct exchanges of a program.
#[derive(Default)]
pub struct Proofs {
    known: FxHashMap<(Direct, u64), Arc<Proven>>,
    instructions: usize,
}

impl Proofs {
    /// The largest total of stored instructions. If it is exceeded, all schedules are dropped, and proved again on
    /// demand.
    const MOST_KEPT: usize = 1 << 20;

    /// Proves an exchange among `ranks` ranks and returns the part of `rank`: its sends, receives and combinations.
    ///
    /// # Errors
    /// Returns an error if the proof fails, or the exchange is too large for a schedule.
    pub fn part(
        &mut self,
        exchange: &DirectExchange,
        ranks: u32,
        element_bytes: u64,
        rank: u32,
    ) -> Result<RankPart, DiscoverError> {
        let key = (exchange.lengths.clone(), element_bytes);
        let proven = match self.known.get(&key) {
            Some(known) => known.clone(),
            None => {
                let DirectSchedule { schedule, expected } = DirectSchedule::new(&key.0, ranks, element_bytes)?;
                if let Err(proof) = Verified::of_messages(&schedule, Method::Auto, &expected) {
                    let why = proof.diagnostics.first().map_or_else(String::new, ToString::to_string);
                    return Err(DiscoverError::Unproved(why));
                }
                if self.instructions >= Self::MOST_KEPT {
                    (self.known, self.instructions) = (FxHashMap::default(), 0);
                }
                self.instructions += schedule.instr_count();
                let made = Arc::new(Proven { schedule, lengths: key.0.clone(), element_bytes });
                self.known.insert(key, made.clone());
                made
            }
        };
        part(&proven, &exchange.regions, rank)
    }
}
