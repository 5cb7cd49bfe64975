//! Simulations among ranks.

use unisono_cost::endpoint::{LevelPrices, ScheduleEvaluator};
use unisono_schedule::Schedule;

/// Times schedules by the endpoint simulator.
pub struct Simulated;

impl ScheduleEvaluator for Simulated {
    fn name(&self) -> &'static str {
        "endpoint"
    }

    fn nanoseconds(&self, _schedule: &Schedule, _prices: &LevelPrices) -> Result<f64, String> {
        Err("no simulator".to_owned())
    }
}
