//! Emits the instructions of a reduce over several trees.

use unisono_base::{NodeId, Span, StreamId, interrupt::poll, narrow, rounded};
use unisono_collective::Kind;
use unisono_lower::{GridPlacement, Placed};
use unisono_schedule::{Builder, Operand};

use super::{Tree, View, Ways};
use crate::{AlgorithmError, Case, Param, Params};

/// Returns the part of a vector for each of `trees` trees; lengths differ by at most one element, longer parts first.
pub fn shares(elements: u32, trees: u32) -> Vec<Span> {
    let (size, larger) = (elements / trees, elements % trees);
    let share = |t: u32| Span::new(t * size + t.min(larger), size + u32::from(t < larger));
    (0..trees).map(share).collect()
}

/// Returns the trees whose parts of the vector are not empty, each with its part.
pub(super) fn loaded<'a>(case: &Case, trees: &'a [Tree]) -> impl Iterator<Item = (&'a Tree, Span)> {
    trees.iter().zip(shares(case.collective.elements, narrow(trees.len()))).filter(|(_, share)| !share.is_empty())
}

/// Emits a reduce of the inputs to the output of the root; streams have the order of the trees' edges.
fn emit(b: &mut Builder, case: &Case, trees: &[Tree]) {
    for (lane, (tree, share)) in loaded(case, trees).enumerate() {
        let mut streams = vec![None; tree.0.len()];
        for edge in tree.edges() {
            poll();
            streams[edge.from as usize] = Some(b.stream(NodeId(edge.from), &[NodeId(edge.to)]));
        }
        for (pe, children) in tree.children_by_arrival(case.grid(), depth_cycles(case)).iter().enumerate() {
            poll();
            let mut sources = vec![Operand::In(share.start)];
            sources.extend(children.iter().filter_map(|&child| streams[child as usize]).map(Operand::Stream));
            let sink = streams[pe].map_or(Operand::Out(share.start), Operand::Stream);
            b.combine(NodeId::new(pe), narrow(lane), share.len, &sources, &[sink]);
        }
    }
}

/// Checks that trees can run concurrently: in a reduce over several rows and columns with an operator that commutes,
/// and with the root in a corner if `corner`.
///
/// # Errors
/// Returns an error if the trees cannot run, with the reason.
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

/// The parameter with the number of elements that a PE receives from one child before it receives from the next child.
pub const CHUNK: Param = Param {
    name: "chunk",
    values: "elements taken from one child before the next, from 1; the length or more is vector after vector (default: 1)",
};

/// Returns the value of [`CHUNK`], by default 1.
///
/// # Errors
/// Returns an error if the value is not a whole number of elements from 1.
pub fn chunk(algorithm: &'static str, params: &Params) -> Result<u32, AlgorithmError> {
    Ok(params.number(algorithm, CHUNK.name, 1..=u32::MAX)?.unwrap_or(1))
}

/// Builds the reduce over `trees`, with its placement.
///
/// # Errors
/// Returns an error if the tables cannot hold the schedule.
pub fn build(case: &Case, trees: &[Tree], chunk: u32) -> Result<Placed, AlgorithmError> {
    let mut b = Builder::new(case.collective);
    b.phase("reduce");
    emit(&mut b, case, trees);
    let schedule = b.finish()?;
    let mut placement = GridPlacement::new(case.grid());
    placement.pace = pace(trees);
    placement.chunk = chunk;
    for (stream, route) in Ways::of(case, trees).routes() {
        placement.routes.set(StreamId::new(stream), route);
    }
    Ok(Placed::on_grid(schedule, placement))
}

/// Returns the cycles of each message on the longest chain of dependent messages, rounded down, at least 1.
pub(crate) fn depth_cycles(case: &Case) -> u32 {
    u32::try_from(rounded(case.depth_cycles().floor())).unwrap_or(u32::MAX).max(1)
}

/// Returns the most children of a PE, summed over all trees.
pub fn most_children(trees: &[Tree]) -> u16 {
    sums(trees, |children| children)
}

/// Returns the cycles of the busiest PE for one element of every tree. A leaf that sends faster only fills queues.
pub(super) fn pace(trees: &[Tree]) -> u16 {
    sums(trees, |children| children.max(1)).max(1)
}

/// Returns the maximum, over all PEs, of the sum over all trees of `of(number of the PE's children)`.
fn sums(trees: &[Tree], of: impl Fn(u16) -> u16) -> u16 {
    let mut sums = vec![0u16; trees.first().map_or(0, |t| t.0.len())];
    for tree in trees {
        let children = tree.children();
        sums.iter_mut()
            .zip(children)
            .for_each(|(sum, c)| *sum = sum.saturating_add(of(u16::try_from(c.len()).unwrap_or(u16::MAX))));
    }
    sums.into_iter().max().unwrap_or(0)
}
