//! Chooses the paths of all edges so that no link carries much more than other links.
//!
//! First every edge goes along its row or its column first: a local search lowers the sum of the eighth powers of all
//! link loads, which is close to the largest load and still reflects every change. A link with more streams than the
//! busiest PE has operations would limit the rate, so edges are then rerouted around such links, with four or more
//! trees also around links with equally many.

use std::{cmp::Reverse, collections::BinaryHeap};

use unisono_base::{
    interrupt::{check, poll},
    narrow,
};
use unisono_lower::{Route, Segment};
use unisono_machine::{Direction, Grid};

use super::{
    Edge, Tree,
    emit::{loaded, pace},
};
use crate::Case;

/// The paths of all edges of a forest, in the order of its streams. The index of a link is 4 x (PE that it leaves) +
/// (its direction).
pub struct Ways {
    grid: Grid,
    edges: Vec<Edge>,
    columns_first: Vec<bool>,
    /// The links of each edge that was rerouted; empty for other edges.
    around: Vec<Vec<usize>>,
}

impl Ways {
    pub fn of(case: &Case, trees: &[Tree]) -> Self {
        let edges: Vec<Edge> = loaded(case, trees).flat_map(|(tree, _)| tree.edges()).collect();
        let mut loads = vec![0u16; narrow::<usize>(case.grid().count()) * 4];
        let columns_first = along_columns_first(case.grid(), &edges, &mut loads);
        let around = vec![Vec::new(); edges.len()];
        let mut ways = Self { grid: case.grid(), edges, columns_first, around };
        ways.relieve(loads, pace(trees).saturating_sub(narrow(spare_turns(narrow(trees.len())))).max(1));
        ways
    }

    /// Calls `visit` with every link on the path of an edge.
    pub fn links(&self, edge: usize, visit: impl FnMut(usize)) {
        if self.around[edge].is_empty() {
            links(self.grid, self.edges[edge], self.columns_first[edge], visit);
        } else {
            self.around[edge].iter().copied().for_each(visit);
        }
    }

    /// Returns the index and the route of each edge whose route is not [`Route::Xy`].
    pub fn routes(&self) -> impl Iterator<Item = (usize, Route)> {
        (0..self.edges.len()).filter_map(|edge| {
            let around = &self.around[edge];
            let route = if around.is_empty() { Route::Yx } else { Route::Path(segments(around)) };
            (self.columns_first[edge] || !around.is_empty()).then_some((edge, route))
        })
    }

    /// Reroutes edges around links with more than `most` streams, and around routers with more than [`ROUTER`]. `links`
    /// holds the number of streams of each link. In each of at most [`NEGOTIATIONS`] passes, links and routers that are
    /// still too full become more expensive for all edges. In the end, only edges without another path use them (the
    /// negotiation of McMurchie and Ebeling, "PathFinder", FPGA 1995).
    fn relieve(&mut self, links: Vec<u16>, most: u16) {
        let pes = links.len() / 4;
        let (mut loads, mut dear) = (links, vec![0u32; 5 * pes]);
        // The array holds the loads of all links, then those of all routers. At a router, only edges that cross or
        // start there count, because the end of an edge cannot change.
        loads.resize(5 * pes, 0);
        for edge in 0..self.edges.len() {
            poll();
            self.links(edge, |l| loads[4 * pes + l / 4] += 1);
        }
        let limit = |at: usize| if at < 4 * pes { most } else { ROUTER };
        for pass in 1..=NEGOTIATIONS {
            let mut full = false;
            for edge in 0..self.edges.len() {
                poll();
                let mut over = false;
                self.links(edge, |l| over |= [l, 4 * pes + l / 4].iter().any(|&at| loads[at] > limit(at)));
                if over {
                    // The interrupt is polled here, because the search for another path takes up to milliseconds.
                    check();
                    full = true;
                    self.links(edge, |l| [l, 4 * pes + l / 4].iter().for_each(|&at| loads[at] -= 1));
                    let price = |at: usize| dear[at] + pass * u32::from((loads[at] + 1).saturating_sub(limit(at)));
                    let cost = |l: usize| 1 + price(l) + price(4 * pes + l / 4);
                    self.around[edge] = cheapest(self.grid, self.edges[edge], cost);
                    self.links(edge, |l| [l, 4 * pes + l / 4].iter().for_each(|&at| loads[at] += 1));
                }
            }
            if !full {
                break;
            }
            (0..).zip(&mut dear).for_each(|(at, d)| *d += u32::from(loads[at].saturating_sub(limit(at))));
        }
    }
}

/// Returns the number of cycles in which a link must stay free in each round, which moves one element of every tree: 1
/// from four trees on, otherwise 0. Streams of four trees wait for each other at links that are busy in every cycle.
/// With a free cycle, four slack trees on 112 x 112 PEs take 1006 cycles for 512 elements instead of 1069, and 488 for
/// 128 elements instead of 496.
pub fn spare_turns(trees: u32) -> u32 {
    u32::from(trees > 3)
}

/// The hops by which a path may leave the rectangle between its ends; more hops do not help.
const ROOM: u32 = 4;

/// The most streams that may cross or start at a router; each needs its own color there.
const ROUTER: u16 = 10;

/// The most passes of rerouting; most links are below their limits after a few.
const NEGOTIATIONS: u32 = 16;

/// The most passes of the local search over all edges; loads change little after a few.
const PASSES: u32 = 6;

/// Returns for each edge whether it goes along the column first. `loads` must be zero, and becomes the number of
/// streams on each link.
fn along_columns_first(grid: Grid, edges: &[Edge], loads: &mut [u16]) -> Vec<bool> {
    let mut columns = vec![false; edges.len()];
    for &edge in edges {
        poll();
        links(grid, edge, false, |l| loads[l] = loads[l].saturating_add(1));
    }
    // The cost of one more stream on a link, indexed by the load of the link.
    let costs: Vec<f64> =
        (0..=u16::MAX).map(|l| f64::from(l + u16::from(l < u16::MAX)).powi(8) - f64::from(l).powi(8)).collect();
    for _ in 0..PASSES {
        let mut changed = false;
        for (edge, columns) in edges.iter().zip(&mut columns) {
            poll();
            let ((r0, c0), (r1, c1)) = (grid.row_col(edge.from), grid.row_col(edge.to));
            if r0 == r1 || c0 == c1 {
                continue;
            }
            links(grid, *edge, *columns, |l| loads[l] -= 1);
            let cost = |first: bool| {
                let mut sum = 0.0;
                links(grid, *edge, first, |l| sum += costs[usize::from(loads[l])]);
                sum
            };
            let better = cost(!*columns) < cost(*columns);
            changed |= better;
            *columns ^= better;
            links(grid, *edge, *columns, |l| loads[l] += 1);
        }
        if !changed {
            break;
        }
    }
    columns
}

/// Calls `visit` with every link of the path of an edge that goes first along its row, or along its column if
/// `columns_first`.
pub fn links(grid: Grid, edge: Edge, columns_first: bool, mut visit: impl FnMut(usize)) {
    let ((r0, c0), (r1, c1)) = (grid.row_col(edge.from), grid.row_col(edge.to));
    let mut leg = |row: u32, col: u32, direction: Direction, hops: u32| {
        let mut pe = grid.pe(row, col);
        for hop in 0..hops {
            visit(pe as usize * 4 + direction.index());
            if hop + 1 < hops {
                pe = grid.step(pe, direction, 1);
            }
        }
    };
    let across = if c1 < c0 { Direction::West } else { Direction::East };
    let along = if r1 < r0 { Direction::North } else { Direction::South };
    if columns_first {
        leg(r0, c0, along, r0.abs_diff(r1));
        leg(r1, c0, across, c0.abs_diff(c1));
    } else {
        leg(r0, c0, across, c0.abs_diff(c1));
        leg(r0, c1, along, r0.abs_diff(r1));
    }
}

/// Returns the links of the path of least cost, from its start, among paths that leave the rectangle between its ends
/// by at most [`ROOM`] hops (A*); each hop costs at least one.
fn cheapest(grid: Grid, edge: Edge, cost: impl Fn(usize) -> u32) -> Vec<usize> {
    let ((r0, c0), (r1, c1)) = (grid.row_col(edge.from), grid.row_col(edge.to));
    let (top, left) = (r0.min(r1).saturating_sub(ROOM), c0.min(c1).saturating_sub(ROOM));
    let (bottom, right) = ((r0.max(r1) + ROOM).min(grid.rows - 1), (c0.max(c1) + ROOM).min(grid.cols - 1));
    // Returns the index of a PE in the rectangle that is searched.
    let place = |pe: u32| {
        let (r, c) = grid.row_col(pe);
        let inside = (top..=bottom).contains(&r) && (left..=right).contains(&c);
        inside.then(|| ((r - top) * (right - left + 1) + c - left) as usize)
    };
    // The least cost found for each PE of the rectangle, and the link by which the path reaches the PE.
    let mut least = vec![(u32::MAX, usize::MAX); ((bottom - top + 1) * (right - left + 1)) as usize];
    let mut todo = BinaryHeap::from([(Reverse(0), 0, edge.from)]);
    while let Some((_, spent, pe)) = todo.pop() {
        if pe == edge.to {
            break;
        }
        poll();
        if place(pe).is_some_and(|at| least[at].0 < spent) {
            continue;
        }
        for direction in Direction::ALL.into_iter().filter(|&d| grid.room(pe, d) > 0) {
            let (next, link) = (grid.step(pe, direction, 1), pe as usize * 4 + direction.index());
            let sum = spent + cost(link);
            if let Some(at) = place(next)
                && next != edge.from
                && sum < least[at].0
            {
                least[at] = (sum, link);
                todo.push((Reverse(sum + grid.distance(next, edge.to)), sum, next));
            }
        }
    }
    let mut way = Vec::new();
    let mut at = edge.to;
    while at != edge.from {
        let link = place(at).map_or(usize::MAX, |place| least[place].1);
        way.push(link);
        at = narrow(link / 4);
    }
    way.reverse();
    way
}

/// Joins consecutive links to straight segments.
fn segments(way: &[usize]) -> Vec<Segment> {
    let straight = way.chunk_by(|a, b| a % 4 == b % 4);
    let segment =
        |s: &[usize]| Segment { from: narrow(s[0] / 4), direction: Direction::ALL[s[0] % 4], hops: narrow(s.len()) };
    straight.map(segment).collect()
}
