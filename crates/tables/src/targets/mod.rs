//! The registry of targets: each has one file, a `mod` line and an entry in [`TUNINGS`], both sorted by name.

mod mpich_json;
mod nccl_tuner_csv;
mod ncclx_csv;
mod openmpi_han;
mod openmpi_json;
mod openmpi_rules;
mod ucc;

use crate::Tuning;

pub const TUNINGS: &[&dyn Tuning] = &[
    &mpich_json::MpichJson,
    &nccl_tuner_csv::NcclTunerCsv,
    &ncclx_csv::NcclxCsv,
    &openmpi_han::OpenmpiHan,
    &openmpi_json::OpenmpiJson,
    &openmpi_rules::OpenmpiRules,
    &ucc::Ucc,
];
