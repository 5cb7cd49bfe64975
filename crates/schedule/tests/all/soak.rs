//! The number of cases that tests run: a tenth in `cargo test`, all if `UNISONO_SOAK=1` is set. Other crates include
//! this file.
#![allow(dead_code, reason = "each crate uses a part of it")]

/// Returns whether the long run is selected.
pub fn is_on() -> bool {
    std::env::var_os("UNISONO_SOAK").is_some_and(|value| value == "1")
}

/// Returns `many` in the long run, and a tenth of it otherwise.
pub fn cases(many: u32) -> u32 {
    if is_on() { many } else { many.div_ceil(10) }
}

/// Returns whether a sweep runs case number `case`: always in the long run, otherwise for a tenth of the cases. The
/// draw depends on the number, so that no loop of the sweep always skips the same values.
pub fn runs(case: u64) -> bool {
    is_on() || unisono_base::mix(case).is_multiple_of(10)
}

/// Like [`runs`] for a fifth of the cases, in sweeps whose rare cases a tenth would miss.
pub fn runs_often(case: u64) -> bool {
    is_on() || unisono_base::mix(case).is_multiple_of(5)
}
