//! The steps that begin the export of a schedule in all formats, and properties of a schedule that all formats need.

use unisono_base::{Diagnostics, InstrId};
use unisono_formats::Refused;
use unisono_lower::VerifiedFile;
use unisono_schedule::{Flow, Operand, Schedule, topological};

use crate::not_of_gpus;

/// A proved schedule among GPUs, with an order in which its instructions can run.
pub struct Ordered<'a> {
    pub schedule: &'a Schedule,
    pub flow: Flow,
    pub order: Vec<InstrId>,
    /// The `expression_class` of the proof: the digest of the expressions that a file must compute.
    pub class: &'a str,
}

impl<'a> Ordered<'a> {
    /// Checks a schedule and orders its instructions. `expressible` returns an error if the format cannot express it.
    ///
    /// # Errors
    /// Returns an error if the machine has no GPUs, the format cannot express the schedule, or its results cannot be
    /// compared.
    pub fn new(
        target: &'static str,
        proven: &'a VerifiedFile<'a>,
        expressible: impl FnOnce(&Schedule) -> Result<(), String>,
    ) -> Result<Self, Refused> {
        let refused = |reason| Refused::new(target, reason);
        if let Some(reason) = proven.file().machine.as_ref().and_then(not_of_gpus) {
            return Err(refused(reason));
        }
        let schedule = proven.verified().schedule();
        expressible(schedule).map_err(refused)?;
        let Some(class) = &proven.verified().proof().expression_class else {
            return Err(refused(
                "its results are of too many combinations for a comparison with the emitted file".to_owned(),
            ));
        };
        let mut found = Diagnostics::default();
        let flow = Flow::new(schedule, &mut found);
        let order = topological(schedule, &flow, &mut found);
        Ok(Self { schedule, flow, order, class })
    }
}

/// Returns the name of a plan: `unisono-` and the schedule's origin, or else its collective, without blanks.
pub fn plan_name(schedule: &Schedule) -> String {
    let what = if schedule.origin().is_empty() { schedule.collective().kind.name() } else { schedule.origin() };
    format!("unisono-{}", what.replace(' ', "-"))
}

/// Returns the elements of a chunk: the largest number that divides every length and offset; 0 without elements.
pub fn chunk_elements(schedule: &Schedule) -> u32 {
    let mut unit = schedule.collective().elements;
    for id in (0..schedule.instr_count()).map(InstrId::new) {
        unit = gcd(unit, schedule.instr(id).len);
        for operand in schedule.sources(id).iter().chain(schedule.sinks(id).iter()) {
            if let Operand::In(start) | Operand::Out(start) | Operand::Tmp(start) = operand {
                unit = gcd(unit, start);
            }
        }
    }
    unit
}

/// Returns the greatest common divisor; the greatest common divisor of 0 and a number is the number.
pub fn gcd<T: Copy + Default + PartialEq + std::ops::Rem<Output = T>>(a: T, b: T) -> T {
    if b == T::default() { a } else { gcd(b, a % b) }
}
