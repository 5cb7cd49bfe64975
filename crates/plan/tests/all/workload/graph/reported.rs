//! Tests of `workload::graph::reported`.

use unisono_plan::internals::reported::reported;

#[test]
fn of_equal_ends_the_longest_compute_is_reported() {
    let at = |ends: &[f64], computed: &[f64]| reported(ends, |at| computed[at]);
    assert_eq!(at(&[1.0, 2.0, 3.0], &[9.0, 9.0, 1.0]), 2);
    assert_eq!(at(&[3.0, 3.0 - 1e-9, 3.0 + 1e-9], &[1.0, 2.0, 2.0]), 1);
    assert_eq!(at(&[0.0, 0.0], &[0.0, 0.0]), 0);
    assert_eq!(at(&[], &[]), 0);
}
