//! Runs a schedule on symbolic contents. Buffers and streams hold segments of equal expression, and each instruction
//! moves or combines segments, so the cost depends on the number of segments, not of elements.
//!
//! Every combination that a collective can require aligns equal input indices (element `i` with element `i`), so a
//! segment is an expression over ranks and the input index of its first element.
//!
//! Any other combination is a fault. The fault is stored as the value, and reported if it reaches a required output.

use unisono_base::{Diagnostics, InstrId, NodeId, Span, interrupt};
use unisono_collective::{Kind, Required, Source};

use super::{
    Demand, Expected, Outcome, Rounding, Roundings,
    allowance::Allowance,
    elements::Elements,
    expressions::{END, Expressions},
    name::Name,
    segments::{LOST, Memory, Queue, Segment, push_merged},
};
use crate::{
    instrs::Instr,
    runs::Runs,
    schedule::{Operand, Schedule},
};

/// Number of bytes of the digest that names the results of a schedule.
const NAME_BYTES: usize = 16;

/// Ids of the expressions in a rank's output, by span in ascending order.
type Classes = Vec<(Span, u32)>;

pub enum Stopped {
    /// The sets of contributions need more memory than allowed. The findings so far are valid.
    OverBudget(Diagnostics),
    /// The proof needs more memory or time than allowed.
    OverAllowance,
    /// The order ends before the last instruction, so the schedule has a deadlock.
    NoOrder,
}

pub enum Fault {
    /// Both expressions contain a contribution of this rank.
    Twice(u32),
    OverBudget,
}

/// Required contents of an output span: a source that the collective defines, or the inputs of ranks, each once.
#[derive(Clone, Copy, PartialEq)]
pub enum Wanted<'a> {
    Source(Source),
    Ranks(&'a [(u32, u32)]),
}

/// Required contents of one output span.
#[derive(PartialEq)]
pub struct Demanded<'a> {
    span: Span,
    input_start: u32,
    wanted: Wanted<'a>,
}

impl From<Required> for Demanded<'_> {
    fn from(required: Required) -> Self {
        let Required { span, input_start, source } = required;
        Self { span, input_start, wanted: Wanted::Source(source) }
    }
}

impl<'a> From<&'a Expected> for Demanded<'a> {
    fn from(expected: &'a Expected) -> Self {
        let Expected { span, input_start, ranks } = expected;
        Self { span: *span, input_start: *input_start, wanted: Wanted::Ranks(ranks) }
    }
}

/// Ranks in each expression, added in the order in which expressions are created.
pub trait Contributions: Sync {
    const METHOD: &'static str;

    /// Adds a combination of two expressions, and returns its memory in units of 8 bytes.
    fn add(&mut self, a: u32, b: u32) -> Result<u64, Fault>;
    /// Adds an expression with the same ranks as `id`, and returns its memory in units of 8 bytes.
    fn again(&mut self, id: u32) -> Result<u64, Fault>;
    /// Compares an expression with the required contents; the error describes the difference.
    fn judge(&mut self, id: u32, wanted: Wanted<'_>) -> Result<(), String>;
    /// Returns an upper bound of the probability that a wrong schedule passes; `None` if it cannot pass.
    fn error_probability(&self) -> Option<f64>;
}

/// A value that is not a valid expression.
#[derive(Clone, Copy)]
enum Wrong {
    /// The instruction adds the contribution of a rank to an element a second time.
    Twice { instr: InstrId, rank: u32, element: u32 },
    /// The instruction combines two different input elements.
    Misaligned { instr: InstrId, elements: (u32, u32) },
}

struct Machine<'a, C> {
    schedule: &'a Schedule,
    roundings: &'a Roundings,
    /// For streams with several sinks, the number of elements popped, by row of the table of sinks.
    popped: Vec<u32>,
    expressions: &'a mut Expressions,
    contributions: &'a mut C,
    allowance: &'a mut Allowance,
    out: Vec<Memory>,
    tmp: Vec<Memory>,
    streams: Vec<Queue>,
    /// For each stream with several sinks, the number of sinks that have not popped all of it. At 0 the stream's
    /// contents are freed.
    waiting_sinks: Vec<u32>,
    /// The faults, each with true if it was reported. A segment with the value `END + k` has the fault of row `k`.
    wrong: Vec<(Wrong, bool)>,
    findings: Diagnostics,
}

pub fn run<C: Contributions>(
    (schedule, roundings): (&Schedule, &Roundings),
    order: &Runs,
    (expressions, contributions): (&mut Expressions, &mut C),
    allowance: &mut Allowance,
    demand: Demand<'_>,
) -> Result<Outcome, Stopped> {
    let nodes = schedule.node_count();
    let mut machine = Machine {
        schedule,
        roundings,
        popped: vec![0; schedule.sinks.len()],
        expressions,
        contributions,
        allowance,
        out: (0..nodes).map(|_| Memory::default()).collect(),
        tmp: (0..nodes).map(|_| Memory::default()).collect(),
        streams: (0..schedule.stream_count()).map(|_| Queue::default()).collect(),
        waiting_sinks: schedule.all_streams().map(|stream| schedule.stream_sinks(stream).len() as u32).collect(),
        wrong: Vec::new(),
        findings: Diagnostics::default(),
    };
    let (mut left, mut right, mut joined) = (Vec::new(), Vec::new(), Vec::new());
    let node_of_lane = schedule.nodes_of_lanes();
    let mut done = 0;
    for (lane, run) in order.iter(schedule) {
        let node = node_of_lane[lane.index()];
        done += run.len();
        for id in run.map(InstrId) {
            interrupt::poll();
            let (Instr { len, .. }, sources, sinks) = schedule.whole(id);
            let mut sources = sources.iter();
            let first = sources.next().unwrap_or_else(|| unreachable!("{id} has a source"));
            machine.read(id, node, first, len, &mut left)?;
            let rounding = machine.roundings.get(&id).copied();
            if rounding == Some(Rounding::FromZero) {
                machine.mark(&mut left, Rounding::FromZero.mark())?;
            }
            let mut most = left.len();
            for source in sources {
                machine.read(id, node, source, len, &mut right)?;
                machine.combine(id, &left, &right, &mut joined)?;
                most = most.max(left.len() + right.len() + joined.len());
                std::mem::swap(&mut left, &mut joined);
            }
            if let Some(own @ Rounding::Own(_)) = rounding {
                machine.mark(&mut left, own.mark())?;
            }
            // Accounts for the temporary memory of an instruction.
            machine.spend(2 * most as u64, 0)?;
            for sink in sinks.iter() {
                machine.write(node, sink, len, &left)?;
            }
            machine.allowance.free(2 * most as u64);
        }
    }
    if done < schedule.instr_count() {
        return Err(Stopped::NoOrder);
    }
    machine.judge(demand)
}

impl<C: Contributions> Machine<'_, C> {
    /// Replaces `into` by the contents of a source, with positions counted from 0; popped elements leave their stream.
    /// Elements that were never written get the value [`LOST`], and the first span of such elements is reported.
    #[inline]
    fn read(
        &mut self,
        id: InstrId,
        node: NodeId,
        source: Operand,
        len: u32,
        into: &mut Vec<Segment>,
    ) -> Result<(), Stopped> {
        into.clear();
        let most = self.allowance.segments();
        let gap = match source {
            Operand::In(index) => {
                into.push(Segment { start: 0, len, value: node.0, index });
                return Ok(());
            }
            Operand::Out(start) => fill(self.out[node.index()].touching(Span::new(start, len)), start, len, most, into),
            Operand::Tmp(start) => fill(self.tmp[node.index()].touching(Span::new(start, len)), start, len, most, into),
            Operand::Stream(s) => {
                let queue = &mut self.streams[s.index()];
                let has_one_sink = self.schedule.sink_rows(s).len() == 1;
                let start = if has_one_sink {
                    queue.pop(len)
                } else {
                    let popped = &mut self.popped[self.schedule.row_of_sink(s, node)];
                    *popped += len;
                    *popped - len
                };
                let gap = fill(queue.touching(Span::new(start, len)), start, len, most, into);
                let before = queue.len();
                match (has_one_sink, start + len == self.schedule.streams[s.index()].len) {
                    (true, true) => queue.clear(),
                    (true, false) => queue.drop_popped(),
                    (false, true) => {
                        let waiting = &mut self.waiting_sinks[s.index()];
                        *waiting -= 1;
                        if *waiting == 0 {
                            queue.clear();
                        }
                    }
                    (false, false) => {}
                }
                self.allowance.free(2 * (before - queue.len()) as u64);
                gap
            }
        };
        if into.len() > most {
            return Err(Stopped::OverAllowance);
        }
        if let Some(gap) = gap {
            let name = match source {
                Operand::Out(_) => "out",
                Operand::Stream(_) => "stream elements ",
                _ => "tmp",
            };
            self.findings.push("undefined", Some(node), Some(id), || {
                format!("{id} reads {name}{gap} of {node}, which nothing has written")
            });
        }
        Ok(())
    }

    fn combine(
        &mut self,
        id: InstrId,
        left: &[Segment],
        right: &[Segment],
        into: &mut Vec<Segment>,
    ) -> Result<(), Stopped> {
        into.clear();
        let most = self.allowance.segments();
        let (mut l, mut r, mut at) = (0, 0, 0);
        // Faults of the same type in one instruction are reported as one fault.
        let (mut twice, mut misaligned) = (None, None);
        while l < left.len() && r < right.len() && into.len() <= most {
            let (a, b) = (left[l], right[r]);
            let end = a.end().min(b.end());
            let (x, y) = (a.index.wrapping_add(at - a.start), b.index.wrapping_add(at - b.start));
            let value = if a.value >= END || b.value >= END {
                // A lost value was already reported, so it takes precedence over a fault.
                if a.value >= END && (b.value < END || a.value >= b.value) { a.value } else { b.value }
            } else if x != y {
                let wrong = Wrong::Misaligned { instr: id, elements: (x, y) };
                *misaligned.get_or_insert_with(|| self.fault(wrong))
            } else {
                match self.expression(a.value, b.value)? {
                    Ok(value) => value,
                    Err(rank) => {
                        let wrong = Wrong::Twice { instr: id, rank, element: x };
                        *twice.get_or_insert_with(|| self.fault(wrong))
                    }
                }
            };
            push_merged(into, Segment { start: at, len: end - at, value, index: x });
            at = end;
            l += usize::from(a.end() == end);
            r += usize::from(b.end() == end);
        }
        if into.len() > most {
            return Err(Stopped::OverAllowance);
        }
        self.spend(0, 16 * into.len() as u64)
    }

    fn mark(&mut self, values: &mut [Segment], mark: u32) -> Result<(), Stopped> {
        for segment in values.iter_mut().filter(|s| s.value < END) {
            segment.value = self.marked(segment.value, mark)?;
        }
        Ok(())
    }

    fn marked(&mut self, id: u32, mark: u32) -> Result<u32, Stopped> {
        let key = (id, mark);
        if self.expressions.operands(id).is_some_and(|(_, found)| found == mark) {
            return Ok(id);
        }
        if let Some(known) = self.expressions.find(key) {
            return Ok(known);
        }
        let units = match self.contributions.again(id) {
            Ok(units) => units,
            Err(_) => return Err(Stopped::OverBudget(std::mem::take(&mut self.findings))),
        };
        self.spend(units + 2, 4 * units)?;
        self.expressions.add(key).ok_or(Stopped::OverAllowance)
    }

    /// Returns the expression of a combination, or the rank that the combination would contain twice.
    #[inline]
    fn expression(&mut self, a: u32, b: u32) -> Result<Result<u32, u32>, Stopped> {
        if self.roundings.is_empty() {
            return self.plain(a, b);
        }
        // (0 + a) + b has the bits of 0 + (a + b): both differ from a + b only if a and b are -0.
        let zero = Rounding::FromZero.mark();
        let ((a, of_a), (b, of_b)) = (self.expressions.unmarked(a, zero), self.expressions.unmarked(b, zero));
        match self.plain(a, b)? {
            Ok(sum) if of_a || of_b => self.marked(sum, zero).map(Ok),
            other => Ok(other),
        }
    }

    #[inline]
    fn plain(&mut self, a: u32, b: u32) -> Result<Result<u32, u32>, Stopped> {
        let key = self.expressions.key(a, b);
        if let Some(known) = self.expressions.find(key) {
            return Ok(Ok(known));
        }
        match self.contributions.add(key.0, key.1) {
            Ok(units) => {
                self.spend(units + 2, 4 * units)?;
                self.expressions.add(key).map(Ok).ok_or(Stopped::OverAllowance)
            }
            Err(Fault::Twice(rank)) => Ok(Err(rank)),
            Err(Fault::OverBudget) => Err(Stopped::OverBudget(std::mem::take(&mut self.findings))),
        }
    }

    fn fault(&mut self, wrong: Wrong) -> u32 {
        self.wrong.push((wrong, false));
        END + (self.wrong.len() - 1) as u32
    }

    #[inline]
    fn write(&mut self, node: NodeId, sink: Operand, len: u32, contents: &[Segment]) -> Result<(), Stopped> {
        let (before, after, steps) = match sink {
            Operand::In(_) => unreachable!("Flow refuses writes to in"),
            Operand::Stream(s) => {
                let stream = &mut self.streams[s.index()];
                let (base, before) = (stream.pushed(), stream.len());
                contents.iter().for_each(|segment| stream.push(segment.moved(base)));
                (before, stream.len(), contents.len() as u64)
            }
            Operand::Out(start) => write(&mut self.out[node.index()], Span::new(start, len), contents),
            Operand::Tmp(start) => write(&mut self.tmp[node.index()], Span::new(start, len), contents),
        };
        self.allowance.free(2 * before as u64);
        self.spend(2 * after as u64, steps)
    }

    #[inline]
    fn spend(&mut self, units: u64, steps: u64) -> Result<(), Stopped> {
        if self.allowance.take(units, steps) { Ok(()) } else { Err(Stopped::OverAllowance) }
    }

    fn judge(mut self, demand: Demand<'_>) -> Result<Outcome, Stopped> {
        self.tmp = Vec::new();
        let c = *self.schedule.collective();
        let shared = matches!(c.kind, Kind::Allreduce | Kind::Broadcast | Kind::Allgather | Kind::Barrier);
        let mut first: Option<Classes> = None;
        let mut repeatable = true;
        let mut name = Name::new(c.kind != Kind::Barrier);
        let mut elements = Elements::new(c.kind);
        let mut alike = false;
        for rank in 0..c.ranks {
            interrupt::poll();
            if self.findings.is_full() {
                break;
            }
            if let Some(first) = first.as_ref().filter(|_| alike) {
                self.spend(0, 4 + 2 * first.len() as u64)?;
                continue;
            }
            let held = std::mem::take(&mut self.out[rank as usize]);
            let mut classes = Classes::new();
            for required in demand(rank) {
                if self.findings.is_full() {
                    break;
                }
                self.spend(0, 4 + held.len() as u64 / 64)?;
                let alike = first.as_deref().filter(|_| shared && self.findings.is_empty()).unwrap_or_default();
                self.compare(NodeId(rank), &held, required, (&mut classes, alike));
            }
            self.spend(0, 2 * classes.len() as u64)?;
            if c.output_len(rank) == 0 {
                continue;
            }
            if self.findings.is_empty() {
                elements.add(rank, &classes, self.expressions);
            }
            match &first {
                Some(other) if shared && *other == classes => {}
                other => {
                    // A barrier has no results to compare.
                    repeatable &= !shared || other.is_none() || c.kind == Kind::Barrier;
                    if self.findings.is_empty() {
                        alike = other.is_none() && shared && self.later_are_alike((rank, &held), demand);
                        if alike {
                            // The name needs memory too.
                            self.out = Vec::new();
                        }
                        name.add(rank, &classes, self.expressions);
                    }
                    first.get_or_insert(classes);
                }
            }
        }
        let complete = self.findings.is_empty();
        Ok(Outcome {
            method: C::METHOD,
            findings: self.findings,
            repeatable,
            expression: if complete { name.digest(NAME_BYTES) } else { None },
            elements: elements.finish(),
            error_probability: self.contributions.error_probability(),
        })
    }

    /// Returns true if all later ranks have the same contents and the same requirements.
    fn later_are_alike(&self, (rank, held): (u32, &Memory), demand: Demand<'_>) -> bool {
        let wanted = demand(rank);
        (rank + 1..self.schedule.collective().ranks).all(|other| {
            interrupt::check();
            self.out[other as usize].holds_as(held) && demand(other) == wanted
        })
    }

    /// Compares the output of a rank with a requirement, and appends its expressions to `classes`. `alike` holds the
    /// expressions of another rank whose output meets the same requirements.
    fn compare(
        &mut self,
        node: NodeId,
        held: &Memory,
        required: Demanded<'_>,
        (classes, alike): (&mut Classes, &[(Span, u32)]),
    ) {
        let rank = node.0;
        let of_all = matches!(required.wanted, Wanted::Source(Source::Reduction { .. } | Source::AtLeastOnce { .. }));
        let mut at = required.span.start;
        for segment in held.touching(required.span) {
            let segment = segment.cut(required.span, required.span.start);
            if segment.start > at {
                missing(&mut self.findings, node, Span::new(at, segment.start - at));
            }
            at = segment.end();
            let span = Span::new(segment.start, segment.len);
            let wanted = required.input_start + (span.start - required.span.start);
            if segment.value == LOST {
                // The read of this lost value was already reported.
            } else if segment.value >= END {
                self.report(segment.value);
            } else if segment.index != wanted {
                self.findings.push("wrong-element", Some(node), None, || {
                    format!(
                        "out{span} of rank {rank} starts with input element {}; required is {wanted}",
                        segment.index
                    )
                });
            } else if let (Wanted::Source(Source::Copy { rank: wanted }), (value, true)) =
                (required.wanted, self.expressions.unmarked(segment.value, Rounding::FromZero.mark()))
                && value == wanted
            {
                self.findings.push("incomplete", Some(node), None, || {
                    format!("out{span} of rank {rank} must be the input of rank {wanted}; it is 0 plus that, so -0 becomes +0")
                });
            } else if of_all && alike.get(classes.len()).is_some_and(|other| other.1 == segment.value) {
                // An expression that was already compared for the other rank is not compared again.
            } else if let Err(why) = self.contributions.judge(segment.value, required.wanted) {
                self.findings.push("incomplete", Some(node), None, || format!("out{span} of rank {rank} {why}"));
            }
            match classes.last_mut() {
                Some((s, c)) if *c == segment.value && s.end() == u64::from(span.start) => s.len += span.len,
                _ => classes.push((span, segment.value)),
            }
        }
        if u64::from(at) < required.span.end() {
            missing(&mut self.findings, node, Span::new(at, (required.span.end() - u64::from(at)) as u32));
        }
    }

    /// Reports a fault that reached an output. Each fault is reported once, at the instruction that caused it.
    fn report(&mut self, value: u32) {
        let (wrong, reported) = &mut self.wrong[(value - END) as usize];
        if std::mem::replace(reported, true) {
            return;
        }
        match *wrong {
            Wrong::Twice { instr: id, rank, element } => {
                self.findings.push("twice", Some(self.schedule.node_of(id)), Some(id), || {
                    format!("{id} adds the contribution of rank {rank} to element {element} a second time")
                });
            }
            Wrong::Misaligned { instr: id, elements: (x, y) } => {
                self.findings.push("misaligned", Some(self.schedule.node_of(id)), Some(id), || {
                    format!("{id} combines input element {x} with input element {y}")
                });
            }
        }
    }
}

fn write(memory: &mut Memory, span: Span, contents: &[Segment]) -> (usize, usize, u64) {
    let before = memory.allocated();
    let steps = memory.overwrite(span, contents);
    (before, memory.allocated(), steps)
}

/// Appends the segments of `start .. start + len`, with positions counted from `start`. Gaps get the value [`LOST`].
/// Returns the first gap; `None` without gaps. Stops early after more than `most` segments.
#[inline]
fn fill<'a>(
    segments: impl Iterator<Item = &'a Segment>,
    start: u32,
    len: u32,
    most: usize,
    into: &mut Vec<Segment>,
) -> Option<Span> {
    let span = Span::new(start, len);
    let (mut at, mut gap) = (0, None);
    for segment in segments.take(most.saturating_add(1)) {
        let cut = segment.cut(span, 0);
        skip(at, cut.start, start, &mut gap, into);
        at = cut.end();
        into.push(cut);
    }
    skip(at, len, start, &mut gap, into);
    gap
}

#[inline]
fn skip(at: u32, to: u32, start: u32, gap: &mut Option<Span>, into: &mut Vec<Segment>) {
    if to > at {
        gap.get_or_insert(Span::new(start + at, to - at));
        into.push(Segment { start: at, len: to - at, value: LOST, index: 0 });
    }
}

fn missing(findings: &mut Diagnostics, node: NodeId, span: Span) {
    findings.push("missing", Some(node), None, || format!("nothing writes out{span} of rank {}", node.0));
}
