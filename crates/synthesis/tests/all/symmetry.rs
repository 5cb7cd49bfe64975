//! Tests of `symmetry`.

use crate::common::cluster;

use rustc_hash::FxHashMap;
use unisono_base::narrow;
use unisono_synthesis::{Graph, internals::symmetry::Symmetry};

/// Checks that every shift keeps the rate and the class of every arc, and that all ranks are images of representatives.
fn check(graph: &Graph, found: &Symmetry) {
    let known: FxHashMap<(u32, u32), (u32, u64)> =
        (0..).zip(graph.arcs()).map(|(at, arc)| ((arc.from, arc.to), (at, arc.rate))).collect();
    let mut uses = vec![0.0; graph.arcs().len()];
    for shift in 0..found.shifts() {
        for (at, arc) in (0..).zip(graph.arcs()) {
            let (image, rate) = known[&(found.moved(arc.from, shift), found.moved(arc.to, shift))];
            assert_eq!((rate, found.class(image)), (arc.rate, found.class(at)));
        }
        // The first arc of each class represents a tree.
        for class in 0..narrow::<u32>(found.classes()) {
            let at = found.classes.iter().position(|&c| c == class).unwrap();
            let arc = graph.arcs()[at];
            uses[known[&(found.moved(arc.from, shift), found.moved(arc.to, shift))].0 as usize] += 1.0;
        }
    }
    for (at, uses) in (0..).zip(uses) {
        assert_eq!(uses, f64::from(found.stay[found.class(at) as usize]));
    }
    for rank in 0..graph.ranks() {
        let (home, shift) = found.home(rank);
        assert_eq!(found.moved(home, shift), rank);
        assert!(found.representatives().contains(&home));
    }
    assert_eq!(found.representatives().len() as u32 * found.shifts(), graph.ranks());
}

#[test]
fn boxes_and_their_ranks_are_alike() {
    for (boxes, each) in [(2, 4), (3, 8), (5, 1), (1, 6)] {
        let graph = cluster(boxes, each);
        let found = Symmetry::find(&graph, &[boxes, each]);
        assert_eq!(found.shifts(), graph.ranks());
        check(&graph, &found);
        let along = Symmetry::find(&graph, &[graph.ranks()]);
        check(&graph, &along);
        check(&graph, &Symmetry::none(&graph));
    }
}

#[test]
fn what_is_not_alike_has_no_shifts() {
    let whole = cluster(3, 4);
    for lost in 0..whole.arcs().len() {
        let arcs = whole.arcs().iter().enumerate().filter(|&(at, _)| at != lost).map(|(_, arc)| *arc);
        let graph = Graph::new(whole.ranks(), whole.nodes(), arcs);
        check(&graph, &Symmetry::find(&graph, &[3, 4]));
        assert!(Symmetry::find(&graph, &[3, 4]).shifts() < 12);
    }
    assert_eq!(Symmetry::find(&whole, &[5]).shifts(), 1);
}
