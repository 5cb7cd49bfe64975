//! HyperX of one to three dimensions.

use unisono_machine::network::cut::bisection;

use crate::network::oracle;

#[test]
fn ways_are_shortest_and_free_of_deadlock() {
    for lines in [
        "dims = [2]",
        "dims = [5]\nterminals = 3",
        "dims = [4, 4]",
        "dims = [3, 5]\nterminals = 2\ncables = [2, 1]",
        "dims = [3, 2, 4]\nterminals = 2",
        "dims = [3, 3]\nterminal_gbps = 1600",
    ] {
        oracle::holds(&format!("name = 'hyperx'\n{lines}"));
        oracle::is_billed_as_wired(&format!("name = 'hyperx'\n{lines}"));
    }
}

#[test]
fn the_least_cut_is_the_stated_one() {
    for lines in [
        "dims = [4]",
        "dims = [4]\nterminals = 4",
        "dims = [2, 2]\nterminals = 4",
        "dims = [2, 4]\nterminals = 2",
        "dims = [2, 2]\nterminals = 3\ncables = [1, 2]",
        "dims = [2, 2, 2]\nterminals = 2",
    ] {
        oracle::is_bisected_as_stated(&format!("name = 'hyperx'\n{lines}"));
    }
}

/// The cut has four cables of 400 Gb/s, and four accelerators inject 1,600 Gb/s each.
#[test]
fn accelerators_may_have_faster_cables() {
    let topology = oracle::topology("name = 'hyperx'\ndims = [2, 4]\nterminal_gbps = 1600");
    assert_eq!(topology.injection(), [4.0, 4.0]);
    assert_eq!(bisection(&*topology, oracle::OWN).map(|cut| cut.share), Some(0.25));
    assert_eq!(
        topology.unlike().iter().map(|(speed, cables)| (speed.gbps, *cables)).collect::<Vec<_>>(),
        [(1600.0, 8)]
    );
}

#[test]
fn sizes_that_do_not_close_are_refused() {
    for (lines, said) in [
        ("dims = [1, 4]", "dims is [1, 4]; accepted are 1 to 255 extents, each at least 2"),
        ("dims = [4, 4]\nterminals = 0", "4 x 4 x 0 accelerators; accepted are 1 to 16777216"),
        (
            "dims = [4, 4]\ncables = [1]",
            "cables is [1]; accepted is a number of 1 to 64 for each extent of dims, [4, 4]",
        ),
        ("dims = [4, 4]\nterminal_gbps = 0", "terminal_gbps is 0.0; accepted is 1e-9 to 1e15"),
    ] {
        let e = oracle::read(&format!("name = 'hyperx'\n{lines}")).unwrap_err();
        assert_eq!(e, format!("test, topology: {said}"));
    }
}
