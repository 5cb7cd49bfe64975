//! Lists all formats of schedules, written and read, and the formats of programs that are read. The formats are in the
//! crates `formats`, `csl` and `gpu`; callers take the specifics of a format from its crate. A new format is an entry
//! here. Begin with [`EMITTERS`], then read the interfaces in `formats`.

use unisono_csl as csl;
use unisono_formats::{Emitter, Importer, chakra, goal, registers};
use unisono_gpu::{msccl, mscclpp};

/// Formats that are written, sorted by name.
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

/// Formats of schedules that are read, sorted by name.
pub const IMPORTERS: &[&dyn Importer] = &[&msccl::MscclXml, &mscclpp::MscclPp, &registers::Registers];

/// Formats of programs read here, in addition to those of [`unisono_workload::read`].
pub const PROGRAM_FORMATS: &[unisono_workload::Format] = &[goal::FORMAT];
