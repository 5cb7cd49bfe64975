//! HammingMesh: several boards, with lines of one switch or of a tree.

use crate::network::oracle;

#[test]
fn ways_are_shortest_and_free_of_deadlock() {
    for (board, boards) in [
        ([1, 1], [4, 5]),
        ([2, 2], [3, 4]),
        ([2, 2], [1, 1]),
        ([1, 3], [3, 2]),
        ([3, 3], [2, 2]),
        ([4, 4], [2, 3]),
        ([2, 5], [2, 2]),
        ([6, 5], [1, 2]),
        ([8, 1], [2, 3]),
        // Some lines have two levels: 33 boards have 66 ports, on 3 leaves and 2 switches above.
        ([2, 2], [1, 33]),
        ([1, 3], [33, 1]),
        ([1, 1], [2, 40]),
    ] {
        oracle::holds(&text(board, boards));
    }
}

/// Leaves have fewer up-ports: 66 ports of a line of 33 boards are on 3 leaves.
#[test]
fn tapered_lines_are_connected_and_billed_as_wired() {
    let full = "name = 'hxmesh'\nboard = [2, 2]\nboards = [1, 33]\n";
    let tapered = format!("{full}up = [32, 8]\n");
    oracle::holds(&tapered);
    let [full, tapered] = [full, &tapered].map(oracle::topology);
    // Both rows have a tree; with 24 cables above the leaves instead of 96, one top switch suffices instead of two.
    assert_eq!(full.bill().aoc - tapered.bill().aoc, 2 * (96 - 24));
    assert_eq!(full.bill().switches - tapered.bill().switches, 2);
    assert!(tapered.halves().unwrap().rate < full.halves().unwrap().rate);
    let e = oracle::read("name = 'hxmesh'\nboard = [2, 2]\nboards = [2, 2]\nup = [32, 33]").unwrap_err();
    assert_eq!(e, "test, topology: a leaf has 33 ports up; accepted are 1 to 32");
}

#[test]
fn the_least_cut_is_the_stated_one() {
    for (board, boards) in [
        ([1, 1], [2, 2]),
        ([1, 1], [2, 4]),
        ([1, 1], [4, 4]),
        ([2, 2], [1, 2]),
        ([2, 2], [2, 2]),
        ([4, 4], [1, 1]),
        ([2, 1], [2, 4]),
        ([1, 4], [2, 2]),
        ([2, 4], [1, 2]),
    ] {
        oracle::is_bisected_as_stated(&text(board, boards));
    }
}

#[test]
fn the_bill_counts_the_cables_of_the_plane_where_lines_are_full() {
    for (board, boards) in [([2, 2], [16, 16]), ([4, 4], [8, 8]), ([1, 1], [32, 32]), ([2, 2], [3, 64])] {
        oracle::is_billed_as_wired(&text(board, boards));
    }
}

#[test]
fn sizes_that_do_not_close_are_refused() {
    for (board, boards, said) in [
        ([0, 2], [2, 2], "0 x 2 x 2 x 2 accelerators"),
        ([1, 1], [2000, 2], "at most 1024 boards"),
        ([60000, 60000], [60000, 60000], "60000 x 60000 x 60000 x 60000 accelerators"),
    ] {
        let e = oracle::read(&text(board, boards)).unwrap_err();
        assert!(e.starts_with("test, topology: ") && e.contains(said), "{e}");
    }
    let e = oracle::read("name = 'hxmesh'\nboard = [2, 2]").unwrap_err();
    assert_eq!(e, "test, topology: missing field `boards`");
}

fn text(board: [u32; 2], boards: [u32; 2]) -> String {
    format!("name = 'hxmesh'\nboard = {board:?}\nboards = {boards:?}")
}
