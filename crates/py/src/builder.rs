//! `ScheduleBuilder`: a program builds its own schedule, which is proved like all schedules.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::{prelude::*, types::PySlice};
use unisono_base::{NodeId, StreamId};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::File;
use unisono_schedule::{Builder, Operand};

use crate::{convert, errors::input, schedule::Schedule};

/// A FIFO of elements from one node to one or more other nodes.
#[pyclass(frozen, module = "unisono")]
pub struct Stream {
    builder: Token,
    /// The number of the stream, in the order in which the builder made its streams.
    #[pyo3(get)]
    id: u32,
}

#[pymethods]
impl Stream {
    fn __repr__(&self) -> String {
        format!("<unisono.Stream {}>", self.id)
    }
}

/// Identifies a builder, so that a builder refuses the operands of another builder.
#[derive(Clone, Copy, PartialEq)]
struct Token(u64);

impl Token {
    fn next() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Memory {
    In,
    Out,
    Tmp,
}

impl Memory {
    fn name(self) -> &'static str {
        match self {
            Self::In => "input",
            Self::Out => "output",
            Self::Tmp => "scratch",
        }
    }
}

/// A range of elements in a buffer of one node.
#[pyclass(frozen, module = "unisono")]
pub struct Slice {
    builder: Token,
    memory: Memory,
    node: u32,
    /// The index of the first element in the buffer.
    #[pyo3(get)]
    start: u32,
    /// The index after the last element in the buffer.
    #[pyo3(get)]
    stop: u32,
    /// The index of the buffer's first element in its memory.
    base: u32,
}

#[pymethods]
impl Slice {
    fn __repr__(&self) -> String {
        let (of, node) = (self.memory.name(), self.node);
        format!("<unisono.Slice {}:{} of the {of} of node {node}>", self.start, self.stop)
    }
}

/// A buffer of one node. A slice such as `buffer[4:8]` is an operand.
#[pyclass(frozen, module = "unisono")]
pub struct Buffer {
    builder: Token,
    memory: Memory,
    node: u32,
    base: u32,
    len: u32,
}

#[pymethods]
impl Buffer {
    fn __len__(&self) -> usize {
        self.len as usize
    }

    fn __repr__(&self) -> String {
        format!("<unisono.Buffer {} of node {}: {} elements>", self.memory.name(), self.node, self.len)
    }

    fn __getitem__(&self, span: &Bound<'_, PyAny>) -> PyResult<Slice> {
        let wrong = || {
            let accepted = format!("accepted are slices a:b within 0:{}", self.len);
            input(format!("{span} is not a span of this buffer of {} elements; {accepted}", self.len))
        };
        let slice = span.cast::<PySlice>().map_err(|_| wrong())?;
        // Python silently shortens a slice that reaches past an end. Such a slice is refused, because a schedule must
        // not move fewer elements than requested.
        let end = |name: &str, default: u32| {
            let value = slice.getattr(name)?;
            if value.is_none() {
                return Ok(default);
            }
            let at = convert::whole(&format!("{name} of the slice"), &value)?;
            let len = i128::from(self.len);
            let at = if at < 0 { at.saturating_add(len) } else { at };
            u32::try_from(at).ok().filter(|&at| at <= self.len).ok_or_else(wrong)
        };
        let (start, stop) = (end("start", 0)?, end("stop", self.len)?);
        let step = slice.getattr("step")?;
        if stop < start || !(step.is_none() || convert::whole("step of the slice", &step)? == 1) {
            return Err(wrong());
        }
        Ok(Slice { builder: self.builder, memory: self.memory, node: self.node, start, stop, base: self.base })
    }
}

/// Builds a schedule instruction by instruction. Nodes are numbered ranks first, then switches.
#[pyclass(module = "unisono")]
pub struct ScheduleBuilder {
    token: Token,
    builder: Option<Builder>,
}

impl ScheduleBuilder {
    fn get(&mut self) -> PyResult<&mut Builder> {
        self.builder.as_mut().ok_or_else(|| input("the schedule was built already; start another builder"))
    }

    fn node(&mut self, value: &Bound<'_, PyAny>) -> PyResult<NodeId> {
        let id = convert::index("node", value)?;
        let count = self.get()?.node_count();
        if (id as usize) < count {
            Ok(NodeId(id))
        } else {
            Err(input(format!("node {id} does not exist; accepted are 0 to {}", count - 1)))
        }
    }

    fn buffer(&mut self, node: &Bound<'_, PyAny>, memory: Memory) -> PyResult<Buffer> {
        let node = self.node(node)?.0;
        let c = *self.get()?.collective();
        let len = match memory {
            _ if node >= c.ranks => 0,
            Memory::In => c.input_len(node),
            _ => c.output_len(node),
        };
        Ok(Buffer { builder: self.token, memory, node, base: 0, len })
    }
}

#[pymethods]
impl ScheduleBuilder {
    #[new]
    #[pyo3(
        signature = (
            ranks, elements, collective = "allreduce".to_owned(), root = None, operator = "sum".to_owned(),
            dtype = "f32".to_owned(), name = String::new()
        ),
        text_signature = "(ranks, elements, collective='allreduce', root=None, operator='sum', dtype='f32', name='')"
    )]
    fn new(
        ranks: &Bound<'_, PyAny>,
        elements: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = convert::text)] collective: String,
        root: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = convert::text)] operator: String,
        #[pyo3(from_py_with = convert::text)] dtype: String,
        #[pyo3(from_py_with = convert::text)] name: String,
    ) -> PyResult<Self> {
        let kind: Kind = collective.parse().map_err(input)?;
        let operator: Operator = operator.parse().map_err(input)?;
        let dtype: Dtype = dtype.parse().map_err(input)?;
        let root = root.map(|r| convert::count("root", r)).transpose()?.unwrap_or(0);
        let (ranks, elements) = (convert::index("ranks", ranks)?, convert::count("elements", elements)?);
        let collective = Collective::new(kind, ranks, elements, root, operator, dtype).map_err(input)?;
        let mut builder = Builder::new(collective);
        builder.origin(&name);
        Ok(Self { token: Token::next(), builder: Some(builder) })
    }

    fn __repr__(&self) -> String {
        let Some(builder) = &self.builder else {
            return "<unisono.ScheduleBuilder, whose schedule was built>".to_owned();
        };
        let c = builder.collective();
        let (kind, elements, dtype) = (c.kind, c.elements, c.dtype.name());
        format!("<unisono.ScheduleBuilder {kind} of {elements} {dtype} on {} ranks>", c.ranks)
    }

    /// Returns the read-only input of a rank; empty for a switch.
    fn input(&mut self, node: &Bound<'_, PyAny>) -> PyResult<Buffer> {
        self.buffer(node, Memory::In)
    }

    /// Returns the output of a rank; empty for a switch.
    fn output(&mut self, node: &Bound<'_, PyAny>) -> PyResult<Buffer> {
        self.buffer(node, Memory::Out)
    }

    /// Adds scratch memory to a node and returns it.
    fn scratch(&mut self, node: &Bound<'_, PyAny>, elements: &Bound<'_, PyAny>) -> PyResult<Buffer> {
        let node = self.node(node)?;
        let len = convert::index("elements", elements)?;
        let base = self.get()?.scratch(node, len);
        Ok(Buffer { builder: self.token, memory: Memory::Tmp, node: node.0, base, len })
    }

    /// Adds a node that computes but is not a rank, and returns its number.
    fn switch(&mut self) -> PyResult<u32> {
        Ok(self.get()?.switch().0)
    }

    /// Assigns later instructions to the phase of this name. Models apply phase by phase.
    fn phase(&mut self, name: &str) -> PyResult<()> {
        self.get()?.phase(name);
        Ok(())
    }

    /// Adds a stream from `source` to one or more nodes. At most `capacity` elements wait at each sink (None: no
    /// limit).
    #[pyo3(signature = (source, sinks, capacity = None))]
    fn stream(
        &mut self,
        source: &Bound<'_, PyAny>,
        sinks: &Bound<'_, PyAny>,
        capacity: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Stream> {
        let source = self.node(source)?;
        let mut to = match sinks.try_iter() {
            Ok(many) => many.map(|node| self.node(&node?)).collect::<PyResult<Vec<_>>>()?,
            Err(_) => vec![self.node(sinks)?],
        };
        to.sort_unstable();
        if let Some(twice) = to.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(input(format!("a stream from {source} names {} twice among its sinks", twice[0])));
        }
        if to.is_empty() || to.contains(&source) {
            return Err(input(format!("a stream from {source} must lead to at least one other node and not back")));
        }
        let capacity = capacity.map(|c| convert::index("capacity", c)).transpose()?;
        let b = self.get()?;
        let stream = b.stream(source, &to);
        if let Some(capacity) = capacity {
            b.capacity(stream, capacity);
        }
        Ok(Stream { builder: self.token, id: stream.0 })
    }

    /// Adds combine(sources) -> sinks to a lane of `node` and returns the instruction's number, for `after=`.
    ///
    /// The number of elements is the length of the slices. If all operands are streams, `length` must be given. An
    /// instruction with 0 elements is not added: the call then returns `None`, which `after=` accepts.
    #[pyo3(signature = (node, sources, sinks, lane = None, length = None, after = None))]
    fn combine(
        &mut self,
        node: &Bound<'_, PyAny>,
        sources: Vec<Bound<'_, PyAny>>,
        sinks: Vec<Bound<'_, PyAny>>,
        lane: Option<&Bound<'_, PyAny>>,
        length: Option<&Bound<'_, PyAny>>,
        after: Option<Vec<Bound<'_, PyAny>>>,
    ) -> PyResult<Option<u32>> {
        let node = self.node(node)?;
        let mut len = length.map(|l| convert::index("length", l)).transpose()?;
        let lane = lane.map(|l| convert::index("lane", l)).transpose()?.unwrap_or(0);
        let after = after.unwrap_or_default();
        let made = after.iter().filter(|id| !id.is_none());
        let after = made.map(|id| convert::index("after", id)).collect::<PyResult<Vec<_>>>()?;
        let token = self.token;
        let mut operand = |o: &Bound<'_, PyAny>| operand(o, token, node, &mut len);
        let sources = sources.iter().map(&mut operand).collect::<PyResult<Vec<_>>>()?;
        let sinks = sinks.iter().map(&mut operand).collect::<PyResult<Vec<_>>>()?;
        let len = len.ok_or_else(|| input("all operands are streams, so length= must give the number of elements"))?;
        let b = self.get()?;
        // If a vector has fewer elements than parts, some slices are empty. Empty instructions are kept only in a
        // collective of 0 elements.
        if len == 0 && b.collective().elements > 0 {
            return Ok(None);
        }
        let id = b.combine(node, lane, len, &sources, &sinks);
        for earlier in after {
            b.after(id, unisono_base::InstrId(earlier));
        }
        Ok(Some(id.0))
    }

    /// Returns the finished schedule, which `.verify()` proves. The builder is then empty.
    fn build(&mut self) -> PyResult<Schedule> {
        self.get()?;
        let builder = self.builder.take().ok_or_else(|| input("the schedule was built already"))?;
        let schedule = builder.finish().map_err(input)?;
        Ok(Schedule::new(File { schedule, placement: None, machine: None, blocks: None }))
    }
}

fn operand(object: &Bound<'_, PyAny>, token: Token, node: NodeId, len: &mut Option<u32>) -> PyResult<Operand> {
    let mine = |owner: Token, what: &str| {
        let message = || input(format!("an instruction of {node} names a {what} of another builder"));
        (owner == token).then_some(()).ok_or_else(message)
    };
    if let Ok(stream) = object.cast::<Stream>() {
        mine(stream.get().builder, "stream")?;
        return Ok(Operand::Stream(StreamId(stream.get().id)));
    }
    let (memory, owner, start, count) = if let Ok(s) = object.cast::<Slice>() {
        let s = s.get();
        mine(s.builder, "slice")?;
        (s.memory, s.node, s.base + s.start, s.stop - s.start)
    } else if let Ok(b) = object.cast::<Buffer>() {
        let b = b.get();
        mine(b.builder, "buffer")?;
        (b.memory, b.node, b.base, b.len)
    } else {
        return Err(input(format!("{object} is no operand; accepted are streams, buffers and their slices")));
    };
    if owner != node.0 {
        return Err(input(format!("an instruction of {node} names memory of node {owner}; use a stream between them")));
    }
    if len.is_some_and(|l| l != count) {
        return Err(input(format!("operands of one instruction differ in length: {} and {count}", len.unwrap_or(0))));
    }
    *len = Some(count);
    Ok(match memory {
        Memory::In => Operand::In(start),
        Memory::Out => Operand::Out(start),
        Memory::Tmp => Operand::Tmp(start),
    })
}
