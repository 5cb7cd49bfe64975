//! Estimates of the memory and time that a simulation of packets takes, so that it can be refused before it starts.

use std::fmt;

use unisono_base::{
    TaskId,
    interrupt::poll,
    limits::{self, OverLimit},
    mix, narrow, rounded,
};
use unisono_lower::tasks::{Kind, TaskGraph};
use unisono_machine::network::Header;

use super::{Interconnect, SimError, packets, regions};
use crate::endpoint::engine;

/// Steps to simulate a hop of a packet and a message, and to create a queue. A hop takes 110 to 200 ns on meshes of 16
/// and 64 ranks, and 330 ns on HammingMeshes of 1,024 accelerators, at 1 to 4 ns a step.
const STEPS_A_HOP: f64 = 80.0;
const STEPS_A_MESSAGE: u128 = 400;
const STEPS_A_QUEUE: u128 = 8;
/// Packet-hops simulated per CPU second, for alltoalls on HammingMeshes of 1,024 accelerators
/// (benches/results/networks.csv).
const HOPS_A_SECOND: f64 = 3e6;
/// Bytes of a message's send and receive, in the task graph and in the tables of the ranks.
const TRAFFIC_BYTES_A_MESSAGE: u128 = 128;
/// Number of pairs of accelerators, or of sends of a task graph, in the sample from which hops are estimated.
const SAMPLED_PAIRS: u64 = 256;
/// Greatest number of hops counted for a path.
const MOST_HOPS: u32 = 1 << 10;

/// Returns an error if the run needs more memory or steps than the limits allow.
pub(super) fn admit(graph: &TaskGraph, interconnect: &Interconnect, places: &[u32], jobs: u32) -> Result<(), SimError> {
    let Effort { bytes, steps, .. } = effort(graph, interconnect, places)?;
    let tasks = graph.task_count() as u64;
    // Each message may also be recorded at its receiver; there are no more messages than tasks.
    let more = of_more_threads(jobs, tasks, tasks, interconnect);
    Ok(limits::admit("the simulation of packets", bytes + more, steps)?)
}

/// Returns the bytes of the tables of all threads except the first: each has its own tables of the plane, the ranks and
/// the tasks, and records the messages of other threads.
fn of_more_threads(jobs: u32, tasks: u64, messages: u64, interconnect: &Interconnect) -> u128 {
    let more = regions::most(interconnect, jobs as usize).saturating_sub(1) as u128;
    let ranks = u128::from(interconnect.plane.accelerators());
    let (of_plane, _) = tables(interconnect);
    let of_messages = regions::FOREIGN_BYTES * u128::from(messages);
    more * (of_plane + of_messages + engine::TASK_BYTES * u128::from(tasks) + engine::RANK_BYTES * ranks)
}

/// The estimated effort of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effort {
    pub bytes: u128,
    /// Elementary steps of the run.
    pub steps: u128,
    /// The mean number of packets of a message.
    pub packets_a_message: f64,
}

/// Estimates the effort of a run from the number of its packets, and from the hops of a sample of its messages. Rank k
/// is on node `places[k]`, or on accelerator k if `places` is empty.
///
/// # Errors
/// Returns an error if a message has more packets than can be numbered.
pub fn effort(graph: &TaskGraph, interconnect: &Interconnect, places: &[u32]) -> Result<Effort, SimError> {
    let (mut packets, mut sends, mut sampled, mut hops) = (0_u128, 0_u128, 0.0, 0.0);
    let place = |rank: u32| places.get(rank as usize).copied().unwrap_or(rank);
    // About half of the tasks are sends.
    let every = (graph.task_count() as u64 / (2 * SAMPLED_PAIRS)).max(1);
    for (rank, task) in (0..graph.rank_count()).flat_map(|rank| graph.tasks(rank).map(move |task| (rank, task))) {
        poll();
        let draw = mix(u64::from(task));
        let task = graph.task(TaskId(task));
        if task.kind == Kind::Send {
            let of_message = packets_of(task.amount, interconnect);
            if of_message > u64::from(u32::MAX) {
                return Err(SimError::Unsupported {
                    what: "the number of packets of a message",
                    found: format!("{of_message} (planes: {}, bytes: {})", interconnect.planes, task.amount),
                    accepted: format!("at most {}; the flow level has no packets", u32::MAX),
                });
            }
            packets += u128::from(of_message);
            sends += 1;
            if draw.is_multiple_of(every) {
                sampled += of_message as f64;
                hops += of_message as f64 * f64::from(hops_of(interconnect, place(rank), place(task.peer), draw));
            }
        }
    }
    let (bytes, steps) = tables(interconnect);
    let hops = if sampled > 0.0 { packets as f64 * hops / sampled } else { packets as f64 };
    Ok(Effort {
        bytes: bytes + packets::MESSAGE_BYTES * sends,
        steps: steps + STEPS_A_MESSAGE * sends + u128::from(rounded(STEPS_A_HOP * hops)),
        packets_a_message: packets as f64 / sends.max(1) as f64,
    })
}

/// Returns the number of packets of a message on the simulated plane.
fn packets_of(bytes: u64, interconnect: &Interconnect) -> u64 {
    let bytes = interconnect.timing.bytes_on_plane(bytes, interconnect.planes.into());
    bytes.div_ceil(u64::from(interconnect.timing.packet_bytes)).max(1)
}

/// Returns the bytes and steps to create the tables of a plane. There is a queue for each virtual channel and each pair
/// of input and output of a node.
fn tables(interconnect: &Interconnect) -> (u128, u128) {
    let Interconnect { plane, routing, .. } = interconnect;
    let vcs = u128::from(routing.virtual_channels().max(1));
    let inputs: u128 = plane.links().iter().map(|link| plane.leaving(link.from).len() as u128 + 1).sum();
    let links = plane.links().len() as u128;
    let bytes = vcs * (packets::QUEUE_BYTES * inputs + packets::CHANNEL_BYTES * links) + packets::LINK_BYTES * links;
    (bytes, STEPS_A_QUEUE * vcs * inputs)
}

/// Estimated size of traffic by packets, known before its task graph is built. `Display` prints a clause.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrafficEstimate {
    /// Number of packets on one plane; the other fields also refer to one plane.
    pub packets: u128,
    /// Number of packet-hops over links, from a sample of pairs.
    pub hops: f64,
    /// Memory of the tasks and of the simulation, in bytes.
    pub bytes: u128,
    steps: u128,
}

impl TrafficEstimate {
    /// Estimates `messages` messages of `bytes` each between uniformly drawn accelerators, simulated on `jobs` threads.
    pub fn new(messages: u64, bytes: u64, jobs: u32, interconnect: &Interconnect) -> Self {
        let packets = u128::from(messages) * u128::from(packets_of(bytes, interconnect));
        let (of_tables, steps) = tables(interconnect);
        let hops = packets as f64 * mean_hops(interconnect);
        Self {
            packets,
            hops,
            bytes: of_tables
                + (TRAFFIC_BYTES_A_MESSAGE + packets::MESSAGE_BYTES) * u128::from(messages)
                + of_more_threads(jobs, messages.saturating_mul(2), messages, interconnect),
            steps: steps + STEPS_A_MESSAGE * u128::from(messages) + u128::from(rounded(STEPS_A_HOP * hops)),
        }
    }

    /// Returns the estimated CPU seconds of the simulation.
    pub fn seconds(&self) -> f64 {
        self.hops / HOPS_A_SECOND
    }

    /// Compares the traffic with the limits of memory and steps.
    ///
    /// # Errors
    /// Returns an error if the traffic exceeds a limit.
    pub fn check(&self) -> Result<(), OverLimit> {
        limits::check("the simulation of packets", self.bytes, self.steps)
    }
}

impl fmt::Display for TrafficEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { packets, hops, bytes, .. } = *self;
        let (packets, gigabytes, seconds) = (packets as f64, bytes as f64 / 1e9, self.seconds());
        write!(f, "{packets:.1e} packets a plane, about {hops:.1e} packet-hops, {gigabytes:.1} GB of memory and ")?;
        if seconds < 3600.0 {
            write!(f, "{:.0} min of one core", (seconds / 60.0).ceil())
        } else {
            write!(f, "{:.1} h of one core", seconds / 3600.0)
        }
    }
}

/// Returns the mean number of hops between two different accelerators, from a sample with fixed draws.
fn mean_hops(interconnect: &Interconnect) -> f64 {
    let accelerators = u64::from(interconnect.plane.accelerators());
    if accelerators < 2 {
        return 0.0;
    }
    let hops = (0..SAMPLED_PAIRS).map(|pair| {
        let from = mix(2 * pair) % accelerators;
        let to = (from + 1 + mix(2 * pair + 1) % (accelerators - 1)) % accelerators;
        f64::from(hops_of(interconnect, narrow(from), narrow(to), mix(!pair)))
    });
    hops.sum::<f64>() / SAMPLED_PAIRS as f64
}

/// Returns the number of hops of one packet that takes a random one of the hops that the routing offers at each node.
/// Messages of switches go over one link.
fn hops_of(interconnect: &Interconnect, from: u32, to: u32, random: u64) -> u32 {
    let Interconnect { plane, routing, .. } = interconnect;
    if from.max(to) >= plane.accelerators() {
        return 1;
    }
    let way = routing.choose(from, to, random);
    let (mut at, mut vc, mut offered) = (from, 0, Vec::new());
    for hops in 0..MOST_HOPS {
        if at == to {
            return hops;
        }
        offered.clear();
        routing.hops(at, Header { to, vc, way }, &mut offered);
        let draw = mix(random ^ u64::from(hops)) % (offered.len() as u64).max(1);
        let Some(hop) = offered.get(narrow::<u32>(draw) as usize) else { return hops };
        (at, vc) = (plane.link(hop.link).to, hop.vc);
    }
    MOST_HOPS
}
