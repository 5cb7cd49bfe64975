//! Tests of `scatter`.

use crate::common::torus;

use proptest::prelude::*;
use unisono_synthesis::{
    Fabric, Graph, Hop, Roots, Runs, Scatter, Ways,
    internals::{
        grower::Grower,
        scatter::{Trees, batches},
    },
};

/// Checks that every tree reaches every rank once, along paths of relays, and that the time is that of the busiest arc.
fn check(graph: &Graph, scatter: &Scatter) {
    let mut load = vec![0.0; graph.arcs().len()];
    let Trees::RootTrees(trees) = &scatter.trees else { panic!("trees of all ranks") };
    assert_eq!(trees.len(), scatter.roots.list(graph.ranks()).len() * scatter.chunks as usize);
    for tree in trees {
        let mut below = vec![0; graph.ranks() as usize];
        let mut has: Vec<bool> = (0..graph.ranks()).map(|rank| rank == tree.root).collect();
        for Hop { edge, blocks } in &tree.hops {
            assert!(has[edge.from as usize] && !std::mem::replace(&mut has[edge.to as usize], true));
            below[edge.to as usize] = *blocks;
            let mut at = edge.from;
            for &arc in &edge.way {
                assert!(at == edge.from || at >= graph.ranks());
                assert_eq!(graph.arcs()[arc as usize].from, at);
                at = graph.arcs()[arc as usize].to;
                load[arc as usize] += f64::from(*blocks);
            }
            assert_eq!(at, edge.to);
        }
        assert!(has.into_iter().all(|h| h));
        // The blocks of a hop are those of the next ranks in the list.
        for (at, hop) in tree.hops.iter().enumerate() {
            let children = tree.hops.iter().filter(|other| other.edge.from == hop.edge.to);
            assert_eq!(hop.blocks, 1 + children.map(|child| child.blocks).sum::<u32>());
            assert!(at + hop.blocks as usize <= tree.hops.len());
        }
    }
    let busy = graph.arcs().iter().zip(load).map(|(arc, load)| load / arc.rate as f64).fold(0.0, f64::max);
    assert!((busy / f64::from(scatter.chunks) - scatter.time).abs() < 1e-9 * scatter.time);
}

/// Checks that every message uses as few links as any path between its ends, through relays and ranks.
fn check_shortest(graph: &Graph, scatter: &Scatter) {
    let Trees::RootTrees(trees) = &scatter.trees else { panic!("trees of all ranks") };
    let links = |from: u32, to: u32| {
        let mut distance = vec![usize::MAX; graph.nodes() as usize];
        distance[from as usize] = 0;
        let mut queue = std::collections::VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for &arc in graph.leaving(at) {
                let next = graph.arcs()[arc as usize].to;
                if distance[next as usize] == usize::MAX {
                    distance[next as usize] = distance[at as usize] + 1;
                    queue.push_back(next);
                }
            }
        }
        distance[to as usize]
    };
    for edge in trees.iter().flat_map(|tree| &tree.hops).map(|hop| &hop.edge) {
        assert_eq!(edge.way.len(), links(edge.from, edge.to), "{} to {}", edge.from, edge.to);
    }
}

#[test]
fn messages_are_cut_at_every_batch() {
    assert_eq!(batches(3, 6, 4).collect::<Vec<_>>(), [(3, 1), (4, 4), (8, 1)]);
    assert_eq!(batches(3, 6, 100).collect::<Vec<_>>(), [(3, 6)]);
}

/// The blocks of one root leave the root evenly on all of its links, and end when the root has sent them.
#[test]
fn trees_of_one_root_load_its_links_evenly() {
    for (dims, chunks) in [(&[4_u32, 4][..], 4), (&[5, 7], 2), (&[8, 8], 1), (&[4, 4, 4], 1), (&[32, 32], 1)] {
        let graph = torus(dims);
        let fabric = Fabric::new(graph.clone(), dims, 0.0);
        let links = 2 * dims.len() as u32;
        for root in [0, graph.ranks() - 2] {
            let scatter = fabric.scatter(Roots::One(root), chunks).unwrap();
            check(&graph, &scatter);
            check_shortest(&graph, &scatter);
            let blocks = (graph.ranks() - 1) * chunks;
            let rate = graph.arcs()[graph.leaving(root)[0] as usize].rate as f64;
            let least = f64::from(blocks.div_ceil(links)) / rate;
            let time = scatter.time * f64::from(chunks);
            assert!(time < least + 1.0 / rate + 1e-9, "{dims:?} {root}: {time} {least}");
            for runs in [Runs::Down, Runs::Up] {
                let end = scatter.end(&graph, 1, 0.0, runs, None).0;
                assert!(end < least + 4.0 / rate, "{dims:?} {runs:?}: {end} {least}");
            }
        }
    }
}

#[test]
fn tori_end_with_their_bound() {
    for dims in [&[8_u32, 4][..], &[5, 7], &[2, 4, 8], &[8, 8], &[16, 16], &[8, 8, 8], &[32, 32]] {
        let graph = torus(dims);
        let fabric = Fabric::new(graph.clone(), dims, 0.0);
        let scatter = fabric.scatter(Roots::All, 1).unwrap();
        let bound = fabric.concurrent_flow().unwrap().time();
        assert!((scatter.time / bound - 1.0).abs() < 1e-9, "{dims:?} {} {bound}", scatter.time);
        let end = scatter.end(&graph, 16, 0.0, Runs::Down, None).0;
        assert!(end < 1.01 * bound, "{dims:?} {end} {bound}");
    }
    // The same result is found without the symmetry.
    let graph = torus(&[8, 4]);
    let fabric = Fabric::new(graph.clone(), &[], 0.0);
    let scatter = fabric.scatter(Roots::All, 4).unwrap();
    check(&graph, &scatter);
    assert!(scatter.time < 1.02 * fabric.concurrent_flow().unwrap().time());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::soak::cases(200)))]
    #[test]
    fn trees_come_near_the_bound(
        ranks in 2_u32..7,
        relays in 0_u32..3,
        cables in prop::collection::vec((0_u32..9, 0_u32..9, 1_u64..9), 1..20),
    ) {
        let graph = crate::common::drawn(ranks, relays, cables);
        let fabric = Fabric::new(graph.clone(), &[], 0.0);
        let flow = fabric.concurrent_flow().unwrap();
        // If trees may use any paths, the time is near the bound. If trees must use the paths of the network, trees
        // exist.
        let any = Grower::new(&graph, None, &flow.prices, flow.time(), Ways::Any).scatter(64).unwrap();
        check(&graph, &any);
        prop_assert!(any.time >= flow.time() * (1.0 - 1e-9));
        prop_assert!(any.time < 1.1 * flow.time(), "{} {}", any.time, flow.time());
        let shortest = fabric.scatter(Roots::All, 3).unwrap();
        check(&graph, &shortest);
        check_shortest(&graph, &shortest);
        prop_assert!(shortest.time >= flow.time() * (1.0 - 1e-9));
        let messages = shortest.timetable(&graph, 2, 0.0, Runs::Down);
        prop_assert!(shortest.end(&graph, 2, 0.0, Runs::Down, None).0 >= 3.0 * shortest.time * (1.0 - 1e-9));
        let blocks: u32 = messages.iter().map(|m| m.blocks).sum();
        let hops = (0..ranks).flat_map(|root| (0..3).map(move |chunk| (root, chunk)));
        let all: u32 = hops.flat_map(|(root, chunk)| shortest.hops(root, chunk)).map(|hop| hop.blocks).sum();
        prop_assert_eq!(blocks, all);
    }
}
