//! The work of a call on one of its channels. `unisono calibrate --from` fits the prices of this work: the times of a
//! start, a step (hop), a byte sent and a byte worked on.
//!
//! NCCL opens a channel for each portion of bytes that keeps its threads busy. So a short call runs on few channels,
//! and its time is that of the bytes on one channel:
//!
//! ```text
//! blocks = bytes / (threads x bytes of a thread), from 1 to 2 or 4 x the channels of the graph; a real number here
//! time   = start + hops x hop + (bytes sent x price + bytes worked on x price) / blocks
//! ```
//!
//! A ring of n GPUs sends 2(n-1)/n of the bytes (allreduce), (n-1)/n (allgather, reduce-scatter) or all (broadcast,
//! reduce), and works on (2n-1)/n of the bytes (allreduce) or on all. A tree sends all bytes twice. On more than two
//! boxes, this amount is multiplied by the factor by which NCCL's own rate is lower there, so that prices hold for any
//! number of boxes. A broadcast in chunks of 512 KiB fills a pipeline, on one box and on several: a chunk reaches the
//! last GPU by n-2 further sends. Copies to the outputs of the GPUs between do not delay the chunk.
//!
//! NCCL's own estimate holds for long calls over InfiniBand. The prediction adds, for each step between boxes, the
//! higher latency of a slower network and the longer time in which an AMD CPU posts a message. In a tree with flags it
//! adds the time in which each GPU forwards the data of one iteration of its threads. In an NVLS tree it adds the time
//! in which the first chunks pass through the tree:
//!
//! ```text
//! round = chunk x thread blocks x heads        bytes under way at once
//! fill  = round / bandwidth + steps between boxes x round / (heads x rate of an interface)
//! ```
//!
//! The chunks of a long call are longer. NCCL's latency includes the fill of its shortest chunks.
//!
//! Source: `topoGetAlgoInfo` of NVIDIA/nccl, src/enqueue.cc; `threadThresholds` of src/graph/tuning.cc; chunks of
//! src/include/collectives.h.

use serde::Serialize;
use unisono_collective::Kind;
use unisono_machine::network::{Cpu, NcclFit};

use super::{
    Algorithm, Facts, Nccl, Protocol,
    constants::{self, Generation, Medium},
    times,
};

/// NCCL's largest number of channels.
const MOST_BLOCKS: u32 = 64;
/// The bytes of a chunk of a broadcast and a reduce with protocol Simple.
const CHUNK: f64 = 524_288.0;

/// The amounts of work of a call, and corrections of NCCL's estimate. The fitted time of the call is the time of a
/// start, plus the number of hops and bytes times their prices.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename = "LibraryWork")]
pub struct Steps {
    /// The number of thread blocks (open channels) of the call.
    pub blocks: f64,
    /// The number of steps to a GPU of the same box.
    pub hops: f64,
    /// The number of steps to a GPU of another box.
    pub network_hops: f64,
    /// The bytes that one thread block sends.
    pub sent_bytes: f64,
    /// The bytes that one thread block reduces or copies.
    pub worked_bytes: f64,
    /// The factor, at least 1, on NCCL's own time of the bytes, if there are too few thread blocks or the pipeline is
    /// not filled.
    #[serde(skip)]
    pub stretch: f64,
    /// Microseconds to add to NCCL's own estimate.
    #[serde(skip)]
    pub late_us: f64,
}

impl Steps {
    pub(super) fn new(nccl: &Nccl, call: (Kind, Algorithm, Protocol), rates: &times::Rates, bytes: u64) -> Self {
        let (f, (kind, algorithm, protocol)) = (&nccl.facts, call);
        let ring = nccl.graphs.ring;
        let doubled = f.architecture >= Generation::Hopper && f.boxes > 1 && ring.intra > 45.0 && ring.channels < 8;
        let all = (ring.channels * if doubled { 4 } else { 2 }).min(MOST_BLOCKS);
        let is_ring = algorithm == Algorithm::Ring;
        let of_thread = match (is_ring, protocol) {
            (true, Protocol::Ll) => 8.0 * f64::from(f.ranks()),
            (_, Protocol::Ll | Protocol::Ll128) => 8.0,
            (_, Protocol::Simple) => 64.0,
        };
        let threads = if protocol == Protocol::Ll128 { 640.0 } else { 512.0 };
        let counts = matches!(algorithm, Algorithm::Ring | Algorithm::Tree);
        let most = f64::from(all);
        // The number is not rounded. With whole numbers some longer calls would be faster, which no measurement shows.
        let open = if counts { (bytes as f64 / (threads * of_thread)).clamp(1.0, most) } else { most };
        let (n, s) = (f64::from(f.ranks()), bytes as f64 / open);
        let (hops, network_hops) = if is_ring { times::hops(kind, f) } else { path(algorithm, f.boxes, f.gpus) };
        let (sent, worked) = match (is_ring, kind) {
            (true, Kind::Allreduce) => (2.0 * (n - 1.0) / n, (2.0 * n - 1.0) / n),
            (true, Kind::Allgather | Kind::ReduceScatter) => ((n - 1.0) / n, 1.0),
            (true, _) => (1.0, 1.0),
            (false, Kind::Allreduce) => (2.0 * rates.fan, 0.0),
            (false, _) => (1.0, 0.0),
        };
        let is_chain = is_ring && matches!(kind, Kind::Broadcast | Kind::Reduce);
        let nvls_us = if algorithm == Algorithm::NvlsTree { fill_us(f, network_hops, rates, bytes) } else { 0.0 };
        let fill = if is_chain && protocol == Protocol::Simple {
            (n - 2.0) * s.min(CHUNK)
        } else {
            sent * 1000.0 * rates.reached * nvls_us / open
        };
        // In trees, and in rings across boxes that sum or gather, NCCL's own limits and corrections already include
        // `idle`.
        let is_idle = is_ring && (f.boxes == 1 || is_chain);
        let idle = if is_idle { (most / open * of_limit(f, protocol, rates)).max(1.0) } else { 1.0 };
        let is_filled = is_idle && s > 0.0;
        let filled = if is_filled { 1.0 + fill / ((sent + worked) * s) } else { 1.0 };
        let passed = match constants::passing(protocol, f.architecture, f.boxes) {
            Some(rate) if algorithm == Algorithm::Tree => s.min(threads * of_thread) / (1000.0 * rate),
            _ => 0.0,
        };
        // NCCL counts one step of a chain if all channels use one ring, and all steps otherwise.
        let chain_us = if is_chain && nccl.graphs.ring.same {
            let of_step = |medium| constants::hop_us(medium, algorithm, protocol);
            let (medium, outer) =
                (nccl.graphs.medium(f), if f.boxes == 1 { nccl.graphs.medium(f) } else { Medium::Net });
            hops * of_step(medium) + network_hops * of_step(Medium::Net) - of_step(outer)
        } else {
            0.0
        };
        Self {
            blocks: open,
            hops,
            network_hops,
            sent_bytes: sent * s + fill,
            worked_bytes: worked * s,
            stretch: idle * filled * slower(f, rates),
            late_us: network_hops * network_late_us(f) + (hops + network_hops) * passed + nvls_us + chain_us,
        }
    }

    pub fn priced_us(&self, fit: &NcclFit) -> f64 {
        fit.start_us
            + self.hops * fit.hop_us
            + self.network_hops * fit.network_hop_us
            + (self.sent_bytes * fit.sent_ns_per_byte + self.worked_bytes * fit.worked_ns_per_byte) / 1000.0
    }
}

/// Returns the fraction of the rate of all thread blocks that remains under NCCL's limit of LL between boxes.
fn of_limit(f: &Facts, protocol: Protocol, rates: &times::Rates) -> f64 {
    let half = f64::from(rates.graph.channels) * rates.channel / 2.0;
    let limited = |boxes| half.min(constants::most_ll(f.architecture, f.cpu, boxes));
    if protocol == Protocol::Ll { limited(f.boxes) / limited(1) } else { 1.0 }
}

/// Returns the factor, at least 1, on NCCL's time of the bytes if interfaces are slower than every rate that NCCL's
/// search tries.
fn slower(f: &Facts, rates: &times::Rates) -> f64 {
    let graph = rates.graph;
    let used = f64::from(graph.channels.min(f.nics)) * f.nic;
    if f.boxes > 1 && used > 0.0 { (f64::from(graph.channels) * graph.inter / used).max(1.0) } else { 1.0 }
}

/// Returns the microseconds by which the fill of an NVLS tree of `bytes` bytes takes longer than the fill with the
/// shortest chunks.
fn fill_us(f: &Facts, network_hops: f64, rates: &times::Rates, bytes: u64) -> f64 {
    let heads = rates.graph.channels;
    let (chunk, blocks) = constants::nvls_tree_chunk(f.architecture, f.boxes, f.gpus, heads, rates.graph.inter, bytes);
    let longer = ((chunk - constants::SHORT_CHUNK) * blocks) as f64;
    let at_nics = network_hops * longer / rates.graph.inter;
    (longer * f64::from(heads) / rates.reached + at_nics) / 1000.0
}

/// Returns the microseconds to add to NCCL's own time of a step between boxes.
pub(super) fn network_late_us(f: &Facts) -> f64 {
    f.late_us + constants::post_us(f.cpu) - constants::post_us(Cpu::Intel)
}

/// Returns the numbers of steps inside boxes and between boxes on the longest path, for algorithms other than rings.
fn path(algorithm: Algorithm, boxes: u32, gpus: u32) -> (f64, f64) {
    let (rounds, local) = (f64::from(boxes.ilog2()), f64::from(gpus - 1));
    match algorithm {
        Algorithm::Tree => (2.0 * local, 2.0 * rounds),
        Algorithm::CollnetDirect => (2.0 * local.min(1.0), 1.0),
        Algorithm::CollnetChain => (2.0 * local, 1.0),
        Algorithm::Nvls => (1.0, if boxes > 1 { 1.0 } else { 0.0 }),
        Algorithm::NvlsTree => (1.0, 2.0 * rounds),
        Algorithm::Pat => (0.0, rounds),
        Algorithm::Ring => (0.0, 0.0),
    }
}
