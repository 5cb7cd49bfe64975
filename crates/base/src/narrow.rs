//! Conversions of numbers to smaller types, instead of `as`, which drops bits without an error.
//!
//! Numbers from input are converted by `try_from` when they are read, with an error that names the number. Numbers that
//! are narrowed here were bounded earlier: rows of tables are below 2^32, there are at most 2^22 ranks, and so on.

use std::fmt::Display;

/// Returns the number in a smaller type.
///
/// # Panics
/// Panics if the number does not fit, which means that a check of input is missing.
#[inline]
#[track_caller]
pub fn narrow<T>(number: impl TryInto<T> + Copy + Display) -> T {
    match number.try_into() {
        Ok(narrowed) => narrowed,
        Err(_) => too_large(&number),
    }
}

#[cold]
#[track_caller]
fn too_large(number: &dyn Display) -> ! {
    panic!("{number} is beyond the numbers that its table holds")
}

/// Returns the nearest whole number; halves are rounded up. Returns 0 for negative values and NaN, and 2^64 - 1 for
/// larger values.
#[inline]
pub fn rounded(value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, as the comment says")]
    {
        value.round() as u64
    }
}

/// Returns the value rounded up to a whole number, so that no rounded time is shorter than the exact time. A value that
/// exceeds a whole number by at most the fraction 4 * `f64::EPSILON` is treated as a rounding error, and gives this
/// whole number.
#[inline]
pub fn rounded_up(value: f64) -> u64 {
    rounded((value * (1.0 - 4.0 * f64::EPSILON)).ceil())
}
