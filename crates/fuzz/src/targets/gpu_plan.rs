//! Execution plans for GPUs.

use unisono_emit::{
    Asked, Importer,
    mscclpp::{MscclPp, Options, check},
};

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget =
    FuzzTarget::new("gpu-plan", "checks a plan of MSCCL++; a plan that is proved also imports, and its schedule is proved", run);

fn run(input: &[u8]) -> bool {
    let text = uses::text(input);
    let mut accepted = false;
    for elements in [None, Some(24)] {
        let asked = Asked { elements, ..Asked::default() };
        let Ok(found) = check(&text, &asked, Options::default()) else { continue };
        accepted = true;
        let only_limits = found.diagnostics.iter().all(|d| d.code == "limit");
        if only_limits && found.schedule.is_some() {
            let file = MscclPp.import(&text, &asked).expect("a plan without faults imports");
            assert!(file.check().holds(), "the schedule of a proved plan is proved");
            uses::file(&file);
        }
    }
    accepted
}
