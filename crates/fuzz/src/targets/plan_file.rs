//! Bytes of `.plan` files.

use unisono_schedule::plan_file::PlanFile;

use crate::{Form, FuzzTarget, targets::stored_program::run_file};

pub const TARGET: FuzzTarget = FuzzTarget::new(
    "plan-file",
    "reads a .plan file whose checksums hold, proves its programs and runs what is proven",
    run,
)
.form(Form::Plan)
.quick_runs(3000);

fn run(input: &[u8]) -> bool {
    let Ok(file) = PlanFile::read(input.to_vec()) else { return false };
    for (number, row) in file.table().rows().iter().enumerate() {
        assert!(file.schedule(number).is_none_or(|s| s < file.schedule_count()), "{row} names a schedule");
    }
    (0..file.schedule_count()).for_each(|schedule| drop(run_file(&file, schedule)));
    true
}
