//! Tori of one to four dimensions.

use unisono_machine::network::Header;

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
    let header = Header { to: 2, vc: 0, way: 0 };
    topology.routing().hops(0, header, &mut hops);
    assert_eq!(hops.len(), 2);
}

#[test]
fn the_only_way_is_that_of_single_hops() {
    for dims in ["[3]", "[8]", "[4, 5]", "[7, 4]", "[6, 3, 4]"] {
        let topology = oracle::topology(&format!("name = 'torus'\ndims = {dims}"));
        let (plane, routing) = (topology.plane().expect("a plane"), topology.routing());
        let all = 0..plane.accelerators();
        for (from, to) in all.clone().flat_map(|from| all.clone().map(move |to| (from, to))) {
            let (mut at, mut vc, mut single, mut hops) = (from, 0, Vec::new(), Vec::new());
            while at != to {
                hops.clear();
                routing.hops(at, Header { to, vc, way: 0 }, &mut hops);
                let [hop] = hops[..] else { break };
                single.push(hop.link);
                (at, vc) = (plane.end(hop.link), hop.vc);
            }
            let mut links = Vec::new();
            assert_eq!(routing.only_way(from, Header { to, vc: 0, way: 0 }, &mut links), Some((at, vc)));
            assert_eq!(links, single, "from {from} to {to} of {dims}");
        }
    }
}
