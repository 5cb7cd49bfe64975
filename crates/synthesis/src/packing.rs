//! Packings: forests whose trees carry shares of their root's block, such that the busiest link ends earliest.
//!
//! The shares solve a linear program with one variable for each tree:
//!
//!   minimise T, subject to: the shares of each root's trees sum to 1, and each arc carries at most T times its rate.
//!
//! It has too many trees to list, so columns are generated (Dantzig and Wolfe, 1960). Its dual has a price p for each
//! arc and a value z for each root: maximise the sum of z, subject to: the sum of rate times price is 1, and z of a
//! root is at most the price of each of its trees. The program therefore needs a further tree if some tree is cheaper
//! than z at the present prices; the cheapest tree is an arborescence of cheapest paths between ranks. Prices are mixed
//! with those of the best bound so far (Wentges, 1997), which takes far fewer rounds.

use std::sync::Arc as Shared;

use microlp::{ComparisonOp, OptimizationDirection, Problem, Solution, SolveOutcome};
use rustc_hash::FxHashMap;
use unisono_base::interrupt;

use crate::{Graph, Way, Ways, pricing::Pricing};

/// A message from one rank to another through relays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
    pub way: Way,
}

/// A tree that brings its root's data to every rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    pub root: u32,
    /// The edges, each after the one that reaches its start.
    pub edges: Vec<Edge>,
    /// The maximum number of edges from the root to a rank.
    pub depth: u32,
}

/// Trees with the fraction of their root's block that each carries.
#[derive(Clone, Debug)]
pub struct Packing {
    pub trees: Vec<(Shared<Tree>, f64)>,
    /// The busy time of the busiest arc for blocks of one unit.
    pub time: f64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoPacking {
    /// Some rank is more edges from a root than the depth allows, or cannot be reached from it.
    Unreachable,
    /// The solver of linear programs failed, with its message.
    Solver(String),
}

/// The maximum number of rounds; after them, the best packing of the trees so far is returned.
const MOST_ROUNDS: usize = 400;
/// The weight of the best bound's prices in the mix, from 0 to 1.
const SMOOTHING: f64 = 0.3;
/// The search ends if the time fell by less than this fraction in [`SLOW_ROUNDS`] rounds.
const SLOW: f64 = 2e-3;
const SLOW_ROUNDS: usize = 40;
/// The number of rounds for which a tree is kept that the best packing does not use.
const KEPT_ROUNDS: usize = 2;
/// The relative difference in time up to which shares are equally good.
const EQUAL: f64 = 1e-4;
/// The relative difference of times, and the share of trees, that are ignored.
const CLOSE: f64 = 1e-8;

/// A tree as a column of the linear program.
struct Column {
    tree: Shared<Tree>,
    /// The arcs of the tree, each with the number of uses.
    load: Vec<(u32, f64)>,
}

impl Column {
    /// Creates a column. If the tree is used in both directions, `back` holds the opposite arc of each arc.
    fn new(tree: Shared<Tree>, back: Option<&[u32]>) -> Self {
        let mut load: FxHashMap<u32, f64> = FxHashMap::default();
        for &arc in tree.edges.iter().flat_map(|edge| &edge.way) {
            *load.entry(arc).or_default() += 1.0;
            if let Some(back) = back {
                *load.entry(back[arc as usize]).or_default() += 1.0;
            }
        }
        let mut load: Vec<(u32, f64)> = load.into_iter().collect();
        load.sort_unstable_by_key(|&(arc, _)| arc);
        Self { tree, load }
    }

    fn price(&self, prices: &[f64]) -> f64 {
        self.load.iter().map(|&(arc, times)| times * prices[arc as usize]).sum()
    }
}

/// Packs trees with at most `depth` edges from the root to a rank, or any number. Ends as soon as the time is at most
/// `enough`.
///
/// # Errors
/// Returns an error if some rank cannot be reached within the depth, or the solver fails.
pub fn pack(graph: &Graph, roots: &[u32], ways: Ways, depth: Option<u32>, enough: f64) -> Result<Packing, NoPacking> {
    pack_both(graph, roots, ways, (depth, None), enough)
}

/// Packs trees as [`pack`] does. If `back` is given, the opposite of each arc, each tree also loads the arcs opposite
/// to its own.
///
/// # Errors
/// Returns the errors of [`pack`].
pub fn pack_both(
    graph: &Graph,
    roots: &[u32],
    ways: Ways,
    (depth, back): (Option<u32>, Option<&[u32]>),
    enough: f64,
) -> Result<Packing, NoPacking> {
    if roots.is_empty() || graph.ranks() < 2 {
        return Ok(Packing { trees: Vec::new(), time: 0.0 });
    }
    let mut master = Master::new(graph, roots, back);
    let mut pricing = Pricing::new(graph, ways, depth);
    let mut best_bound = (0.0, master.prices.clone());
    let mut exact = false;
    let mut times = Vec::new();
    for _ in 0..MOST_ROUNDS {
        interrupt::check();
        let mixed = |(old, new): (&f64, &f64)| SMOOTHING * old + (1.0 - SMOOTHING) * new;
        let prices: Vec<f64> =
            if exact { master.prices.clone() } else { best_bound.1.iter().zip(&master.prices).map(mixed).collect() };
        match back {
            Some(back) => {
                let both = |(&price, &back): (&f64, &u32)| price + prices[back as usize];
                pricing.reprice(&prices.iter().zip(back).map(both).collect::<Vec<_>>());
            }
            None => pricing.reprice(&prices),
        }
        let (mut found, mut bound) = (0, 0.0);
        for (at, &root) in roots.iter().enumerate() {
            let (tree, least) = pricing.tree(root)?;
            bound += least;
            found += usize::from(master.offer(at, tree));
        }
        if bound > best_bound.0 {
            best_bound = (bound, prices);
        }
        if found == 0 {
            // At the program's exact prices no tree is cheaper, so the optimum of the program is the optimum over all
            // trees.
            if exact {
                break;
            }
            exact = true;
            continue;
        }
        exact = false;
        let time = master.solve()?;
        if time <= enough * (1.0 + CLOSE) {
            break;
        }
        // Trees are removed only after the time has fallen. Otherwise the same trees could be removed and added
        // forever.
        if times.last().is_none_or(|&last| time < last * (1.0 - CLOSE)) {
            master.forget();
        }
        times.push(time);
        if let Some(&before) = times.iter().rev().nth(SLOW_ROUNDS)
            && time > before * (1.0 - SLOW)
        {
            break;
        }
    }
    master.shares()
}

/// The linear program of the trees found so far, in its dual form: a new tree is a new constraint.
struct Master<'a> {
    graph: &'a Graph,
    roots: &'a [u32],
    /// The opposite arc of each arc, if trees are used in both directions.
    back: Option<&'a [u32]>,
    /// Each tree, with the index of its root in `roots`.
    columns: Vec<(usize, Column)>,
    /// The largest rate of the graph.
    scale: f64,
    /// The present price of each arc.
    prices: Vec<f64>,
    /// The present value of each of `roots`.
    values: Vec<f64>,
    /// The present solution, from which the next solution starts, and the number of columns in it.
    solved: Option<(Solution, usize)>,
}

impl<'a> Master<'a> {
    fn new(graph: &'a Graph, roots: &'a [u32], back: Option<&'a [u32]>) -> Self {
        let scale = scale(graph);
        let arcs = graph.arcs().len() as f64;
        let prices = graph.arcs().iter().map(|arc| scale / arc.rate as f64 / arcs).collect();
        Self {
            graph,
            roots,
            back,
            columns: Vec::new(),
            scale,
            prices,
            values: vec![f64::INFINITY; roots.len()],
            solved: None,
        }
    }

    /// Adds a tree if it is cheaper than the value of its root; returns whether it was added.
    fn offer(&mut self, at: usize, tree: Tree) -> bool {
        let column = Column::new(Shared::new(tree), self.back);
        let cheaper = column.price(&self.prices) < self.values[at] * (1.0 - 1e-9) - 1e-9;
        if cheaper {
            self.columns.push((at, column));
        }
        cheaper
    }

    fn rate(&self, arc: usize) -> f64 {
        self.graph.arcs()[arc].rate as f64 / self.scale
    }

    /// If the program has many trees, removes the trees whose price is above the value of their root, except the newest
    /// trees. A removed tree that is needed later is generated again.
    fn forget(&mut self) {
        if self.columns.len() <= 2 * (self.prices.len() + self.roots.len()) {
            return;
        }
        self.solved = None;
        let Self { columns, prices, values, .. } = self;
        let new = columns.len() - KEPT_ROUNDS * self.roots.len();
        let mut at = 0;
        columns.retain(|(root, column)| {
            at += 1;
            at > new || is_tight(column.price(prices), values[*root])
        });
    }

    /// Solves the program for prices and values. Returns the time of the best packing of the trees so far.
    fn solve(&mut self) -> Result<f64, NoPacking> {
        let (arcs, roots) = (self.prices.len(), self.roots.len());
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let prices: Vec<_> = (0..arcs).map(|_| problem.add_var(0.0, (0.0, f64::INFINITY))).collect();
        let values: Vec<_> = (0..roots).map(|_| problem.add_var(1.0, (f64::NEG_INFINITY, f64::INFINITY))).collect();
        let row = |(at, column): &(usize, Column)| {
            let mut row: Vec<_> = column.load.iter().map(|&(arc, times)| (prices[arc as usize], -times)).collect();
            row.push((values[*at], 1.0));
            row
        };
        let solution = match self.solved.take() {
            Some((mut solution, rows)) => {
                for column in &self.columns[rows..] {
                    solution = optimum(solution.add_constraint(&row(column)[..], ComparisonOp::Le, 0.0))?;
                }
                solution
            }
            None => {
                let all: Vec<_> = prices.iter().enumerate().map(|(arc, &price)| (price, self.rate(arc))).collect();
                problem.add_constraint(&all[..], ComparisonOp::Eq, 1.0);
                for column in &self.columns {
                    problem.add_constraint(&row(column)[..], ComparisonOp::Le, 0.0);
                }
                optimum(problem.solve())?
            }
        };
        self.prices = prices.iter().map(|&price| solution.var_value(price).max(0.0)).collect();
        self.values = values.iter().map(|&value| solution.var_value(value)).collect();
        let time = solution.objective() / self.scale;
        self.solved = Some((solution, self.columns.len()));
        Ok(time)
    }

    /// Returns the best packing of those trees whose price is at most the value of their root.
    fn shares(self) -> Result<Packing, NoPacking> {
        let tight = |(at, column): &&(usize, Column)| is_tight(column.price(&self.prices), self.values[*at]);
        let kept: Vec<&(usize, Column)> = self.columns.iter().filter(tight).collect();
        shares(self.graph, self.roots.len(), &kept)
    }
}

/// Returns the best packing of the given trees of one root.
///
/// # Errors
/// Returns an error if the solver fails.
pub(crate) fn of_trees(graph: &Graph, trees: &[Shared<Tree>]) -> Result<Packing, NoPacking> {
    let mut different: Vec<&Shared<Tree>> = Vec::new();
    for tree in trees {
        if !different.contains(&tree) {
            different.push(tree);
        }
    }
    let columns: Vec<_> = different.into_iter().map(|tree| (0, Column::new(Shared::clone(tree), None))).collect();
    shares(graph, 1, &columns.iter().collect::<Vec<_>>())
}

/// Solves the primal program: the best shares of the trees `kept`, each with the index of its root. Among equally good
/// shares, the solution has the least total busy time of links, because messages then wait less.
fn shares(graph: &Graph, roots: usize, kept: &[&(usize, Column)]) -> Result<Packing, NoPacking> {
    let scale = scale(graph);
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let time = problem.add_var(1.0, (0.0, f64::INFINITY));
    let busy = |&(arc, times): &(u32, f64)| times * scale / graph.arcs()[arc as usize].rate as f64;
    let all = |(_, column): &&(usize, Column)| column.load.iter().map(busy).sum::<f64>();
    let weight = EQUAL / graph.arcs().len() as f64;
    let shares: Vec<_> =
        kept.iter().map(|column| problem.add_var(weight * all(column), (0.0, f64::INFINITY))).collect();
    let mut of_root = vec![Vec::new(); roots];
    let mut of_arc = vec![Vec::new(); graph.arcs().len()];
    for ((at, column), &share) in kept.iter().zip(&shares) {
        of_root[*at].push((share, 1.0));
        column.load.iter().for_each(|&(arc, times)| of_arc[arc as usize].push((share, times)));
    }
    for row in &of_root {
        problem.add_constraint(&row[..], ComparisonOp::Eq, 1.0);
    }
    for (arc, mut row) in graph.arcs().iter().zip(of_arc).filter(|(_, row)| !row.is_empty()) {
        row.push((time, -(arc.rate as f64 / scale)));
        problem.add_constraint(&row[..], ComparisonOp::Le, 0.0);
    }
    let solution = optimum(problem.solve())?;
    let share = |((_, column), share): (&&(usize, Column), _)| {
        (Shared::clone(&column.tree), solution.var_value(share).max(0.0))
    };
    let trees = kept.iter().zip(shares).map(share).filter(|&(_, share)| share > CLOSE).collect();
    Ok(Packing { trees, time: solution.var_value(time) / scale })
}

/// Returns the largest rate; rates are divided by it to be near 1 for the solver.
fn scale(graph: &Graph) -> f64 {
    graph.arcs().iter().map(|arc| arc.rate as f64).fold(1.0, f64::max)
}

/// Returns whether the price of a tree is at most the value of its root, so that the best packing may use it.
fn is_tight(price: f64, value: f64) -> bool {
    price <= value + 1e-6 * value.abs().max(1e-3)
}

pub(crate) fn optimum(outcome: Result<SolveOutcome, microlp::Error>) -> Result<Solution, NoPacking> {
    let outcome = outcome.map_err(|e| NoPacking::Solver(e.to_string()))?;
    outcome.into_solution().map_err(|_| NoPacking::Solver("it stopped before a solution".to_owned()))
}
