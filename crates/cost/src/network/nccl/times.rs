//! The formulas of NCCL's cost model.
//!
//! ```text
//! bus bandwidth = channels x rate of a channel, limited by protocol and architecture
//! bandwidth     = bus bandwidth x ranks / steps   (ring, NVLS)   or bus bandwidth / 2   (tree, CollNet)
//!                 or bus bandwidth   (allgather and reduce-scatter, except by rings)
//! steps         = 2(n-1) allreduce, n-1 allgather and reduce-scatter, n broadcast and reduce
//! ```
//!
//! Source: `ncclTopoTuneModel` and `ncclTopoGetAlgoTime` of NVIDIA/nccl, src/graph/tuning.cc. The latency of network
//! interfaces, which their plugins state, is assumed to be 0. GPUs and their network interfaces are assumed to be as
//! close in PCIe as LL128 requires.

use super::{
    Algorithm, Call, Facts, Graph, Nccl, Protocol,
    constants::{self, Generation, Medium},
};
use unisono_collective::Kind;
use unisono_machine::network::Cpu;

/// The most GPUs of a box for which NVLS runs an allgather and a reduce-scatter.
const MOST_NVLS_RANKS: u32 = 32;

/// The latency and bandwidth of an algorithm with a protocol, for any number of bytes.
pub struct Rates {
    pub graph: Graph,
    /// The rate of one channel in GB/s, before the limits of protocols.
    pub channel: f64,
    /// The rate of a call's bytes in GB/s: `bandwidth` as NCCL estimates it, `reached` as the links allow.
    pub bandwidth: f64,
    pub reached: f64,
    pub latency_us: f64,
    /// The factor, at least 1, by which the bytes of a tree take longer than on two boxes. On more boxes, a box in the
    /// middle of the tree sends to two others.
    pub fan: f64,
}

pub fn steps(kind: Kind, ranks: u32) -> u32 {
    match kind {
        Kind::Allreduce => 2 * (ranks - 1),
        Kind::Allgather | Kind::ReduceScatter => ranks - 1,
        _ => ranks,
    }
}

fn is_spread(kind: Kind) -> bool {
    matches!(kind, Kind::Allgather | Kind::ReduceScatter)
}

/// Returns the rates of an algorithm with a protocol; `None` if NCCL does not enable them for the call.
pub fn rates(nccl: &Nccl, call: Call, algorithm: Algorithm, protocol: Protocol) -> Option<Rates> {
    let (f, kind) = (&nccl.facts, call.kind);
    let graph = graph(nccl, algorithm)?;
    let has_algorithm = match algorithm {
        Algorithm::Ring => true,
        Algorithm::Tree | Algorithm::NvlsTree | Algorithm::CollnetChain => kind == Kind::Allreduce,
        Algorithm::CollnetDirect | Algorithm::Nvls => kind == Kind::Allreduce || is_spread(kind),
        Algorithm::Pat => is_spread(kind),
    };
    let is_enabled = match algorithm {
        Algorithm::Ring | Algorithm::Tree => true,
        // On several boxes NVLS requires sums in the network (CollNet), as the CollNet algorithms do.
        Algorithm::Nvls => {
            (f.boxes == 1 || f.network_reduces && f.gpus <= graph.channels)
                && call.has_nvls()
                && (kind == Kind::Allreduce || f.gpus <= MOST_NVLS_RANKS)
        }
        Algorithm::NvlsTree => f.boxes > 1 && call.has_nvls(),
        Algorithm::CollnetDirect => {
            f.boxes > 1 && f.network_reduces && f.has_nvswitch && (kind == Kind::Allreduce || f.gpus <= f.nics)
        }
        Algorithm::CollnetChain => f.boxes > 1 && f.network_reduces,
        Algorithm::Pat => f.boxes > 1 && f.gpus == 1,
    };
    let has_protocol = match (algorithm, protocol) {
        (_, Protocol::Simple) | (Algorithm::Ring | Algorithm::Tree, Protocol::Ll) => true,
        // LL128 requires that all paths inside a box use NVLinks.
        (Algorithm::Ring | Algorithm::Tree, Protocol::Ll128) => nccl.graphs.over_nvlink || f.gpus == 1,
        _ => false,
    };
    if !(has_algorithm && is_enabled && has_protocol) {
        return None;
    }
    let channel = channel(f, kind, algorithm, graph);
    let bus = bus(nccl, kind, algorithm, protocol, graph, channel);
    let bandwidth = of_bytes(f, kind, algorithm, bus);
    let reached = nvls_reached(nccl, kind, algorithm, graph).map_or(bandwidth, |rate| rate.max(bandwidth));
    let latency_us = latency_us(nccl, kind, algorithm, protocol);
    let fan = if f.boxes > 2 && matches!(algorithm, Algorithm::Tree | Algorithm::NvlsTree) {
        let two = Nccl { facts: Facts { boxes: 2, ..f.clone() }, ..nccl.clone() };
        rates(&two, call, algorithm, protocol).map_or(1.0, |two| (two.reached / reached).max(1.0))
    } else {
        1.0
    };
    (bandwidth > 0.0).then_some(Rates { graph, channel, bandwidth, reached, latency_us, fan })
}

/// Returns the rate of a call's bytes in GB/s for the bus bandwidth `bus`.
fn of_bytes(f: &Facts, kind: Kind, algorithm: Algorithm, bus: f64) -> f64 {
    if algorithm != Algorithm::Ring && is_spread(kind) {
        bus
    } else if matches!(algorithm, Algorithm::Ring | Algorithm::Nvls | Algorithm::NvlsTree) {
        bus * f64::from(f.ranks()) / f64::from(steps(kind, f.ranks()))
    } else {
        bus / 2.0
    }
}

/// Returns the GB/s of a call's bytes that the links of NVLS on one box, or of an NVLS tree, allow; `None` for other
/// algorithms. NCCL itself uses smaller rates: it gives channels between boxes one rate on all links, so NVLinks count
/// as no faster than interfaces, and it limits NVLS on one box by the rate of a step between boxes. On two boxes, each
/// interface transfers the share of its head once in each direction.
fn nvls_reached(nccl: &Nccl, kind: Kind, algorithm: Algorithm, graph: Graph) -> Option<f64> {
    let f = &nccl.facts;
    let inter = match (algorithm, f.boxes) {
        (Algorithm::Nvls, 1) => f64::INFINITY,
        (Algorithm::NvlsTree, _) => graph.inter,
        _ => return None,
    };
    let links = Graph { intra: nccl.graphs.nvls_inside.max(graph.intra), inter, ..graph };
    let rate = of_bytes(f, kind, algorithm, f64::from(graph.channels) * channel(f, kind, algorithm, links));
    Some(if f.boxes == 2 { rate.min(f64::from(graph.channels) * graph.inter) } else { rate })
}

fn graph(nccl: &Nccl, algorithm: Algorithm) -> Option<Graph> {
    match algorithm {
        Algorithm::Ring => Some(nccl.graphs.ring),
        Algorithm::Nvls | Algorithm::NvlsTree => nccl.graphs.nvls.filter(|graph| graph.channels >= 2),
        _ => Some(nccl.graphs.tree),
    }
}

/// Returns the rate of one channel in GB/s, before the limits of protocols.
fn channel(f: &Facts, kind: Kind, algorithm: Algorithm, graph: Graph) -> f64 {
    let is_collnet = matches!(algorithm, Algorithm::CollnetDirect | Algorithm::CollnetChain);
    if !matches!(algorithm, Algorithm::Nvls | Algorithm::NvlsTree) {
        return if f.boxes <= 2 || is_collnet { graph.intra } else { graph.inter };
    }
    let (channels, gpus) = (f64::from(graph.channels), f64::from(f.gpus));
    let pulled = graph.intra * constants::nvls_efficiency(f.architecture) * (channels - 1.0) / channels;
    // An allreduce overlaps its reduce-scatter and its allgather.
    let intra = if kind == Kind::Allreduce { 2.0 * pulled } else { pulled * (gpus - 1.0) / gpus };
    let is_tree = algorithm == Algorithm::NvlsTree;
    let inter = graph.inter * if is_tree && f.boxes <= 2 { 2.0 } else { 1.0 };
    let most = constants::most_a_channel(algorithm, Protocol::Simple, f.architecture, f.boxes);
    intra.min(inter).min(most.unwrap_or(f64::INFINITY))
}

/// Returns the bus bandwidth in GB/s: the rate of all channels together, within the limits of the protocol.
fn bus(nccl: &Nccl, kind: Kind, algorithm: Algorithm, protocol: Protocol, graph: Graph, channel: f64) -> f64 {
    let f = &nccl.facts;
    let channels = f64::from(graph.channels);
    let most_ll = constants::most_ll(f.architecture, f.cpu, f.boxes);
    let most = |protocol| {
        let one = constants::most_a_channel(algorithm, protocol, f.architecture, f.boxes);
        one.map_or(f64::INFINITY, |one| channels * one)
    };
    let bus = channels * channel;
    match (algorithm, protocol) {
        (Algorithm::Ring, Protocol::Ll) => most_ll.min(bus / 2.0),
        (Algorithm::Ring, Protocol::Ll128) => (0.92 * bus).min(most(protocol)),
        (Algorithm::Tree, _) => {
            let bus = (0.92 * bus).min(most(Protocol::Simple));
            let bus = match protocol {
                Protocol::Ll => (bus / 3.8).min(most_ll),
                Protocol::Ll128 => (bus * if f.boxes == 1 { 7.0 / 9.0 } else { 0.9375 }).min(most(protocol)),
                Protocol::Simple => bus,
            };
            // With one GPU per box, both children of a node of the tree connect to the same GPU.
            if f.gpus == 1 { 0.85 * bus } else { bus }
        }
        (Algorithm::Pat, _) => 0.75 * bus,
        (Algorithm::CollnetDirect, _) if is_spread(kind) => f64::from(f.gpus) * graph.intra.min(0.9 * graph.inter),
        (Algorithm::CollnetDirect, _) => {
            // The divisor is the mean of 1 and the number of GPUs that share an interface.
            let shared = f64::from(f.gpus) / channels;
            let bus = bus / (shared - (shared - 1.0) / 2.0);
            if f.architecture >= Generation::Hopper { 0.85 * bus } else { bus }
        }
        _ => bus,
    }
}

fn latency_us(nccl: &Nccl, kind: Kind, algorithm: Algorithm, protocol: Protocol) -> f64 {
    let f = &nccl.facts;
    let medium = nccl.graphs.medium(f);
    let base = constants::base_us(algorithm, protocol);
    let intra = constants::hop_us(medium, algorithm, protocol);
    // With one GPU per box, the latency of the network is not hidden.
    let over_net = if f.gpus == 1 { Algorithm::Tree } else { algorithm };
    let inter = constants::hop_us(Medium::Net, over_net, protocol);
    let (ranks, boxes, local) = (f.ranks(), f.boxes, f64::from(f.gpus));
    let rounds = f64::from(boxes.ilog2());
    match algorithm {
        Algorithm::Ring if matches!(kind, Kind::Broadcast | Kind::Reduce) => {
            let outer = if boxes == 1 { medium } else { Medium::Net };
            if nccl.graphs.ring.same {
                return base + constants::hop_us(outer, Algorithm::Ring, protocol);
            }
            let by = if protocol == Protocol::Simple { Algorithm::Tree } else { Algorithm::Ring };
            base + f64::from(ranks) * constants::hop_us(outer, by, protocol)
        }
        Algorithm::Ring => {
            let (inside, outside) = hops(kind, f);
            let post = if boxes == 1 { 0.0 } else { constants::post_us(f.cpu) };
            let post = if protocol == Protocol::Simple { 3.0 * post } else { post };
            base + inside * intra.max(post) + outside * inter
        }
        Algorithm::Tree => base + 2.0 * ((local - 1.0) * intra + rounds * inter),
        Algorithm::CollnetDirect => base + 2.0 * ((local - 1.0).min(1.0) * intra + (local - 1.0) * 0.4) + inter,
        Algorithm::CollnetChain => base + 2.0 * (local - 1.0) * intra + inter,
        Algorithm::Nvls => intra + if boxes > 1 { inter } else { 0.0 },
        Algorithm::NvlsTree => base + intra + 2.0 * rounds * inter,
        Algorithm::Pat => base + rounds * inter / 3.5 + f64::from(ranks) * 2.8,
    }
}

/// Returns the numbers of steps of a ring inside boxes and between boxes.
pub fn hops(kind: Kind, f: &Facts) -> (f64, f64) {
    let all = match kind {
        Kind::Broadcast | Kind::Reduce => f.ranks() - 1,
        _ => steps(kind, f.ranks()),
    };
    let outside = if kind == Kind::Allreduce { 2 * (f.boxes - 1) } else { f.boxes - 1 };
    (f64::from(all - outside), f64::from(outside))
}

/// Returns NCCL's own estimate in microseconds.
pub fn cost_us(nccl: &Nccl, kind: Kind, algorithm: Algorithm, protocol: Protocol, rates: &Rates, bytes: u64) -> f64 {
    let f = &nccl.facts;
    let corrected_sizes = match algorithm {
        Algorithm::Tree if kind == Kind::Allreduce => 23,
        Algorithm::NvlsTree if f.architecture == Generation::Blackwell && f.cpu != Cpu::Arm => 24,
        _ => 0,
    };
    let factor = constants::tree_correction(protocol, corrected_sizes, bytes);
    // NCCL lengthens the latency of a long ring allreduce between boxes, whose steps do not all start at once.
    let channels = u64::from(2 * rates.graph.channels);
    let is_plateau = algorithm == Algorithm::Ring
        && protocol == Protocol::Simple
        && f.boxes > 1
        && kind == Kind::Allreduce
        && bytes / (channels * u64::from(f.ranks())) >= 64;
    let late = match (is_plateau, f.architecture) {
        (false, _) => 1.0,
        (true, Generation::Volta) => 1.9,
        (true, _) => 1.4,
    };
    rates.latency_us * late + bytes as f64 / (1000.0 * rates.bandwidth * factor)
}
