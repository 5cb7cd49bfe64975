//! The boxes of GPUs of a job, as NCCL and RCCL see them: the ranks and the links of one box.
//!
//! All boxes of a job are assumed to be equal, so only the box of the first rank is read. Rates are those of the
//! machine file.

use std::collections::VecDeque;

use unisono_base::narrow;
use unisono_machine::network::{Gpu, Network, Plane, Topology};

/// The relative tolerance in comparisons of rates.
const SLACK: f64 = 1e-9;

pub struct GpuBoxes {
    pub gpu: Gpu,
    pub boxes: u32,
    /// The number of ranks in one box.
    pub ranks: u32,
    /// The number of GPUs of one box, including GPUs without a rank.
    pub in_box: u32,
    pub links: BoxLinks,
    /// The least latency of a message from a GPU of one box to a GPU of another box; 0 with one box.
    pub network_ns: f64,
}

/// The links of one box. Rates are in GB/s.
pub struct BoxLinks {
    /// The rate of all links of one GPU to other GPUs of its box and to NVSwitches together; the largest of all GPUs of
    /// the job.
    pub most: f64,
    /// The rate of all links of one GPU to GPUs of the job and to NVSwitches together. This is the least of all GPUs,
    /// because all GPUs transfer equal amounts.
    pub used: f64,
    /// True if every GPU of the job has a cable to NVSwitches.
    pub has_nvswitch: bool,
    /// True if `used` is the same for all GPUs of the job.
    pub are_alike: bool,
    /// The rate of direct links between each two GPUs of the job, as a matrix row by row.
    pub pairs: Vec<f64>,
    /// The least rate between a GPU of the job and PCIe; 0 if some GPU has no cable to PCIe.
    pub pcie: f64,
    /// The rate of the slowest link of the best tree over PCIe and CPUs that joins the GPUs of the job; 0 without such
    /// a tree.
    pub between: f64,
    pub nics: u32,
    /// The least rate of an interface, which is at most the rate of its fastest cable inside the box; 0 without
    /// interfaces.
    pub nic: f64,
}

impl GpuBoxes {
    /// Reads the boxes of a machine that a job on the accelerators `nodes` uses. Errors name `library`.
    ///
    /// # Errors
    /// Returns an error if the machine does not state its GPUs, states failures, or has another topology than graph or
    /// boxes, or if the boxes have unequal numbers of ranks.
    pub fn new(library: &str, network: &Network, topology: &dyn Topology, nodes: &[u32]) -> Result<Self, String> {
        let Some(gpu) = network.gpu else {
            return Err(format!(
                "{} does not state its GPUs; add a table [gpu] with architecture = \"hopper\" (or volta, ampere, \
                 blackwell, cdna2, cdna3, cdna4) to its file",
                network.name
            ));
        };
        if !network.failed.is_empty() {
            return Err(format!(
                "{library}'s model is of whole boxes, and parts of {} have failed; leave out --fail, and 'failed' of the \
                 machine file",
                network.name
            ));
        }
        let numbers = topology.numbers_of_boxes();
        if numbers.is_none() && topology.name() != "graph" {
            return Err(format!(
                "{library}'s model is of boxes of GPUs, and the topology of {} is {}; accepted are graph and boxes",
                network.name,
                topology.name()
            ));
        }
        let in_box = numbers.map_or(topology.accelerators(), |n| n.accelerators);
        let mut ranks = vec![0_u32; numbers.map_or(1, |n| n.boxes) as usize];
        nodes.iter().for_each(|node| ranks[(node / in_box) as usize] += 1);
        ranks.retain(|&count| count > 0);
        let (boxes, of_one) = (narrow::<u32>(ranks.len()), ranks.first().copied().unwrap_or(0));
        if ranks.iter().any(|&count| count != of_one) {
            return Err(format!(
                "{library}'s model is of boxes with equal numbers of ranks; choose as many GPUs of each box"
            ));
        }
        let plane = topology.plane().map_err(|e| e.to_string())?;
        let of = nodes[0] / in_box;
        let is_inside = |node: u32| match numbers {
            None => true,
            Some(n) => {
                let others = n.nodes - n.accelerators;
                let first = n.place(of, n.accelerators);
                (of * in_box..(of + 1) * in_box).contains(&node) || (first..first + others).contains(&node)
            }
        };
        let used: Vec<u32> = nodes.iter().copied().filter(|node| node / in_box == of).collect();
        let links = BoxLinks::new(network, &plane, &used, &is_inside, gpu.nvlinks != Some(0));
        let is_outside = |node: u32| node < plane.accelerators() && !is_inside(node);
        let network_ns = if boxes > 1 { least_latency_ns(network, &plane, &used, &is_outside) } else { 0.0 };
        Ok(Self { gpu, boxes, ranks: of_one, in_box, links, network_ns })
    }
}

impl BoxLinks {
    fn new(
        network: &Network,
        plane: &Plane,
        used: &[u32],
        is_inside: &dyn Fn(u32) -> bool,
        may_have_nvswitch: bool,
    ) -> Self {
        let accelerators = plane.accelerators();
        let leaving = |node: u32| plane.leaving(node).map(|id| (plane.link(id).to, gbytes(network, plane, id)));
        // NVSwitches have cables only to accelerators; a switch of PCIe has a cable to a CPU or an interface. If GPUs
        // have direct NVLinks or no NVLinks, a node with cables only to accelerators is the only CPU of the box.
        let is_direct = (0..accelerators)
            .filter(|&gpu| is_inside(gpu))
            .any(|gpu| leaving(gpu).any(|(to, _)| to < accelerators && is_inside(to)));
        let is_nvswitch = |node: u32| {
            may_have_nvswitch
                && !is_direct
                && node >= accelerators
                && is_inside(node)
                && leaving(node).all(|(to, _)| to < accelerators && is_inside(to))
        };
        let count = used.len();
        let mut found = Self {
            most: 0.0,
            used: f64::INFINITY,
            has_nvswitch: true,
            are_alike: true,
            pairs: vec![0.0; count * count],
            pcie: f64::INFINITY,
            between: 0.0,
            nics: 0,
            nic: f64::INFINITY,
        };
        for (at, &gpu) in used.iter().enumerate() {
            let (mut all, mut own, mut pcie, mut is_switched) = (0.0, 0.0, 0.0, false);
            for (to, rate) in leaving(gpu).filter(|&(to, _)| is_inside(to)) {
                if to < accelerators {
                    all += rate;
                    if let Some(other) = used.iter().position(|&node| node == to) {
                        found.pairs[at * count + other] += rate;
                        own += rate;
                    }
                } else if is_nvswitch(to) {
                    all += rate;
                    own += rate;
                    is_switched = true;
                } else {
                    pcie += rate;
                }
            }
            found.most = found.most.max(all);
            found.are_alike &= at == 0 || (own - found.used).abs() <= SLACK * own;
            found.used = found.used.min(own);
            found.has_nvswitch &= is_switched;
            found.pcie = found.pcie.min(pcie);
        }
        let is_of_pcie = |node: u32| node >= accelerators && is_inside(node) && !is_nvswitch(node);
        let mut cables = Vec::new();
        for node in (0..plane.nodes()).filter(|&node| is_inside(node)) {
            // Interfaces are the nodes of a box with cables to other boxes or to shared switches.
            for (_, rate) in leaving(node).filter(|&(to, _)| !is_inside(to)) {
                found.nics += 1;
                let behind = leaving(node).filter(|&(to, _)| is_inside(to)).map(|(_, rate)| rate).fold(0.0, f64::max);
                found.nic = found.nic.min(if behind > 0.0 { rate.min(behind) } else { rate });
            }
            if is_of_pcie(node) {
                let ends = leaving(node).filter(|&(to, _)| is_of_pcie(to) || to < accelerators && is_inside(to));
                cables.extend(ends.map(|(to, rate)| (rate, node, to)));
            }
        }
        if !found.nic.is_finite() {
            found.nic = 0.0;
        }
        found.between = least_between(used, plane.nodes(), cables);
        found
    }
}

/// Returns the rate of the slowest cable of the best tree that joins all `used` nodes; 0 without a tree. A ring over a
/// tree crosses each cable once in each direction.
fn least_between(used: &[u32], nodes: u32, mut cables: Vec<(f64, u32, u32)>) -> f64 {
    cables.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut set: Vec<u32> = (0..nodes).collect();
    let root = |set: &[u32], mut node: u32| {
        while set[node as usize] != node {
            node = set[node as usize];
        }
        node
    };
    for (rate, a, b) in cables {
        let (a, b) = (root(&set, a), root(&set, b));
        set[a as usize] = b;
        if used.iter().all(|&gpu| root(&set, gpu) == root(&set, used[0])) {
            return rate;
        }
    }
    0.0
}

/// Returns the ns of the fastest path from nodes of `from` to a node for which `is_end` holds; 0 without a path.
fn least_latency_ns(network: &Network, plane: &Plane, from: &[u32], is_end: &dyn Fn(u32) -> bool) -> f64 {
    let switch_ns = network.input_latency_ns + network.output_latency_ns;
    let mut least = vec![f64::INFINITY; plane.nodes() as usize];
    let mut open: VecDeque<u32> = from.iter().copied().collect();
    from.iter().for_each(|&node| least[node as usize] = 0.0);
    while let Some(node) = open.pop_front() {
        for id in plane.leaving(node) {
            let to = plane.link(id).to;
            let at = least[node as usize] + network.link_speed(plane, id).latency_ns;
            let at = if to < plane.accelerators() { at } else { at + switch_ns };
            if at < least[to as usize] {
                least[to as usize] = at;
                // GPUs do not forward messages.
                if to >= plane.accelerators() {
                    open.push_back(to);
                }
            }
        }
    }
    let ends = (0..plane.nodes()).filter(|&node| is_end(node)).map(|node| least[node as usize]);
    Some(ends.fold(f64::INFINITY, f64::min)).filter(|ns| ns.is_finite()).unwrap_or(0.0)
}

fn gbytes(network: &Network, plane: &Plane, link: u32) -> f64 {
    network.link_speed(plane, link).gbps / 8.0 * f64::from(network.working_planes())
}
