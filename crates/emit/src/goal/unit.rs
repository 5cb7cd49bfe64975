//! GOAL as a registered emitter.

use unisono_base::rounded;
use unisono_lower::{
    File, VerifiedFile,
    tasks::{Kind, Task, from_schedule},
};

use super::write;
use crate::{Emitter, Files, Refused};

pub struct Goal;

const NAME: &str = "goal";

impl Emitter for Goal {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "the messages of a schedule for LogGOPSim; what is reduced becomes time"
    }

    fn reference(&self) -> &'static str {
        "Hoefler, Siebert, Lumsdaine: Group Operation Assembly Language, 2009; LogGOPSim"
    }

    fn emit(&self, proven: &VerifiedFile) -> Result<Files, Refused> {
        let file = proven.file();
        let refused = |reason: String| Refused { target: NAME, reason };
        let graph = from_schedule(proven.verified()).map_err(|e| refused(e.to_string()))?;
        let priced = file.machine.as_ref().and_then(|machine| Some((machine.name(), machine.reduction_ns()?)));
        let (fixed_ns, ns_per_byte, remark) = match priced {
            Some((machine, [fixed, per_byte])) => {
                (fixed, per_byte, format!("a reduction takes {fixed} ns and {per_byte} ns a byte on {machine}"))
            }
            None => (0.0, 0.0, "a reduction takes no time, since no machine of endpoints states its time".to_owned()),
        };
        let ns = |task: Task| match task.kind {
            Kind::Reduce => rounded(fixed_ns + ns_per_byte * task.amount as f64),
            _ => task.amount,
        };
        let mut text = format!("// {}; {remark}\n", remark_of(file));
        write(&graph, ns, &mut text).map_err(|e| refused(e.to_string()))?;
        Ok(vec![("schedule.goal".to_owned(), text.into())])
    }
}

/// Describes the schedule on one line.
fn remark_of(file: &File) -> String {
    let c = file.schedule.collective();
    format!("{} of {} {} among {} ranks, {}", c.kind, c.elements, c.dtype, c.ranks, file.schedule.origin())
}
