//! The graphs of NCCL: the number of channels and their rates, as its search finds them.
//!
//! A channel uses one speed of a list on every link that it crosses. The search chooses the speed with the largest
//! product of speed and channels, and stops when the next speed is below half of the best speed, or when the channels
//! use all of a GPU's rate. Then channels of at least 25 GB/s are split in two, except from Hopper on if there are more
//! than 4 channels slower than 50 GB/s. Then faster speeds are tried for this number of channels.
//!
//! The result is exact on one box, for GPUs on NVSwitches and for up to 8 GPUs with direct NVLinks. Otherwise it is
//! approximate: a ring across boxes may use any interface (NCCL also checks the PCIe paths from GPUs to interfaces);
//! trees over direct NVLinks have the rate of the rings; a ring over PCIe passes through each CPU once.
//!
//! Source: `ncclTopoCompute`, `ncclTopoDupChannels` and `ncclTopoSearchTryNvls` of NVIDIA/nccl, src/graph/search.cc.

use super::{
    constants::{Generation, Medium, ladder},
    facts::Facts,
    rings::Rings,
};

/// Half of NCCL's largest number of channels, which it doubles after the search.
const MOST_CHANNELS: u32 = 32;
/// The most heads of NVLS. A head is a GPU that reduces a part of the vector.
const MOST_HEADS: u32 = 32;
/// The tolerance in comparisons of rates, which are sums of floating-point numbers.
const SLACK: f64 = 1e-6;

/// One graph: the number of channels, and the rate of a channel in GB/s inside a box (`intra`) and between boxes
/// (`inter`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Graph {
    pub channels: u32,
    pub intra: f64,
    pub inter: f64,
    /// True if all channels use one ring.
    pub same: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Graphs {
    pub ring: Graph,
    pub tree: Graph,
    pub nvls: Option<Graph>,
    /// The rate of a head of NVLS inside a box in GB/s, by the rate of its NVLinks. Neither interfaces nor the list of
    /// speeds, which NCCL uses only to choose, limit this rate. 0 without NVLS.
    pub nvls_inside: f64,
    /// True if the GPUs of a box communicate over NVLink.
    pub over_nvlink: bool,
}

impl Graphs {
    pub fn new(facts: &Facts) -> Self {
        let speeds = ladder(facts.architecture, facts.boxes > 1);
        let rings = Rings::new(facts.gpus as usize, &facts.pairs);
        let over_nvlink = facts.nvlink > 0.0 && (facts.has_nvswitch || facts.gpus == 1 || !rings.is_empty());
        let room = Room { facts, rings, over_nvlink };
        let ring = room.ring(speeds);
        let alone = Facts { boxes: 1, ..facts.clone() };
        let alone = Room { facts: &alone, rings: Rings::new(0, &[]), over_nvlink };
        let nvls_inside =
            alone.nvls(ladder(facts.architecture, false)).map_or(0.0, |graph| alone.share(graph.channels));
        Self { ring, tree: room.tree(speeds, ring), nvls: room.nvls(speeds), nvls_inside, over_nvlink }
    }

    /// Returns the kind of link of steps inside a box. With one GPU per box, NCCL uses the latencies of PCIe.
    pub fn medium(&self, facts: &Facts) -> Medium {
        if self.over_nvlink && facts.gpus > 1 { Medium::Nvlink } else { Medium::Pcie }
    }
}

/// The capacities of the links that channels share.
struct Room<'a> {
    facts: &'a Facts,
    rings: Rings,
    over_nvlink: bool,
}

fn times(capacity: f64, speed: f64) -> u32 {
    (0..=MOST_CHANNELS).take_while(|&n| f64::from(n) * speed <= capacity + SLACK).last().unwrap_or(0)
}

impl Room<'_> {
    /// Returns the rate at which one GPU can send inside a box, in GB/s.
    fn inside(&self) -> f64 {
        if self.over_nvlink { self.facts.nvlink } else { self.facts.pcie_ring }
    }

    /// Returns the number of channels of a speed that fit, and true if all of them use one ring.
    fn fit(&self, speed: f64) -> (u32, bool) {
        let f = self.facts;
        let within = if self.over_nvlink && !f.has_nvswitch && f.boxes == 1 {
            let packed = self.rings.pack(speed, MOST_CHANNELS);
            return (packed.channels, packed.same);
        } else {
            times(self.inside(), speed)
        };
        if f.boxes == 1 {
            return (within, true);
        }
        let outside = (f.nics * times(f.nic, speed)).min(times(f64::from(f.gpus) * f.pcie.max(f.nic), speed));
        (if f.gpus == 1 { outside.min(times(f.pcie.max(f.nic), speed)) } else { outside.min(within) }, true)
    }

    fn ring(&self, speeds: &[f64]) -> Graph {
        let total = if self.facts.gpus == 1 { f64::INFINITY } else { self.inside() };
        let mut best: Option<Graph> = None;
        for &speed in speeds {
            if best.is_some_and(|b| speed / b.intra <= 0.49 || rate(b) >= total - SLACK) {
                break;
            }
            let (channels, same) = self.fit(speed);
            let found = Graph { channels, intra: speed, inter: speed, same };
            if channels > 0 && best.is_none_or(|b| rate(found) > rate(b) + SLACK) {
                best = Some(found);
            }
        }
        // If no channel fits, NCCL uses the ring in the order of ranks, at a low speed.
        let mut ring = best.unwrap_or(Graph { channels: 1, intra: 0.1, inter: 0.1, same: true });
        let is_fast = ring.intra >= 25.0;
        let is_enough = self.facts.architecture > Generation::Ampere && ring.intra < 50.0 && ring.channels > 4;
        if is_fast && !is_enough {
            let channels = (2 * ring.channels).min(MOST_CHANNELS);
            let split = f64::from(channels.div_ceil(ring.channels));
            ring = Graph { channels, intra: ring.intra / split, inter: ring.inter / split, ..ring };
        }
        for &speed in speeds.iter().rev() {
            let (channels, same) = self.fit(speed);
            if speed > ring.intra && channels >= ring.channels {
                ring = Graph { channels, intra: speed, inter: speed, same };
            }
        }
        ring
    }

    /// Returns the graph of NCCL's trees, with as many channels as the rings. Inside a box a tree is a chain of GPUs.
    /// Unlike a ring it does not return to its first GPU, so NCCL assumes a higher rate for it than for a ring.
    fn tree(&self, speeds: &[f64], ring: Graph) -> Graph {
        let f = self.facts;
        if f.gpus == 1 || !self.over_nvlink || !f.has_nvswitch {
            return ring;
        }
        let inside = self.inside() * f64::from(f.gpus) / f64::from(f.gpus - 1) / f64::from(ring.channels);
        let a_channel = f64::from(f.nics) * f.nic / f64::from(ring.channels);
        let fits = |speed: f64| speed <= inside + SLACK && (f.boxes == 1 || speed <= a_channel + SLACK);
        let inter = speeds.iter().copied().find(|&speed| fits(speed)).unwrap_or(ring.inter).max(ring.inter);
        // NCCL raises the rate inside a box as long as it is below twice the rate between boxes.
        let mut intra = inter;
        for &speed in speeds.iter().rev().filter(|&&speed| speed > inter) {
            if intra < 2.0 * inter && speed <= inside + SLACK {
                intra = speed;
            }
        }
        Graph { channels: ring.channels, intra, inter, same: ring.same }
    }

    /// Returns the share of a GPU's NVLinks for one head of NVLS, in GB/s. Heads read from all GPUs: a GPU has one
    /// share for each other head, and two for itself if it is a head.
    fn share(&self, heads: u32) -> f64 {
        self.facts.nvlink / f64::from(heads + 1)
    }

    /// Returns the graph of NVLS.
    fn nvls(&self, speeds: &[f64]) -> Option<Graph> {
        let f = self.facts;
        if !f.has_nvswitch || !f.has_equal_nvlinks || f.architecture < Generation::Hopper || f.gpus < 2 {
            return None;
        }
        let across = f.boxes > 1;
        let heads = f.gpus.min(MOST_HEADS).min(if across { f.nics } else { MOST_HEADS });
        let share = self.share(heads);
        let on_wire = |speed: f64| !across || speed <= f.nic + SLACK;
        let intra = speeds.iter().copied().find(|&speed| speed <= share + SLACK && on_wire(speed))?;
        let mut inter = intra;
        for &speed in speeds.iter().rev().filter(|&&speed| speed > intra) {
            if inter < 2.0 * intra && on_wire(speed) {
                inter = speed;
            }
        }
        (heads > 0).then_some(Graph { channels: heads, intra, inter, same: false })
    }
}

fn rate(graph: Graph) -> f64 {
    f64::from(graph.channels) * graph.intra
}
