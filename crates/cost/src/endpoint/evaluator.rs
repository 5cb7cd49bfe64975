//! Gives a time to a schedule among ranks: a simulator, which this crate does not know.

use unisono_schedule::Schedule;

use super::LevelPrices;

pub trait ScheduleEvaluator {
    fn name(&self) -> &'static str;

    /// Nanoseconds until the last rank is done.
    ///
    /// # Errors
    /// Why there is no time, in one sentence.
    fn nanoseconds(&self, schedule: &Schedule, prices: &LevelPrices) -> Result<f64, String>;
}
