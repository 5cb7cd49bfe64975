//! Tori of one to four dimensions.

use crate::network::oracle;

#[test]
fn ways_are_shortest_and_free_of_deadlock() {
    for dims in ["[3]", "[8]", "[4, 4]", "[3, 5]", "[7, 4]", "[3, 4, 5]", "[3, 3, 3, 4]"] {
        oracle::holds(&format!("name = 'torus'\ndims = {dims}"));
    }
}

#[test]
fn the_least_cut_is_the_stated_one() {
    for dims in ["[3]", "[4]", "[5]", "[8]", "[4, 4]", "[3, 4]", "[3, 3]"] {
        oracle::is_bisected_as_stated(&format!("name = 'torus'\ndims = {dims}"));
    }
}

#[test]
fn halfway_round_both_ways_are_open() {
    let topology = oracle::topology("name = 'torus'\ndims = [4, 4]");
    let mut hops = Vec::new();
    let header = unisono_machine::network::Header { to: 2, vc: 0, way: 0 };
    topology.routing().hops(0, header, &mut hops);
    assert_eq!(hops.len(), 2);
}
