//! Plans for GPUs in the formats of two libraries: written from a proved schedule, checked, and imported. A format is
//! one folder, an entry of [`FORMATS`], and an implementation of [`GpuFormat`]. Its `check.rs` follows the rules of the
//! library's own loader and kernels, and proves each file in each way and at each size for which the library runs it.
//! Every written file is read back and checked so before it is handed out. Begin with [`GpuFormat`], then read the head
//! of [`mscclpp`] or [`msccl`] and the `check.rs` of that folder.

// A number that does not fit is refused where it enters; see `unisono_base::narrow`.
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

/// Processors of a GPU: those of an A100, the fewest of the GPUs that executors of plans are made for. An H100 has 132.
pub const PROCESSORS: u32 = 108;

/// Sorted by name.
pub const FORMATS: &[&dyn GpuFormat] = &[&msccl::MscclXml, &mscclpp::MscclPp];

/// Returns the format of a name; `None` if it is not one for GPUs.
pub fn named(name: &str) -> Option<&'static dyn GpuFormat> {
    FORMATS.iter().copied().find(|&format| Emitter::name(format) == name)
}

/// The user's choices about the files of a plan; `None` takes the default of the format.
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

/// The strictness of a check.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Relaxed signals order writes too, as they do on GPUs whose stores arrive in order. MSCCL has no such signals.
    pub trust_relaxed: bool,
    pub method: Method,
    /// Processors of a GPU.
    pub processors: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { trust_relaxed: false, method: Method::default(), processors: PROCESSORS }
    }
}

/// The result of the check of a file: the findings and properties in the keys of its format, and the bits of its
/// results.
pub struct Report {
    pub report: Box<dyn erased_serde::Serialize + Send>,
    pub bits: FileBits,
}

/// A function of choices, which [`GpuFormat::drafts`] returns.
pub type Drafts<'a> = Box<dyn Fn(&Choices) -> Result<File, Refused> + Sync + 'a>;

/// A format of plans for GPUs, whose files are checked by the rules of the library that runs them.
pub trait GpuFormat: Emitter + Importer {
    /// The protocols of the thread blocks that run the files.
    fn protocols(&self) -> &'static [Protocol];

    /// Thread blocks of a GPU, at most.
    fn thread_blocks(&self) -> u32;

    /// Returns a function of choices whose result is the schedule that is read back from the files. The files are
    /// neither written nor proved: choices are compared by it.
    ///
    /// Errors of the function: as [`GpuFormat::emit_as`].
    fn drafts<'a>(&self, proven: &'a VerifiedFile<'a>) -> Drafts<'a>;

    /// The files as a user chose them.
    ///
    /// # Errors
    /// As [`Emitter::emit`], and a choice that the format does not have.
    fn emit_as(&self, proven: &VerifiedFile, choices: &Choices) -> Result<Files, Refused>;

    /// Checks the text of a file: all that the library would do with it.
    ///
    /// # Errors
    /// One sentence with the place, if the text is not a file of the format.
    fn check(&self, text: &str, facts: &Facts, options: Options) -> Result<Report, ImportError>;
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
