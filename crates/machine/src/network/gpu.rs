//! The properties of GPUs that libraries of collectives distinguish, and the times of NCCL, fitted to logs.

use serde::{Deserialize, Serialize};

use crate::MachineError;

const MOST_NVLINKS: u32 = 1024;
const MOST_OF_PROCESS: u32 = 1024;
/// The largest accepted time of a start or a step in microseconds (17 minutes), and of a byte in nanoseconds.
const MOST_US: f64 = 1e9;

unisono_base::named! {
    /// A generation of GPUs, which selects the constants of NCCL or RCCL.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Architecture {
        Volta = "volta",
        Ampere = "ampere",
        Hopper = "hopper",
        Blackwell = "blackwell",
        /// MI200, gfx90a.
        Cdna2 = "cdna2",
        /// MI300, gfx942.
        Cdna3 = "cdna3",
        /// MI350, gfx950.
        Cdna4 = "cdna4",
    }
}

impl Architecture {
    /// Returns the architecture of a compute capability such as 90; `None` below Volta.
    pub fn of_sm(sm: u32) -> Option<Self> {
        match sm {
            100.. => Some(Self::Blackwell),
            90.. => Some(Self::Hopper),
            80.. => Some(Self::Ampere),
            70.. => Some(Self::Volta),
            _ => None,
        }
    }

    /// Returns the architecture of an AMD GPU, which files name as `gfx90a` or 910; `None` for other GPUs.
    pub fn of_gcn(gcn: &str) -> Option<Self> {
        match gcn.trim().trim_start_matches("gfx") {
            "90a" | "910" => Some(Self::Cdna2),
            name if name.starts_with("94") => Some(Self::Cdna3),
            name if name.starts_with("95") => Some(Self::Cdna4),
            _ => None,
        }
    }
}

/// The maker of the CPUs of a box.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cpu {
    #[default]
    Intel,
    Amd,
    Arm,
}

/// The table `[gpu]`: the type of the machine's accelerators, which are equal.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    pub architecture: Architecture,
    /// The number of NVLinks of one NVIDIA GPU; by default derived from the rates of its cables. 0 means PCIe only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvlinks: Option<u32>,
    #[serde(default)]
    pub cpu: Cpu,
    /// The number of GPUs whose kernels one process launches one after the other; by default each GPU has its own
    /// process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_gpus: Option<u32>,
}

/// The table `[nccl]`: times of NCCL's algorithms on this machine, which `unisono calibrate --from` fits to logs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NcclTimes {
    /// A sentence that names the logs.
    #[serde(default)]
    pub measured: String,
    pub fits: Vec<NcclFit>,
}

/// The fitted times of one algorithm with one protocol.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NcclFit {
    /// The name of the algorithm in NCCL, such as `ring`.
    pub algorithm: String,
    /// The name of the protocol in NCCL, such as `ll128`.
    pub protocol: String,
    /// True if the times are those of jobs on several boxes.
    #[serde(default)]
    pub across_boxes: bool,
    /// The time from the call until the first step, plus the time of the return.
    pub start_us: f64,
    /// The time of each step to a GPU of the same box.
    pub hop_us: f64,
    #[serde(default)]
    /// The time of each step to a GPU of another box.
    pub network_hop_us: f64,
    /// The time of each byte that a channel sends.
    pub sent_ns_per_byte: f64,
    /// The time of each byte that a channel reads, adds or writes.
    pub worked_ns_per_byte: f64,
    /// The number of measurements that the times are fitted to.
    #[serde(default)]
    pub points: u32,
}

impl Gpu {
    pub(super) fn check(&self, origin: &str) -> Result<(), MachineError> {
        let wrong = |key, found: u32, accepted| {
            Err(MachineError::Value { origin: origin.to_owned(), key, found: found.to_string(), accepted })
        };
        if let Some(found) = self.nvlinks.filter(|&links| links > MOST_NVLINKS) {
            return wrong("gpu.nvlinks", found, "0 to 1024");
        }
        match self.process_gpus.filter(|gpus| !(1..=MOST_OF_PROCESS).contains(gpus)) {
            None => Ok(()),
            Some(found) => wrong("gpu.process_gpus", found, "1 to 1024"),
        }
    }
}

impl NcclTimes {
    pub(super) fn check(&self, origin: &str) -> Result<(), MachineError> {
        let prices = self.fits.iter().flat_map(|fit| {
            [fit.start_us, fit.hop_us, fit.network_hop_us, fit.sent_ns_per_byte, fit.worked_ns_per_byte]
        });
        match prices.into_iter().find(|price| !(0.0..=MOST_US).contains(price)) {
            None => Ok(()),
            Some(found) => {
                let (origin, found) = (origin.to_owned(), format!("{found:?}"));
                Err(MachineError::Value { origin, key: "nccl.fits", found, accepted: "prices from 0 to 1e9" })
            }
        }
    }

    pub fn fit(&self, algorithm: &str, protocol: &str, across_boxes: bool) -> Option<&NcclFit> {
        let is_asked = |f: &&NcclFit| {
            (f.algorithm.as_str(), f.protocol.as_str(), f.across_boxes) == (algorithm, protocol, across_boxes)
        };
        self.fits.iter().find(is_asked)
    }
}
