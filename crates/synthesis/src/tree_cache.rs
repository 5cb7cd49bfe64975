//! A cache of the most recent packings and grown trees of the process.
//!
//! A [`crate::Fabric`] caches its results for one plan. A sweep over message lengths plans on the same network many
//! times, each time with a new fabric, and trees do not depend on the length.

use std::{
    collections::VecDeque,
    sync::{Arc as Shared, Mutex, PoisonError},
};

use crate::{
    Graph, Ways,
    growth::{Growth, Known, grow},
    loads::Links,
    packing::{NoPacking, Packing, pack_both},
    symmetry::Symmetry,
};

/// The most edges of all cached trees, for packings and for grown trees separately. An edge takes some hundred bytes.
pub const MOST_EDGES: usize = 1 << 18;

/// The key of the cache: the arguments of [`pack_both`] or [`grow`], which determine trees.
#[derive(PartialEq)]
struct Question {
    graph: Graph,
    /// Set for grown trees only.
    symmetry: Option<Shared<Symmetry>>,
    roots: Vec<u32>,
    depth: Option<u32>,
    /// For grown trees, the number of trees of each root.
    shares: Option<u32>,
    enough: f64,
    late: Vec<f64>,
    /// For packings in both directions, the opposite of each arc.
    back: Option<Vec<u32>>,
}

impl Question {
    /// Returns an upper bound of the edges of all trees of the answer: each root has `shares` trees or, in a packing,
    /// at most one tree for each arc.
    fn edges(&self) -> usize {
        let trees = self.shares.map_or(self.graph.arcs().len(), |shares| shares as usize);
        self.roots.len() * trees * self.graph.ranks() as usize
    }
}

/// The cached answers, newest first.
pub struct Recent<A>(Mutex<VecDeque<(Question, Shared<A>)>>);

pub static PACKINGS: Recent<Packing> = Recent(Mutex::new(VecDeque::new()));
static GROWTHS: Recent<Growth> = Recent(Mutex::new(VecDeque::new()));

impl<A> Recent<A> {
    pub fn edges(&self) -> usize {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.iter().map(|(question, _)| question.edges()).sum()
    }

    /// Returns the cached answer, or computes and caches it. Errors are not cached.
    fn answer<E>(&self, question: Question, find: impl FnOnce(&Question) -> Result<A, E>) -> Result<Shared<A>, E> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = lock().iter().find(|(asked, _)| *asked == question) {
            return Ok(Shared::clone(found));
        }
        let answer = Shared::new(find(&question)?);
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
    let question =
        Question { graph: graph.clone(), symmetry: None, roots, depth, shares: None, enough, late: Vec::new(), back };
    PACKINGS.answer(question, |q| pack_both(&q.graph, &q.roots, Ways::Shortest, (depth, q.back.as_deref()), enough))
}

/// Returns the trees of [`grow`] along shortest paths.
///
/// # Errors
/// Returns the errors of [`grow`].
pub fn growth(
    graph: &Graph,
    symmetry: &Shared<Symmetry>,
    roots: Vec<u32>,
    depth: Option<u32>,
    shares: u32,
    enough: f64,
    late: &[f64],
) -> Result<Shared<Growth>, NoPacking> {
    let shifts = Some(Shared::clone(symmetry));
    let (graph, shares, late) = (graph.clone(), Some(shares), late.to_vec());
    let question = Question { graph, symmetry: shifts, roots, depth, shares, enough, late, back: None };
    GROWTHS.answer(question, |q| {
        let shares = q.shares.unwrap_or(1);
        let links = Links { graph: &q.graph, symmetry, late: &q.late };
        grow(&links, &q.roots, Ways::Shortest, depth, shares, enough, &Known::new())
    })
}
