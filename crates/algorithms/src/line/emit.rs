//! Emits the instructions of reduces and broadcasts on lines of PEs.

use unisono_base::{NodeId, StreamId, narrow};
use unisono_lower::{ANY_COLOR, GridPlacement};
use unisono_machine::Grid;
use unisono_schedule::{Builder, Operand, Schedule};

use super::Sides;

/// The state that phases of one algorithm share: the scratch memory of each PE for a partial result, and the color of
/// each stream, or [`ANY_COLOR`].
#[derive(Default)]
pub struct Keep {
    scratch: Vec<Option<u32>>,
    colors: Vec<u8>,
}

impl Keep {
    /// Returns the state for phases that follow a schedule with `placement`. The scratch memory of that schedule is not
    /// reused.
    pub fn resume(placement: &GridPlacement) -> Self {
        Self { scratch: Vec::new(), colors: placement.colors.clone() }
    }

    /// Creates a stream with a color.
    pub fn stream(&mut self, b: &mut Builder, source: NodeId, sinks: &[NodeId], color: u8) -> StreamId {
        let stream = b.stream(source, sinks);
        self.colors.resize(stream.index(), ANY_COLOR);
        self.colors.push(color);
        stream
    }

    /// Returns the placement of the complete schedule on a grid.
    pub fn placement(self, grid: Grid, schedule: &Schedule) -> GridPlacement {
        let mut colors = self.colors;
        if !colors.is_empty() {
            colors.resize(schedule.stream_count().max(colors.len()), ANY_COLOR);
        }
        GridPlacement::new(grid).with_colors(schedule, colors)
    }

    /// Returns the memory of `node` for a vector of `elements` elements: its output if that is large enough, otherwise
    /// its scratch memory.
    fn place(&mut self, b: &mut Builder, node: NodeId, elements: u32) -> Operand {
        if b.collective().output_len(node.0) >= elements {
            return Operand::Out(0);
        }
        if self.scratch.len() <= node.index() {
            self.scratch.resize(node.index() + 1, None);
        }
        let start = *self.scratch[node.index()].get_or_insert_with(|| b.scratch(node, elements));
        Operand::Tmp(start)
    }
}

/// Returns the operand with the contribution of a PE: its input.
pub fn own_input(_: NodeId) -> Operand {
    Operand::In(0)
}

/// Emits a reduce of the vectors `own` to the root of the line, and returns the operand with the result.
///
/// `line` lists the PEs; the root has the index `sides.left.len() - 1`. Operands keep the order of the line, so
/// operators need not commute: partial results are of intervals, and nearest children come first. Streams have the
/// colors `color` and `color + 1` by the parity of the depth, so that incoming and outgoing streams of a PE have
/// different colors.
pub fn reduce(
    b: &mut Builder,
    line: &[NodeId],
    sides: &Sides,
    own: &impl Fn(NodeId) -> Operand,
    keep: &mut Keep,
    color: u8,
) -> Operand {
    let elements = b.collective().elements;
    let root = sides.left.len() as usize - 1;
    let left: Vec<NodeId> = line[..=root].iter().rev().copied().collect();
    let right = &line[root..];
    let mut incoming = Vec::new();
    for (side, nodes, mirrored) in [(&sides.left, &left[..], true), (&sides.right, right, false)] {
        let (first, table) = side.children();
        // The stream of each PE toward its parent; the root has none.
        let mut odd = vec![false; nodes.len()];
        let mut up = Vec::with_capacity(nodes.len());
        for i in 1..nodes.len() {
            let parent = side.parent(narrow::<u32>(i)) as usize;
            odd[i] = !odd[parent];
            up.push(keep.stream(b, nodes[i], &[nodes[parent]], color + u8::from(!odd[i])));
        }
        let of = |pe: usize| table[first[pe] as usize..first[pe + 1] as usize].iter().map(|&c| up[c as usize - 1]);
        for pe in 1..nodes.len() {
            let arriving: Vec<_> = of(pe).map(|s| (s, mirrored)).collect();
            accumulate(b, nodes[pe], own(nodes[pe]), &arriving, Some(Operand::Stream(up[pe - 1])), elements, keep);
        }
        incoming.extend(of(0).map(|s| (s, mirrored)));
    }
    accumulate(b, line[root], own(line[root]), &incoming, None, elements, keep)
}

/// Adds the arriving streams to `own` in sequence, and returns the operand with the result: `last` if given, otherwise
/// memory, or `own` if no stream arrives. Partial sums are stored in memory. Each stream has a flag, which is true if
/// the stream is the left operand.
fn accumulate(
    b: &mut Builder,
    node: NodeId,
    own: Operand,
    arriving: &[(StreamId, bool)],
    last: Option<Operand>,
    elements: u32,
    keep: &mut Keep,
) -> Operand {
    let mut at = own;
    for (n, &(stream, mirrored)) in arriving.iter().enumerate() {
        let to = match last {
            Some(sink) if n + 1 == arriving.len() => sink,
            _ => keep.place(b, node, elements),
        };
        let sources = if mirrored { [Operand::Stream(stream), at] } else { [at, Operand::Stream(stream)] };
        b.combine(node, 0, elements, &sources, &[to]);
        at = to;
    }
    match last {
        Some(sink) if arriving.is_empty() => {
            b.combine(node, 0, elements, &[at], &[sink]);
            sink
        }
        _ => at,
    }
}

/// Copies a result from the operand `at` to the output, unless `at` is the output.
pub fn copy_to_output(b: &mut Builder, node: NodeId, at: Operand) {
    if at != Operand::Out(0) {
        let elements = b.collective().elements;
        b.combine(node, 0, elements, &[at], &[Operand::Out(0)]);
    }
}

/// Emits a flood of the operand `from` of `root` to the outputs of all `nodes` except the root, after all instructions
/// that the root's lanes already have.
pub fn broadcast(
    b: &mut Builder,
    root: NodeId,
    from: Operand,
    nodes: impl Iterator<Item = NodeId>,
    keep: &mut Keep,
    color: u8,
) {
    let sinks: Vec<NodeId> = nodes.filter(|&n| n != root).collect();
    if sinks.is_empty() {
        return;
    }
    let elements = b.collective().elements;
    let stream = keep.stream(b, root, &sinks, color);
    let ends = b.lane_ends(root);
    let push = b.combine(root, 0, elements, &[from], &[Operand::Stream(stream)]);
    // The push already follows the first of these instructions, because both are in one lane.
    ends.into_iter().skip(1).for_each(|end| b.after(push, end));
    for sink in sinks {
        b.combine(sink, 0, elements, &[Operand::Stream(stream)], &[Operand::Out(0)]);
    }
}
