//! Emitters: one folder or file each, registered in [`EMITTERS`]. An emitter may refuse a schedule, with the reason,
//! and never alters its meaning. What reads other tools' schedules is registered in [`IMPORTERS`], and what writes
//! decision tables for other libraries in [`tuning::TUNINGS`].

// A number that does not fit is refused where it enters; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod bits;
pub mod chakra;
pub mod csl;
pub mod goal;
#[doc(hidden)]
pub mod internals;
pub mod msccl;
pub mod mscclpp;
pub mod registers;
pub mod tuning;

pub use bits::FileBits;
use unisono_collective::{Collective, Dtype, Operator};
use unisono_lower::{File, Placement, VerifiedFile, wafer::LowerError};
use unisono_machine::{Description, InNetwork, Machine, Wafer, network::Protocol};
use unisono_schedule::Schedule;

/// Processors of a GPU: those of an A100, the fewest of the GPUs that executors of plans are made for. An H100 has 132.
pub const PROCESSORS: u32 = 108;

/// Returns why a GPU with that many processors cannot run the thread blocks of a plan, each of which takes a processor:
/// one that waits can keep another one from its processor.
fn too_many_blocks(gpu: u32, blocks: usize, processors: u32) -> Option<String> {
    (blocks > processors as usize).then(|| {
        format!(
            "gpu {gpu} has {blocks} thread blocks that have to run at once, and {processors} processors; use fewer, or state \
             the processors of your GPU"
        )
    })
}

/// Why a target cannot express a schedule: what was found, and what the target accepts.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{target} cannot express this schedule: {reason}")]
pub struct Refused {
    pub target: &'static str,
    pub reason: String,
}

impl Refused {
    fn lowering(target: &'static str, error: &LowerError) -> Self {
        Self { target, reason: error.to_string() }
    }
}

/// Refuses a schedule on a machine that has no GPUs, for a library of GPUs.
fn on_gpus(target: &'static str, file: &File) -> Result<(), Refused> {
    match file.machine.as_ref().and_then(not_of_gpus) {
        Some(reason) => Err(Refused { target, reason }),
        None => Ok(()),
    }
}

/// Returns why a library of GPUs does not run on a machine; nothing where it may.
pub fn not_of_gpus(machine: &Machine) -> Option<String> {
    let what = match machine.kind() {
        Wafer::KIND => "a wafer, whose PEs run CSL (--for csl)",
        InNetwork::KIND => "of kind in-network, whose cores load registers of their switches (--for registers)",
        _ => return None,
    };
    Some(format!("it is for GPUs, and {} is {what}", machine.name()))
}

/// The contents of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Contents {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<String> for Contents {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Contents {
    /// The text; `None` of bytes.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bytes(_) => None,
        }
    }
}

/// Files by relative path.
pub type Files = Vec<(String, Contents)>;

/// The user's choices about the files of a target; `None` takes the target's default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Choices {
    /// True if calls give one buffer as input and output.
    pub in_place: Option<bool>,
    /// GPUs of a box, between which memory is shared.
    pub gpus_per_box: Option<u32>,
    /// Thread blocks that share the work of a GPU; in a file of MSCCL instances, each with thread blocks of its own.
    pub thread_blocks: Option<u32>,
    pub protocol: Option<Protocol>,
}

/// A function of choices, which [`Emitter::drafts`] returns.
pub type Drafts<'a> = Box<dyn Fn(&Choices) -> Result<File, Refused> + Sync + 'a>;

/// One output format.
pub trait Emitter: Sync {
    fn name(&self) -> &'static str;
    fn summary(&self) -> &'static str;
    fn reference(&self) -> &'static str;

    /// Values of parameters that algorithms take for this target, where the user gives no others.
    fn params(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The protocols of the thread blocks that run the target's files; empty where it has no thread blocks.
    fn protocols(&self) -> &'static [Protocol] {
        &[]
    }

    /// Thread blocks of a GPU, at most, where it has any.
    fn thread_blocks(&self) -> u32 {
        0
    }

    /// Returns a sentence on what the target does for a collective otherwise than its plan says: work that predictions
    /// do not count, or other bits.
    fn note(&self, _collective: &Collective) -> Option<String> {
        None
    }

    /// Returns the sentence of [`Self::note`] if it is true of the written files.
    fn note_of(&self, collective: &Collective, _texts: &[String]) -> Option<String> {
        self.note(collective)
    }

    /// Returns the properties of the bits of a file of a schedule, in the order in which the target adds. `None` if it
    /// adds in the order of the schedule.
    ///
    /// # Errors
    /// The text is not a file of the target.
    fn bits(&self, _text: &str, _schedule: &Schedule) -> Option<Result<FileBits, ImportError>> {
        None
    }

    /// The placement in which the target has a schedule, if it is another one than the file's. The emitted code, its
    /// simulation and its predicted time are those of this placement.
    ///
    /// # Errors
    /// The reason why the target has none.
    fn adapt(&self, _file: &File) -> Result<Option<Placement>, Refused> {
        Ok(None)
    }

    /// Returns whether the target can express a schedule, without writing files where that takes long.
    ///
    /// # Errors
    /// The reason why it cannot.
    fn accepts(&self, proven: &VerifiedFile) -> Result<(), Refused> {
        self.emit(proven).map(drop)
    }

    /// Returns a function of choices whose result is the schedule that a target with thread blocks reads back from its
    /// files. The files are neither written nor proved: choices are compared by it.
    ///
    /// Errors of the function: as [`Emitter::emit_as`], and a target without thread blocks.
    fn drafts<'a>(&self, _proven: &'a VerifiedFile<'a>) -> Drafts<'a> {
        let target = self.name();
        Box::new(move |_| Err(Refused { target, reason: "it has no thread blocks".to_owned() }))
    }

    /// The files, or why there are none. What was written is checked before it is handed out. An emitter that adapts
    /// placements adapts this one too.
    ///
    /// # Errors
    /// The reason why the target cannot express the schedule.
    fn emit(&self, proven: &VerifiedFile) -> Result<Files, Refused>;

    /// The files as a user chose them.
    ///
    /// # Errors
    /// As [`Emitter::emit`], and a choice that the target does not have.
    fn emit_as(&self, proven: &VerifiedFile, choices: &Choices) -> Result<Files, Refused> {
        if *choices == Choices::default() {
            return self.emit(proven);
        }
        let reason = "it has no plans in place and no boxes of GPUs; only mscclpp has these choices".to_owned();
        Err(Refused { target: self.name(), reason })
    }
}

/// Sorted by name.
pub const EMITTERS: &[&dyn Emitter] = &[
    &chakra::AstraSim,
    &chakra::Chakra,
    &csl::Csl,
    &csl::CslMeasured,
    &csl::CslModule,
    &goal::Goal,
    &msccl::MscclXml,
    &mscclpp::MscclPp,
    &registers::Registers,
];

/// Facts that an imported file leaves open; `None` takes the default of the file or of the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// The elements, as MPI counts them.
    pub elements: Option<u64>,
    pub dtype: Option<Dtype>,
    pub operator: Option<Operator>,
    pub root: Option<u64>,
}

impl Asked {
    /// Asks for the collective of a schedule.
    fn of(schedule: &Schedule) -> Self {
        let c = schedule.collective();
        let root = c.kind.has_root().then(|| u64::from(c.root));
        Self { elements: Some(c.count()), dtype: Some(c.dtype), operator: Some(c.operator), root }
    }
}

/// The fault of a file and its line; line 0 is the file as a whole.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{message}", if *.line == 0 { String::new() } else { format!("line {}: ", .line) })]
pub struct ImportError {
    pub line: u32,
    pub message: String,
}

impl ImportError {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

impl From<unisono_base::xml::XmlError> for ImportError {
    fn from(error: unisono_base::xml::XmlError) -> Self {
        Self { line: error.line, message: error.message }
    }
}

/// The formats of programs that are read here, beside those of [`unisono_workload::read`].
pub const PROGRAM_FORMATS: &[unisono_workload::Format] = &[goal::FORMAT];

/// One input format.
pub trait Importer: Sync {
    fn name(&self) -> &'static str;
    fn summary(&self) -> &'static str;
    fn reference(&self) -> &'static str;
    /// The schedule that a file describes, with its placement and machine where the file has them; whether it is right
    /// is for `verify`.
    ///
    /// # Errors
    /// One sentence, with the line.
    fn import(&self, text: &str, asked: &Asked) -> Result<File, ImportError>;
}

/// Sorted by name.
pub const IMPORTERS: &[&dyn Importer] = &[&msccl::MscclXml, &mscclpp::MscclPp, &registers::Registers];
