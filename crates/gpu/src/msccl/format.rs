//! MSCCL XML as a registered format.

use unisono_base::narrow;
use unisono_formats::{About, Emitter, Facts, Files, ImportError, Importer, Refused};
use unisono_lower::{File, VerifiedFile};
use unisono_machine::network::Protocol;

use super::{
    NAME,
    check::check,
    emit::{Programs, checked, draft},
    import, limits, parse,
};
use crate::{Choices, Drafts, GpuFormat, Options, Report};

pub struct MscclXml;

const REFERENCE: &str = "docs/export.md; msccl-executor-nccl";

impl Emitter for MscclXml {
    fn about(&self) -> About {
        About {
            name: NAME,
            reference: REFERENCE,
            summary: "an algorithm file for the GPU executors that read MSCCL's XML",
        }
    }

    fn accepts(&self, proven: &VerifiedFile) -> Result<(), Refused> {
        self.drafts(proven)(&Choices::default()).map(drop)
    }

    fn emit(&self, proven: &VerifiedFile) -> Result<Files, Refused> {
        self.emit_as(proven, &Choices::default())
    }
}

impl Importer for MscclXml {
    fn about(&self) -> About {
        About { name: NAME, reference: REFERENCE, summary: "an algorithm file of MSCCL, as its tools write it" }
    }

    fn import(&self, text: &str, facts: &Facts) -> Result<File, ImportError> {
        let (schedule, blocks) = import::schedule(&parse::program(text)?, facts, None)?;
        Ok(File { schedule, placement: None, machine: None, blocks: Some(blocks) })
    }
}

impl GpuFormat for MscclXml {
    fn protocols(&self) -> &'static [Protocol] {
        &Protocol::ALL
    }

    fn thread_blocks(&self) -> u32 {
        narrow(limits::BLOCKS)
    }

    fn drafts<'a>(&self, proven: &'a VerifiedFile<'a>) -> Drafts<'a> {
        let programs = Programs::new(proven);
        Box::new(move |choices| programs.as_ref().map_err(Clone::clone)?.made(choices, &draft))
    }

    fn emit_as(&self, proven: &VerifiedFile, choices: &Choices) -> Result<Files, Refused> {
        let (schedule, proof) = (proven.verified().schedule(), proven.verified().proof());
        let text = Programs::new(proven)?.made(choices, &|program| checked(program, schedule, proof))?;
        Ok(vec![(format!("{}.xml", schedule.collective().kind), text.into())])
    }

    fn check(&self, text: &str, facts: &Facts, options: Options) -> Result<Report, ImportError> {
        let found = check(text, facts, options)?;
        Ok(Report { bits: found.bits.clone(), report: Box::new(found) })
    }
}
