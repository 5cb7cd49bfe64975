//! Writes the instructions of a reduce over several trees.

use unisono_base::{NodeId, Span, StreamId};
use unisono_lower::{Placement, Route};
use unisono_machine::Grid;
use unisono_schedule::{Builder, Operand, Schedule};

use super::routes::{Edge, along_columns_first};

/// The parent of each PE; the root is its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree(pub Vec<u32>);

/// The share of each of `trees` in a vector: lengths differ by one element at most.
pub fn shares(elements: u32, trees: u32) -> Vec<Span> {
    let (size, larger) = (elements / trees, elements % trees);
    let share = |t: u32| Span::new(t * size + t.min(larger), size + u32::from(t < larger));
    (0..trees).map(share).collect()
}

/// A reduce of the inputs to the output of the root; returns the edges in the order of their streams.
pub fn emit(b: &mut Builder, trees: &[Tree]) -> Vec<Edge> {
    let elements = b.collective().elements;
    let mut edges = Vec::new();
    for (lane, (tree, share)) in trees.iter().zip(shares(elements, trees.len() as u32)).enumerate() {
        if share.is_empty() {
            continue;
        }
        let mut streams = vec![None; tree.0.len()];
        let mut children: Vec<Vec<StreamId>> = vec![Vec::new(); tree.0.len()];
        for (pe, &parent) in tree.0.iter().enumerate().filter(|&(pe, &parent)| pe != parent as usize) {
            let stream = b.stream(NodeId::new(pe), &[NodeId(parent)]);
            streams[pe] = Some(stream);
            children[parent as usize].push(stream);
            edges.push(Edge { from: pe as u32, to: parent });
        }
        for pe in 0..tree.0.len() {
            let mut sources = vec![Operand::In(share.start)];
            sources.extend(children[pe].iter().map(|&s| Operand::Stream(s)));
            let sink = streams[pe].map_or(Operand::Out(share.start), Operand::Stream);
            b.combine(NodeId::new(pe), lane as u32, share.len, &sources, &[sink]);
        }
    }
    edges
}

/// The placement of a schedule whose first streams are `edges`.
pub fn placement(grid: Grid, schedule: &Schedule, edges: &[Edge]) -> Placement {
    let mut placement = Placement::new(grid);
    if schedule.stream_count() >= edges.len() {
        for (stream, columns) in along_columns_first(grid, edges).into_iter().enumerate() {
            if columns {
                placement.routes.set(StreamId::new(stream), Route::Yx);
            }
        }
    }
    placement
}
