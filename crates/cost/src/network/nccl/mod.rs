//! NCCL's own choice for a collective: its algorithms and protocols with the times that its cost model states.
//!
//! ```text
//! cost(bytes) = latency + bytes / bandwidth            the least one is chosen
//! ```
//!
//! [`Facts`] are read from a machine, [`Graphs`] are the channels that the search finds, [`times`] has the formulas and
//! [`constants`] the numbers. [`Time::seconds`] is the prediction: the cost, corrected by [`steps`] for the channels
//! that a call opens, or, if `unisono calibrate --from` fitted logs, the amounts of [`Steps`] times their fitted times.
//!
//! Source: NVIDIA/nccl 5067397c, `src/graph/tuning.cc`, `search.cc` and `topo.cc`, `src/enqueue.cc`. Bytes count as in
//! NCCL: those of the vector, or of the blocks of all ranks for an allgather and a reduce-scatter.

pub mod constants;
mod facts;
mod rings;
mod search;
mod steps;
mod times;

use serde::Serialize;
use unisono_collective::{Dtype, Kind, Operator};
use unisono_machine::network::NcclTimes;

use self::constants::Medium;
pub use self::{
    constants::{Generation, VERSION},
    facts::Facts,
    search::{Graph, Graphs},
    steps::Steps,
};

unisono_base::named! {
    /// An algorithm of NCCL, by its name in the files of NCCL's example tuner.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Algorithm {
        Tree = "tree",
        Ring = "ring",
        CollnetDirect = "collnet_direct",
        CollnetChain = "collnet_chain",
        Nvls = "nvls",
        NvlsTree = "nvls_tree",
        Pat = "pat",
    }
}

unisono_base::named! {
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Protocol {
        Ll = "ll",
        Ll128 = "ll128",
        Simple = "simple",
    }
}

/// The properties of a call on which NCCL's choice depends, besides its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    pub kind: Kind,
    pub operator: Operator,
    pub dtype: Dtype,
}

impl Call {
    /// Returns true if NVSwitches can reduce this datatype with this operator (`ncclNvlsSupported`). Also true for an
    /// allgather, whose data NVSwitches only copy.
    fn has_nvls(self) -> bool {
        let has_least = !matches!(self.dtype, Dtype::F32 | Dtype::F64);
        match self.operator {
            _ if self.kind == Kind::Allgather => true,
            Operator::Sum => true,
            Operator::Min | Operator::Max => has_least,
            _ => false,
        }
    }
}

/// An algorithm with a protocol that NCCL enables, and the times and rates of a call with them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Time {
    pub algorithm: Algorithm,
    pub protocol: Protocol,
    /// The number of channels of the graph. NCCL starts up to two or four times this number of thread blocks.
    pub channels: u32,
    /// The rate of one channel in GB/s, before the limits of the protocol.
    pub channel: f64,
    /// NCCL's own latency.
    pub latency_us: f64,
    /// The rate of the call's bytes, in GB/s.
    pub bandwidth: f64,
    /// NCCL's own estimate, by which NCCL chooses.
    pub cost_seconds: f64,
    /// The predicted time of a call.
    pub seconds: f64,
    /// True if the prediction uses times of [`Steps`] that were fitted to measurements.
    pub is_fitted: bool,
    /// The amounts of work of the call.
    pub steps: Steps,
    /// NCCL's own times for one unit of each amount in `steps`.
    pub prices: StepPrices,
}

/// NCCL's own prices for [`Steps`]: the time of a call without steps, of a step to a GPU of the same box or of another
/// box, and of a byte.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename = "LibraryPrices")]
pub struct StepPrices {
    pub start_us: f64,
    pub hop_us: f64,
    pub network_hop_us: f64,
    /// The ns of a byte that a thread block sends, reduces or copies.
    pub ns_per_byte: f64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Nccl {
    pub facts: Facts,
    pub graphs: Graphs,
    fitted: Option<NcclTimes>,
}

impl Nccl {
    /// # Errors
    /// Returns an error if there is only one rank.
    pub fn new(facts: Facts, fitted: Option<NcclTimes>) -> Result<Self, String> {
        if facts.ranks() < 2 {
            return Err("NCCL runs no algorithm on one rank; choose at least 2".to_owned());
        }
        let graphs = Graphs::new(&facts);
        Ok(Self { facts, graphs, fitted })
    }

    /// Returns every algorithm and protocol that NCCL enables for a call of `bytes` bytes, in ascending order of cost.
    ///
    /// # Errors
    ///
    /// Returns an error if NCCL has no algorithms for the collective.
    pub fn times(&self, call: Call, bytes: u64) -> Result<Vec<Time>, String> {
        if !matches!(
            call.kind,
            Kind::Allgather | Kind::Allreduce | Kind::Broadcast | Kind::Reduce | Kind::ReduceScatter
        ) {
            return Err(format!(
                "NCCL has no algorithms for {}, which it runs as messages, so there is no choice among them; it has some for \
                 allgather, allreduce, broadcast, reduce and reduce-scatter",
                call.kind
            ));
        }
        let mut found = Vec::new();
        for algorithm in Algorithm::ALL {
            for protocol in Protocol::ALL {
                let Some(rates) = times::rates(self, call, algorithm, protocol) else { continue };
                found.push(self.time(call.kind, algorithm, protocol, &rates, bytes));
            }
        }
        found.sort_by(|a, b| a.cost_seconds.total_cmp(&b.cost_seconds));
        Ok(found)
    }

    /// Returns the microseconds in which a process with several GPUs starts their kernels, which limits the rate of
    /// calls; 0 for one GPU, whose start is in the latency.
    pub fn kernels_us(&self) -> f64 {
        if self.facts.process_gpus > 1 { f64::from(self.facts.process_gpus) * constants::KERNEL_US } else { 0.0 }
    }

    fn time(&self, kind: Kind, algorithm: Algorithm, protocol: Protocol, rates: &times::Rates, bytes: u64) -> Time {
        let cost_us = times::cost_us(self, kind, algorithm, protocol, rates, bytes);
        let steps = Steps::new(self, (kind, algorithm, protocol), rates, bytes);
        let fit = self.fitted.as_ref().and_then(|f| f.fit(algorithm.name(), protocol.name(), self.facts.boxes > 1));
        let us = match fit {
            Some(fit) => steps.priced_us(fit),
            None => {
                let own_us = match algorithm {
                    // `late_us` includes the time to fill an NVLS tree. It replaces NCCL's correction by sizes.
                    Algorithm::Nvls | Algorithm::NvlsTree => rates.latency_us + bytes as f64 / (1000.0 * rates.reached),
                    _ => cost_us + bytes as f64 / (1000.0 * rates.bandwidth) * (steps.stretch - 1.0),
                };
                (own_us + steps.late_us).max(self.kernels_us())
            }
        };
        Time {
            algorithm,
            protocol,
            channels: rates.graph.channels,
            channel: rates.channel,
            latency_us: rates.latency_us,
            bandwidth: rates.bandwidth,
            cost_seconds: cost_us / 1e6,
            seconds: us / 1e6,
            is_fitted: fit.is_some(),
            prices: StepPrices {
                start_us: constants::base_us(algorithm, protocol),
                hop_us: constants::hop_us(self.graphs.medium(&self.facts), algorithm, protocol),
                network_hop_us: constants::hop_us(Medium::Net, algorithm, protocol)
                    + steps::network_late_us(&self.facts),
                ns_per_byte: bytes as f64 / rates.bandwidth * steps.stretch
                    / (steps.sent_bytes + steps.worked_bytes).max(1.0),
            },
            steps,
        }
    }
}
