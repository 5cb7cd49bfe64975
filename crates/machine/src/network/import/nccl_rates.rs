//! The rates of NCCL and RCCL for the links of a topology, and those of data sheets, in GB/s.
//!
//! Sources: NVIDIA/nccl, src/graph/topo.h and topo.cc; ROCm/rccl, src/graph/topo.h. Data sheets: NVLink 1 to 5 with 20,
//! 25, 25 (14.0625 for GPUs with sm 86), 25 and 50 GB/s a link and direction; Infinity Fabric with 50 GB/s, for MI300
//! 64 and for MI350 76.8; PCIe with its coding of 8 bits in 10, and of 128 in 130 from the third generation on.

use unisono_base::{
    narrow,
    xml::{Element, XmlError},
};

use crate::network::{Architecture, Cpu, Gpu};

/// The rate of a link in GB/s: as NCCL and RCCL measured it, and by its data sheet.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Rate {
    pub measured: f64,
    pub sheet: f64,
}

/// The fraction of the rate of a network interface that programs reach: 12, 24, 48 and 96 GB/s of 100, 200, 400 and 800
/// Gb/s, the first rates of NCCL's search that fit (src/graph/search.cc).
pub const NIC_SHARE: f64 = 0.96;

impl Rate {
    /// Returns the rate of a link for which both rates are equal.
    pub fn of(measured: f64) -> Self {
        Self { measured, sheet: measured }
    }

    pub fn times(self, count: f64) -> Self {
        Self { measured: self.measured * count, sheet: self.sheet * count }
    }

    pub fn plus(self, other: Self) -> Self {
        Self { measured: self.measured + other.measured, sheet: self.sheet + other.sheet }
    }

    /// Returns the rates in Gb/s, as words of a cable's line.
    pub fn words(self) -> String {
        let [measured, sheet] = [self.measured, self.sheet].map(|rate| 8.0 * rate);
        if measured < sheet { format!("gbps={sheet} measured={measured}") } else { format!("gbps={measured}") }
    }
}

/// Returns the rate of a PCIe link, and true if its generation is known. As in NCCL, a missing or unknown generation is
/// read as the third, and a missing number of lanes as 16.
///
/// # Errors
/// Returns an error if the number of lanes is not a number.
pub fn pcie(element: &Element) -> Result<(Rate, bool), XmlError> {
    let speed = element.find("link_speed").unwrap_or("").split_whitespace().next().unwrap_or("");
    let (lane, sheet) = match speed {
        "2.5" => (15.0, 2.0),
        "5" | "5.0" => (30.0, 4.0),
        "16" | "16.0" => (120.0, 16.0 * 128.0 / 130.0),
        "32" | "32.0" => (240.0, 32.0 * 128.0 / 130.0),
        "64" | "64.0" => (480.0, 64.0 * 242.0 / 256.0),
        _ => (60.0, 8.0 * 128.0 / 130.0),
    };
    let is_known = lane != 60.0 || matches!(speed, "" | "8" | "8.0");
    let width = element.stated("link_width", 0, 1 << 10)?.filter(|&n| n > 0).unwrap_or(16);
    Ok((Rate { measured: lane / 80.0, sheet: sheet / 8.0 }.times(width as f64), is_known))
}

/// Returns the compute capability of a GPU (`sm`), such as 90.
///
/// # Errors
/// Returns an error if `sm` is missing, without which NCCL reads no GPU, or is not a number.
pub fn sm(gpu: &Element) -> Result<u32, XmlError> {
    gpu.number("sm", 0, 1 << 16).map(narrow)
}

/// Returns the rate of one NVLink of a GPU.
///
/// # Errors
/// Returns the errors of [`sm`].
pub fn nvlink(gpu: &Element) -> Result<Rate, XmlError> {
    let (measured, sheet) = match sm(gpu)? {
        100.. => (40.1, 50.0),
        90..100 => (20.6, 25.0),
        86 => (12.0, 14.0625),
        60..70 => (18.0, 20.0),
        _ => (20.0, 25.0),
    };
    Ok(Rate { measured, sheet })
}

/// Returns the fraction of the NVLink rate that reductions in NVSwitches reach (NCCL, src/graph/tuning.cc: the
/// efficiency of NVLS).
pub fn nvls_share(sm: u32) -> f64 {
    if sm >= 100 { 0.74 } else { 0.85 }
}

/// Returns the rate of one xGMI link. Files name the architecture as `gfx90a` or as 910.
pub fn xgmi(gpu: &Element) -> Rate {
    let gcn = gpu.find("gcn").unwrap_or("").trim_start_matches("gfx");
    let (measured, sheet) = match gcn {
        "90a" | "910" => (36.0, 50.0),
        _ if gcn.starts_with("94") => (48.0, 64.0),
        _ if gcn.starts_with("95") => (48.0, 76.8),
        _ => (24.0, 50.0),
    };
    Rate { measured, sheet }
}

/// Returns the rate between two CPUs in GB/s. If the vendor of an x86 CPU is unknown, NCCL uses its rate inside one
/// device.
pub fn between_cpus(cpu: &Element) -> f64 {
    let number = |key: &str| cpu.find(key).and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(0);
    let (family, model) = (number("familyid"), number("modelid"));
    match (cpu.find("arch").unwrap_or(""), cpu.find("vendor").unwrap_or("").trim()) {
        ("ppc64", _) => 32.0,
        ("arm64", _) => 6.0,
        (_, "GenuineIntel") => match (family, model) {
            // Granite Rapids and Sierra Forest are newer than models with higher numbers.
            (6, 0xCF.. | 0xAD..=0xAF) => 40.0,
            (6, 0x8F..) => 22.0,
            (6, 0x55..) => 10.0,
            _ => 6.0,
        },
        // Older versions of NCCL write the second number of each arm.
        (_, "AuthenticAMD" | "AMD") => match family {
            // Zen 5.
            26 | 0xBF => 32.0,
            // Zen 3 and 4.
            25 | 0xAF => 24.0,
            _ => 16.0,
        },
        (_, "CentaurHauls" | "Shanghai") if (family, model) == (7, 0x5B) => 9.0,
        (_, "CentaurHauls" | "Shanghai") => 6.0,
        _ => 5000.0,
    }
}

/// Returns a sentence on the first GPU that NCCL treats like another generation, such as a GPU with `sm` 89 (Ada) or 75
/// (Turing).
pub fn of_generation(cpus: &[Element], architecture: Architecture) -> Option<String> {
    let own = |sm: &u32| !matches!(sm, 70 | 80 | 90 | 100);
    let is_gpu = |element: &&Element| element.name == "gpu" && element.find("gcn").is_none();
    let here = cpus.iter().filter(is_gpu).filter_map(|gpu| sm(gpu).ok()).find(own);
    let said = |sm| {
        let name = architecture.name();
        format!("GPUs with sm {sm} count as {name}, as NCCL counts them in its model: their own costs may differ")
    };
    here.map(said).or_else(|| cpus.iter().find_map(|element| of_generation(&element.children, architecture)))
}

/// Returns the type of the GPUs below some elements: the oldest architecture, the largest number of NVLinks, and the
/// maker of the first CPU. Returns `None` if there are no GPUs, or a GPU has no architecture or one that is not in
/// [`Architecture`].
pub fn gpu_of(cpus: &[Element]) -> Option<Gpu> {
    let (mut found, mut open) = (None::<Gpu>, cpus.iter().collect::<Vec<_>>());
    let cpu = match cpus.iter().find_map(|cpu| cpu.find("vendor").or(cpu.find("arch"))) {
        Some("AuthenticAMD" | "AMD") => Cpu::Amd,
        Some("arm64") => Cpu::Arm,
        _ => Cpu::Intel,
    };
    while let Some(element) = open.pop() {
        open.extend(&element.children);
        if element.name == "gpu" {
            let links = element.children.iter().filter(|link| link.name == "nvlink");
            let count =
                |link: &Element| link.find("count").and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(0);
            let gcn = element.find("gcn");
            let nvlinks = gcn.is_none().then(|| links.map(count).fold(0, u32::saturating_add).min(1024));
            let of_sm = || Architecture::of_sm(element.find("sm")?.trim().parse().ok()?);
            let architecture = gcn.map_or_else(of_sm, Architecture::of_gcn)?;
            found = Some(match found {
                None => Gpu { architecture, nvlinks, cpu, process_gpus: None },
                Some(gpu) => {
                    Gpu { architecture: gpu.architecture.min(architecture), nvlinks: gpu.nvlinks.max(nvlinks), ..gpu }
                }
            });
        }
    }
    found
}
