//! Writes the instructions of reduces and broadcasts on lines of PEs.

use unisono_base::NodeId;
use unisono_schedule::{Builder, Operand};

use super::Sides;

/// Scratch memory a PE has taken for a partial result, kept so that phases share it.
#[derive(Default)]
pub struct Keep {
    scratch: Vec<Option<u32>>,
}

impl Keep {
    /// Where `node` may keep a vector of `elements`: its output if it has one of that size, else scratch memory.
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

/// The contribution of a PE that starts from its input.
pub fn own_input(_: NodeId) -> Operand {
    Operand::In(0)
}

/// A reduce of the vectors `own` to the root of the line; returns where the root holds the result.
///
/// `line` lists the PEs, and the root is PE `sides.left.len() - 1` of it. Operands stand in the order of the line, so
/// operators need not commute: a PE holds an interval of the line at any time, and nearest children come first.
pub fn reduce(
    b: &mut Builder,
    line: &[NodeId],
    sides: &Sides,
    own: &impl Fn(NodeId) -> Operand,
    keep: &mut Keep,
) -> Operand {
    let elements = b.collective().elements;
    let root = sides.left.len() as usize - 1;
    let left: Vec<NodeId> = line[..=root].iter().rev().copied().collect();
    let right = &line[root..];
    let mut incoming = Vec::new();
    for (side, nodes, mirrored) in [(&sides.left, &left[..], true), (&sides.right, right, false)] {
        let (first, table) = side.children();
        // Each PE's stream toward its parent; the root has none.
        let up: Vec<_> = (1..nodes.len())
            .map(|i| b.stream(nodes[i], &[nodes[side.parent(i as u32) as usize]]))
            .collect();
        let of = |pe: usize| {
            table[first[pe] as usize..first[pe + 1] as usize]
                .iter()
                .map(|&c| up[c as usize - 1])
        };
        for pe in 1..nodes.len() {
            let arriving: Vec<_> = of(pe).map(|s| (s, mirrored)).collect();
            accumulate(
                b,
                nodes[pe],
                own(nodes[pe]),
                &arriving,
                Some(Operand::Stream(up[pe - 1])),
                elements,
                keep,
            );
        }
        incoming.extend(of(0).map(|s| (s, mirrored)));
    }
    accumulate(
        b,
        line[root],
        own(line[root]),
        &incoming,
        None,
        elements,
        keep,
    )
}

/// `own` and the arriving streams, one after the other, into `last` or into memory; returns where the result is.
fn accumulate(
    b: &mut Builder,
    node: NodeId,
    own: Operand,
    arriving: &[(unisono_base::StreamId, bool)],
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
        let sources = if mirrored {
            [Operand::Stream(stream), at]
        } else {
            [at, Operand::Stream(stream)]
        };
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

/// Moves a result that is not in the output yet there.
pub fn copy_to_output(b: &mut Builder, node: NodeId, at: Operand) {
    if at != Operand::Out(0) {
        let elements = b.collective().elements;
        b.combine(node, 0, elements, &[at], &[Operand::Out(0)]);
    }
}

/// Floods the vector at `from` on `root` to the outputs of all other nodes.
pub fn broadcast(
    b: &mut Builder,
    root: NodeId,
    from: Operand,
    nodes: impl Iterator<Item = NodeId>,
) {
    let sinks: Vec<NodeId> = nodes.filter(|&n| n != root).collect();
    if sinks.is_empty() {
        return;
    }
    let elements = b.collective().elements;
    let stream = b.stream(root, &sinks);
    b.combine(root, 0, elements, &[from], &[Operand::Stream(stream)]);
    for sink in sinks {
        b.combine(
            sink,
            0,
            elements,
            &[Operand::Stream(stream)],
            &[Operand::Out(0)],
        );
    }
}
