//! The facts of a machine that NCCL's search reads: the links of a GPU, and the network interfaces of a box.
//!
//! Rates are those that NCCL assumes for a link, not those of the machine file, because NCCL decides by them.

use unisono_base::narrow;
use unisono_machine::network::{Cpu, Network, Topology};

use super::constants::{self, Generation, nvlink};
use crate::network::gpu_boxes::GpuBoxes;

/// The part of a machine that a job uses, from NCCL's view.
#[derive(Clone, PartialEq, Debug)]
pub struct Facts {
    pub architecture: Generation,
    pub cpu: Cpu,
    pub boxes: u32,
    /// GPUs of one box.
    pub gpus: u32,
    /// GB/s of all NVLinks of the GPU with the fewest; 0 if PCIe joins it or all GPUs to the others.
    pub nvlink: f64,
    /// True if NVSwitches join the GPUs.
    pub has_nvswitch: bool,
    /// True if all GPUs have as many NVLinks, which sums in NVSwitches need.
    pub has_equal_nvlinks: bool,
    /// GB/s between each two GPUs that NVLinks join directly, row by row.
    pub pairs: Vec<f64>,
    /// GB/s between a GPU and PCIe, and of a ring of the GPUs over PCIe and CPUs.
    pub pcie: f64,
    pub pcie_ring: f64,
    /// Network interfaces of one box, and GB/s of each.
    pub nics: u32,
    pub nic: f64,
    /// Microseconds that a message between boxes takes more than NCCL assumes; NCCL does not know them.
    pub late_us: f64,
    /// The GPUs of one process.
    pub process_gpus: u32,
    /// True if the switches between boxes reduce (CollNet).
    pub network_reduces: bool,
}

/// GB/s of PCIe of the fourth generation with 16 lanes, for machines without a PCIe cable.
const ASSUMED_PCIE: f64 = 24.0;
/// The share of PCIe that messages between GPUs reach through an Intel CPU, which cuts them into packets of 64 bytes
/// (`INTEL_P2P_OVERHEAD` of src/graph/topo.h).
const INTEL_SHARE: f64 = 5.0 / 6.0;

impl Facts {
    /// # Errors
    /// Returns an error as [`GpuBoxes::new`], and if the GPUs are not NVIDIA's.
    pub fn new(
        network: &Network,
        topology: &dyn Topology,
        nodes: &[u32],
        network_reduces: bool,
    ) -> Result<Self, String> {
        let GpuBoxes { gpu, boxes, ranks: gpus, in_box, links, network_ns } =
            GpuBoxes::new("NCCL", network, topology, nodes)?;
        let Some(generation) = Generation::of(gpu.architecture) else {
            return Err(format!(
                "NCCL runs on GPUs of NVIDIA, and those of {} are {}; use --as rccl",
                network.name,
                gpu.architecture.name()
            ));
        };
        let [rate, nominal] = nvlink(generation);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of links")]
        let all = gpu.nvlinks.unwrap_or_else(|| match links.most {
            most if most > 0.0 => (most / nominal).round().max(1.0) as u32,
            _ => 0,
        });
        // The machine file may have measured or nominal rates. NCCL's rate is a number of links times its own rate of
        // one link.
        let scale = if links.most > 0.0 { f64::from(all) * rate / links.most } else { 0.0 };
        let pcie = if links.pcie > 0.0 { links.pcie } else { ASSUMED_PCIE };
        let own = if gpu.cpu == Cpu::Intel { INTEL_SHARE * pcie } else { pcie };
        Ok(Self {
            architecture: generation,
            cpu: gpu.cpu,
            boxes,
            gpus,
            nvlink: links.used * scale,
            has_nvswitch: links.has_nvswitch && all > 0,
            has_equal_nvlinks: links.are_alike,
            pairs: links.pairs.iter().map(|pair| pair * scale).collect(),
            pcie,
            pcie_ring: if links.between > 0.0 { own.min(links.between) } else { own },
            nics: narrow((u64::from(links.nics) * u64::from(gpus)).div_ceil(u64::from(in_box))),
            nic: if links.pcie > 0.0 && links.nics > 0 { links.nic.min(links.pcie) } else { links.nic },
            late_us: (network_ns / 1000.0 - constants::NETWORK_US).max(0.0),
            process_gpus: gpu.process_gpus.unwrap_or(1).min(gpus),
            network_reduces,
        })
    }

    /// Returns the facts with the ways over PCIe of a machine with measured rates, which are those that NCCL counts.
    #[must_use]
    pub fn with_pcie_of(self, measured: &Self) -> Self {
        let nic = if self.nics > 0 { self.nic.min(measured.pcie) } else { self.nic };
        Self { pcie: measured.pcie, pcie_ring: measured.pcie_ring, nic, ..self }
    }

    pub fn ranks(&self) -> u32 {
        self.boxes * self.gpus
    }
}
