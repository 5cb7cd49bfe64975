//! The least cut into halves, for planes whose least cut is known.

use unisono_machine::network::{Cable, Plane, PlaneBuilder, Speed, cut};

use crate::network::oracle;

const OWN: Speed = Speed { gbps: 100.0, latency_ns: 10.0 };

fn bisection_share(plane: &Plane, injection: u32) -> Option<f64> {
    let half = plane.accelerators() / 2;
    Some(cut::least(plane, OWN, half)? / f64::from(injection * half))
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
        // The cut crosses two links of a ring, half times half links of a clique, and the links of one half of a star.
        let half = f64::from(n / 2);
        assert_eq!(bisection_share(&ring.finish().unwrap(), 1), Some(2.0 / half));
        assert_eq!(bisection_share(&clique.finish().unwrap(), 1), Some(half));
        assert_eq!(bisection_share(&star.finish().unwrap(), 1), Some(1.0));
    }
}

#[test]
fn what_has_no_halves_or_too_many_is_not_cut() {
    assert_eq!(bisection_share(&PlaneBuilder::new(1, 0, 0).unwrap().finish().unwrap(), 1), None);
    assert_eq!(bisection_share(&PlaneBuilder::new(18, 0, 0).unwrap().finish().unwrap(), 1), None);
}

/// Two stars of two accelerators with links of 100 Gb/s are joined by links of 50 and 25. If the halves are the stars,
/// the cut is 75; if each half has accelerators of both stars, it is 200. The injection of a half is 200.
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

/// Rates differ by 24 orders of magnitude, and the slow link is not rounded away.
#[test]
fn the_slowest_link_counts() {
    let mut pair = PlaneBuilder::new(2, 1, 0).unwrap();
    let [fast, slow] = [1e15, 1e-9].map(|gbps| pair.speed(Speed { gbps, ..OWN }).unwrap());
    pair.cable_at(0, 2, Cable::Dac, fast);
    pair.cable_at(1, 2, Cable::Dac, slow);
    let found = bisection_share(&pair.finish().unwrap(), 1).unwrap();
    assert!((found / 1e-11 - 1.0).abs() < 1e-12, "{found}");
}

/// The cuts that families state exist in the plane, for all sizes, so the bound `bisection` is valid.
#[test]
fn stated_cuts_are_cuts_of_the_plane() {
    let mut texts = Vec::new();
    for (accelerators, down, up) in [(5, 8, 2), (8, 8, 2), (9, 4, 2), (10, 4, 1), (11, 3, 2), (7, 4, 6)] {
        let sizes = format!("accelerators = {accelerators}\ndown = {down}\nup = {up}");
        texts.extend([2, 3].map(|levels| format!("name = 'fattree'\nlevels = {levels}\n{sizes}")));
    }
    for (p, a, h, g) in
        [(1, 1, 1, 2), (2, 1, 1, 1), (1, 3, 1, 3), (2, 3, 1, 1), (2, 2, 1, 3), (1, 2, 2, 5), (3, 2, 1, 2)]
    {
        texts.push(format!("name = 'dragonfly'\np = {p}\na = {a}\nh = {h}\ng = {g}"));
    }
    for (dims, terminals, gbps) in
        [("[3]", 2, 400), ("[2, 3]", 1, 50), ("[5]", 2, 800), ("[3, 3]", 1, 400), ("[2]", 3, 10)]
    {
        texts.push(format!("name = 'hyperx'\ndims = {dims}\nterminals = {terminals}\nterminal_gbps = {gbps}"));
    }
    for (board, boards) in
        [("[1, 1]", "[1, 3]"), ("[1, 3]", "[1, 3]"), ("[2, 1]", "[1, 3]"), ("[3, 3]", "[1, 1]"), ("[1, 2]", "[3, 1]")]
    {
        texts.push(format!("name = 'hxmesh'\nboard = {board}\nboards = {boards}"));
    }
    texts.iter().for_each(|text| _ = oracle::is_cut_as_stated(text));
}
