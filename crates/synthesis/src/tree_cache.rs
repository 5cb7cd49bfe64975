//! A cache of the most recent packings, grown trees and timetables of the process.
//!
//! A [`crate::Fabric`] caches its results for one plan. A sweep over message lengths plans on the same network many
//! times, each time with a new fabric, and a plan after a failure begins with the forests of the network before. A key
//! consists of all arguments of a function, so the results are the same as in a new process.

use std::{
    collections::VecDeque,
    sync::{Arc as Shared, Mutex, PoisonError},
};

use crate::{
    Graph, Runs, Ways, arrivals,
    forest::Times,
    growth::{Growth, Known, grow},
    jobs::Sending,
    loads::Links,
    packing::{NoPacking, Packing, Tree, pack_both},
    replay::HostWork,
    root_trees::RootTrees,
    symmetry::Symmetry,
};

/// The maximum number of edges of all cached trees, for packings, grown trees, trees grown in time, and timetables
/// separately. An edge takes some hundred bytes, so the cache takes at most about 100 MB.
pub const MOST_EDGES: usize = 1 << 18;

/// A key of the cache.
trait Question: PartialEq {
    /// Returns an upper bound of the edges of all trees of the key and its answer.
    fn edges(&self) -> usize;
}

/// The arguments of [`pack_both`], [`grow`] or [`arrivals::grow`].
#[derive(PartialEq)]
pub struct OfTrees {
    graph: Graph,
    /// Set for grown trees only.
    symmetry: Option<Symmetry>,
    roots: Vec<u32>,
    depth: Option<u32>,
    /// For grown trees, the number of trees of each root.
    shares: Option<u32>,
    enough: f64,
    late: Vec<f64>,
    /// For packings in both directions, the opposite of each arc.
    back: Option<Vec<u32>>,
    /// The trees with which the growth begins.
    known: Known,
}

impl Question for OfTrees {
    /// Each root has `shares` trees or, in a packing, at most one tree for each arc.
    fn edges(&self) -> usize {
        let trees = self.shares.map_or(self.graph.arcs().len(), |shares| shares as usize);
        let known: usize = self.known.iter().map(Vec::len).sum();
        (self.roots.len() * trees + known) * self.graph.ranks() as usize
    }
}

/// The arguments of [`crate::Forest::times`].
#[derive(PartialEq)]
pub(crate) struct OfTimes {
    pub graph: Graph,
    pub trees: RootTrees,
    pub hop: f64,
    pub hops: Option<Vec<f64>>,
    pub sending: Option<Sending>,
    pub runs: Runs,
    pub sums: Option<f64>,
    pub work: Option<HostWork>,
}

impl Question for OfTimes {
    fn edges(&self) -> usize {
        self.trees.of.iter().map(Vec::len).sum::<usize>() * self.graph.ranks() as usize
    }
}

/// The cached answers, most recently used first.
pub struct Recent<Q, A>(Mutex<VecDeque<(Q, Shared<A>)>>);

pub static PACKINGS: Recent<OfTrees, Packing> = Recent(Mutex::new(VecDeque::new()));
static GROWTHS: Recent<OfTrees, Growth> = Recent(Mutex::new(VecDeque::new()));
static IN_TIME: Recent<OfTrees, Vec<Vec<Shared<Tree>>>> = Recent(Mutex::new(VecDeque::new()));
static TIMES: Recent<OfTimes, Times> = Recent(Mutex::new(VecDeque::new()));

#[expect(private_bounds, reason = "keys are made in this file only")]
impl<Q: Question, A> Recent<Q, A> {
    pub fn edges(&self) -> usize {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.iter().map(|(question, _)| question.edges()).sum()
    }

    fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the cached answer, or computes and caches it. An answer that exceeds [`MOST_EDGES`] alone is not cached,
    /// and neither is an error.
    fn answer<E>(&self, question: Q, find: impl FnOnce(&Q) -> Result<A, E>) -> Result<Shared<A>, E> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut found = lock();
            let at = found.iter().position(|(asked, _)| *asked == question);
            if let Some(recent) = at.and_then(|at| found.remove(at)) {
                let answer = Shared::clone(&recent.1);
                found.push_front(recent);
                return Ok(answer);
            }
        }
        let answer = Shared::new(find(&question)?);
        if question.edges() > MOST_EDGES {
            return Ok(answer);
        }
        let mut found = lock();
        found.push_front((question, Shared::clone(&answer)));
        let mut edges = 0;
        found.retain(|(question, _)| {
            edges += question.edges();
            edges <= MOST_EDGES
        });
        Ok(answer)
    }
}

/// Empties the cache, as in a new process.
pub fn forget() {
    PACKINGS.forget();
    GROWTHS.forget();
    IN_TIME.forget();
    TIMES.forget();
}

/// Returns the packing of [`pack_both`] along shortest paths.
///
/// # Errors
/// Returns the errors of [`pack_both`].
pub fn packing(
    graph: &Graph,
    roots: Vec<u32>,
    depth: Option<u32>,
    (enough, back): (f64, Option<Vec<u32>>),
) -> Result<Shared<Packing>, NoPacking> {
    let (graph, late, known) = (graph.clone(), Vec::new(), Known::new());
    let question = OfTrees { graph, symmetry: None, roots, depth, shares: None, enough, late, back, known };
    PACKINGS.answer(question, |q| pack_both(&q.graph, &q.roots, Ways::Shortest, (depth, q.back.as_deref()), enough))
}

/// Returns the trees of [`grow`] along shortest paths.
///
/// # Errors
/// Returns the errors of [`grow`].
pub fn growth(
    links: &Links,
    roots: Vec<u32>,
    depth: Option<u32>,
    shares: u32,
    enough: f64,
    known: Known,
) -> Result<Shared<Growth>, NoPacking> {
    let question = grown(links, links.late, (roots, depth), shares, enough, known);
    GROWTHS.answer(question, |q| grow(links, &q.roots, Ways::Shortest, depth, shares, enough, &q.known))
}

/// Returns the trees of [`arrivals::grow`].
pub(crate) fn in_time(
    links: &Links,
    hops: &[f64],
    roots: &[u32],
    depth: Option<u32>,
    known: &[Vec<Shared<Tree>>],
    end: f64,
) -> Vec<Vec<Shared<Tree>>> {
    let of_root = |own: &Vec<Shared<Tree>>| own.iter().cloned().map(Some).collect();
    let shares = known.first().map_or(0, |own| unisono_base::narrow(own.len()));
    let known_trees = known.iter().map(of_root).collect();
    let question = grown(links, hops, (roots.to_vec(), depth), shares, end, known_trees);
    let find = |_: &OfTrees| Ok::<_, std::convert::Infallible>(arrivals::grow(links, hops, roots, depth, known, end));
    let Ok(found) = IN_TIME.answer(question, find);
    found.to_vec()
}

fn grown(
    links: &Links,
    late: &[f64],
    (roots, depth): (Vec<u32>, Option<u32>),
    shares: u32,
    enough: f64,
    known: Known,
) -> OfTrees {
    let (graph, symmetry, late) = (links.graph.clone(), Some(links.symmetry.clone()), late.to_vec());
    OfTrees { graph, symmetry, roots, depth, shares: Some(shares), enough, late, back: None, known }
}

/// Returns the timetable that `find` computes.
pub(crate) fn times(question: OfTimes, find: impl FnOnce() -> Times) -> Shared<Times> {
    let Ok(found) = TIMES.answer(question, |_| Ok::<_, std::convert::Infallible>(find()));
    found
}
