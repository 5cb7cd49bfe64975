//! Tests of `limits`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use unisono_base::limits::{DEFAULT_STEPS, OverLimit, admit, amount, counted, last_counted, spend};

#[test]
fn estimates_over_a_limit_are_refused_with_both_numbers() {
    let refused = admit("a test", 0, 1 << 40).unwrap_err().to_string();
    assert_eq!(
        refused,
        "a test needs about 1.1e12 steps, and the limit is 6.9e10 steps; ask for less, or lift all limits (--no-limit)"
    );
    assert!(admit("a test", 1 << 60, 1 << 30).is_ok());
}

#[test]
fn amounts_have_units_that_keep_them_short() {
    let shown = |bytes: f64| amount(true, bytes);
    assert_eq!(
        [0.0, 2e3, 1.5e6, 1.2e8, 3e11, 2e12, (1u64 << 60) as f64].map(shown),
        ["0 bytes", "2000 bytes", "1.5 MB", "0.1 GB", "300.0 GB", "2.0 TB", "1.2 EB"]
    );
}

#[test]
fn estimates_of_one_work_add_up() {
    let half = u128::from(DEFAULT_STEPS / 2);
    let twice = counted(|| [half, half, half].map(|steps| admit("a test", 0, steps).is_ok()));
    assert_eq!(twice, [true, true, false]);
    assert_eq!(last_counted(), DEFAULT_STEPS);
    assert!((0..4).all(|_| admit("a test", 0, half).is_ok()));
}

#[test]
fn counted_steps_unwind_over_the_limit() {
    spend("a test", u64::MAX);
    let work = || counted(|| (0..4).for_each(|_| spend("a test", DEFAULT_STEPS / 2)));
    let over = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
    assert!(over.downcast_ref::<OverLimit>().is_some_and(|over| over.to_string().contains("1.0e11")));
    spend("a test", u64::MAX);
}
