//! The least cut into halves, where it is known.

use unisono_machine::network::{Cable, Plane, PlaneBuilder, Speed, cut};

const OWN: Speed = Speed { gbps: 100.0, latency_ns: 10.0 };

fn bisection_share(plane: &Plane, injection: u32) -> Option<f64> {
    cut::bisection_share(plane, OWN, f64::from(injection))
}

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

/// Two stars of two accelerators with links of 100, joined by one link of 50 and one of 25. The halves that are the
/// stars are joined by 75; accelerators of two stars in one half have a cut of 200. The injection of one half is 200.
#[test]
fn a_cut_adds_up_the_rates_of_its_links() {
    let mut stars = PlaneBuilder::new(4, 2, 0).unwrap();
    (0..4).for_each(|node| stars.cable(node, 4 + node / 2, Cable::Dac));
    for gbps in [50.0, 25.0] {
        let speed = stars.speed(Speed { gbps, ..OWN }).unwrap();
        stars.cable_at(4, 5, Cable::Aoc, speed);
    }
    assert_eq!(bisection_share(&stars.finish().unwrap(), 1), Some(0.375));
}

/// Rates that differ by 24 orders of magnitude: the slow link is not rounded away.
#[test]
fn the_slowest_link_counts() {
    let mut pair = PlaneBuilder::new(2, 1, 0).unwrap();
    let [fast, slow] = [1e15, 1e-9].map(|gbps| pair.speed(Speed { gbps, ..OWN }).unwrap());
    pair.cable_at(0, 2, Cable::Dac, fast);
    pair.cable_at(1, 2, Cable::Dac, slow);
    let found = bisection_share(&pair.finish().unwrap(), 1).unwrap();
    assert!((found / 1e-11 - 1.0).abs() < 1e-12, "{found}");
}
