//! Estimates of the memory and the time that packets take, so that a run that does not fit is refused before it starts.

use std::fmt;

use unisono_base::{
    TaskId,
    interrupt::poll,
    limits::{self, OverLimit},
    mix, narrow,
};
use unisono_lower::tasks::{Kind, TaskGraph};
use unisono_machine::network::Header;

use super::{Interconnect, SimError, packets, regions};
use crate::endpoint::engine;

/// Steps of a packet, and of creating a queue: measured with alltoalls on HammingMeshes.
const STEPS_A_PACKET: u128 = 400;
const STEPS_A_QUEUE: u128 = 8;
/// Packet-hops of a CPU second, for alltoalls on HammingMeshes of 1,024 accelerators (benches/results/networks.csv).
const HOPS_A_SECOND: f64 = 3e6;
/// Bytes of a message in the task graph of traffic and beside it: its send and its receive.
const TRAFFIC_BYTES_A_MESSAGE: u128 = 128;
/// Pairs of accelerators whose hops an estimate counts.
const SAMPLED_PAIRS: u64 = 256;
/// The most hops of a path; longer paths are counted as this number.
const MOST_HOPS: u32 = 1 << 10;

/// Compares the run with the limits.
pub(super) fn admit(graph: &TaskGraph, interconnect: &Interconnect, jobs: u32) -> Result<(), SimError> {
    let (bytes, steps) = effort(graph, interconnect)?;
    let tasks = graph.task_count() as u64;
    // Each message may be noted at its receiver too; there are no more messages than tasks.
    let more = of_more_threads(jobs, tasks, tasks, interconnect);
    Ok(limits::admit("the simulation of packets", bytes + more, steps)?)
}

/// Returns the bytes of the tables of all threads but the first: each has those of the plane, of the ranks and of the
/// tasks, and notes the messages that others send.
fn of_more_threads(jobs: u32, tasks: u64, messages: u64, interconnect: &Interconnect) -> u128 {
    let more = regions::most(interconnect, jobs as usize).saturating_sub(1) as u128;
    let ranks = u128::from(interconnect.plane.accelerators());
    let (of_plane, _) = tables(interconnect);
    let of_messages = regions::FOREIGN_BYTES * u128::from(messages);
    more * (of_plane + of_messages + engine::TASK_BYTES * u128::from(tasks) + engine::RANK_BYTES * ranks)
}

/// Returns the bytes and the elementary steps that a run takes, from the number of its packets.
///
/// # Errors
/// A message of more packets than can be numbered.
pub fn effort(graph: &TaskGraph, interconnect: &Interconnect) -> Result<(u128, u128), SimError> {
    let (mut packets, mut sends) = (0_u128, 0_u128);
    for task in 0..narrow::<u32>(graph.task_count()) {
        poll();
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
        }
    }
    let (bytes, steps) = tables(interconnect);
    Ok((bytes + packets::MESSAGE_BYTES * sends, steps + STEPS_A_PACKET * packets))
}

/// Returns the packets of a message on the simulated plane.
fn packets_of(bytes: u64, interconnect: &Interconnect) -> u64 {
    let bytes = bytes.div_ceil(u64::from(interconnect.planes.max(1)));
    bytes.div_ceil(u64::from(interconnect.timing.packet_bytes)).max(1)
}

/// Returns the bytes and steps of the tables of a plane. They have a queue for each virtual channel and pair of input
/// and output; at most as many packets wait as were posted.
fn tables(interconnect: &Interconnect) -> (u128, u128) {
    let Interconnect { plane, routing, .. } = interconnect;
    let vcs = u128::from(routing.virtual_channels().max(1));
    let inputs: u128 = plane.links().iter().map(|link| plane.leaving(link.from).len() as u128 + 1).sum();
    let links = plane.links().len() as u128;
    let bytes = vcs * (packets::QUEUE_BYTES * inputs + packets::CHANNEL_BYTES * links) + packets::LINK_BYTES * links;
    (bytes, STEPS_A_QUEUE * vcs * inputs)
}

/// The size of traffic by packets, known before its task graph is built. It prints as a clause.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrafficEstimate {
    /// Packets on one plane; the other fields are of one plane too.
    pub packets: u128,
    /// Packets over links, from the hops of a sample of pairs.
    pub hops: f64,
    /// Memory of the tasks and of the simulation.
    pub bytes: u128,
    steps: u128,
}

impl TrafficEstimate {
    /// Estimates traffic of `messages` messages of `bytes` each between accelerators drawn evenly, on `jobs` threads.
    pub fn new(messages: u64, bytes: u64, jobs: u32, interconnect: &Interconnect) -> Self {
        let packets = u128::from(messages) * u128::from(packets_of(bytes, interconnect));
        let (of_tables, steps) = tables(interconnect);
        Self {
            packets,
            hops: packets as f64 * mean_hops(interconnect),
            bytes: of_tables
                + (TRAFFIC_BYTES_A_MESSAGE + packets::MESSAGE_BYTES) * u128::from(messages)
                + of_more_threads(jobs, messages.saturating_mul(2), messages, interconnect),
            steps: steps + STEPS_A_PACKET * packets,
        }
    }

    /// Returns the CPU seconds of the simulation.
    pub fn seconds(&self) -> f64 {
        self.hops / HOPS_A_SECOND
    }

    /// Compares the traffic with the limits.
    ///
    /// # Errors
    /// The traffic needs more than a limit.
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

/// Returns the hops of one packet that takes any of the links that its routing offers.
fn hops_of(interconnect: &Interconnect, from: u32, to: u32, random: u64) -> u32 {
    let Interconnect { plane, routing, .. } = interconnect;
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
