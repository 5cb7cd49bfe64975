//! Why a workload has no time.

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("'{found}' is neither a workload nor a workload file; workloads are {presets}")]
    Unknown { found: String, presets: String },
    #[error("{origin}, line {line}: {message}")]
    Toml { origin: String, line: usize, message: String },
    #[error("{origin}: {message}")]
    Wrong { origin: String, message: String },
    #[error("{name} needs {ranks} accelerators, and {machine} has {accelerators}")]
    TooLarge { name: String, ranks: u32, machine: String, accelerators: u64 },
    #[error(
        "{name} takes {tall}x{wide} accelerators, which do not fit on the {rows}x{cols} of {machine}; give its dimensions another shape"
    )]
    DoesNotFit { name: String, tall: u64, wide: u64, machine: String, rows: u32, cols: u32 },
    #[error("step '{step}': {message}")]
    Step { step: String, message: String },
}
