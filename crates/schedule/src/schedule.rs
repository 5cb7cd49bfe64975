//! The tables of a schedule. Rows are compact and sorted by node, lane and program order; ids are indices of rows.

use std::ops::Range;

use unisono_base::{InstrId, LaneId, NodeId, PhaseId, Span, StreamId, interrupt::check};
use unisono_collective::{Collective, Operator};

use crate::instrs::{Instr, Instrs, Operands};

/// An operand of an instruction. Buffer operands name the first element; the length is that of the instruction.
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

/// A FIFO from `source` to its sinks. `len` elements pass in total; at most `capacity` of them wait at a sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    pub source: NodeId,
    pub len: u32,
    pub capacity: u32,
    pub(crate) first_sink: u32,
}

/// The error for a schedule with nodes that are not ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the schedule has {nodes} nodes for {ranks} ranks, the others being switches that reduce")]
pub struct MoreNodes {
    pub nodes: u64,
    pub ranks: u32,
}

#[derive(PartialEq, Debug)]
pub struct Schedule {
    pub(crate) collective: Collective,
    /// Origin of the schedule, shown to users: an algorithm and its parameters.
    pub(crate) origin: String,
    pub(crate) phases: Vec<String>,
    /// First lane of each node, and the end of the last node's lanes.
    pub(crate) node_lanes: Vec<u32>,
    /// First instruction of each lane, and the end of the last lane.
    pub(crate) lane_instrs: Vec<u32>,
    /// Number of scratch elements of each node.
    pub(crate) scratch: Vec<u32>,
    pub(crate) instrs: Instrs,
    pub(crate) streams: Vec<Stream>,
    pub(crate) sinks: Vec<NodeId>,
    /// Pairs `(instruction, earlier)`, sorted; `earlier` must have completed before `instruction` starts.
    pub(crate) deps: Vec<(InstrId, InstrId)>,
}

/// A copy of a table of a large schedule takes tenths of a second, so interrupts are polled between tables.
impl Clone for Schedule {
    fn clone(&self) -> Self {
        fn copied<T: Clone>(table: &T) -> T {
            check();
            table.clone()
        }
        Self {
            collective: self.collective,
            origin: self.origin.clone(),
            phases: self.phases.clone(),
            node_lanes: copied(&self.node_lanes),
            lane_instrs: copied(&self.lane_instrs),
            scratch: copied(&self.scratch),
            instrs: copied(&self.instrs),
            streams: copied(&self.streams),
            sinks: copied(&self.sinks),
            deps: copied(&self.deps),
        }
    }
}

impl Schedule {
    pub fn collective(&self) -> &Collective {
        &self.collective
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the number of ranks and switches.
    pub fn node_count(&self) -> usize {
        self.scratch.len()
    }

    /// Checks that every node is a rank, as machines without reducing switches require.
    ///
    /// # Errors
    ///
    /// Returns an error if the schedule has nodes that are not ranks.
    pub fn check_ranks_only(&self) -> Result<(), MoreNodes> {
        let (nodes, ranks) = (self.node_count() as u64, self.collective.ranks);
        if nodes == u64::from(ranks) { Ok(()) } else { Err(MoreNodes { nodes, ranks }) }
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

    /// Returns all instructions of a node, lane after lane.
    pub fn node_instrs(&self, node: NodeId) -> Range<usize> {
        let lanes = self.lanes(node);
        self.lane_instrs[lanes.start] as usize..self.lane_instrs[lanes.end] as usize
    }

    #[inline]
    pub fn instr(&self, id: InstrId) -> Instr {
        self.instrs.get(id)
    }

    /// Returns an instruction, its sources and its sinks.
    #[inline(always)]
    pub(crate) fn whole(&self, id: InstrId) -> (Instr, Operands<'_>, Operands<'_>) {
        let (instr, operands) = self.instrs.whole(id);
        let (sources, sinks) = operands.split(instr);
        (instr, sources, sinks)
    }

    #[inline]
    pub fn sources(&self, id: InstrId) -> Operands<'_> {
        self.whole(id).1
    }

    #[inline]
    pub fn sinks(&self, id: InstrId) -> Operands<'_> {
        self.whole(id).2
    }

    /// Returns true if an instruction copies data within the memory of its node, unchanged. It may also send the data.
    pub fn is_copy(&self, id: InstrId) -> bool {
        let is_local = |operand: Operand| !matches!(operand, Operand::Stream(_));
        self.sources(id).len() == 1 && self.sources(id).iter().all(is_local) && self.sinks(id).iter().any(is_local)
    }

    /// Returns true if each stream has one sink. Row `k` of the sink table then belongs to stream `k`.
    pub(crate) fn has_one_sink_each(&self) -> bool {
        let mut rows = self.streams.iter().enumerate();
        self.sinks.len() == self.streams.len() && rows.all(|(at, s)| s.first_sink as usize == at)
    }

    /// Returns the row of the sink table at which `sink` pops a stream of a well-formed schedule.
    #[inline]
    pub(crate) fn row_of_sink(&self, id: StreamId, sink: NodeId) -> usize {
        let rows = self.sink_rows(id);
        // A stream with one sink can only be popped by this sink, so the table of sinks need not be read.
        if rows.len() == 1 {
            return rows.start;
        }
        self.sink_row(id, sink).unwrap_or_else(|| unreachable!("{id} does not lead to {sink}"))
    }

    /// Returns the lane of an instruction, by binary search.
    pub(crate) fn lane_of(&self, id: InstrId) -> LaneId {
        LaneId::new(self.lane_instrs.partition_point(|&first| first <= id.0) - 1)
    }

    /// Returns the node of an instruction, by binary search.
    pub(crate) fn node_of(&self, id: InstrId) -> NodeId {
        let lane = self.lane_of(id);
        NodeId::new(self.node_lanes.partition_point(|&first| first <= lane.0) - 1)
    }

    pub(crate) fn lanes_of_instrs(&self) -> Vec<LaneId> {
        let mut lanes = Vec::with_capacity(self.instrs.len());
        for lane in (0..self.lane_count()).map(LaneId::new) {
            lanes.resize(self.lane_instrs(lane).end, lane);
        }
        lanes
    }

    pub(crate) fn nodes_of_lanes(&self) -> Vec<NodeId> {
        self.all_nodes().flat_map(|node| self.lanes(node).map(move |_| node)).collect()
    }

    pub fn phase(&self, id: InstrId) -> PhaseId {
        self.instrs.get(id).phase.into()
    }

    pub fn stream(&self, id: StreamId) -> Stream {
        self.streams[id.index()]
    }

    /// Returns the nodes that receive a stream, ascending.
    pub fn stream_sinks(&self, id: StreamId) -> &[NodeId] {
        &self.sinks[self.sink_rows(id)]
    }

    /// Returns the rows of a stream's sinks in the table of all sinks.
    #[inline]
    pub(crate) fn sink_rows(&self, id: StreamId) -> Range<usize> {
        let first = self.streams[id.index()].first_sink as usize;
        let end = self.streams.get(id.index() + 1).map_or(self.sinks.len(), |s| s.first_sink as usize);
        first..end
    }

    /// Returns the row of one sink of a stream in the sink table; `None` if the stream does not lead to this sink.
    #[inline]
    pub(crate) fn sink_row(&self, id: StreamId, sink: NodeId) -> Option<usize> {
        let rows = self.sink_rows(id);
        let row = rows.start + self.sinks[rows.clone()].partition_point(|&node| node < sink);
        (row < rows.end && self.sinks[row] == sink).then_some(row)
    }

    /// Returns the dependencies of `id`: pairs `(id, earlier)`, where `earlier` must have completed before `id` starts.
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

    /// Returns the length of a node's input buffer; 0 for a switch.
    pub fn input_len(&self, node: NodeId) -> u32 {
        if node.0 < self.collective.ranks { self.collective.input_len(node.0) } else { 0 }
    }

    /// Returns the length of a node's output buffer; 0 for a switch.
    pub fn output_len(&self, node: NodeId) -> u32 {
        if node.0 < self.collective.ranks { self.collective.output_len(node.0) } else { 0 }
    }

    /// Returns the number of elements of a node's input, output and scratch memory together.
    pub fn memory_elements(&self, node: NodeId) -> u64 {
        u64::from(self.input_len(node)) + u64::from(self.output_len(node)) + u64::from(self.scratch_elements(node))
    }

    pub fn all_nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.scratch.len()).map(NodeId::new)
    }

    pub fn all_streams(&self) -> impl Iterator<Item = StreamId> + use<> {
        (0..self.streams.len()).map(StreamId::new)
    }

    /// Returns a copy of the schedule with another operator.
    pub fn with_operator(&self, operator: Operator) -> Self {
        let mut other = self.clone();
        other.collective.operator = operator;
        other
    }

    /// Sets the origin to the text on one line, with `;` and control characters replaced.
    pub fn set_origin(&mut self, origin: &str) {
        self.origin = crate::builder::one_line(origin);
    }
}

impl Operand {
    /// Returns the buffer (0 input, 1 output, 2 scratch) and the slice of `len` elements; `None` for a stream.
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
