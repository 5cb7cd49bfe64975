//! Tests of `line::side`.

use unisono_algorithms::line::{Side, Sides};
use unisono_lower::Terms;

#[test]
fn what_stays_in_place_costs_nothing() {
    let alone = Sides { left: Side::new(vec![0]), right: Side::new(vec![0]) };
    assert_eq!(alone.terms(9), Terms::default());
    let two = Sides { left: Side::new(vec![0]), right: Side::new(vec![0, 0]) };
    assert_eq!(two.terms(0), Terms::default());
    assert_eq!(two.terms(9).datapath, 9.0);
}
