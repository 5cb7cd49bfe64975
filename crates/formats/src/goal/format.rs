//! GOAL as a registered emitter.

use unisono_base::rounded;
use unisono_lower::{
    File, VerifiedFile,
    tasks::{Kind, Task, from_schedule},
};

use super::write;
use crate::{About, Emitter, Files, Refused};

pub struct Goal;

const NAME: &str = "goal";

impl Emitter for Goal {
    fn about(&self) -> About {
        About {
            name: NAME,
            reference: "Hoefler, Siebert, Lumsdaine: Group Operation Assembly Language, 2009; LogGOPSim",
            summary: "the messages of a schedule for LogGOPSim; what is reduced becomes time",
        }
    }

    fn emit(&self, proven: &VerifiedFile) -> Result<Files, Refused> {
        let file = proven.file();
        let graph = from_schedule(proven.verified()).map_err(|e| Refused::new(NAME, e))?;
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
        write(&graph, ns, &mut text).map_err(|e| Refused::new(NAME, e))?;
        Ok(vec![("schedule.goal".to_owned(), text.into())])
    }
}

fn remark_of(file: &File) -> String {
    let c = file.schedule.collective();
    format!("{} of {} {} among {} ranks, {}", c.kind, c.elements, c.dtype, c.ranks, file.schedule.origin())
}
