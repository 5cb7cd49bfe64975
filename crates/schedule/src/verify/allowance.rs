//! The memory and steps that one proof may use.
//!
//! A short schedule can have very large contents: thirty copies, each of twice the length, make a billion segments. So
//! the proof counts its memory while contents grow. For a schedule of at most [`SHORT`] instructions, as in files below
//! one megabyte, contents may take 0.67 GB and about half a minute. For longer schedules the limits of the process
//! apply.

use unisono_base::limits;

/// Greatest number of instructions of a short schedule.
const SHORT: usize = 1 << 16;
/// Memory limit of a short schedule in units of 8 bytes; [`SHORT_STEPS`] is its limit in steps of about 3 ns.
const SHORT_UNITS: u64 = 10 << 23;
const SHORT_STEPS: u64 = 1 << 33;

#[derive(Clone, Copy)]
pub struct Allowance {
    units: u64,
    steps: u64,
    instructions: usize,
    short: bool,
}

impl Allowance {
    pub fn new(instructions: usize) -> Self {
        let (bytes, most_steps) = limits::get();
        let lifted = most_steps == u64::MAX;
        let short = instructions <= SHORT && !lifted;
        let units = if short { SHORT_UNITS.min(bytes / 8) } else { bytes / 8 };
        let steps = if short { SHORT_STEPS } else { most_steps };
        Self { units, steps, instructions, short }
    }

    /// Consumes `units` of 8 bytes and `steps` steps. Returns true if enough were left.
    #[inline]
    #[must_use]
    pub fn take(&mut self, units: u64, steps: u64) -> bool {
        let enough = units <= self.units && steps <= self.steps;
        self.units = self.units.saturating_sub(units);
        self.steps = self.steps.saturating_sub(steps);
        enough
    }

    pub fn steps(&self) -> u64 {
        self.steps
    }

    #[inline]
    pub fn free(&mut self, units: u64) {
        self.units = self.units.saturating_add(units);
    }

    /// Returns the number of segments, two units each, that may still be created.
    #[inline]
    pub fn segments(&self) -> usize {
        usize::try_from(self.units / 2).unwrap_or(usize::MAX)
    }

    pub fn refusal(&self) -> String {
        let (bytes, steps) = limits::get();
        let limit = if self.short {
            let (gb, billions) = ((8 * SHORT_UNITS).min(bytes) as f64 / 1e9, SHORT_STEPS as f64 / 1e9);
            format!("{gb:.2} GB of contents or {billions:.1} billion steps, the limit for so short a schedule")
        } else {
            let gb = bytes as f64 / 1e9;
            format!("the limit of {gb:.2} GB or {:.1} billion steps", steps as f64 / 1e9)
        };
        format!(
            "the proof of {} instructions needs more than {limit}; cut fewer pieces, or lift all limits (--no-limit)",
            self.instructions
        )
    }
}
