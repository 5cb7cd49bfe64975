//! Slack trees: one to four trees over a grid, deep near the root and shallow far from it.
//!
//! The time depends on the slowest path, its hops plus 2 T_R + 1 cycles per message with the ramp latency T_R, and not
//! on the depth (messages) and the distance (hops) separately. A PE that is h hops nearer than the farthest may be
//! h / (2 T_R + 1) messages deeper at no cost. Let the i-th child of a PE cost 2 T_R + i cycles besides its hops. Trees
//! in which PE x sends at least t(x) cycles before the root ends exist only if the sum of e^(-r t(x)) is at most 1; r
//! solves sum over i of e^(-r (2 T_R + i)) = 1 (Kraft's inequality for codes whose letters differ in cost). So a region
//! R below parent v takes about ln(sum over x in R of e^(r |x - v|)) / r cycles, and regions are cut into parts that
//! take equally long. On n x n the time is 2 n plus a constant, not plus the time of log n messages.
//!
//! A PE has at most K children in one of the T trees and is a leaf in the others, so for B wavelets the busiest PE does
//! C = (K + T - 1) B / T operations. Trees choose their inner PEs and paths so that no link carries more. The time is
//! 2 n + const + C; k-d trees have 10 log2 n instead of the constant.
//!
//! **Chains.** A leaf costs an operation without an addition, so a tree with a fraction f of leaves takes 1 + f
//! operations per PE. A region becomes one chain if the chain ends at most `chains` cycles after the path of the
//! farthest PE. PEs near the root have so much slack that f falls from 1/2 to about 0.15, and most edges are one hop
//! long, so there are PEs and links enough for four trees. A message of a chain also waits for the lanes of other
//! trees: [`WAIT`] cycles more than 2 T_R + 1, by simulations.
//!
//! Source: this project; "Near-Optimal Wafer-Scale Reduce", section 7.5, leaves "room for improvement" in 2D.

use std::{cmp::Reverse, collections::BinaryHeap};

use unisono_base::{
    interrupt::{check, poll},
    narrow,
};
use unisono_collective::Kind;
use unisono_machine::Grid;

use crate::{
    AlgorithmError, Case, Info, Param, Params,
    forest::{CHUNK, Edge, GridTrees, Tree, depth_cycles, links, spare_turns},
};

pub struct SlackTree;

const INFO: Info = Info {
    name: "slack-tree",
    summary: "one to four trees over a grid, deep near the root and shallow far from it; best for most vectors",
    reference: "this project; goes beyond Near-Optimal Wafer-Scale Reduce, section 7",
    collectives: &[Kind::Reduce],
    params: &[
        Param { name: "trees", values: "1 to 4 (default: 2)" },
        Param { name: "children", values: "the most children of a PE in a tree, 2 to 8 (default: 2)" },
        Param {
            name: "chains",
            values: "cycles for chains beyond the way of the farthest PE, to 65535 (default: 0, no chains)",
        },
        CHUNK,
    ],
    ..Info::ON_GRID
};

/// The most cycles by which the row, or the column, of a top may be worse than the best row or column, to relieve links
/// or other trees. A top is the PE that receives from the rest of its region.
const TOLERANCE: f64 = 15.0;
/// The most rows, and the most columns, that are tried for one top.
const PLACES: usize = 8;
/// The penalty, in cycles, of a top on a diagonal of another tree: diagonals keep the inner PEs of several trees apart.
const DIAGONAL: f64 = 0.5;

/// Wavelets of the longest vector for which a plan considers trees without chains, measured on grids from 16 x 16 to
/// 128 x 128. All PEs of these trees are always busy, so with longer vectors their lanes delay each other more than in
/// kd-tree. The limit is a third of this for three trees of three children, and four times this for four trees of two
/// children.
const LONGEST: u64 = 96;
/// The numbers of PEs along the longer side for which a plan considers four trees with chains, for vectors of more than
/// [`LONGEST`] wavelets. The lower limit is measured; above the upper limit planning is slow.
const CHAINED: std::ops::RangeInclusive<u32> = 48..=256;
/// The value of `chains`, in cycles, for the four trees with chains. Values of 60 to 100 give the same time within 1 %.
const CHAINS: u32 = 80;
/// The cycles that a message waits for other lanes of a PE, if there are chains.
const WAIT: u32 = 2;

/// A rectangle of PEs: rows and columns, as half-open ranges.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rect {
    rows: (u32, u32),
    cols: (u32, u32),
}

impl Rect {
    fn pes(self) -> impl Iterator<Item = (u32, u32)> {
        (self.rows.0..self.rows.1).flat_map(move |r| (self.cols.0..self.cols.1).map(move |c| (r, c)))
    }

    fn area(self) -> u32 {
        (self.rows.1 - self.rows.0) * (self.cols.1 - self.cols.0)
    }
}

/// Returns r for trees of `children` children: the solution of Kraft's equation, found by bisection.
pub fn rate(children: u32, depth_cycles: f64) -> f64 {
    let (mut low, mut high) = (0.0, 2.0);
    for _ in 0..50 {
        let r: f64 = f64::midpoint(low, high);
        let sum: f64 = (0..children).map(|i| (-r * (depth_cycles + f64::from(i))).exp()).sum();
        if sum > 1.0 { low = r } else { high = r }
    }
    high
}

/// Returns the factor by which r is reduced. With the full r, many far regions send to few PEs near the root, so links
/// carry twice the load of PEs. The load grows with the sides and the children. Fitted to measurements on n x n PEs for
/// n from 16 to 256, and for n = 48, 64 and 112 with chains, whose short edges leave links free.
fn late(grid: Grid, children: u32, is_chained: bool) -> f64 {
    let (most, by_side) = if is_chained { (0.65, 10.6) } else { (0.5, 12.0) };
    f64::min(most, by_side / (f64::from(children) * f64::from(longer(grid)).sqrt()))
}

fn longer(grid: Grid) -> u32 {
    grid.rows.max(grid.cols)
}

/// Returns the sum of e^(rate |x - at|) over all x of a span.
pub fn weight(rate: f64, (start, end): (u32, u32), at: u32) -> f64 {
    // The sum over a half-open range of distances.
    let run = |from: u32, to: u32| {
        let grow = |n: u32| (rate * f64::from(n)).exp();
        (grow(to) - grow(from)) / rate.exp_m1()
    };
    if at < start {
        run(start - at, end - at)
    } else if at >= end {
        run(at + 1 - end, at + 1 - start)
    } else {
        run(0, end - at) + run(1, at + 1 - start)
    }
}

/// The trees under construction.
struct Growth {
    grid: Grid,
    trees: u32,
    children: u32,
    rate: f64,
    /// For each tree, the parent of each PE; `NONE` if the PE is not in the tree yet.
    parents: Vec<Vec<u32>>,
    /// The operations of each PE for one element of every tree: one as a leaf, otherwise one per child.
    work: Vec<u32>,
    /// The number of streams on each link.
    loads: Vec<u32>,
    /// For each tree and PE, the cycles from the start of the PE's message until the root has its contents; used for
    /// chains only.
    ends: Vec<Vec<u32>>,
    /// The cycles of a message besides its hops.
    message: u32,
    /// The most cycles from the first message of a chain until the root has its contents; `None` without chains.
    limit: Option<u32>,
}

const NONE: u32 = u32::MAX;

impl Growth {
    /// Returns the most operations of a PE for one element of every tree.
    fn most(&self) -> u32 {
        self.trees + self.children - 1
    }

    /// Returns at most [`PLACES`] rows, or columns, of a span for a top below `parent`. Each has the cycles by which it
    /// is worse than the best, at most [`TOLERANCE`].
    fn places(&self, span: (u32, u32), parent: u32) -> Vec<(u32, f64)> {
        let time = |x: u32| f64::from(x.abs_diff(parent)) + weight(self.rate, span, x).ln() / self.rate;
        let all: Vec<(u32, f64)> = (span.0..span.1).map(|x| (x, time(x))).collect();
        let best = all.iter().map(|x| x.1).fold(f64::INFINITY, f64::min);
        let good: Vec<_> = all.into_iter().map(|(x, t)| (x, t - best)).filter(|x| x.1 <= TOLERANCE).collect();
        let count = good.len().min(PLACES);
        (0..count).map(|i| good[i * (good.len() - 1) / (count - 1).max(1)]).collect()
    }

    /// Returns the cost in cycles of the better of an edge's two paths, and whether that path begins along the column.
    fn way(&self, edge: Edge) -> (f64, bool) {
        let cost = |columns_first: bool| {
            let mut sum = 0.0;
            links(self.grid, edge, columns_first, |l| {
                sum += match (self.loads[l] + 1).checked_sub(self.most() - spare_turns(self.trees)) {
                    None => 0.05,
                    Some(0) => 1.0,
                    Some(over) => 10.0 * f64::from(over),
                }
            });
            sum
        };
        let (rows, columns) = (cost(false), cost(true));
        (rows.min(columns), columns < rows)
    }

    /// Returns the free PE of a rectangle with the least cost as the top of its subtree; `inner` is true if the top
    /// gets several children.
    fn top(&self, tree: u32, rect: Rect, parent: u32, inner: bool) -> u32 {
        let (row, col) = self.grid.row_col(parent);
        let cost = |r: u32, c: u32, loss: f64| {
            poll();
            let pe = self.grid.pe(r, c);
            let fewer = (self.work[pe as usize] + self.children - 1).saturating_sub(self.most());
            let other = if (r + c) % self.trees == tree { 0.0 } else { DIAGONAL };
            let role = if inner { 10.0 * f64::from(fewer) + other } else { 0.0 };
            (loss + role + self.way(Edge { from: pe, to: parent }).0, pe)
        };
        let (rows, cols) = (self.places(rect.rows, row), self.places(rect.cols, col));
        let few = rows.iter().flat_map(|&(r, by_row)| cols.iter().map(move |&(c, by_col)| (r, c, by_row + by_col)));
        let all = rect.pes().map(|(r, c)| (r, c, f64::from(r.abs_diff(row) + c.abs_diff(col))));
        let free = |&(r, c, _): &(u32, u32, f64)| self.is_free(tree, r, c);
        let best = |places: &mut dyn Iterator<Item = (u32, u32, f64)>| {
            places.filter(free).map(|(r, c, loss)| cost(r, c, loss)).min_by(|a, b| a.0.total_cmp(&b.0))
        };
        let found = best(&mut few.into_iter()).or_else(|| best(&mut all.into_iter()));
        found.expect("the caller saw a free PE").1
    }

    fn is_free(&self, tree: u32, row: u32, col: u32) -> bool {
        self.parents[tree as usize][self.grid.pe(row, col) as usize] == NONE
    }

    /// Counts the PEs of a rectangle that are not in the tree yet, up to `most`.
    fn free(&self, tree: u32, rect: Rect, most: u32) -> u32 {
        narrow(rect.pes().filter(|&(r, c)| self.is_free(tree, r, c)).take(narrow(most)).count())
    }

    /// Cuts a rectangle below `top` into `parts` rectangles that take about equally long.
    fn cut(&self, rect: Rect, top: u32, parts: u32, into: &mut Vec<Rect>) {
        if parts <= 1 || rect.area() == 1 {
            into.push(rect);
            return;
        }
        let (row, col) = self.grid.row_col(top);
        let (by_rows, by_cols) = (weight(self.rate, rect.rows, row), weight(self.rate, rect.cols, col));
        let Rect { rows, cols } = rect;
        let across = (rows.0 + 1..rows.1).map(|cut| {
            let [upper, lower] = [(rows.0, cut), (cut, rows.1)];
            let weigh = |rows| (Rect { rows, ..rect }, weight(self.rate, rows, row) * by_cols);
            (weigh(upper), weigh(lower), rows.1 - rows.0)
        });
        let down = (cols.0 + 1..cols.1).map(|cut| {
            let [left, right] = [(cols.0, cut), (cut, cols.1)];
            let weigh = |cols| (Rect { cols, ..rect }, weight(self.rate, cols, col) * by_rows);
            (weigh(left), weigh(right), cols.1 - cols.0)
        });
        // If `parts` is odd, both assignments of the larger number of parts to a half are tried. Of equal cuts, the cut
        // across the longer side is chosen.
        let (more, fewer) = (parts.div_ceil(2), parts / 2);
        let shares = |(a, b, side)| [(a, more, b, fewer, side), (a, fewer, b, more, side)];
        let worst = |a: f64, m: u32, b: f64, n: u32| (a / f64::from(m)).max(b / f64::from(n)).ln();
        let time =
            |(a, m, b, n, _): &((Rect, f64), u32, (Rect, f64), u32, u32)| (worst(a.1, *m, b.1, *n) * 1e9).round();
        let best = across.chain(down).flat_map(shares).min_by(|x, y| time(x).total_cmp(&time(y)).then(y.4.cmp(&x.4)));
        let (a, m, b, n, _) = best.expect("more than one PE can be cut");
        self.cut(a.0, top, m, into);
        self.cut(b.0, top, n, into);
    }

    /// Adds the free PEs of a rectangle as one chain below `parent` if the chain ends in time; returns whether it was
    /// added.
    fn chain(&mut self, tree: u32, rect: Rect, parent: u32) -> bool {
        let Some(limit) = self.limit else { return false };
        let left = limit.saturating_sub(self.ends[tree as usize][parent as usize]);
        // Each further PE takes a message and a hop. The factor 2 allows for PEs that are in the tree already.
        if rect.area() > 64 && rect.area() > 2 * left / (self.message + 1) {
            return false;
        }
        let ways = (0..8).map(|turn| self.snake(tree, rect, turn));
        let timed = ways.map(|way| (self.time(&way, parent), way)).filter(|(time, _)| *time <= left);
        let Some((_, way)) = timed.min_by_key(|(time, _)| *time) else { return false };
        let mut last = parent;
        for pe in way {
            poll();
            self.join(tree, pe, last);
            last = pe;
        }
        true
    }

    /// Returns the free PEs of a rectangle in one of 8 orders: row by row or column by column, back and forth from a
    /// corner.
    fn snake(&self, tree: u32, rect: Rect, turn: u32) -> Vec<u32> {
        let by_rows = turn & 4 == 0;
        let (lines, places) = if by_rows { (rect.rows, rect.cols) } else { (rect.cols, rect.rows) };
        let mut way = Vec::new();
        for i in 0..lines.1 - lines.0 {
            let line = if turn & 1 == 0 { lines.0 + i } else { lines.1 - 1 - i };
            for j in 0..places.1 - places.0 {
                poll();
                let place = if (turn & 2 == 0) == (i % 2 == 0) { places.0 + j } else { places.1 - 1 - j };
                let (r, c) = if by_rows { (line, place) } else { (place, line) };
                if self.is_free(tree, r, c) {
                    way.push(self.grid.pe(r, c));
                }
            }
        }
        way
    }

    /// Returns the cycles of a chain below `parent`.
    fn time(&self, way: &[u32], parent: u32) -> u32 {
        let before = std::iter::once(&parent).chain(way);
        way.iter().zip(before).map(|(&pe, &last)| self.grid.distance(pe, last) + self.message).sum()
    }

    /// Adds a PE to a tree below `parent`.
    fn join(&mut self, tree: u32, pe: u32, parent: u32) {
        self.parents[tree as usize][pe as usize] = parent;
        let edge = Edge { from: pe, to: parent };
        let columns_first = self.way(edge).1;
        links(self.grid, edge, columns_first, |l| self.loads[l] += 1);
        let end = self.ends[tree as usize][parent as usize] + self.grid.distance(pe, parent) + self.message;
        self.ends[tree as usize][pe as usize] = end;
    }

    /// Grows all trees at once, large regions first, so that each tree avoids the long edges of the others.
    fn grow(mut self, root: u32) -> Vec<Tree> {
        let all = Rect { rows: (0, self.grid.rows), cols: (0, self.grid.cols) };
        let mut todo = BinaryHeap::new();
        let mut parts = Vec::new();
        for tree in 0..self.trees {
            self.parents[tree as usize][root as usize] = root;
            // If there are several trees, the root has one child in each, so it has less work than other PEs.
            self.cut(all, root, if self.trees == 1 { self.children } else { 1 }, &mut parts);
            todo.extend(parts.drain(..).map(|rect| (rect.area(), Reverse((tree, rect, root)))));
        }
        while let Some((_, Reverse((tree, rect, parent)))) = todo.pop() {
            check();
            let free = self.free(tree, rect, self.children + 1);
            if free == 0 || self.chain(tree, rect, parent) {
                continue;
            }
            let top = self.top(tree, rect, parent, free > 2);
            self.join(tree, top, parent);
            if free > 1 {
                let children = self.children.min(free - 1).min(self.most() + 1 - self.work[top as usize]);
                self.work[top as usize] += children - 1;
                self.cut(rect, top, children, &mut parts);
                todo.extend(parts.drain(..).map(|rect| (rect.area(), Reverse((tree, rect, top)))));
            }
        }
        self.parents.into_iter().map(Tree).collect()
    }
}

/// Returns the parameters `trees`, `children` and `chains`.
fn shape(params: &Params) -> Result<(u32, u32, u32), AlgorithmError> {
    let trees = params.number(INFO.name, "trees", 1..=4)?.unwrap_or(2);
    let children = params.number(INFO.name, "children", 2..=8)?.unwrap_or(2);
    Ok((trees, children, params.number(INFO.name, "chains", 0..=65_535)?.unwrap_or(0)))
}

pub fn trees(case: &Case, params: &Params) -> Result<Vec<Tree>, AlgorithmError> {
    let (trees, children, chains) = shape(params)?;
    let (grid, root) = (case.grid(), case.collective.root);
    let pes = narrow(grid.count());
    let (row, col) = grid.row_col(root);
    let farthest = row.max(grid.rows - 1 - row) + col.max(grid.cols - 1 - col);
    let wait = if chains == 0 { 0 } else { WAIT };
    let message = depth_cycles(case) + wait;
    let growth = Growth {
        grid,
        trees,
        children,
        rate: late(grid, children, chains > 0) * rate(children, case.depth_cycles().max(1.0) + f64::from(wait)),
        parents: vec![vec![NONE; pes]; trees as usize],
        work: vec![trees; pes],
        loads: vec![0; pes * 4],
        ends: vec![vec![0; pes]; trees as usize],
        message,
        limit: (chains > 0).then_some(farthest + chains),
    };
    Ok(growth.grow(root))
}

impl GridTrees for SlackTree {
    const INFO: Info = INFO;

    fn needs_corner(&self) -> bool {
        false
    }

    fn count(&self, _: &Case, params: &Params) -> Result<u32, AlgorithmError> {
        shape(params).map(|(trees, ..)| trees)
    }

    fn trees(&self, case: &Case, params: &Params) -> Result<Vec<Tree>, AlgorithmError> {
        trees(case, params)
    }

    /// Returns the elementary steps, as measured on up to 757 x 996 PEs. Most steps search for paths around full links;
    /// their number grows with the sides and falls with the children.
    fn growth_steps(&self, case: &Case, params: &Params) -> u128 {
        const A_PE: u128 = 20_000;
        const A_PE_BY_SIDE: u128 = 40;
        let (trees, children, _) = shape(params).unwrap_or((2, 2, 0));
        let a_pe = (A_PE + A_PE_BY_SIDE * u128::from(longer(case.grid()))) / u128::from(children);
        u128::from(trees) * u128::from(case.grid().count()) * a_pe
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let (wavelets, side) = (case.wavelets(), longer(case.grid()));
        let params = |(trees, children)| Params::new().with("trees", trees).with("children", children);
        let mut all = Vec::new();
        if wavelets <= LONGEST {
            all.extend([(1, 2), (1, 3), (1, 4), (2, 2)].map(params));
        } else if CHAINED.contains(&side) {
            all.push(params((4, 2)).with("chains", CHAINS));
        }
        // On longer grids three or four trees need more colors than a wafer has.
        if side <= 128 && 3 * wavelets <= LONGEST {
            all.push(params((3, 3)));
        }
        // With four trees, fewer elements of each tree wait for a chunk to fill, if PEs combine in chunks.
        if side <= 128 && wavelets <= 4 * LONGEST {
            all.push(params((4, 2)));
        }
        all
    }
}
