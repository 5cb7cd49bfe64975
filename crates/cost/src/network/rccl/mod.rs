//! RCCL's own choice for a collective: its algorithms and protocols with the times that its cost model states.
//!
//! ```text
//! cost(bytes) = latency + bytes / (bus bandwidth x share x factor of the size x ranks / steps)     of a ring
//! ```
//!
//! and half of the bus bandwidth for a tree. RCCL recognises a box by its links and uses constants that were measured
//! on it; boxes that it does not recognise are not modelled. Rings between boxes have factors by size; rings in one box
//! do not. [`Rccl::file`] returns the file of MSCCL that replaces RCCL's choice. Variables such as `NCCL_ALGO` are not
//! read.
//!
//! Source: `ncclTopoTuneModel` and `ncclTopoGetAlgoTime` of ROCm/rccl 0cbce2a7, src/graph/tuning.cc.

mod constants;
mod files;

use unisono_collective::Kind;
use unisono_machine::network::{Cpu, Network, ThreadBlock, Topology};

use self::constants::{BASE_US, BOXES, Constants, SIZES, Steps};
use super::{
    gpu_boxes::GpuBoxes,
    nccl::{Algorithm, Protocol},
};

pub use self::{constants::VERSION, files::FileTime};

/// RCCL's cost model on equal boxes of GPUs of a type that RCCL recognises.
pub struct Rccl {
    constants: &'static Constants,
    cpu: Cpu,
    boxes: u32,
    blocks: ThreadBlock,
    /// The rate between two GPUs with a link, in GB/s.
    pair: f64,
}

/// An algorithm with a protocol that RCCL enables, and the times and rates of a call with them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Time {
    pub algorithm: Algorithm,
    pub protocol: Protocol,
    /// The number of rings; `None` on several boxes and on types of boxes whose number of rings is not known.
    pub channels: Option<u32>,
    /// The rate of one ring in GB/s.
    pub channel: Option<f64>,
    pub latency_us: f64,
    /// The rate of a call's bytes, in GB/s.
    pub bandwidth: f64,
    /// RCCL's estimate. On several boxes it only orders the algorithms, because some rates are a tenth of the measured
    /// rates.
    pub seconds: f64,
}

impl Rccl {
    /// # Errors
    /// Returns an error if the machine does not state its GPUs or does not consist of boxes of them, or if RCCL has no
    /// constants for the box.
    pub fn new(network: &Network, topology: &dyn Topology, nodes: &[u32]) -> Result<Self, String> {
        let found = GpuBoxes::new("RCCL", network, topology, nodes)?;
        let count = found.ranks as usize;
        let joined = |gpu: usize| found.links.pairs[gpu * count..][..count].iter().filter(|&&rate| rate > 0.0).count();
        let constants = BOXES.iter().find(|of| {
            (of.architecture, of.gpus) == (found.gpu.architecture, found.ranks)
                && found.ranks == found.in_box
                && of.joined.is_none_or(|others| (0..count).all(|gpu| joined(gpu) == others))
        });
        let Some(constants) = constants else {
            return Err(format!(
                "RCCL takes its constants by the box that it recognises, and {} has {} of {} GPUs of a box ({}); known \
                 here are all 8 GPUs of MI300X (cdna3) with a link between each two, and all 16 dies of MI250 (cdna2)",
                network.name,
                found.ranks,
                found.in_box,
                found.gpu.architecture.name()
            ));
        };
        let pair = found.links.pairs.iter().copied().filter(|&rate| rate > 0.0).fold(f64::INFINITY, f64::min);
        let blocks = network.thread_block.unwrap_or_default();
        Ok(Self { constants, cpu: found.gpu.cpu, boxes: found.boxes, blocks, pair })
    }

    pub fn boxes(&self) -> u32 {
        self.boxes
    }

    fn ranks(&self) -> u32 {
        self.boxes * self.constants.gpus
    }

    /// Returns every algorithm and protocol that RCCL enables for a collective, in ascending order of time. `bytes` is
    /// the size as RCCL counts it: of the vector, or of the blocks of all ranks for an allgather and a reduce-scatter.
    ///
    /// # Errors
    /// Returns an error if RCCL has no algorithms for the collective.
    pub fn times(&self, kind: Kind, bytes: u64) -> Result<Vec<Time>, String> {
        let algorithms: &[Algorithm] = match kind {
            Kind::Allreduce => &[Algorithm::Tree, Algorithm::Ring],
            Kind::Allgather | Kind::Broadcast | Kind::Reduce | Kind::ReduceScatter => &[Algorithm::Ring],
            other => {
                return Err(format!(
                    "RCCL has no algorithms for {other}, which it runs as messages, so its cost model has no time; without \
                     --as, '--algorithm linear' has the time of direct messages; accepted are allgather, allreduce, broadcast, reduce and reduce-scatter"
                ));
            }
        };
        let mut found = Vec::new();
        for &algorithm in algorithms {
            for protocol in Protocol::ALL {
                let is_enabled = match (algorithm, protocol) {
                    (_, Protocol::Ll128) => self.constants.has_ll128,
                    (Algorithm::Tree, Protocol::Simple) => self.constants.has_simple_tree || self.boxes > 1,
                    _ => true,
                };
                if is_enabled {
                    found.push(self.time(kind, algorithm, protocol, bytes));
                }
            }
        }
        found.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(found)
    }

    fn time(&self, kind: Kind, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> Time {
        let of = if algorithm == Algorithm::Ring { &self.constants.ring } else { &self.constants.tree };
        let at = protocol as usize;
        let mut rate = self.constants.bus * of.share[usize::from(self.boxes > 2)][at];
        if protocol == Protocol::Ll && self.boxes == 1 && matches!(kind, Kind::Broadcast | Kind::Reduce) {
            rate *= self.constants.rooted_ll;
        }
        rate *= if algorithm == Algorithm::Ring { f64::from(self.ranks()) / f64::from(self.steps(kind)) } else { 0.5 };
        if algorithm == Algorithm::Tree || self.boxes > 1 {
            let power = (bytes >> 6).checked_ilog2().unwrap_or(0) as usize;
            rate *= of.by_size[at][power.min(SIZES - 1)];
        }
        let latency_us = BASE_US[at] + self.hops_us(kind, algorithm, protocol, of);
        let channels = self.constants.rings.filter(|_| self.boxes == 1);
        Time {
            algorithm,
            protocol,
            channels,
            channel: channels.map(|count| self.constants.bus / f64::from(count)),
            latency_us,
            bandwidth: rate,
            seconds: (latency_us + bytes as f64 / (1000.0 * rate)) / 1e6,
        }
    }

    fn steps(&self, kind: Kind) -> u32 {
        match kind {
            Kind::Allreduce => 2 * (self.ranks() - 1),
            Kind::Allgather | Kind::ReduceScatter => self.ranks() - 1,
            _ => self.ranks(),
        }
    }

    fn hops_us(&self, kind: Kind, algorithm: Algorithm, protocol: Protocol, of: &Steps) -> f64 {
        let at = protocol as usize;
        let (inside, network) = (of.inside_us[at], of.network_us[at]);
        if algorithm == Algorithm::Tree {
            return 2.0 * (f64::from(self.constants.gpus - 1) * inside + f64::from(self.boxes.ilog2()) * network);
        }
        let steps = f64::from(self.steps(kind));
        if matches!(kind, Kind::Broadcast | Kind::Reduce) {
            // The rings differ from each other, so every step counts. With Simple, steps take the times of tree steps.
            let of = if protocol == Protocol::Simple { &self.constants.tree } else { of };
            return steps * if self.boxes == 1 { of.inside_us[at] } else { of.network_us[at] };
        }
        if self.boxes == 1 {
            return steps * inside;
        }
        let post = if self.cpu == Cpu::Amd { 2.0 } else { 1.0 } * if protocol == Protocol::Simple { 3.0 } else { 1.0 };
        let between = f64::from(if kind == Kind::Allreduce { 2 * self.boxes } else { self.boxes - 1 });
        (steps - between) * inside.max(post) + between * network
    }
}
