//! Execution plans for GPUs.

use unisono_formats::{Facts, Importer};
use unisono_gpu::{
    Options,
    mscclpp::{MscclPp, check},
};
use unisono_schedule::verify::{Method, verify};

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget = FuzzTarget::new(
    "gpu-plan",
    "checks a plan of MSCCL++; a plan that is proved also imports, and its schedule is proved",
    run,
);

fn run(input: &[u8]) -> bool {
    let text = uses::text(input);
    let mut accepted = false;
    for elements in [None, Some(24)] {
        let facts = Facts { elements, ..Facts::default() };
        let Ok(found) = check(&text, &facts, Options::default()) else { continue };
        accepted = true;
        if found.diagnostics.is_empty() {
            let file = MscclPp.import(&text, &facts).expect("a plan without faults imports");
            assert!(verify(&file.schedule, Method::Auto).holds(), "the schedule of a proved plan is proved");
            uses::file(&file);
        }
    }
    accepted
}
