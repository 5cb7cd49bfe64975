//! CSL as a registered emitter: lowered, written, read back and checked.

use unisono_lower::{Placement, VerifiedFile, wafer::lower};
use unisono_machine::Wafer;

use super::{Project, SdkTarget, check, emit, normalised, read};
use crate::{Emitter, Files, Refused};

pub struct Csl;

const NAME: &str = "csl";

impl Emitter for Csl {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "a CSL project for SDK 1.0 on the WSE-2: layout, PE programs, run script, commands"
    }

    fn reference(&self) -> &'static str {
        "docs/csl.md"
    }

    fn emit(&self, proven: &VerifiedFile) -> Result<Files, Refused> {
        let file = proven.file();
        let refused = |reason: String| Err(Refused { target: NAME, reason });
        let Some(machine) = &file.machine else {
            return refused("it has no machine; place it on a wafer".to_owned());
        };
        let Some(wafer) = machine.get::<Wafer>() else {
            return refused(format!("{} is not a wafer", machine.name()));
        };
        let Some(placement) = file.placement.as_ref().and_then(Placement::grid) else {
            return refused("it has no placement; place it on a wafer".to_owned());
        };
        let program = lower(proven.verified(), placement, wafer).map_err(|e| Refused::lowering(NAME, &e))?;
        let target = SdkTarget::WSE2_SDK_1_0;
        let files = emit(&program, &target)?;
        // What does not read back to the same program, or breaks a rule of the language, is a fault of this emitter: it
        // is refused rather than handed to a compiler.
        let fault = |reason: String| Refused {
            target: NAME,
            reason: format!("the emitted project is wrong, please report it: {reason}"),
        };
        let again = read(&files).map_err(|e| fault(e.to_string()))?;
        if again != normalised(&program) {
            return Err(fault("it reads back to another program".to_owned()));
        }
        let project = Project::parse(&files).map_err(|e| fault(e.to_string()))?;
        match check(&project, &target).first() {
            Some(finding) => Err(fault(finding.to_string())),
            None => Ok(files.into_iter().map(|(name, text)| (name, text.into())).collect()),
        }
    }
}
