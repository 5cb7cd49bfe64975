//! Writes the instructions of a reduce over several trees.

use unisono_base::{NodeId, Span, StreamId};
use unisono_collective::Kind;
use unisono_lower::{Placed, Placement, Route};
use unisono_machine::Grid;
use unisono_schedule::{Builder, Operand, Schedule};

use super::{
    View,
    routes::{Edge, along_columns_first},
};
use crate::{AlgorithmError, Case, Param, Params};

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
fn emit(b: &mut Builder, trees: &[Tree]) -> Vec<Edge> {
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
fn placement(grid: Grid, schedule: &Schedule, edges: &[Edge]) -> Placement {
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

/// Whether several trees at once make sense: a reduce over a grid by an operator that commutes; `corner` asks for the root
/// in a corner.
///
/// # Errors
/// The reason why not.
pub fn supports(algorithm: &'static str, case: &Case, corner: bool) -> Result<(), AlgorithmError> {
    let no = |reason: String| Err(AlgorithmError::Unsupported { algorithm, reason });
    let (c, grid) = (case.collective, case.grid());
    if c.kind != Kind::Reduce || grid.is_line() {
        return no(format!("it reduces over a grid, not {} on {grid}", c.kind));
    }
    if corner && View::from(grid, c.root).is_none() {
        let (row, col) = grid.row_col(c.root);
        return no(format!("its root lies in a corner of {grid}, not at {row},{col}"));
    }
    if !c.operator.commutative() {
        return no(format!("its trees join PEs in no order, and operator {} does not commute", c.operator));
    }
    Ok(())
}

/// How a PE takes its children.
pub const CHUNK: Param = Param {
    name: "chunk",
    values: "elements taken from one child before the next, from 1; the length or more is vector after vector (default: 1)",
};

/// # Errors
/// A value of [`CHUNK`] that is no number of elements.
pub fn chunk(algorithm: &'static str, params: &Params) -> Result<u32, AlgorithmError> {
    Ok(params.number(algorithm, CHUNK.name, 1..=u32::MAX)?.unwrap_or(1))
}

/// The reduce over `trees`, placed.
///
/// # Errors
/// It is larger than its tables can hold.
pub fn build(case: &Case, trees: &[Tree], chunk: u32) -> Result<Placed, AlgorithmError> {
    let mut b = Builder::new(case.collective);
    b.phase("reduce");
    let edges = emit(&mut b, trees);
    let schedule = b.finish()?;
    let mut placement = placement(case.grid(), &schedule, &edges);
    placement.pace = pace(trees);
    placement.chunk = chunk;
    Ok(Placed { placement, schedule })
}

/// The most children that a PE has, over all trees.
pub fn most_children(trees: &[Tree]) -> u16 {
    sums(trees, |children| children)
}

/// Cycles that the busiest PE needs for one element of every tree: a leaf that sends faster only fills queues.
fn pace(trees: &[Tree]) -> u16 {
    sums(trees, |children| children.max(1)).max(1)
}

/// The largest sum over a PE's trees of what a number of children means.
fn sums(trees: &[Tree], of: impl Fn(u16) -> u16) -> u16 {
    let pes = trees.first().map_or(0, |t| t.0.len());
    let mut sums = vec![0u16; pes];
    for tree in trees {
        let mut children = vec![0u16; pes];
        let edges = tree.0.iter().enumerate().filter(|&(pe, &parent)| pe != parent as usize);
        edges.for_each(|(_, &parent)| children[parent as usize] += 1);
        sums.iter_mut().zip(children).for_each(|(sum, c)| *sum = sum.saturating_add(of(c)));
    }
    sums.into_iter().max().unwrap_or(0)
}
