//! Regions of a plane: each node is in one; links between regions have latency, so that regions can run ahead.

use unisono_base::{TaskId, interrupt::poll, narrow};
use unisono_lower::tasks::{Kind, TaskGraph};

use super::super::{Interconnect, Options, messages::PLACE_BITS, packet::Lengths};

pub(in super::super) struct Regions {
    pub count: usize,
    /// Region of each node.
    pub of_node: Vec<u8>,
    /// Region at the start of each link; `to` is the region at its end, and `crosses` is true if these two differ.
    pub from: Vec<u8>,
    pub to: Vec<u8>,
    pub crosses: Vec<bool>,
    /// Picoseconds from an event in one region to its earliest effect on another region.
    pub lookahead_ps: u64,
    /// Length classes of all packets.
    pub lengths: Lengths,
}

/// Greatest number of regions of a run; the upper bits of a message's number hold the region.
pub(super) const MOST: usize = 1 << (30 - PLACE_BITS);

impl Regions {
    /// Divides a plane among at most `count` threads. Returns `None` if the run cannot be divided: for fewer than two
    /// regions, with traces or reported departures, with switches that compute, with 2^26 tasks or more, with messages
    /// of very many lengths, or if links between regions have no latency.
    pub fn new(graph: &TaskGraph, interconnect: &Interconnect, options: &Options, count: usize) -> Option<Self> {
        let Interconnect { plane, timing, .. } = interconnect;
        let count = super::most(interconnect, count);
        let computes = options.places.iter().any(|&place| place >= plane.accelerators());
        let records = !options.hosts.trace.ranks.is_empty() || !options.hosts.leaving.is_empty();
        if count < 2 || computes || records || graph.task_count() >= 1 << PLACE_BITS {
            return None;
        }
        let of_node = nodes(interconnect, count);
        let region = |node: u32| of_node[node as usize];
        let from: Vec<u8> = plane.links().iter().map(|link| region(link.from)).collect();
        let to: Vec<u8> = plane.links().iter().map(|link| region(link.to)).collect();
        let crosses: Vec<bool> = from.iter().zip(&to).map(|(from, to)| from != to).collect();
        let lengths = lengths(graph, interconnect);
        let least_ps = lengths.least_ps(timing)?;
        let border =
            plane.links().iter().zip(&crosses).filter(|(_, crosses)| **crosses).map(|(link, _)| timing.of(*link));
        // A packet that starts arrives one hop later; its credit returns after its tail.
        let lookahead_ps = border.map(|link| link.hop_ps.min(least_ps + link.link_ps)).min().unwrap_or(u64::MAX);
        (lookahead_ps > 0).then_some(Self { count, of_node, from, to, crosses, lookahead_ps, lengths })
    }
}

/// Returns the region of each node. Accelerators are divided into ranges of about equal size. Switches are assigned in
/// passes: a switch is in the region of most of its neighbors that have a region before the pass; among several such
/// regions, in the one with the fewest switches. A switch that no path connects with an accelerator is in region 0.
#[expect(clippy::cast_possible_truncation, reason = "a region has 8 bits")]
fn nodes(interconnect: &Interconnect, count: usize) -> Vec<u8> {
    const NONE: u8 = u8::MAX;
    let plane = &interconnect.plane;
    let accelerators = plane.accelerators() as usize;
    let mut of_node: Vec<u8> = (0..accelerators).map(|at| (at * count / accelerators) as u8).collect();
    of_node.resize(plane.nodes() as usize, NONE);
    let mut switches = vec![0_usize; count];
    let mut left: Vec<usize> = (accelerators..plane.nodes() as usize).collect();
    while !left.is_empty() {
        // Each pass assigns the nodes with a neighbor that has a region.
        let known = of_node.clone();
        let before = left.len();
        left.retain(|&node| {
            poll();
            let mut neighbors = vec![0_usize; count];
            for link in plane.leaving(narrow(node)) {
                let region = known[plane.link(link).to as usize];
                if region != NONE {
                    neighbors[usize::from(region)] += 1;
                }
            }
            let most = neighbors.iter().copied().max().unwrap_or(0);
            let regions = (0..count).filter(|&region| neighbors[region] == most);
            let Some(region) = regions.min_by_key(|&region| switches[region]).filter(|_| most > 0) else { return true };
            switches[region] += 1;
            of_node[node] = region as u8;
            false
        });
        if left.len() == before {
            left.drain(..).for_each(|node| of_node[node] = 0);
        }
    }
    of_node
}

/// Returns the length classes of all packets.
#[expect(clippy::cast_possible_truncation, reason = "the last packet is no longer than a full one")]
fn lengths(graph: &TaskGraph, interconnect: &Interconnect) -> Lengths {
    let (planes, timing) = (u64::from(interconnect.planes), &interconnect.timing);
    let mut lengths = Lengths::new(timing);
    for task in 0..narrow::<u32>(graph.task_count()) {
        poll();
        let task = graph.task(TaskId(task));
        if task.kind == Kind::Send {
            let (bytes, full) = (timing.bytes_on_plane(task.amount, planes), u64::from(timing.packet_bytes));
            let packets = bytes.div_ceil(full).max(1);
            lengths.class((bytes - (packets - 1) * full) as u32, timing);
        }
    }
    lengths
}
