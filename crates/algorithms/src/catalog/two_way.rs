//! Two-way: blocks travel in both directions along every line of PEs, in an allgather, a reduce-scatter or an alltoall
//! on a grid.
//!
//! Each PE forwards the blocks that it stores or adds to, so one operation receives, stores or adds, and sends. On a
//! line of P PEs with blocks of B wavelets:
//!
//! * **allgather**: a PE sends its own block first, then the arriving blocks, nearest PE first. P-1 blocks must enter
//!   each PE, and its datapath works (P+1) B cycles. PEs in the middle wait at first and then work for both directions,
//!   so long blocks take about P/2 B more.
//! * **reduce-scatter**: the sum for the farthest PE starts first. With long blocks, downward, the sum for the nearest
//!   PE starts first, so that no PE works for both directions at a time.
//! * **alltoall**: a PE sends its blocks, nearest PE first, and then relays the blocks that arrive from farther PEs.
//!   The link in the middle carries P^2/4 B wavelets in each direction, and its PEs take P^2/2 B operations. With long
//!   blocks the PEs of one direction send in sequence, which takes 3/4 P^2 B, or 7/8 P^2 B on a line of a grid.
//!
//! The times are derived in `two_way/model.rs`.
//!
//! On a grid the lines are rows and columns in sequence: rows first for allgather and alltoall, columns first for
//! reduce-scatter.

mod model;

use unisono_base::{NodeId, StreamId, narrow};
use unisono_collective::Kind;
use unisono_lower::{GridPlacement, Placed};
use unisono_machine::Grid;
use unisono_schedule::{Builder, Operand};

use super::too_large;
use crate::{Algorithm, AlgorithmError, Case, Info, Params, Profile, Size};

pub struct TwoWay;

const INFO: Info = Info {
    name: "two-way",
    summary: "blocks travel both ways along rows and columns, and each PE keeps or adds and passes on",
    reference: "this project; Near-Optimal Wafer-Scale Reduce has no such collectives",
    collectives: &[Kind::Allgather, Kind::Alltoall, Kind::ReduceScatter],
    ..Info::ON_GRID
};

/// The lanes of a PE: toward higher positions of a line, and toward lower positions.
const UP: u32 = 0;
const DOWN: u32 = 1;

/// The streams between neighbors of a line, indexed by the lower neighbor.
struct Links {
    up: Vec<StreamId>,
    down: Vec<StreamId>,
}

impl Links {
    fn new(b: &mut Builder, line: &[NodeId]) -> Self {
        let pairs = || line.windows(2);
        let up = pairs().map(|w| b.stream(w[0], &[w[1]])).collect();
        Self { up, down: pairs().map(|w| b.stream(w[1], &[w[0]])).collect() }
    }

    /// Returns the streams of the PE at position `i`: from below, to above, from above, to below.
    fn at(&self, i: usize) -> [Option<Operand>; 4] {
        let of = |streams: &[StreamId], at: Option<usize>| Some(Operand::Stream(*streams.get(at?)?));
        let before = i.checked_sub(1);
        [of(&self.up, before), of(&self.up, Some(i)), of(&self.down, Some(i)), of(&self.down, before)]
    }
}

/// Sends a block of `len` elements from each PE of a line to all others. `own(i)` is the operand with the block of PE
/// i. Every PE stores block k at `at(k)`.
fn gather(b: &mut Builder, line: &[NodeId], len: u32, own: &dyn Fn(usize) -> Operand, at: &dyn Fn(usize) -> Operand) {
    let links = Links::new(b, line);
    for (i, &node) in line.iter().enumerate() {
        let [from_below, to_above, from_above, to_below] = links.at(i);
        let is_there = own(i) == at(i);
        let sinks: Vec<_> = (!is_there).then(|| at(i)).into_iter().chain(to_above).collect();
        if !sinks.is_empty() {
            b.combine(node, UP, len, &[own(i)], &sinks);
        }
        if let Some(to) = to_below {
            b.combine(node, DOWN, len, &[own(i)], &[to]);
        }
        for (lane, from, to, blocks) in [
            (UP, from_below, to_above, (0..i).rev().collect::<Vec<_>>()),
            (DOWN, from_above, to_below, (i + 1..line.len()).collect()),
        ] {
            let Some(from) = from else { continue };
            for k in blocks {
                let sinks: Vec<_> = [at(k)].into_iter().chain(to).collect();
                b.combine(node, lane, len, &[from], &sinks);
            }
        }
    }
}

/// Sums the blocks of `len` elements with equal index of all PEs of a line; PE j gets the sum of the blocks j. `of(i,
/// j)` is the operand with block j of PE i, and `into(i)` the operand of the sum on PE i. Operands are added in the
/// order of the line. If `is_long`, the downward sum for the nearest PE starts first.
fn scatter(
    b: &mut Builder,
    line: &[NodeId],
    len: u32,
    of: &dyn Fn(usize, usize) -> Operand,
    into: &dyn Fn(usize) -> Operand,
    is_long: bool,
) {
    let links = Links::new(b, line);
    for (i, &node) in line.iter().enumerate() {
        let [from_below, to_above, from_above, to_below] = links.at(i);
        if let Some(to) = to_above {
            for j in (i + 1..line.len()).rev() {
                let sources: Vec<_> = from_below.into_iter().chain([of(i, j)]).collect();
                b.combine(node, UP, len, &sources, &[to]);
            }
        }
        let sources: Vec<_> = from_below.into_iter().chain([of(i, i)]).collect();
        let lower = b.combine(node, UP, len, &sources, &[into(i)]);
        let blocks: Vec<usize> = if is_long { (0..=i).rev().collect() } else { (0..=i).collect() };
        for j in blocks {
            let sources: Vec<_> = [of(i, j)].into_iter().chain(from_above).collect();
            if let (true, Some(from)) = (j == i, from_above) {
                let all = b.combine(node, DOWN, len, &[into(i), from], &[into(i)]);
                b.after(all, lower);
            } else if let (false, Some(to)) = (j == i, to_below) {
                b.combine(node, DOWN, len, &sources, &[to]);
            }
        }
    }
}

/// Sends `pieces` pieces of `len` elements from each PE of a line to each PE. `of(i, j, n)` is the operand of piece n
/// from PE i for PE j, and `at(i, k, n)` the operand at which PE i stores piece n of PE k.
fn exchange(
    b: &mut Builder,
    line: &[NodeId],
    (pieces, len): (u32, u32),
    of: &dyn Fn(usize, usize, u32) -> Operand,
    at: &dyn Fn(usize, usize, u32) -> Operand,
) {
    let links = Links::new(b, line);
    let n = line.len();
    for (i, &node) in line.iter().enumerate() {
        let [from_below, to_above, from_above, to_below] = links.at(i);
        for piece in 0..pieces {
            b.combine(node, UP, len, &[of(i, i, piece)], &[at(i, i, piece)]);
        }
        for (lane, from, to, onward, sources) in [
            (UP, from_below, to_above, (i + 1..n).collect::<Vec<_>>(), (0..i).rev().collect::<Vec<_>>()),
            (DOWN, from_above, to_below, (0..i).rev().collect(), (i + 1..n).collect()),
        ] {
            if let Some(to) = to {
                for &j in &onward {
                    for piece in 0..pieces {
                        b.combine(node, lane, len, &[of(i, j, piece)], &[to]);
                    }
                }
            }
            let Some(from) = from else { continue };
            for k in sources {
                for piece in 0..pieces {
                    b.combine(node, lane, len, &[from], &[at(i, k, piece)]);
                }
                if let Some(to) = to {
                    b.combine(node, lane, len * pieces * narrow::<u32>(onward.len()), &[from], &[to]);
                }
            }
        }
    }
}

fn row(grid: Grid, r: u32) -> Vec<NodeId> {
    (0..grid.cols).map(|c| NodeId(grid.pe(r, c))).collect()
}

fn column(grid: Grid, c: u32) -> Vec<NodeId> {
    (0..grid.rows).map(|r| NodeId(grid.pe(r, c))).collect()
}

fn allgather(b: &mut Builder, grid: Grid) {
    let len = b.collective().elements;
    let Grid { rows, cols } = grid;
    let place = |row: u32, block: usize| Operand::Out((row * cols + narrow::<u32>(block)) * len);
    if cols > 1 || rows == 1 {
        b.phase("row-allgather");
        for r in 0..rows {
            gather(b, &row(grid, r), len, &|_| Operand::In(0), &|k| place(r, k));
        }
        b.join_lanes();
    }
    if rows > 1 {
        b.phase("column-allgather");
        let at = |k: usize| Operand::Out(narrow::<u32>(k) * cols * len);
        for c in 0..cols {
            let own = |i: usize| if cols > 1 { at(i) } else { Operand::In(0) };
            gather(b, &column(grid, c), cols * len, &own, &at);
        }
    }
}

fn reduce_scatter(b: &mut Builder, case: &Case) {
    let grid = case.grid();
    let len = b.collective().elements;
    let Grid { rows, cols } = grid;
    // The offset of each PE's scratch memory for the sums over its column, one block for each PE of its row.
    let kept: Vec<u32> = if rows > 1 && cols > 1 {
        (0..b.collective().ranks).map(|pe| b.scratch(NodeId(pe), cols * len)).collect()
    } else {
        Vec::new()
    };
    let sums = |node: NodeId| kept.get(node.index()).map(|&start| Operand::Tmp(start));
    if rows > 1 {
        b.phase("column-reduce-scatter");
        let is_long = model::is_long(case, rows, cols * len);
        for c in 0..cols {
            let line = column(grid, c);
            let of = |_: usize, j: usize| Operand::In(narrow::<u32>(j) * cols * len);
            scatter(b, &line, cols * len, &of, &|i| sums(line[i]).unwrap_or(Operand::Out(0)), is_long);
        }
        b.join_lanes();
    }
    if cols > 1 || rows == 1 {
        b.phase("row-reduce-scatter");
        let is_long = model::is_long(case, cols, len);
        for r in 0..rows {
            let line = row(grid, r);
            let of = |i: usize, j: usize| match (sums(line[i]), narrow::<u32>(j) * len) {
                (Some(Operand::Tmp(start)), block) => Operand::Tmp(start + block),
                (_, block) => Operand::In(block),
            };
            scatter(b, &line, len, &of, &|_| Operand::Out(0), is_long);
        }
    }
}

fn alltoall(b: &mut Builder, grid: Grid) {
    let len = b.collective().elements;
    let Grid { rows, cols } = grid;
    // The offset of each PE's scratch memory for the blocks that the PEs of its row send to its column, ordered by
    // destination row.
    let kept: Vec<u32> = if rows > 1 && cols > 1 {
        (0..b.collective().ranks).map(|pe| b.scratch(NodeId(pe), rows * cols * len)).collect()
    } else {
        Vec::new()
    };
    let middle = |node: NodeId, block: u32, else_at: fn(u32) -> Operand| match kept.get(node.index()) {
        Some(start) => Operand::Tmp(start + block),
        None => else_at(block),
    };
    if cols > 1 || rows == 1 {
        b.phase("row-alltoall");
        for r in 0..rows {
            let line = row(grid, r);
            let of = |_: usize, j: usize, piece: u32| Operand::In((piece * cols + narrow::<u32>(j)) * len);
            let at =
                |i: usize, k: usize, piece: u32| middle(line[i], (piece * cols + narrow::<u32>(k)) * len, Operand::Out);
            exchange(b, &line, (rows, len), &of, &at);
        }
        b.join_lanes();
    }
    if rows > 1 {
        b.phase("column-alltoall");
        for c in 0..cols {
            let line = column(grid, c);
            let of = |i: usize, j: usize, _: u32| middle(line[i], narrow::<u32>(j) * cols * len, Operand::In);
            let at = |_: usize, k: usize, _: u32| Operand::Out(narrow::<u32>(k) * cols * len);
            exchange(b, &line, (1, cols * len), &of, &at);
        }
    }
}

impl Algorithm for TwoWay {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let no = |reason: String| Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
        let c = case.collective;
        if !INFO.collectives.contains(&c.kind) {
            return no(format!("it makes an allgather, alltoall or reduce-scatter, not {}", c.kind));
        }
        if c.kind == Kind::ReduceScatter && !case.grid().is_line() && !c.operator.commutative() {
            return no(format!("on a grid it adds columns before rows, and operator {} does not commute", c.operator));
        }
        too_large(self.size(case, params).instructions.unwrap_or(u64::MAX)).map_or(Ok(()), no)
    }

    fn build(&self, case: &Case, _: &Params) -> Result<Placed, AlgorithmError> {
        let mut b = Builder::new(case.collective);
        let grid = case.grid();
        match case.collective.kind {
            Kind::Allgather => allgather(&mut b, grid),
            Kind::ReduceScatter => reduce_scatter(&mut b, case),
            _ => alltoall(&mut b, grid),
        }
        Ok(Placed::on_grid(b.finish()?, GridPlacement::new(grid)))
    }

    fn profile(&self, case: &Case, _: &Params) -> Option<Profile> {
        model::estimate(case).map(Profile::Terms)
    }

    fn size(&self, case: &Case, _: &Params) -> Size {
        let [rows, cols] = [case.grid().rows, case.grid().cols].map(u64::from);
        let each = match case.collective.kind {
            Kind::Alltoall => 2 * (rows + 1) * cols + 3 * rows,
            _ => rows + cols + 6,
        };
        Size { instructions: Some(rows * cols * each), ..Size::default() }
    }
}
