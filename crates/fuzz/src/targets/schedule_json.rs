//! The JSON form of schedules.

use unisono_lower::from_json;

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget =
    FuzzTarget::new("schedule-json", "reads a schedule as JSON, and does as schedule-text does", run);

fn run(input: &[u8]) -> bool {
    uses::read_file(from_json(&uses::text(input), "fuzz"))
}
