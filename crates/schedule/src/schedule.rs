//! The tables of a schedule. Rows are compact and sorted by node, lane and program order; ids index them.

use std::ops::Range;

use unisono_base::{InstrId, LaneId, NodeId, PhaseId, Span, StreamId};
use unisono_collective::{Collective, Operator};

/// Where an instruction reads or writes. Buffer operands give the first element; the instruction gives the length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// The rank's input, read-only.
    In(u32),
    /// The rank's output.
    Out(u32),
    /// The node's scratch memory.
    Tmp(u32),
    Stream(StreamId),
}

/// One `combine`; its operands lie in the schedule's operand table, sources first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instr {
    pub(crate) first_operand: u32,
    pub(crate) sources: u16,
    pub(crate) sinks: u16,
    pub len: u32,
    pub phase: PhaseId16,
}

/// A phase id as instructions store it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhaseId16(pub(crate) u16);

impl From<PhaseId16> for PhaseId {
    fn from(p: PhaseId16) -> PhaseId {
        PhaseId(u32::from(p.0))
    }
}

/// A FIFO from `source` to its sinks; `len` elements pass in all, at most `capacity` of them wait for a sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    pub source: NodeId,
    pub len: u32,
    pub capacity: u32,
    pub(crate) first_sink: u32,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Schedule {
    pub(crate) collective: Collective,
    /// What made it, for people: an algorithm and its parameters.
    pub(crate) origin: String,
    pub(crate) phases: Vec<String>,
    /// First lane of each node, and one past the last.
    pub(crate) node_lanes: Vec<u32>,
    /// First instruction of each lane, and one past the last.
    pub(crate) lane_instrs: Vec<u32>,
    /// Scratch elements of each node.
    pub(crate) scratch: Vec<u32>,
    pub(crate) instrs: Vec<Instr>,
    pub(crate) operands: Vec<Operand>,
    pub(crate) streams: Vec<Stream>,
    pub(crate) sinks: Vec<NodeId>,
    /// `(instruction, what must have completed before it starts)`, sorted.
    pub(crate) deps: Vec<(InstrId, InstrId)>,
}

impl Schedule {
    pub fn collective(&self) -> &Collective {
        &self.collective
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Ranks and the switches after them.
    pub fn node_count(&self) -> usize {
        self.scratch.len()
    }

    pub fn lane_count(&self) -> usize {
        self.lane_instrs.len() - 1
    }

    pub fn instr_count(&self) -> usize {
        self.instrs.len()
    }

    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    pub fn phases(&self) -> &[String] {
        &self.phases
    }

    pub fn lanes(&self, node: NodeId) -> Range<usize> {
        self.node_lanes[node.index()] as usize..self.node_lanes[node.index() + 1] as usize
    }

    pub fn lane_instrs(&self, lane: LaneId) -> Range<usize> {
        self.lane_instrs[lane.index()] as usize..self.lane_instrs[lane.index() + 1] as usize
    }

    /// All instructions of a node, lane after lane.
    pub fn node_instrs(&self, node: NodeId) -> Range<usize> {
        let lanes = self.lanes(node);
        self.lane_instrs[lanes.start] as usize..self.lane_instrs[lanes.end] as usize
    }

    pub fn instr(&self, id: InstrId) -> Instr {
        self.instrs[id.index()]
    }

    pub fn sources(&self, id: InstrId) -> &[Operand] {
        let i = self.instrs[id.index()];
        &self.operands[i.first_operand as usize..][..usize::from(i.sources)]
    }

    pub fn sinks(&self, id: InstrId) -> &[Operand] {
        let i = self.instrs[id.index()];
        &self.operands[i.first_operand as usize + usize::from(i.sources)..][..usize::from(i.sinks)]
    }

    /// Rows of the operand table that belong to an instruction: sources, then sinks.
    pub(crate) fn operand_rows(&self, id: InstrId) -> (Range<usize>, Range<usize>) {
        let i = self.instrs[id.index()];
        let first = i.first_operand as usize;
        let mid = first + usize::from(i.sources);
        (first..mid, mid..mid + usize::from(i.sinks))
    }

    pub fn phase(&self, id: InstrId) -> PhaseId {
        self.instrs[id.index()].phase.into()
    }

    pub fn stream(&self, id: StreamId) -> Stream {
        self.streams[id.index()]
    }

    /// The nodes a stream goes to, ascending.
    pub fn stream_sinks(&self, id: StreamId) -> &[NodeId] {
        let first = self.streams[id.index()].first_sink as usize;
        let end = self.streams.get(id.index() + 1).map_or(self.sinks.len(), |s| s.first_sink as usize);
        &self.sinks[first..end]
    }

    /// What must have completed before `id` starts, beside its lane's earlier instructions.
    pub fn after(&self, id: InstrId) -> &[(InstrId, InstrId)] {
        if self.deps.is_empty() {
            return &[];
        }
        let start = self.deps.partition_point(|d| d.0 < id);
        let end = self.deps.partition_point(|d| d.0 <= id);
        &self.deps[start..end]
    }

    pub fn dependencies(&self) -> &[(InstrId, InstrId)] {
        &self.deps
    }

    pub fn scratch_elements(&self, node: NodeId) -> u32 {
        self.scratch[node.index()]
    }

    /// Elements of a node's input buffer; a switch has none.
    pub fn input_len(&self, node: NodeId) -> u32 {
        if node.0 < self.collective.ranks { self.collective.input_len(node.0) } else { 0 }
    }

    /// Elements of a node's output buffer; a switch has none.
    pub fn output_len(&self, node: NodeId) -> u32 {
        if node.0 < self.collective.ranks { self.collective.output_len(node.0) } else { 0 }
    }

    /// Input, output and scratch elements of a node together.
    pub fn memory_elements(&self, node: NodeId) -> u64 {
        u64::from(self.input_len(node)) + u64::from(self.output_len(node)) + u64::from(self.scratch_elements(node))
    }

    pub fn all_nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.scratch.len()).map(NodeId::new)
    }

    pub fn all_streams(&self) -> impl Iterator<Item = StreamId> + use<> {
        (0..self.streams.len()).map(StreamId::new)
    }

    /// The same schedule with another operator, such as one whose operands a proof may swap.
    pub fn with_operator(&self, operator: Operator) -> Self {
        let mut other = self.clone();
        other.collective.operator = operator;
        other
    }

    /// Replaces the label that says what made the schedule; line breaks become spaces.
    pub fn set_origin(&mut self, origin: &str) {
        self.origin = crate::builder::one_line(origin);
    }
}

impl Operand {
    /// The buffer's index among in, out, tmp and the slice of `len` elements; none for a stream.
    pub(crate) fn slice(self, len: u32) -> Option<(usize, Span)> {
        match self {
            Operand::In(start) => Some((0, Span::new(start, len))),
            Operand::Out(start) => Some((1, Span::new(start, len))),
            Operand::Tmp(start) => Some((2, Span::new(start, len))),
            Operand::Stream(_) => None,
        }
    }

    pub(crate) fn stream(self) -> Option<StreamId> {
        match self {
            Operand::Stream(s) => Some(s),
            _ => None,
        }
    }
}
