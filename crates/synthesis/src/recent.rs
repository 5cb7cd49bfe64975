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
    packing::{NoPacking, Packing, pack},
    symmetry::Symmetry,
};

/// Edges of all trees that are kept of packings, and of growths. One takes some hundred bytes.
const MOST_EDGES: usize = 1 << 18;

/// All that trees depend on: the arguments of [`pack`] and [`grow`].
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
}

impl Question {
    /// The edges of all trees of an answer, where each root has `trees` or, in a packing, up to one for each arc.
    fn edges(&self) -> usize {
        let trees = self.shares.map_or(self.graph.arcs().len(), |shares| shares as usize);
        self.roots.len() * trees * self.graph.ranks() as usize
    }
}

/// Answers, the newest first.
struct Recent<A>(Mutex<VecDeque<(Question, Shared<A>)>>);

static PACKINGS: Recent<Packing> = Recent(Mutex::new(VecDeque::new()));
static GROWTHS: Recent<Growth> = Recent(Mutex::new(VecDeque::new()));

impl<A> Recent<A> {
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

/// Returns the packing of [`pack`] over the shortest ways.
///
/// # Errors
/// As [`pack`].
pub(crate) fn packing(
    graph: &Graph,
    roots: Vec<u32>,
    depth: Option<u32>,
    enough: f64,
) -> Result<Shared<Packing>, NoPacking> {
    let question =
        Question { graph: graph.clone(), symmetry: None, roots, depth, shares: None, enough, late: Vec::new() };
    PACKINGS.answer(question, |q| pack(&q.graph, &q.roots, Ways::Shortest, depth, enough))
}

/// Returns the trees of [`grow`] over the shortest ways.
///
/// # Errors
/// As [`grow`].
pub(crate) fn growth(
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
    let question = Question { graph, symmetry: shifts, roots, depth, shares, enough, late };
    GROWTHS.answer(question, |q| {
        let shares = q.shares.unwrap_or(1);
        let links = Links { graph: &q.graph, symmetry, late: &q.late };
        grow(&links, &q.roots, Ways::Shortest, depth, shares, enough)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arc;

    fn line(ranks: u32, rate: u64) -> Graph {
        let arcs = (1..ranks).flat_map(|r| [(r - 1, r), (r, r - 1)]);
        // The first link is twice as fast, so that rates keep their ratio.
        Graph::new(
            ranks,
            ranks,
            arcs.map(|(from, to)| Arc { from, to, rate: if from + to == 1 { 2 * rate } else { 1 } }),
        )
    }

    #[test]
    fn equal_questions_get_one_packing_and_others_their_own() {
        let ask = |graph: &Graph, root: u32, depth| packing(graph, vec![root], depth, 0.0).unwrap();
        let first = ask(&line(5, 1), 0, None);
        assert!(Shared::ptr_eq(&first, &ask(&line(5, 1), 0, None)));
        for other in [ask(&line(5, 3), 0, None), ask(&line(5, 1), 1, None), ask(&line(5, 1), 0, Some(4))] {
            assert!(!Shared::ptr_eq(&first, &other));
        }
        assert!(first.trees.iter().all(|(tree, _)| tree.root == 0));
        assert!(packing(&line(5, 1), vec![0], Some(3), 0.0).is_err());
    }

    #[test]
    fn growths_are_told_apart_by_their_shares() {
        let graph = line(7, 5);
        let still = Shared::new(Symmetry::none(&graph));
        let ask = |shares| growth(&graph, &still, vec![0], None, shares, 0.0, &[]).unwrap();
        let first = ask(3);
        assert_eq!(first.trees[0].len(), 3);
        assert!(Shared::ptr_eq(&first, &ask(3)));
        assert_eq!(ask(4).trees[0].len(), 4);
    }

    #[test]
    fn the_oldest_goes() {
        let graph = |rate: usize| line(64, 10 + rate as u64);
        // A packing of a line has at most so many edges.
        let most = MOST_EDGES / (64 * 2 * 63);
        let ask = |rate| packing(&graph(rate), vec![0], None, 0.0).unwrap();
        let all: Vec<_> = (0..=most).map(ask).collect();
        let kept = PACKINGS.0.lock().unwrap().iter().map(|(question, _)| question.edges()).sum::<usize>();
        assert!(kept <= MOST_EDGES);
        assert_eq!(ask(most).time.to_bits(), all[most].time.to_bits());
    }
}
