//! CSL as registered emitters: a schedule is lowered, and its wafer program is written as one of three sets of files.

use unisono_collective::Collective;
use unisono_formats::{About, Emitter, Files, Refused};
use unisono_lower::{
    File, GridPlacement, OnGrid, Placement, VerifiedFile,
    wafer::{WaferProgram, lower},
};
use unisono_machine::Wafer;

use crate::{
    SdkTarget, emit, emit_measured, emit_module,
    write::{self, NAME, accepts, uncounted},
};

/// Lowers a schedule to a wafer program, and writes the program as files in CSL.
pub struct Csl {
    about: About,
    accepts: fn(&WaferProgram, &SdkTarget) -> Result<(), Refused>,
    write: fn(&WaferProgram, &SdkTarget) -> Result<write::Files, Refused>,
}

pub const CSL: Csl = Csl {
    about: About {
        name: NAME,
        reference: "docs/csl.md",
        summary: "a CSL project for the WSE-2 (SDK 1.0) or the WSE-3 (SDK 2): layout, PE programs, run script, commands",
    },
    accepts,
    write: emit,
};

/// The emitter of the project of [`CSL`] with functions and a script that measure the collective's time.
pub const CSL_MEASURED: Csl = Csl {
    about: About {
        name: "csl-measured",
        reference: "docs/csl.md, Near-Optimal Wafer-Scale Reduce section 8.3",
        summary: "the project of csl with a script that measures the time on the wafer, where PEs have no common clock",
    },
    accepts: |program, target| emit_measured(program, target).map(drop),
    write: emit_measured,
};

/// The emitter of modules that a user's CSL program imports to run the collective.
pub const CSL_MODULE: Csl = Csl {
    about: About {
        name: "csl-module",
        reference: "docs/csl.md",
        summary: "modules in CSL that the layout and the PE programs of an own project import",
    },
    accepts: |program, target| emit_module(program, target).map(drop),
    write: emit_module,
};

/// Returns the wafer of a file and the placement on it; refuses a file without either.
fn on_wafer(file: &File) -> Result<(&Wafer, &GridPlacement), Refused> {
    let refused = |reason: String| Refused::new(NAME, reason);
    let machine = file.machine.as_ref();
    let machine = machine.ok_or_else(|| refused("it has no machine; place it on a wafer".to_owned()))?;
    let wafer = machine.get::<Wafer>().ok_or_else(|| refused(format!("{} is not a wafer", machine.name())))?;
    let placement = file.placement.as_ref().and_then(Placement::grid);
    Ok((wafer, placement.ok_or_else(|| refused("it has no placement; place it on a wafer".to_owned()))?))
}

fn adapted(file: &File, placement: &GridPlacement, target: &SdkTarget) -> Result<GridPlacement, Refused> {
    let placed = OnGrid { schedule: &file.schedule, placement };
    target.needs.adapt(placed).map_err(|e| Refused::new(NAME, e))
}

/// Lowers the schedule of a file to a wafer program, and returns it with the target to write it for.
fn program(proven: &VerifiedFile) -> Result<(WaferProgram, SdkTarget), Refused> {
    let (wafer, placement) = on_wafer(proven.file())?;
    let target = SdkTarget::of(wafer.architecture);
    let placement = adapted(proven.file(), placement, &target)?;
    let program = lower(proven.verified(), &placement, wafer).map_err(|e| Refused::new(NAME, e))?;
    Ok((program, target))
}

/// Adds the algorithm and the assumptions about the wafer to the file `README.md`, below its title.
fn described(file: &File, files: write::Files) -> Files {
    let origin = file.schedule.origin();
    let algorithm = if origin.is_empty() { String::new() } else { format!("Algorithm: {origin}.\n\n") };
    let wafer = file.machine.as_ref().and_then(|machine| machine.get::<Wafer>());
    let assumed = wafer.and_then(Wafer::assumptions).map_or_else(String::new, |text| format!("Note: {text}.\n\n"));
    let with = |name: &str, text: String| match text.split_once("\n\n").filter(|_| name == "README.md") {
        Some((title, rest)) => format!("{title}\n\n{algorithm}{assumed}{rest}"),
        None => text,
    };
    files.into_iter().map(|(name, text)| (name.clone(), with(&name, text).into())).collect()
}

impl Emitter for Csl {
    fn about(&self) -> About {
        self.about
    }

    /// Returns a chunk length of 8 elements, as [`SdkTarget::needs`] requires. Algorithms use the same chunk length, so
    /// that models predict the time of the emitted program.
    fn params(&self) -> &'static [(&'static str, &'static str)] {
        &[("chunk", "8")]
    }

    fn note(&self, collective: &Collective) -> Option<String> {
        uncounted(collective)
    }

    fn adapt(&self, file: &File) -> Result<Option<Placement>, Refused> {
        let (wafer, placement) = on_wafer(file)?;
        let adapted = adapted(file, placement, &SdkTarget::of(wafer.architecture))?;
        Ok((adapted != *placement).then_some(Placement::Grid(adapted)))
    }

    fn accepts(&self, proven: &VerifiedFile) -> Result<(), Refused> {
        let (program, target) = program(proven)?;
        (self.accepts)(&program, &target)
    }

    fn emit(&self, proven: &VerifiedFile) -> Result<Files, Refused> {
        let (program, target) = program(proven)?;
        Ok(described(proven.file(), (self.write)(&program, &target)?))
    }
}
