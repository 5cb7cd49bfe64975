//! Runs a schedule on symbolic contents: buffers and streams hold segments of equal expression, and each instruction
//! moves or combines segments, so the cost follows the number of segments and not of elements.
//!
//! Every combination that a collective can ask for aligns equal input indices (element `i` with element `i`), so a
//! segment is an expression over ranks and one shift from its place to the input index.

use unisono_base::{Diagnostics, InstrId, NodeId, Span, StreamId, mix};
use unisono_collective::{Kind, Source};

use super::{Demand, Outcome};
use crate::{
    flow::Flow,
    schedule::{Operand, Schedule},
};

/// The sets of contributions would need more memory than was allowed; what had been found until then.
#[derive(Debug)]
pub struct OverBudget(pub Diagnostics);

/// Why two values cannot be combined.
pub enum Fault {
    /// A contribution of this rank is in both.
    Twice(u32),
    OverBudget,
}

/// A way to represent "the reduction of these inputs in this order".
pub trait Domain {
    type Value: Copy + PartialEq;
    fn leaf(&self, rank: u32) -> Self::Value;
    fn combine(&mut self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Fault>;
    /// Whether `value` is what an output must hold; else what is wrong with it.
    fn judge(&self, value: Self::Value, wanted: Source) -> Result<(), String>;
    /// A hash that is equal for expressions equal up to swapping operands of a commutative operator.
    fn class(&self, value: Self::Value) -> u64;
}

/// Places `start .. start + len` hold `value` of input index place + `shift`. No value: it was lost to a fault that is reported.
#[derive(Clone, Copy, PartialEq)]
struct Segment<V> {
    start: u32,
    len: u32,
    value: Option<V>,
    shift: i64,
}

impl<V: Copy + PartialEq> Segment<V> {
    fn end(&self) -> u32 {
        self.start + self.len
    }

    /// The part inside `span`, with places counted from `base` instead of 0 and the span's start instead of its place.
    fn cut(&self, span: Span, base: u32) -> Segment<V> {
        let start = self.start.max(span.start);
        let end = u64::from(self.end()).min(span.end());
        let moved = i64::from(span.start) - i64::from(base);
        Segment {
            start: start - span.start + base,
            len: (end - u64::from(start)) as u32,
            value: self.value,
            shift: self.shift + moved,
        }
    }
}

type Segments<V> = Vec<Segment<V>>;

struct Machine<'a, D: Domain> {
    schedule: &'a Schedule,
    flow: &'a Flow,
    domain: &'a mut D,
    out: Vec<Segments<D::Value>>,
    tmp: Vec<Segments<D::Value>>,
    streams: Vec<Segments<D::Value>>,
    /// Instructions that have yet to pop each stream; none, and its contents are gone.
    pops: Vec<u32>,
    findings: Diagnostics,
}

pub fn run<D: Domain>(
    schedule: &Schedule,
    flow: &Flow,
    order: &[InstrId],
    domain: &mut D,
    required: Demand<'_>,
) -> Result<Outcome, OverBudget> {
    let nodes = schedule.node_count();
    let mut machine = Machine {
        schedule,
        flow,
        domain,
        out: vec![Vec::new(); nodes],
        tmp: vec![Vec::new(); nodes],
        streams: vec![Vec::new(); schedule.stream_count()],
        pops: schedule.all_streams().map(|stream| flow.readers(stream).len() as u32).collect(),
        findings: Diagnostics::default(),
    };
    let (mut left, mut right, mut joined) = (Vec::new(), Vec::new(), Vec::new());
    for &id in order {
        let node = flow.node_of(id);
        let len = schedule.instr(id).len;
        let (sources, sinks) = schedule.operand_rows(id);
        left.clear();
        machine.read(id, node, sources.start, len, &mut left);
        for row in sources.start + 1..sources.end {
            right.clear();
            machine.read(id, node, row, len, &mut right);
            joined.clear();
            machine.combine(id, node, &left, &right, &mut joined)?;
            std::mem::swap(&mut left, &mut joined);
        }
        for (stream, _) in flow.pops(schedule, id) {
            machine.popped(stream);
        }
        for row in sinks {
            machine.write(node, row, len, &left);
        }
    }
    Ok(machine.judge(required))
}

impl<D: Domain> Machine<'_, D> {
    /// Appends the contents of a source, with places counted from 0. Gaps get no value and are reported here, once.
    fn read(&mut self, id: InstrId, node: NodeId, row: usize, len: u32, into: &mut Segments<D::Value>) {
        let (segments, start) = match self.schedule.operands[row] {
            Operand::In(start) => {
                let value = Some(self.domain.leaf(node.0));
                into.push(Segment { start: 0, len, value, shift: i64::from(start) });
                return;
            }
            Operand::Out(start) => (&self.out[node.index()], start),
            Operand::Tmp(start) => (&self.tmp[node.index()], start),
            Operand::Stream(s) => (&self.streams[s.index()], self.flow.position(row)),
        };
        let span = Span::new(start, len);
        let from = segments.partition_point(|s| s.end() <= start);
        let (mut at, mut gap) = (0, None);
        let mut skip_to = |at: u32, to: u32, into: &mut Segments<D::Value>| {
            if to > at {
                gap.get_or_insert(Span::new(start + at, to - at));
                into.push(Segment { start: at, len: to - at, value: None, shift: 0 });
            }
        };
        for segment in segments[from..].iter().take_while(|s| u64::from(s.start) < span.end()) {
            let cut = segment.cut(span, 0);
            skip_to(at, cut.start, into);
            at = cut.end();
            into.push(cut);
        }
        skip_to(at, len, into);
        if let Some(gap) = gap {
            let name = match self.schedule.operands[row] {
                Operand::Out(_) => "out",
                Operand::Stream(_) => "stream elements ",
                _ => "tmp",
            };
            self.findings.push("undefined", Some(node), Some(id), || {
                format!("{id} reads {name}{gap} of {node}, which nothing has written")
            });
        }
    }

    fn combine(
        &mut self,
        id: InstrId,
        node: NodeId,
        left: &Segments<D::Value>,
        right: &Segments<D::Value>,
        into: &mut Segments<D::Value>,
    ) -> Result<(), OverBudget> {
        let (mut l, mut r, mut at) = (0, 0, 0);
        while l < left.len() && r < right.len() {
            let (a, b) = (left[l], right[r]);
            let end = a.end().min(b.end());
            let value = match (a.value, b.value) {
                (Some(x), Some(y)) if a.shift == b.shift => match self.domain.combine(x, y) {
                    Ok(value) => Some(value),
                    Err(Fault::OverBudget) => return Err(OverBudget(std::mem::take(&mut self.findings))),
                    Err(Fault::Twice(rank)) => {
                        let element = i64::from(at) + a.shift;
                        self.findings.push("twice", Some(node), Some(id), || {
                            format!("{id} adds the contribution of rank {rank} to element {element} a second time")
                        });
                        None
                    }
                },
                (Some(_), Some(_)) => {
                    let (x, y) = (i64::from(at) + a.shift, i64::from(at) + b.shift);
                    self.findings.push("misaligned", Some(node), Some(id), || {
                        format!("{id} combines input element {x} with input element {y}")
                    });
                    None
                }
                _ => None,
            };
            push_merged(into, Segment { start: at, len: end - at, value, shift: a.shift });
            at = end;
            l += usize::from(a.end() == end);
            r += usize::from(b.end() == end);
        }
        Ok(())
    }

    fn write(&mut self, node: NodeId, row: usize, len: u32, contents: &Segments<D::Value>) {
        match self.schedule.operands[row] {
            Operand::In(_) => unreachable!("Flow refuses writes to in"),
            Operand::Out(start) => overwrite(&mut self.out[node.index()], Span::new(start, len), contents),
            Operand::Tmp(start) => overwrite(&mut self.tmp[node.index()], Span::new(start, len), contents),
            Operand::Stream(s) => {
                let base = self.flow.position(row);
                let stream = &mut self.streams[s.index()];
                for segment in contents {
                    push_merged(stream, segment.cut(Span::new(0, len), base));
                }
            }
        }
    }

    fn popped(&mut self, stream: StreamId) {
        let pops = &mut self.pops[stream.index()];
        *pops -= 1;
        if *pops == 0 {
            self.streams[stream.index()] = Vec::new();
        }
    }

    fn judge(mut self, required: Demand<'_>) -> Outcome {
        let c = *self.schedule.collective();
        let shared = matches!(c.kind, Kind::Allreduce | Kind::Broadcast | Kind::Allgather | Kind::Barrier);
        let mut first: Option<Vec<(Span, u64)>> = None;
        let (mut repeatable, mut expression) = (true, 0x756e_6973_6f6e_6f00);
        for rank in 0..c.ranks {
            if self.findings.is_full() {
                break;
            }
            let node = NodeId(rank);
            let mut classes: Vec<(Span, u64)> = Vec::new();
            for required in required(rank) {
                if self.findings.is_full() {
                    break;
                }
                let shift = i64::from(required.input_start) - i64::from(required.span.start);
                let mut at = required.span.start;
                let held = &self.out[node.index()];
                let from = held.partition_point(|s| s.end() <= at);
                for segment in held[from..].iter().take_while(|s| u64::from(s.start) < required.span.end()) {
                    let start = segment.start.max(at);
                    let end = u64::from(segment.end()).min(required.span.end()) as u32;
                    if start > at {
                        missing(&mut self.findings, node, Span::new(at, start - at));
                    }
                    at = end;
                    let span = Span::new(start, end - start);
                    // A place without a value was reported where the value was lost.
                    let Some(value) = segment.value else { continue };
                    if segment.shift != shift {
                        let (got, want) = (i64::from(start) + segment.shift, i64::from(start) + shift);
                        self.findings.push("wrong-element", Some(node), None, || {
                            format!("out{span} of rank {rank} starts with input element {got}; required is {want}")
                        });
                    } else if let Err(why) = self.domain.judge(value, required.source) {
                        self.findings
                            .push("incomplete", Some(node), None, || format!("out{span} of rank {rank} {why}"));
                    }
                    let class = self.domain.class(value);
                    match classes.last_mut() {
                        Some((s, c)) if *c == class && s.end() == u64::from(span.start) => s.len += span.len,
                        _ => classes.push((span, class)),
                    }
                }
                if u64::from(at) < required.span.end() {
                    let len = (required.span.end() - u64::from(at)) as u32;
                    missing(&mut self.findings, node, Span::new(at, len));
                }
            }
            if c.output_len(rank) == 0 {
                continue;
            }
            match &first {
                Some(other) if shared => repeatable &= *other == classes,
                _ => {
                    for (span, class) in &classes {
                        expression = mix(expression ^ mix(*class ^ mix(span.end())));
                    }
                    first = Some(classes);
                }
            }
        }
        Outcome { method: "", findings: self.findings, repeatable, expression }
    }
}

fn missing(findings: &mut Diagnostics, node: NodeId, span: Span) {
    findings.push("missing", Some(node), None, || format!("nothing writes out{span} of rank {}", node.0));
}

fn push_merged<V: Copy + PartialEq>(into: &mut Segments<V>, segment: Segment<V>) {
    match into.last_mut() {
        Some(last) if last.end() == segment.start && last.value == segment.value && last.shift == segment.shift => {
            last.len += segment.len;
        }
        _ => into.push(segment),
    }
}

/// Replaces what `segments` hold in `span` by `contents`, whose places count from the span's start.
fn overwrite<V: Copy + PartialEq>(segments: &mut Segments<V>, span: Span, contents: &Segments<V>) {
    let from = segments.partition_point(|s| s.end() <= span.start);
    let to = from + segments[from..].partition_point(|s| u64::from(s.start) < span.end());
    let mut new = Vec::with_capacity(contents.len() + 2);
    if let Some(first) = segments[from..to].first().filter(|s| s.start < span.start) {
        new.push(Segment { len: span.start - first.start, ..*first });
    }
    for segment in contents {
        push_merged(&mut new, segment.cut(Span::new(0, span.len), span.start));
    }
    if let Some(last) = segments[from..to].last().filter(|s| u64::from(s.end()) > span.end()) {
        let end = span.end() as u32;
        push_merged(&mut new, Segment { start: end, len: last.end() - end, ..*last });
    }
    segments.splice(from..to, new);
}
