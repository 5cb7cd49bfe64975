//! The packings and grown trees that the process found last.
//!
//! A [`crate::Fabric`] keeps its answers for one plan. A sweep over lengths plans on the same network again and again,
//! each time on a fabric of its own, and trees do not depend on the length.

use std::{
    collections::VecDeque,
    sync::{Arc as Shared, Mutex, PoisonError},
};

use crate::{
    Graph, Ways,
    growth::{Growth, grow},
    loads::Links,
    packing::{NoPacking, Packing, pack_both},
    symmetry::Symmetry,
};

/// Edges of all trees that are kept of packings, and of growths. One takes some hundred bytes.
pub const MOST_EDGES: usize = 1 << 18;

/// All that trees depend on: the arguments of [`pack_both`] and [`grow`].
#[derive(PartialEq)]
struct Question {
    graph: Graph,
    /// Of grown trees.
    symmetry: Option<Shared<Symmetry>>,
    roots: Vec<u32>,
    depth: Option<u32>,
    /// Of grown trees.
    shares: Option<u32>,
    enough: f64,
    late: Vec<f64>,
    /// Of packings whose trees run both ways.
    back: Option<Vec<u32>>,
}

impl Question {
    /// The edges of all trees of an answer, where each root has `trees` or, in a packing, up to one for each arc.
    fn edges(&self) -> usize {
        let trees = self.shares.map_or(self.graph.arcs().len(), |shares| shares as usize);
        self.roots.len() * trees * self.graph.ranks() as usize
    }
}

/// Answers, the newest first.
pub struct Recent<A>(Mutex<VecDeque<(Question, Shared<A>)>>);

pub static PACKINGS: Recent<Packing> = Recent(Mutex::new(VecDeque::new()));
static GROWTHS: Recent<Growth> = Recent(Mutex::new(VecDeque::new()));

impl<A> Recent<A> {
    /// Returns the edges of all answers that are kept.
    pub fn edges(&self) -> usize {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.iter().map(|(question, _)| question.edges()).sum()
    }

    /// Computes the answer, unless it was found lately. Errors are not kept.
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

/// Returns the packing of [`pack_both`] over the shortest ways.
///
/// # Errors
/// As [`pack`].
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

/// Returns the trees of [`grow`] over the shortest ways.
///
/// # Errors
/// As [`grow`].
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
        grow(&links, &q.roots, Ways::Shortest, depth, shares, enough)
    })
}
