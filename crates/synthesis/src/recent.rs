//! The packings that the process found last.
//!
//! A [`crate::Fabric`] keeps its answers for one plan. A sweep over lengths plans on the same network again and again, each time
//! on a fabric of its own, and a packing does not depend on the length.

use std::{
    collections::VecDeque,
    sync::{Arc as Shared, Mutex, PoisonError},
};

use crate::{
    Graph, Ways,
    packing::{NoPacking, Packing, pack},
};

/// Packings that are kept. One takes at most a few megabytes, as [`crate::Fabric::packing`] limits ranks and links.
const MOST: usize = 16;

/// All that a packing depends on: the arguments of [`pack`].
#[derive(PartialEq)]
struct Question {
    graph: Graph,
    roots: Vec<u32>,
    depth: Option<u32>,
    enough: f64,
}

static FOUND: Mutex<VecDeque<(Question, Shared<Packing>)>> = Mutex::new(VecDeque::new());

/// Returns the packing of [`pack`] over the shortest ways, which is computed unless it was found lately.
///
/// # Errors
/// As [`pack`]. Errors are not kept.
pub(crate) fn packing(
    graph: &Graph,
    roots: Vec<u32>,
    depth: Option<u32>,
    enough: f64,
) -> Result<Shared<Packing>, NoPacking> {
    let lock = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let question = Question { graph: graph.clone(), roots, depth, enough };
    if let Some((_, found)) = lock().iter().find(|(asked, _)| *asked == question) {
        return Ok(Shared::clone(found));
    }
    let packing = Shared::new(pack(graph, &question.roots, Ways::Shortest, depth, enough)?);
    let mut found = lock();
    found.truncate(MOST - 1);
    found.push_front((question, Shared::clone(&packing)));
    Ok(packing)
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
    fn the_oldest_goes() {
        let graph = |rate: usize| line(6, 10 + rate as u64);
        let all: Vec<_> = (0..=MOST).map(|rate| packing(&graph(rate), vec![0], None, 0.0).unwrap()).collect();
        assert!(FOUND.lock().unwrap().len() <= MOST);
        let again = packing(&graph(MOST), vec![0], None, 0.0).unwrap();
        assert_eq!(again.time.to_bits(), all[MOST].time.to_bits());
    }
}
