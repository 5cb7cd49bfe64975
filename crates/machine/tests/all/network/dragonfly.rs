//! Dragonflies: with more cables than routers between two groups, and with fewer; all routings.

use std::collections::HashSet;

use unisono_machine::network::Header;

use crate::network::oracle;

const SIZES: [[u32; 4]; 10] = [
    [1, 1, 3, 4],
    [2, 2, 1, 2],
    [2, 2, 1, 3],
    [1, 4, 1, 5],
    [2, 4, 2, 9],
    [2, 4, 2, 4],
    [3, 5, 2, 1],
    [2, 3, 4, 3],
    [2, 5, 3, 7],
    [1, 16, 8, 8],
];

#[test]
fn routings_are_free_of_deadlock() {
    for size in SIZES {
        for routing in ["minimal", "valiant", "adaptive"] {
            oracle::is_connected_as_stated(&text(size, routing));
        }
    }
}

/// Compares the closed form of the diameter with a search, for all small sizes.
#[test]
fn the_diameter_is_that_of_the_plane() {
    let mut found = HashSet::new();
    for (a, h) in (1..=6).flat_map(|a| (1..=6).map(move |h| (a, h))) {
        for g in 1..=(a * h + 1).min(14) {
            let topology = oracle::topology(&text([1, a, h, g], "minimal"));
            let diameter = oracle::diameter(&topology.plane().unwrap());
            assert_eq!(topology.diameter(), diameter, "a = {a}, h = {h}, g = {g}");
            found.insert(diameter);
        }
    }
    assert_eq!(found, HashSet::from([0, 3, 4, 5]));
}

/// Minimal paths have at most a local, a global and a local link, and a cable at each end. Paths through another group
/// have one more local and one more global link.
#[test]
fn ways_have_no_more_cables_than_they_may() {
    for size in &SIZES[..9] {
        for (routing, most) in [("minimal", 5), ("valiant", 7), ("adaptive", 7)] {
            let topology = oracle::topology(&text(*size, routing));
            let (plane, routing) = (topology.plane().unwrap(), topology.routing());
            let mut hops = Vec::new();
            for from in 0..plane.accelerators() {
                for to in (0..plane.accelerators()).filter(|&to| to != from) {
                    for &way in &*routing.choices(from, to) {
                        let mut open = HashSet::from([(from, 0)]);
                        for _ in 0..most {
                            let mut next = HashSet::new();
                            for &(at, vc) in open.iter().filter(|&&(at, _)| at != to) {
                                hops.clear();
                                routing.hops(at, Header { to, vc, way }, &mut hops);
                                next.extend(hops.iter().map(|hop| (plane.link(hop.link).to, hop.vc)));
                            }
                            open = next;
                        }
                        assert!(open.iter().all(|&(at, _)| at == to), "{size:?}: {from} to {to} by {way}");
                    }
                }
            }
        }
    }
}

#[test]
fn valiant_chooses_every_other_group_evenly() {
    let topology = oracle::topology(&text([2, 4, 2, 9], "valiant"));
    let routing = topology.routing();
    // The accelerators are in groups 1 and 3. The number of a path is its group plus one.
    let (from, to) = (8, 24);
    let ways = routing.choices(from, to);
    assert_eq!(*ways, [1, 3, 5, 6, 7, 8, 9]);
    let chosen = (0..700_u64).map(|n| routing.choose(from, to, n * (u64::MAX / 700)));
    let mut times = [0; 10];
    chosen.for_each(|way| times[way as usize] += 1);
    assert!(ways.iter().all(|&way| (98..=102).contains(&times[way as usize])), "{times:?}");
    assert_eq!(times.iter().sum::<i32>(), 700);
    assert_eq!(*routing.choices(8, 9), [0]);
}

#[test]
fn the_least_cut_is_the_stated_one() {
    for size in [[2, 2, 1, 2], [1, 4, 1, 4], [2, 4, 1, 2], [4, 2, 1, 2], [2, 4, 2, 1], [2, 8, 1, 1]] {
        oracle::is_bisected_as_stated(&text(size, "minimal"));
    }
}

/// Of 9 groups, four groups and half of a fifth group are joined with the other groups by 16 + 4 of 36 cables.
#[test]
fn an_odd_number_of_groups_is_cut_through_one_of_them() {
    for size in [[1, 4, 2, 3], [2, 2, 1, 3], [1, 2, 2, 5], [1, 2, 3, 7]] {
        let (stated, least) = oracle::is_cut_as_stated(&text(size, "minimal"));
        assert!(stated.is_halves(size[0] * size[1] * size[3]) && stated.rate <= 1.25 * least, "{size:?}: {least}");
    }
    assert_eq!(oracle::topology(&text([2, 4, 2, 9], "minimal")).halves().unwrap().rate, 20.0);
}

#[test]
fn sizes_that_do_not_close_are_refused() {
    let e = oracle::read(&text([2, 4, 2, 10], "minimal")).unwrap_err();
    assert_eq!(
        e,
        "test, topology: 4 routers with 2 global ports each reach 8 other groups; with g = 10 there are 9, and some could \
         not be reached"
    );
    let e = oracle::read(&text([2, 4, 2, 9], "shortest")).unwrap_err();
    assert_eq!(
        e,
        "test, topology: routing: unknown variant `shortest`, expected one of `minimal`, `valiant`, `adaptive`"
    );
    assert!(oracle::read(&text([0, 4, 2, 9], "minimal")).unwrap_err().contains("0 x 4 x 9 accelerators"));
}

fn text([p, a, h, g]: [u32; 4], routing: &str) -> String {
    format!("name = 'dragonfly'\np = {p}\na = {a}\nh = {h}\ng = {g}\nrouting = '{routing}'")
}
