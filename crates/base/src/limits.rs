//! Limits on memory and work, compared with an estimate before the work starts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An estimate that is over a limit. The message names the work, the estimate and the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OverLimit {
    what: &'static str,
    needs: u128,
    limit: u64,
    memory: bool,
}

impl std::fmt::Display for OverLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, needs, limit, .. } = self;
        if self.memory {
            let (needs, limit) = (*needs as f64 / 1e9, *limit as f64 / 1e9);
            write!(f, "{what} needs about {needs:.3} GB of memory, and the limit is {limit:.3} GB; ")?;
            write!(f, "ask for less, raise the limit (--limit-memory), or lift all limits (--no-limit)")
        } else {
            let (needs, limit) = (*needs as f64, *limit as f64);
            write!(f, "{what} needs about {needs:.3e} steps, and the limit is {limit:.3e}; ")?;
            write!(f, "ask for less, or lift all limits (--no-limit)")
        }
    }
}

impl std::error::Error for OverLimit {}

/// Steps that are admitted unless [`set`] says otherwise: about a minute of one core.
pub const DEFAULT_STEPS: u64 = 1 << 36;

static BYTES: AtomicU64 = AtomicU64::new(u64::MAX);
static STEPS: AtomicU64 = AtomicU64::new(DEFAULT_STEPS);

/// Sets the limits of the process: bytes of memory, and elementary steps. `u64::MAX` lifts one.
pub fn set(bytes: u64, steps: u64) {
    BYTES.store(bytes, Relaxed);
    STEPS.store(steps, Relaxed);
}

/// The limits of the process: bytes, and steps.
pub fn get() -> (u64, u64) {
    (BYTES.load(Relaxed), STEPS.load(Relaxed))
}

/// Admits work that allocates about `bytes` and takes about `steps` elementary steps (a few nanoseconds each).
///
/// # Errors
/// The estimate is over a limit.
pub fn admit(what: &'static str, bytes: u128, steps: u128) -> Result<(), OverLimit> {
    let (most_bytes, most_steps) = get();
    if most_bytes < u64::MAX && bytes > u128::from(most_bytes) {
        return Err(OverLimit { what, needs: bytes, limit: most_bytes, memory: true });
    }
    if most_steps < u64::MAX && steps > u128::from(most_steps) {
        return Err(OverLimit { what, needs: steps, limit: most_steps, memory: false });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_over_a_limit_are_refused_with_both_numbers() {
        let refused = admit("a test", 0, 1 << 40).unwrap_err().to_string();
        assert_eq!(
            refused,
            "a test needs about 1.100e12 steps, and the limit is 6.872e10; ask for less, or lift all limits (--no-limit)"
        );
        assert!(admit("a test", 1 << 60, 1 << 30).is_ok());
    }
}
