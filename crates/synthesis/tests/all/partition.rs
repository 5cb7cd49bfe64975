//! Tests of `partition`.

use unisono_synthesis::{
    Arc, Graph,
    partition::{Partition, Parts, largest},
};

fn largest_of(graph: &Graph, computes: impl Fn(u32) -> bool) -> Option<Partition> {
    largest(&Parts::by_rates(graph, computes))
}

#[test]
fn boxes_that_slow_links_join_are_parts() {
    // Three boxes of four ranks, each with a fast relay, and a slow link from each box to a relay between the boxes.
    let mut arcs = Vec::new();
    for node in 0..3 {
        let ranks = (0..4).map(|rank| (4 * node + rank, 12 + node, 100));
        for (a, b, rate) in ranks.chain([(12 + node, 15, 10)]) {
            arcs.extend([Arc { from: a, to: b, rate }, Arc { from: b, to: a, rate }]);
        }
    }
    let graph = Graph::new(12, 16, arcs);
    // Rates are in units of 10.
    assert_eq!(largest_of(&graph, |_| false), Some(Partition { parts: 3, rate: 3 }));
    // The switches of boxes may compute sums, the switch between boxes may not.
    assert_eq!(largest_of(&graph, |relay| relay < 15), Some(Partition { parts: 3, rate: 3 }));
    assert_eq!(largest_of(&graph, |relay| relay == 15), None);
}

#[test]
fn among_equal_links_each_rank_is_a_part() {
    let ring = (0..6).flat_map(|r| [(r, (r + 1) % 6), ((r + 1) % 6, r)]);
    let graph = Graph::new(6, 6, ring.map(|(from, to)| Arc { from, to, rate: 7 }));
    assert_eq!(largest_of(&graph, |_| false), Some(Partition { parts: 6, rate: 12 }));
}
