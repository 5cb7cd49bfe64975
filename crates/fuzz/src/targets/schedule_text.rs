//! The text form of schedules, with machines, placements and routes.

use unisono_lower::parse;

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget = FuzzTarget::new(
    "schedule-text",
    "reads a .sched file; proves, prints, stores, emits, lowers and simulates what it holds",
    run,
)
.seeds(&[("tests/filetests", ".sched")]);

fn run(input: &[u8]) -> bool {
    uses::read_file(parse(&uses::text(input), "fuzz"))
}
