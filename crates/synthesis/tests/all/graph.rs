//! Tests of `graph`.

use unisono_machine::network::{Cable, PlaneBuilder};
use unisono_synthesis::{Arc, Graph};

fn pair(gbps: &[f64]) -> Graph {
    let mut builder = PlaneBuilder::new(2, 0, gbps.len() as u64).unwrap();
    for _ in gbps {
        builder.cable(0, 1, Cable::Dac);
    }
    Graph::of_plane(&builder.finish().unwrap(), &[0, 1], 1, |link| gbps[link as usize % gbps.len()])
}

fn gbps(graph: &Graph, at: usize) -> f64 {
    graph.arcs()[at].rate as f64 * graph.bytes_per_ns() * 8.0
}

#[test]
fn whole_kilobits_are_exact_and_have_the_largest_unit() {
    for rate in [31.2, 12.345_678, 100.0, 0.000_001] {
        let graph = pair(&[rate]);
        assert_eq!(graph.arcs()[0].rate, 1);
        assert_eq!(graph.bytes_per_ns(), (rate * 1e6).round() / 8e6);
    }
}

#[test]
fn rates_are_never_too_low_and_hardly_too_high() {
    let sets: [&[f64]; 6] = [&[1e-9], &[1.4e-6], &[1e15; 3], &[1e15, 1e-9], &[400.0 / 3.0, 25.0], &[1e9; 20_000]];
    for set in sets {
        let (found, given) = (gbps(&pair(set), 0), set.iter().sum::<f64>());
        assert!(found >= given * (1.0 - 1e-12) && found <= given * (1.0 + 1e-12), "{found:e} {given:e}");
    }
}

fn cables(of: &[(u32, u32, u64)]) -> impl Iterator<Item = Arc> {
    of.iter().flat_map(|&(a, b, rate)| [Arc { from: a, to: b, rate }, Arc { from: b, to: a, rate }])
}

/// Returns ranks 0, 1 and 2 in a line, a relay between 0 and 2, and a longer path from 0 to 2 through two more relays.
fn line_and_relays() -> Graph {
    Graph::new(3, 6, cables(&[(0, 1, 6), (1, 2, 6), (0, 3, 4), (3, 2, 4), (0, 4, 2), (4, 5, 2), (5, 2, 2)]))
}

#[test]
fn ways_that_a_rank_shares_are_not_of_relays_alone() {
    // From 0 to 2, the path through rank 1 is as short as that through relay 3.
    assert_eq!(line_and_relays().reached(0), [false, true, false]);
    let graph = Graph::new(2, 4, cables(&[(0, 2, 1), (2, 1, 1), (0, 3, 1), (3, 1, 1)]));
    assert_eq!(graph.reached(0), [false, true]);
}

#[test]
fn without_relays_all_arcs_are_used() {
    let graph = Graph::new(4, 4, cables(&[(0, 1, 6), (1, 2, 2), (0, 2, 4), (2, 3, 2)]));
    assert_eq!(graph.routed(), graph);
    // An additional relay without a connection to the ranks, so that paths are searched.
    let arcs = cables(&[(0, 1, 6), (1, 2, 2), (0, 2, 4), (2, 3, 2), (4, 5, 2)]);
    let routed = Graph::new(4, 6, arcs).routed();
    assert_eq!((routed.nodes(), routed.arcs()), (4, graph.arcs()));
}

#[test]
fn what_messages_do_not_use_is_left_out() {
    let whole = line_and_relays();
    let routed = whole.routed();
    assert_eq!((routed.ranks(), routed.nodes(), routed.arcs().len()), (3, 3, 4));
    // Rates keep the unit of the whole graph.
    assert_eq!(routed.arcs().iter().map(|arc| arc.rate).collect::<Vec<_>>(), [3; 4]);
    assert!((routed.bytes_per_ns() - whole.bytes_per_ns()).abs() < 1e-15);
    let graph = Graph::new(2, 5, cables(&[(0, 3, 4), (3, 1, 4), (0, 2, 2), (2, 4, 2), (4, 1, 2)]));
    let routed = graph.routed();
    assert_eq!((routed.nodes(), routed.place(2), routed.arcs().len()), (3, 3, 4));
}
