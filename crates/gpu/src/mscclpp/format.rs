//! Execution plans of MSCCL++ as a registered format.

use unisono_collective::{Collective, Operator};
use unisono_formats::{About, Emitter, Facts, Files, ImportError, Importer, Refused};
use unisono_lower::{File, VerifiedFile};
use unisono_machine::network::Protocol;

use super::{
    NAME,
    check::check,
    emit::{PACKETS_BYTES, made},
    fault::Fault,
    layout::stated_elements,
    limits,
    plan::read,
    sized::Sized,
};
use crate::{Choices, Drafts, GpuFormat, Options, PROCESSORS, Report};

pub struct MscclPp;

const REFERENCE: &str = "docs/gpu-plans.md; microsoft/mscclpp";

impl Emitter for MscclPp {
    fn about(&self) -> About {
        About {
            name: NAME,
            reference: REFERENCE,
            summary: "an execution plan for MSCCL++, in place or not, with packets, signals, ports or switches",
        }
    }

    fn note(&self, c: &Collective) -> Option<String> {
        let rounds = c.kind.reduces() && c.operator == Operator::Sum && !c.dtype.is_integer();
        (rounds && c.bytes() <= PACKETS_BYTES).then(|| {
            "a sum of packets (protocol LL) begins with +0, so that -0 + -0 gives +0: a file in that protocol has an expression \
             class of its own"
                .to_owned()
        })
    }

    fn note_of(&self, c: &Collective, texts: &[String]) -> Option<String> {
        let is_of_packets = |text: &String| text.split_whitespace().collect::<String>().contains("\"protocol\":\"LL\"");
        self.note(c).filter(|_| texts.iter().any(is_of_packets))
    }

    fn accepts(&self, proven: &VerifiedFile) -> Result<(), Refused> {
        // A plan for several thread blocks falls back to one for a single block, which takes less time to write.
        self.drafts(proven)(&Choices { thread_blocks: Some(1), ..Choices::default() }).map(drop)
    }

    fn emit(&self, proven: &VerifiedFile) -> Result<Files, Refused> {
        self.emit_as(proven, &Choices::default())
    }
}

impl Importer for MscclPp {
    fn about(&self) -> About {
        About { name: NAME, reference: REFERENCE, summary: "an execution plan of MSCCL++, as its language writes it" }
    }

    /// Reads a plan for one run, so it checks neither further launches nor the number of processors.
    fn import(&self, text: &str, facts: &Facts) -> Result<File, ImportError> {
        let plan = read(text)?;
        let operator = facts.operator.filter(|&operator| operator != Operator::Sum);
        if let Some(operator) = operator.filter(|_| plan.ops().any(|op| op.name.reduces())) {
            return Err(ImportError::new(
                0,
                format!("the runtime adds, and the operator asked for is {operator}; use sum"),
            ));
        }
        // A plan that states one size is imported at that size.
        let facts = Facts { elements: facts.elements.or_else(|| stated_elements(&plan, facts)), ..*facts };
        let refused = |Fault { code, message, .. }: Fault| {
            ImportError::new(0, format!("{code}: {message}; `unisono verify` shows all faults"))
        };
        if let Some(limit) = limits::check(&plan, u32::MAX).into_iter().next() {
            return Err(refused(limit));
        }
        let mut sized = Sized::in_order(&plan, &Facts { elements: None, ..facts })?.map_err(refused)?;
        if facts.elements.is_some() {
            sized = Sized::new(&plan, &facts, None)?;
            if let Some(fault) = sized.faults.iter().chain(&sized.run.faults).next() {
                return Err(refused(fault.clone()));
            }
        }
        sized.file(&plan)
    }
}

impl GpuFormat for MscclPp {
    fn protocols(&self) -> &'static [Protocol] {
        &[Protocol::Simple, Protocol::Ll]
    }

    fn thread_blocks(&self) -> u32 {
        PROCESSORS
    }

    fn drafts<'a>(&self, proven: &'a VerifiedFile<'a>) -> Drafts<'a> {
        Box::new(|choices| made(proven, choices, &|writing, _, plan| writing.draft(&plan)))
    }

    fn emit_as(&self, proven: &VerifiedFile, choices: &Choices) -> Result<Files, Refused> {
        let text = made(proven, choices, &|writing, form, plan| writing.proved(&plan, form))?;
        Ok(vec![(format!("{}.json", proven.file().schedule.collective().kind), text.into())])
    }

    fn check(&self, text: &str, facts: &Facts, options: Options) -> Result<Report, ImportError> {
        let found = check(text, facts, options)?;
        Ok(Report { bits: found.bits.clone(), report: Box::new(found) })
    }
}
