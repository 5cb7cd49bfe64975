//! Hypercubes.

use crate::network::oracle;

#[test]
fn ways_are_shortest_and_free_of_deadlock() {
    for dimensions in 1..=6 {
        oracle::holds(&format!("name = 'hypercube'\ndimensions = {dimensions}"));
        oracle::is_billed_as_wired(&format!("name = 'hypercube'\ndimensions = {dimensions}\nboard_dimensions = 1"));
    }
}

#[test]
fn the_least_cut_is_the_stated_one() {
    for dimensions in 1..=4 {
        oracle::is_bisected_as_stated(&format!("name = 'hypercube'\ndimensions = {dimensions}"));
    }
}

#[test]
fn sizes_that_do_not_close_are_refused() {
    let e = oracle::read("name = 'hypercube'\ndimensions = 40").unwrap_err();
    assert_eq!(e, "test, topology: dimensions is 40; accepted are 1 to 24");
    let e = oracle::read("name = 'hypercube'\ndimensions = 4\nboard_dimensions = 5").unwrap_err();
    assert_eq!(e, "test, topology: board_dimensions is 5; accepted are 0 to dimensions, 4");
}
