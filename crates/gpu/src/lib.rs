//! Plans for GPUs in the formats of two libraries: written from a proved schedule, checked, and imported. A format is
//! one folder, an entry of [`FORMATS`], and an implementation of [`GpuFormat`]. Its `check.rs` follows the rules of the
//! library's own loader and kernels, and proves each file for each way and size in which the library runs it. Every
//! written file is read back and checked before it is returned. Begin with [`GpuFormat`], then read the head of
//! [`mscclpp`] or [`msccl`] and the `check.rs` of that folder.

// Numbers that do not fit are refused when they are read; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod bits;
mod collectives;
#[doc(hidden)]
pub mod internals;
pub mod msccl;
pub mod mscclpp;
mod ordered;

pub use bits::FileBits;
use unisono_formats::{Emitter, Facts, Files, ImportError, Importer, Refused};
use unisono_lower::{File, VerifiedFile};
use unisono_machine::{Description, InNetwork, Machine, Wafer, network::Protocol};
use unisono_schedule::verify::Method;

/// The number of processors of an A100, the smallest GPU that executors of plans support. An H100 has 132.
pub const PROCESSORS: u32 = 108;

/// All formats, sorted by name.
pub const FORMATS: &[&dyn GpuFormat] = &[&msccl::MscclXml, &mscclpp::MscclPp];

/// Returns the format with a name; `None` if no format for GPUs has it.
pub fn named(name: &str) -> Option<&'static dyn GpuFormat> {
    FORMATS.iter().copied().find(|&format| Emitter::name(format) == name)
}

/// The user's choices about the files of a plan; `None` selects the format's default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Choices {
    /// True if calls pass one buffer as input and output.
    pub in_place: Option<bool>,
    /// The number of GPUs of a box, which share memory.
    pub gpus_per_box: Option<u32>,
    /// The number of thread blocks that together do the work of one block of a plan; for MSCCL, the number of
    /// instances, each with its own blocks.
    pub thread_blocks: Option<u32>,
    pub protocol: Option<Protocol>,
}

/// The assumptions and the method of a check.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// True if relaxed signals order writes too, as on GPUs whose stores arrive in order. MSCCL has no such signals.
    pub trust_relaxed: bool,
    pub method: Method,
    /// The number of processors of a GPU.
    pub processors: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { trust_relaxed: false, method: Method::default(), processors: PROCESSORS }
    }
}

/// The result of checking a file: `report` has its findings and properties, with the format's keys, and `bits` the
/// properties of its results' bits.
pub struct Report {
    pub report: Box<dyn erased_serde::Serialize + Send>,
    pub bits: FileBits,
}

/// The function that [`GpuFormat::drafts`] returns, from choices to a schedule.
pub type Drafts<'a> = Box<dyn Fn(&Choices) -> Result<File, Refused> + Sync + 'a>;

/// A format of plans for GPUs, whose files are checked by the rules of the library that runs them.
pub trait GpuFormat: Emitter + Importer {
    /// Returns the protocols with which thread blocks can run the files.
    fn protocols(&self) -> &'static [Protocol];

    /// Returns the largest number of thread blocks that a file may have for a GPU.
    fn thread_blocks(&self) -> u32;

    /// Returns a function that maps choices to the schedule that would be read back from the files. The files are
    /// neither written nor proved; the planner compares choices by these schedules.
    ///
    /// The function returns the errors of [`GpuFormat::emit_as`].
    fn drafts<'a>(&self, proven: &'a VerifiedFile<'a>) -> Drafts<'a>;

    /// Returns the files that follow a user's choices.
    ///
    /// # Errors
    /// Returns the errors of [`Emitter::emit`], and an error if the format does not have a choice.
    fn emit_as(&self, proven: &VerifiedFile, choices: &Choices) -> Result<Files, Refused>;

    /// Checks the text of a file for every way and size in which the library would run it.
    ///
    /// # Errors
    /// Returns one sentence with the line if the text is not a file of the format.
    fn check(&self, text: &str, facts: &Facts, options: Options) -> Result<Report, ImportError>;
}

/// Returns the reason why a library for GPUs does not run on a machine; `None` if the library may run there.
pub fn not_of_gpus(machine: &Machine) -> Option<String> {
    let what = match machine.kind() {
        Wafer::KIND => "a wafer, whose PEs run CSL (--for csl)",
        InNetwork::KIND => "of kind in-network, whose cores load registers of their switches (--for registers)",
        _ => return None,
    };
    Some(format!("it is for GPUs, and {} is {what}", machine.name()))
}

/// Returns the reason why a GPU with `processors` processors cannot run the thread blocks of a plan; `None` if it can.
/// All blocks must be resident at once: a block that waits keeps its processor, and the block that it waits for needs
/// another one.
fn too_many_blocks(gpu: u32, blocks: usize, processors: u32) -> Option<String> {
    (blocks > processors as usize).then(|| {
        format!(
            "gpu {gpu} has {blocks} thread blocks that have to run at once, and {processors} processors; use fewer, or state \
             the processors of your GPU"
        )
    })
}
