//! Meshes of one to four dimensions.

use crate::network::oracle;

#[test]
fn ways_are_shortest_and_free_of_deadlock() {
    for dims in ["[1]", "[2]", "[7]", "[4, 4]", "[1, 5]", "[5, 1, 3]", "[3, 4, 5]", "[2, 2, 3, 2]"] {
        oracle::holds(&format!("name = 'mesh'\ndims = {dims}"));
    }
}

#[test]
fn the_least_cut_is_the_stated_one() {
    for dims in
        ["[2]", "[5]", "[8]", "[1, 3]", "[4, 4]", "[3, 4]", "[2, 3]", "[3, 3]", "[5, 2]", "[2, 2, 3]", "[2, 2, 4]"]
    {
        oracle::is_bisected_as_stated(&format!("name = 'mesh'\ndims = {dims}"));
    }
}

#[test]
fn links_on_a_board_are_free() {
    for lines in ["dims = [4, 6]", "dims = [4, 6]\nboard = [2, 3]", "dims = [8]\nboard = [8]"] {
        oracle::is_billed_as_wired(&format!("name = 'mesh'\n{lines}"));
        oracle::is_billed_as_wired(&format!("name = 'torus'\n{lines}"));
    }
}

#[test]
fn boards_that_do_not_divide_are_refused() {
    for (lines, said) in [
        ("dims = [4, 6]\nboard = [3, 3]", "board is [3, 3]; accepted is one divisor of each extent of dims, [4, 6]"),
        ("dims = [4, 6]\nboard = [2]", "board is [2]; accepted is one divisor of each extent of dims, [4, 6]"),
        ("dims = [4, 6]\nboard = [0, 1]", "board is [0, 1]; accepted is one divisor of each extent of dims, [4, 6]"),
        ("dims = []", "dims is []; accepted are 1 to 255 extents, each at least 1"),
        ("dims = [99999, 99999]", "99999 x 99999 accelerators; accepted are 1 to 16777216"),
    ] {
        let e = oracle::read(&format!("name = 'mesh'\n{lines}")).unwrap_err();
        assert_eq!(e, format!("test, topology: {said}"));
    }
    let e = oracle::read("name = 'torus'\ndims = [2, 4]").unwrap_err();
    assert_eq!(e, "test, topology: dims is [2, 4]; accepted are 1 to 255 extents, each at least 3");
}
