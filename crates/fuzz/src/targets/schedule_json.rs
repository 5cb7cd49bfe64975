//! The JSON form of schedules.

use unisono_lower::from_json;

use crate::{Target, uses};

pub struct ScheduleJson;

impl Target for ScheduleJson {
    fn name(&self) -> &'static str {
        "schedule-json"
    }

    fn summary(&self) -> &'static str {
        "reads a schedule as JSON, and does as schedule-text does"
    }

    fn run(&self, input: &[u8]) -> bool {
        match from_json(&uses::text(input), "fuzz") {
            Ok(file) => {
                uses::file(&file);
                true
            }
            Err(error) => {
                assert!(error.to_string().starts_with("fuzz"), "the error does not name its file: {error}");
                false
            }
        }
    }
}
