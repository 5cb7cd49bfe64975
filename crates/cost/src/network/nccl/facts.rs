//! The facts of a machine that NCCL's search reads: the links of a GPU, and the network interfaces of a box.
//!
//! NVLinks have the rates that NCCL assumes, not those of the machine file, because NCCL chooses by its own rates.

use unisono_base::narrow;
use unisono_machine::network::{Cpu, Network, Topology};

use super::constants::{self, Generation, nvlink};
use crate::network::gpu_boxes::GpuBoxes;

/// The facts that NCCL reads about the GPUs and boxes of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct Facts {
    pub architecture: Generation,
    pub cpu: Cpu,
    pub boxes: u32,
    /// The number of GPUs of the job in one box.
    pub gpus: u32,
    /// The rate of all NVLinks of one GPU to GPUs of the job and to NVSwitches together, in GB/s; the least of all
    /// GPUs. 0 if some GPU has only PCIe.
    pub nvlink: f64,
    /// True if NVSwitches join the GPUs.
    pub has_nvswitch: bool,
    /// True if the total rate of NVLinks is the same for all GPUs, as sums in NVSwitches require.
    pub has_equal_nvlinks: bool,
    /// The rate of the direct NVLinks between each two GPUs in GB/s, as a matrix row by row.
    pub pairs: Vec<f64>,
    /// The rate between a GPU and PCIe in GB/s; `ASSUMED_PCIE` if the machine has no PCIe cable.
    pub pcie: f64,
    /// The rate of a ring of the GPUs over PCIe and CPUs in GB/s.
    pub pcie_ring: f64,
    /// The number of network interfaces of one box, multiplied by the fraction of the box's GPUs that are in the job,
    /// rounded up.
    pub nics: u32,
    /// The rate of one interface in GB/s, at most the rate of the machine's PCIe.
    pub nic: f64,
    /// The microseconds by which the latency of the network exceeds the latency that NCCL assumes. NCCL's own choice
    /// ignores this difference.
    pub late_us: f64,
    /// The number of GPUs of one process.
    pub process_gpus: u32,
    /// True if the switches between boxes reduce (CollNet).
    pub network_reduces: bool,
}

/// The rate of PCIe of the fourth generation with 16 lanes in GB/s, for machines without a PCIe cable.
const ASSUMED_PCIE: f64 = 24.0;
/// The fraction of the rate of PCIe that messages between GPUs reach through an Intel CPU. The CPU cuts messages into
/// packets of 64 bytes (`INTEL_P2P_OVERHEAD` of src/graph/topo.h).
const INTEL_SHARE: f64 = 5.0 / 6.0;

impl Facts {
    /// # Errors
    /// Returns an error if [`GpuBoxes::new`] does, or if the GPUs are not NVIDIA's.
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
        // The machine file may have measured or nominal rates. NCCL counts links and multiplies their number by its own
        // rate of a link.
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

    /// Returns the facts with the PCIe rates of `measured`, the facts of the machine with measured rates, because NCCL
    /// assumes measured rates of PCIe.
    #[must_use]
    pub fn with_pcie_of(self, measured: &Self) -> Self {
        let nic = if self.nics > 0 { self.nic.min(measured.pcie) } else { self.nic };
        Self { pcie: measured.pcie, pcie_ring: measured.pcie_ring, nic, ..self }
    }

    pub fn ranks(&self) -> u32 {
        self.boxes * self.gpus
    }
}
