//! Tests of `narrow`.

use unisono_base::{narrow, rounded};

#[test]
fn what_fits_is_kept() {
    assert_eq!(narrow::<u32>(u64::from(u32::MAX)), u32::MAX);
    assert_eq!(narrow::<u8>(255usize), 255);
}

#[test]
#[should_panic(expected = "4294967296 is beyond")]
fn what_does_not_fit_is_not_cut() {
    narrow::<u32>(1u64 << 32);
}

#[test]
fn rounding_saturates() {
    assert_eq!([1.5, -3.0, f64::NAN, 1e300].map(rounded), [2, 0, 0, u64::MAX]);
}
