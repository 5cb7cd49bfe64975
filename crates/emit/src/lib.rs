//! The list of all formats of schedules: those that are written, those that are read, and those of programs. The
//! formats are in the crates `formats`, `csl` and `gpu`, and callers take what is particular to a format from its
//! crate. A new format is an entry here. Begin with [`EMITTERS`], then read the interfaces in `formats`.

use unisono_csl as csl;
use unisono_formats::{Emitter, Importer, chakra, goal, registers};
use unisono_gpu::{msccl, mscclpp};

/// Sorted by name.
pub const EMITTERS: &[&dyn Emitter] = &[
    &chakra::AstraSim,
    &chakra::Chakra,
    &csl::CSL,
    &csl::CSL_MEASURED,
    &csl::CSL_MODULE,
    &goal::Goal,
    &msccl::MscclXml,
    &mscclpp::MscclPp,
    &registers::Registers,
];

/// Sorted by name.
pub const IMPORTERS: &[&dyn Importer] = &[&msccl::MscclXml, &mscclpp::MscclPp, &registers::Registers];

/// The formats of programs that are read here, beside those of [`unisono_workload::read`].
pub const PROGRAM_FORMATS: &[unisono_workload::Format] = &[goal::FORMAT];
