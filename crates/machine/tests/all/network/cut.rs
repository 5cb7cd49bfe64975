//! The least cut into halves, where it is known.

use unisono_machine::network::{Cable, PlaneBuilder, cut::bisection_share};

#[test]
fn rings_cliques_and_stars_are_cut_as_known() {
    for n in [2_u32, 4, 8, 12] {
        let mut ring = PlaneBuilder::new(n, 0, 0).unwrap();
        (0..n).for_each(|node| ring.cable(node, (node + 1) % n, Cable::Aoc));
        let mut clique = PlaneBuilder::new(n, 0, 0).unwrap();
        (0..n).for_each(|a| (a + 1..n).for_each(|b| clique.cable(a, b, Cable::Aoc)));
        let mut star = PlaneBuilder::new(n, 1, 0).unwrap();
        (0..n).for_each(|node| star.cable(node, n, Cable::Dac));
        // Two links of a ring; half times half of a clique; the links of one half of a star.
        let half = f64::from(n / 2);
        assert_eq!(bisection_share(&ring.finish().unwrap(), 1), Some(2.0 / half));
        assert_eq!(bisection_share(&clique.finish().unwrap(), 1), Some(half));
        assert_eq!(bisection_share(&star.finish().unwrap(), 1), Some(1.0));
    }
}

#[test]
fn what_has_no_halves_or_too_many_is_not_cut() {
    assert_eq!(bisection_share(&PlaneBuilder::new(3, 0, 0).unwrap().finish().unwrap(), 1), None);
    assert_eq!(bisection_share(&PlaneBuilder::new(18, 0, 0).unwrap().finish().unwrap(), 1), None);
}
