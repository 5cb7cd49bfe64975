//! Tests of `tree_cache`.

use std::sync::{Arc as Shared, Mutex, PoisonError};

use unisono_synthesis::{
    Arc, Graph, Roots, Runs,
    internals::{
        loads::Links,
        symmetry::Symmetry,
        tree_cache::{MOST_EDGES, PACKINGS, forget, growth, packing},
    },
};

/// Tests lock this mutex if they expect an answer in the cache, or empty the cache.
static CACHE: Mutex<()> = Mutex::new(());

fn line(ranks: u32, rate: u64) -> Graph {
    let arcs = (1..ranks).flat_map(|r| [(r - 1, r), (r, r - 1)]);
    // Only the ratio of the first link to all others depends on `rate`, because graphs divide rates by a common factor.
    Graph::new(ranks, ranks, arcs.map(|(from, to)| Arc { from, to, rate: if from + to == 1 { 2 * rate } else { 1 } }))
}

#[test]
fn equal_questions_get_one_packing_and_others_their_own() {
    let _alone = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let ask = |graph: &Graph, root: u32, depth| packing(graph, vec![root], depth, (0.0, None)).unwrap();
    let first = ask(&line(5, 1), 0, None);
    assert!(Shared::ptr_eq(&first, &ask(&line(5, 1), 0, None)));
    for other in [ask(&line(5, 3), 0, None), ask(&line(5, 1), 1, None), ask(&line(5, 1), 0, Some(4))] {
        assert!(!Shared::ptr_eq(&first, &other));
    }
    assert!(first.trees.iter().all(|(tree, _)| tree.root == 0));
    assert!(packing(&line(5, 1), vec![0], Some(3), (0.0, None)).is_err());
}

#[test]
fn growths_are_told_apart_by_their_shares() {
    let _alone = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let graph = line(7, 5);
    let links = Links { graph: &graph, symmetry: &Symmetry::none(&graph), late: &[] };
    let ask = |shares| growth(&links, vec![0], None, shares, 0.0, Vec::new()).unwrap();
    let first = ask(3);
    assert_eq!(first.trees[0].len(), 3);
    assert!(Shared::ptr_eq(&first, &ask(3)));
    assert_eq!(ask(4).trees[0].len(), 4);
}

#[test]
fn the_oldest_goes() {
    let graph = |rate: usize| line(64, 10 + rate as u64);
    // The maximum number of packings of a line that are cached.
    let most = MOST_EDGES / (64 * 2 * 63);
    let ask = |rate| packing(&graph(rate), vec![0], None, (0.0, None)).unwrap();
    let all: Vec<_> = (0..=most).map(ask).collect();
    let kept = PACKINGS.edges();
    assert!(kept <= MOST_EDGES);
    assert_eq!(ask(most).time.to_bits(), all[most].time.to_bits());
}

/// Some nodes of the networks failed. Their forests and timetables, with several directions, sizes and numbers of
/// chunks, are equal with an empty cache and with a cache that has the answers to all questions and to similar
/// questions.
#[test]
fn answers_are_those_of_a_new_process() {
    let _alone = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut draws = unisono_base::mix(7);
    let mut below = |most: u64| {
        draws = unisono_base::mix(draws);
        draws % most
    };
    for (whole, dims) in [(crate::common::cluster(3, 4), [3, 4]), (crate::common::cluster(5, 4), [5, 4])] {
        let latency = |at: u64| 300.0 + (at % 3) as f64 * 800.0;
        let questions: Vec<_> = (0..5)
            .map(|_| {
                let lost = u32::try_from(below(u64::from(whole.ranks()))).unwrap();
                let chunks = [1, 2, 4][usize::try_from(below(3)).unwrap()];
                let runs = [Runs::Up, Runs::Down][usize::try_from(below(2)).unwrap()];
                (lost, chunks, 64 << (4 * below(4)), runs, below(3))
            })
            .collect();
        let answer = |&(lost, chunks, bytes, runs, turn): &(u32, u32, u64, Runs, u64)| {
            let fabric = crate::fabric::failed(&whole, &dims, &[lost], &[], true);
            let arcs = fabric.graph().arcs().to_vec();
            let latencies = arcs.iter().map(|arc| ((arc.from, arc.to), latency(u64::from(arc.from + arc.to) + turn)));
            fabric.with_latencies(latencies).with_hosts(0.01, 0.0).messages(Roots::All, None, chunks, bytes, runs)
        };
        let cold: Vec<_> = questions.iter().map(|one| (forget(), answer(one)).1).collect();
        assert!(cold.iter().all(Result::is_ok));
        let warm = || questions.iter().map(answer).collect::<Vec<_>>();
        std::thread::scope(|threads| {
            let found = [threads.spawn(warm), threads.spawn(warm)];
            found.into_iter().for_each(|found| assert_eq!(found.join().unwrap(), cold));
        });
        assert_eq!(warm(), cold);
    }
}
