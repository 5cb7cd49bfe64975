//! Fat trees: two and three levels, tapered or not, full or with a last pod that reaches few top switches.

use unisono_machine::network::{Header, Hop};

use crate::network::oracle;

#[test]
fn ways_are_shortest_and_free_of_deadlock() {
    for sizes in [
        [1, 2, 4, 4, 8],
        [3, 2, 4, 4, 8],
        [16, 2, 4, 4, 8],
        [30, 2, 4, 3, 8],
        [50, 2, 7, 3, 10],
        [100, 2, 42, 22, 64],
        [12, 2, 4, 4, 4],
        [20, 3, 1, 1, 4],
        [100, 3, 1, 1, 4],
        [100, 3, 1, 3, 64],
        [200, 3, 2, 1, 8],
        // The last pod has one middle switch, whose 32 cables reach few of the top switches.
        [70, 3, 1, 13, 64],
        [65, 3, 1, 4, 3],
        [129, 3, 1, 2, 5],
    ] {
        oracle::holds(&text(sizes));
        oracle::holds(&by_destination(sizes));
    }
}

#[test]
fn destinations_choose_their_cables_up() {
    // Leaves of four have two cables up: packets to even accelerators share one cable, and those to odd ones the other.
    let tree = oracle::topology(&by_destination([16, 2, 4, 2, 8]));
    let routing = tree.routing();
    for (from, to) in (0..16).flat_map(|from| (0..16).map(move |to| (from, to))).filter(|(from, to)| from / 4 != to / 4)
    {
        let mut hops = Vec::new();
        routing.hops(16 + from / 4, Header { to, vc: 0, way: 0 }, &mut hops);
        let plane = tree.plane().unwrap();
        assert_eq!(hops, [Hop { link: plane.port(16 + from / 4, to % 2), vc: 0 }]);
    }
}

#[test]
fn the_least_cut_is_the_stated_one() {
    for sizes in [
        [16, 2, 4, 4, 8],
        [16, 2, 4, 2, 8],
        [16, 2, 4, 1, 8],
        [12, 2, 3, 2, 4],
        [16, 2, 2, 2, 8],
        [8, 2, 2, 4, 8],
        [8, 2, 8, 2, 8],
        [12, 2, 8, 1, 4],
        [9, 2, 4, 1, 4],
    ] {
        oracle::is_bisected_as_stated(&text(sizes));
    }
}

#[test]
fn full_trees_are_billed_as_wired() {
    for sizes in [[16, 2, 4, 4, 8], [1024, 2, 32, 32, 64], [2048, 3, 32, 32, 64]] {
        oracle::is_billed_as_wired(&text(sizes));
    }
}

#[test]
fn sizes_that_do_not_close_are_refused() {
    let many = "2049 accelerators need 65 leaves of 32; with levels = 2 and top = 64 at most 64 leaves, 2048 accelerators, \
                are connected";
    for (sizes, said) in [
        ([2049, 2, 32, 32, 64], many),
        ([16, 4, 4, 4, 8], "levels is 4; accepted are 2 and 3"),
        ([16, 2, 0, 4, 8], "down is 0; accepted are 1 to 4096 ports"),
        ([0, 2, 4, 4, 8], "0 accelerators; accepted are 1 to 16777216"),
    ] {
        assert_eq!(oracle::read(&text(sizes)).unwrap_err(), format!("test, topology: {said}"));
    }
}

fn text([accelerators, levels, down, up, top]: [u32; 5]) -> String {
    format!("name = 'fattree'\naccelerators = {accelerators}\nlevels = {levels}\ndown = {down}\nup = {up}\ntop = {top}")
}

fn by_destination(sizes: [u32; 5]) -> String {
    format!("{}\nrouting = 'destination'", text(sizes))
}
