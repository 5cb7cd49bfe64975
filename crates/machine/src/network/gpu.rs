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

/// The compute capabilities of NVIDIA's GPUs, by words in their names. The order matters: the first match is used,
/// because some model numbers occur in several generations. Source: NVIDIA, "CUDA GPU compute capability".
const CAPABILITIES: [(u32, &[&str]); 12] = [
    (121, &["GB10"]),
    (120, &["Blackwell", "5050", "5060", "5070", "5080", "5090"]),
    (110, &["Thor"]),
    (103, &["B300", "GB300"]),
    (100, &["B100", "B200", "GB200"]),
    (90, &["H20", "H100", "H200", "H800", "GH200"]),
    (89, &["Ada", "L4", "L20", "L40", "4050", "4060", "4070", "4080", "4090"]),
    (87, &["Orin"]),
    (
        86,
        &[
            "A2", "A10", "A16", "A40", "A2000", "A4000", "A4500", "A5000", "A5500", "A6000", "3050", "3060", "3070",
            "3080", "3090",
        ],
    ),
    (80, &["A30", "A100", "A800"]),
    (
        75,
        &[
            "T4", "T400", "T600", "T1000", "1650", "1660", "2060", "2070", "2080", "3000", "4000", "5000", "6000",
            "8000",
        ],
    ),
    (70, &["V100", "GV100"]),
];

/// The targets of AMD's GPUs, by words in their names. Source: AMD, "ROCm: GPU hardware specifications".
const TARGETS: [(&str, &[&str]); 3] =
    [("90a", &["MI210", "MI250"]), ("942", &["MI300", "MI308", "MI325"]), ("950", &["MI350", "MI355"])];

impl Architecture {
    /// Returns the architecture of a GPU with the name that its driver states, such as `NVIDIA A100-SXM4-80GB`.
    pub fn of_name(name: &str) -> Option<Self> {
        // A model number may be followed by letters, as in A10G and MI300X.
        let is_of = |word: &str| {
            let mut found = name.split(|c: char| !c.is_ascii_alphanumeric());
            found.any(|own| own.strip_prefix(word).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_alphabetic())))
        };
        let sm = CAPABILITIES.iter().find(|(_, words)| words.iter().any(|word| is_of(word)));
        let gcn = || TARGETS.iter().find(|(_, words)| words.iter().any(|word| is_of(word)));
        sm.map_or_else(|| Self::of_gcn(gcn()?.0), |(sm, _)| Self::of_sm(*sm))
    }

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

    pub fn is_amd(self) -> bool {
        matches!(self, Self::Cdna2 | Self::Cdna3 | Self::Cdna4)
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
    /// The time in which a channel sends one byte.
    pub sent_ns_per_byte: f64,
    /// The time in which a channel reads, adds or writes one byte.
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
