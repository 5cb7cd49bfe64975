//! Training workloads: the time of the compute and communication of one iteration on a machine.
//!
//! A user's workload is a TOML file; the files of `workloads/` are built in as presets.

mod description;
mod discovered;
mod error;
mod fill;
pub mod graph;
mod layout;
mod program;
mod shared;
mod spans;
mod timeline;

pub use description::{Communication, Dimension, Only, Pattern, Step, Workload};
pub use discovered::{TaskProgram, discovered, is_program_of_tasks};
pub use error::{WorkloadError, WrongWorkload};
pub use layout::{groups, places, places_on};
pub use timeline::{Communicated, Iteration, Phase, Taken};

pub struct Preset {
    pub name: &'static str,
    pub toml: &'static str,
}

/// The built-in workloads, sorted by name; one for each file of `workloads/`.
pub const WORKLOADS: &[Preset] = &[
    Preset { name: "cosmoflow", toml: include_str!("../../../../workloads/cosmoflow.toml") },
    Preset { name: "cosmoflow-artifact", toml: include_str!("../../../../workloads/cosmoflow-artifact.toml") },
    Preset { name: "dlrm", toml: include_str!("../../../../workloads/dlrm.toml") },
    Preset { name: "dlrm-artifact", toml: include_str!("../../../../workloads/dlrm-artifact.toml") },
    Preset { name: "dlrm-artifact-rings", toml: include_str!("../../../../workloads/dlrm-artifact-rings.toml") },
    Preset { name: "gpt-3", toml: include_str!("../../../../workloads/gpt-3.toml") },
    Preset { name: "gpt-3-artifact", toml: include_str!("../../../../workloads/gpt-3-artifact.toml") },
    Preset { name: "gpt-3-moe", toml: include_str!("../../../../workloads/gpt-3-moe.toml") },
    Preset { name: "gpt-3-moe-artifact", toml: include_str!("../../../../workloads/gpt-3-moe-artifact.toml") },
    Preset { name: "resnet-152", toml: include_str!("../../../../workloads/resnet-152.toml") },
    Preset { name: "resnet-152-artifact", toml: include_str!("../../../../workloads/resnet-152-artifact.toml") },
];
