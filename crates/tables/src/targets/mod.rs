//! The registry of targets: each has one file, a `mod` line and an entry in [`TUNINGS`], both sorted by name.

mod mpich_json;
mod nccl_tuner_csv;
mod ncclx_csv;
mod openmpi_han;
mod openmpi_json;
mod openmpi_rules;
mod ucc;

use crate::Tuning;

pub const TUNINGS: &[&Tuning] = &[
    &mpich_json::TUNING,
    &nccl_tuner_csv::TUNING,
    &ncclx_csv::TUNING,
    &openmpi_han::TUNING,
    &openmpi_json::TUNING,
    &openmpi_rules::TUNING,
    &ucc::TUNING,
];
