//! Tests of `spanning`.

use unisono_base::narrow;
use unisono_synthesis::{Arc, Graph, Role, SpanningTrees, internals::spanning::spanning};

fn cables(of: &[(u32, u32, u64)]) -> Vec<Arc> {
    of.iter().flat_map(|&(a, b, rate)| [Arc { from: a, to: b, rate }, Arc { from: b, to: a, rate }]).collect()
}

fn roles(graph: &Graph, relays: Role) -> Vec<Role> {
    (0..graph.nodes()).map(|node| if node < graph.ranks() { Role::Rank } else { relays }).collect()
}

/// Checks that each tree contains all ranks, every edge is an arc, and nodes that only forward have two links.
fn check(graph: &Graph, roles: &[Role], found: &SpanningTrees) {
    let mut load = vec![0.0; graph.arcs().len()];
    for tree in &found.trees {
        let mut links = vec![0; graph.nodes() as usize];
        for (at, &node) in tree.nodes.iter().enumerate().skip(1) {
            assert!((tree.parents[at] as usize) < at);
            let above = tree.nodes[tree.parents[at] as usize];
            for (from, to) in [(above, node), (node, above)] {
                let arc = graph.arcs().iter().position(|arc| (arc.from, arc.to) == (from, to)).unwrap();
                load[arc] += 1.0 / found.trees.len() as f64 / graph.arcs()[arc].rate as f64;
            }
            links[node as usize] += 1;
            links[above as usize] += 1;
        }
        let mut sorted = tree.nodes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), tree.nodes.len());
        assert!((0..graph.ranks()).all(|rank| sorted.binary_search(&rank).is_ok()));
        for &node in &sorted {
            assert!(roles[node as usize] != Role::Closed);
            assert!(roles[node as usize] == Role::Rank || links[node as usize] > 1);
            assert!(roles[node as usize] != Role::Forwards || links[node as usize] == 2);
        }
    }
    let busiest = load.iter().copied().fold(0.0, f64::max);
    assert!((busiest - found.time).abs() < 1e-9 * busiest.max(1.0), "{busiest} {}", found.time);
}

#[test]
fn a_star_is_rooted_at_its_switch() {
    let graph = Graph::new(4, 5, cables(&[(0, 4, 3), (1, 4, 3), (2, 4, 3), (3, 4, 3)]));
    let roles = roles(&graph, Role::Joins);
    let found = spanning(&graph, &roles, None, 1).unwrap();
    check(&graph, &roles, &found);
    assert_eq!((found.trees[0].nodes[0], found.trees[0].depth), (4, 1));
    let from_rank = spanning(&graph, &roles, Some(2), 1).unwrap();
    assert_eq!((from_rank.trees[0].nodes[0], from_rank.trees[0].depth), (2, 2));
}

#[test]
fn trees_share_equal_switches_evenly() {
    let of: Vec<_> = (0..8).flat_map(|rank| (8..12).map(move |switch| (rank, switch, 1))).collect();
    let graph = Graph::new(8, 12, cables(&of));
    let roles = roles(&graph, Role::Joins);
    let found = spanning(&graph, &roles, None, 4).unwrap();
    check(&graph, &roles, &found);
    assert!((found.time - 0.25).abs() < 1e-12);
}

#[test]
fn switches_that_only_forward_join_two_links() {
    // Ranks 0 to 3 reach each other only through forwarding switches; a chain exists.
    let graph = Graph::new(4, 7, cables(&[(0, 4, 1), (4, 1, 1), (1, 5, 1), (5, 2, 1), (2, 6, 1), (6, 3, 1)]));
    let roles = roles(&graph, Role::Forwards);
    let found = spanning(&graph, &roles, None, 1).unwrap();
    check(&graph, &roles, &found);
    // A star of ranks around one forwarding switch has no tree of more than two ranks.
    let star = Graph::new(3, 4, cables(&[(0, 3, 1), (1, 3, 1), (2, 3, 1)]));
    assert!(spanning(&star, &[Role::Rank, Role::Rank, Role::Rank, Role::Forwards], None, 1).is_none());
}

#[test]
fn random_networks_have_valid_trees() {
    let mut numbers = unisono_base::Random(7);
    let mut random = move |below: u64| numbers.below(below);
    let mut found = 0;
    for _ in 0..300 {
        let (ranks, switches) = (2 + random(6), random(5));
        let nodes = narrow::<u32>(ranks + switches);
        let links: Vec<_> = (0..nodes)
            .flat_map(|a| (a + 1..nodes).map(move |b| (a, b)))
            .map(|(a, b)| (a, b, random(3) + random(3)))
            .filter(|&(_, _, rate)| rate > 0)
            .collect();
        let graph = Graph::new(narrow(ranks), nodes, cables(&links));
        let kinds = [Role::Joins, Role::Forwards, Role::Closed];
        let roles: Vec<Role> = (0..nodes)
            .map(|node| if u64::from(node) < ranks { Role::Rank } else { kinds[random(3) as usize] })
            .collect();
        for count in [1, 3] {
            if let Some(trees) = spanning(&graph, &roles, None, count) {
                check(&graph, &roles, &trees);
                found += 1;
            }
        }
    }
    assert!(found > 300, "{found}");
}

/// Ranks 0 and 1 are at switch 4. Switch 3 has more links, but to accelerators that are in no tree.
#[test]
fn trees_begin_at_a_switch_of_the_ranks() {
    let others = [(5, 3, 1), (6, 3, 1), (7, 3, 1), (7, 4, 1)];
    let graph = Graph::new(2, 8, cables(&[&[(0, 4, 1), (1, 4, 1)], &others[..]].concat()));
    let mut roles = roles(&graph, Role::Closed);
    (roles[3], roles[4]) = (Role::Joins, Role::Joins);
    let found = spanning(&graph, &roles, None, 1).unwrap();
    check(&graph, &roles, &found);
    let mut nodes = found.trees[0].nodes.clone();
    nodes.sort_unstable();
    assert_eq!(nodes, [0, 1, 4]);
}
