//! The text form of schedules, with machines, placements and routes.

use unisono_lower::parse;

use crate::{Target, uses};

pub struct ScheduleText;

impl Target for ScheduleText {
    fn name(&self) -> &'static str {
        "schedule-text"
    }

    fn summary(&self) -> &'static str {
        "reads a .sched file; proves, prints, stores, emits, lowers and simulates what it holds"
    }

    fn seeds(&self) -> &'static [(&'static str, &'static str)] {
        &[("tests/filetests", ".sched")]
    }

    fn run(&self, input: &[u8]) -> bool {
        match parse(&uses::text(input), "fuzz") {
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
