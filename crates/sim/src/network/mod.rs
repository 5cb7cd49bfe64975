//! Packets on a network: virtual cut-through with credits, driven by the same task graphs as [`crate::endpoint`].
//!
//! Ranks follow the rules of [`crate::endpoint`]. A message occupies its sender's CPU for the host overhead, is then
//! posted to the sender's network interface, and occupies the receiver's CPU for the host overhead when its last packet
//! has arrived completely. This module simulates a message between these two occupations. All times are picoseconds;
//! events are ordered by (time, order of creation).
//!
//! * **Planes** are alike and independent, and every message is split evenly over them. One plane is simulated, with
//!   ceil(bytes / planes) bytes of each message.
//! * **Packets.** A message is cut into packets of `packet_bytes`; the last one has the remainder. A message of 0 bytes
//!   is one packet of length 0. A packet is made when the interface is ready to send it.
//! * **Links.** A packet that starts on a link at t occupies it until t + length / bandwidth. Its head may continue at
//!   the other end at t + output, link and input latency, before its tail arrives (Kermani, Kleinrock, "Virtual
//!   cut-through", 1979). Each link has the bandwidth and the latency of its [`unisono_machine::network::Link::speed`].
//! * **Faster links.** If the next link is faster, a packet waits until enough of it has arrived to leave no gap: it
//!   joins the queue of that link later than its head arrives, by the difference of the times for which it occupies the
//!   two links. So a slow link never blocks a fast one.
//! * **Credits.** Each input of a node has a buffer of `buffer_bytes` for each virtual channel, divided into places of
//!   one packet. A packet starts only if a place at the receiving end is free. The place becomes free when the packet's
//!   tail has left it, and the sending end of the link gets the credit one link latency later.
//! * **Choice.** When its head arrives, a packet takes, of the hops that its routing allows, the one whose link has the
//!   fewest packets ahead: those that wait for the link, and those that the link sent whose places are still occupied.
//!   A place is occupied at least for the round trip of the link: a hop and the latency of the credit. If the round
//!   trips of these hops differ, a packet does not count for that time after its tail has left, unless no place is
//!   free, so that a long cable does not seem congested (Won et al., "Overcoming far-end congestion in large-scale
//!   networks", 2015). Between links of different speed or latency, the time of these packets and one more, all of
//!   full length, decides; if round trips differ, the rest of the packet that the link sends counts by its time.
//!   Packets ahead on a longer path count several times
//!   ([`unisono_machine::network::Routing::detour`]). The first of equal hops wins.
//! * **Order.** Packets that wait for a link form a queue for each input and each virtual channel of the link. When the
//!   link is free, virtual channels with a packet and a credit take turns, and so do the inputs of one channel. No
//!   packet waits behind a packet for another link.
//! * **Interfaces.** An accelerator sends `send_machines` messages at a time, in the order in which they were posted;
//!   each of these has one waiting packet, and makes the next packet when that one starts. So injection fills every
//!   link of the accelerator if it can, up to the bandwidth of its ports. If every link has its own machines, a message
//!   is sent by those of the first link that the routing names. Arriving packets are accepted at the rate of their
//!   link.
//! * A message has arrived when the tail of its last packet has arrived; packets may overtake each other. The receiving
//!   rank notices this `signal_ns` later.
//! * **Switches that compute** are ranks of the task graph after the accelerators' ranks. They have no host overhead. A
//!   message that a switch receives or sends goes over a link between the two nodes, on virtual channel 0, and each
//!   link has its own send machines. A message is received completely, into unbounded memory, before it is reduced or
//!   copied. Results can leave after the latency of the switch. A sum that an accelerator requests and stores leaves
//!   later by a signal plus the path to that accelerator and back (`stored.rs`).
//!
//! Parameters of "HammingMesh" (Hoefler et al., 2022): [`unisono_machine::network::Network`].

mod effort;
mod events;
pub mod flow;
mod hosts;
mod interfaces;
mod links;
mod messages;
pub(crate) mod packet;
mod packets;
mod regions;
mod stored;
pub(crate) mod waiting;

use std::sync::Arc;

use unisono_base::rounded_up;
use unisono_lower::tasks::TaskGraph;
use unisono_machine::{
    MachineError,
    network::{Link, MOST_SIMULATED_CHANNELS, MachinesPer, Network, Plane, Routing, Speed, Switches},
};

pub use effort::{Effort, TrafficEstimate, effort};

use crate::endpoint::{self, engine};
pub use crate::endpoint::{SimError, Stuck, TraceEvent};

/// Times of a link, in picoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkTiming {
    /// Time from the start of a packet on a link until its head may continue: output, link and input latency.
    pub hop_ps: u64,
    /// Latency of the link, in which a credit returns.
    pub link_ps: u64,
    pub ps_per_byte: f64,
}

impl LinkTiming {
    /// Returns the time from the start of a packet until its credit returns, without the time of its bytes.
    #[inline]
    pub fn round_trip_ps(&self) -> u64 {
        self.hop_ps + self.link_ps
    }

    /// Returns the time that a packet of `bytes` occupies the link.
    #[inline]
    pub fn serialization_ps(&self, bytes: u32) -> u64 {
        rounded_up(f64::from(bytes) * self.ps_per_byte)
    }
}

/// Times of a plane's links, packets and hosts, in picoseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Timing {
    /// Times for each value of [`unisono_machine::network::Link::speed`]; the first entry is the machine's own speed.
    pub links: Vec<LinkTiming>,
    pub packet_bytes: u32,
    /// Number of packets that the buffer of one input and virtual channel holds.
    pub places: u32,
    pub host_overhead_ps: u64,
    /// Bytes of a message besides its data.
    pub header_bytes: u64,
    /// Time from the end of a message until a receiving rank notices it.
    pub signal_ps: u64,
    pub gamma_ps_per_byte: f64,
}

impl Timing {
    pub fn new(network: &Network, plane: &Plane) -> Self {
        let ps = |ns: f64| rounded_up(ns * 1e3);
        let link = |speed: Speed| LinkTiming {
            hop_ps: ps(network.output_latency_ns + speed.latency_ns + network.input_latency_ns),
            link_ps: ps(speed.latency_ns),
            ps_per_byte: 8e3 / speed.gbps,
        };
        let places = network.buffer_bytes / u64::from(network.packet_bytes.max(1));
        Self {
            links: network.speeds(plane).into_iter().map(link).collect(),
            packet_bytes: network.packet_bytes.max(1),
            places: u32::try_from(places).unwrap_or(u32::MAX).max(1),
            host_overhead_ps: ps(network.host_overhead_ns),
            header_bytes: network.header_bytes.into(),
            signal_ps: ps(network.signal_ns),
            // Each plane carries its fraction of a vector, which a rank reduces separately.
            gamma_ps_per_byte: network.gamma_ns_per_byte * 1e3 / f64::from(network.working_planes().max(1)),
        }
    }

    /// Makes packets `factor` times as long in buffers of the same size, for faster simulations.
    pub fn coarsen(&mut self, factor: u32) {
        self.packet_bytes = self.packet_bytes.saturating_mul(factor);
        self.places = (self.places / factor).max(1);
    }

    /// Returns the bytes of a message on each of `planes` planes, which share its data.
    #[inline]
    pub fn bytes_on_plane(&self, bytes: u64, planes: u64) -> u64 {
        bytes.div_ceil(planes.max(1)).saturating_add(self.header_bytes)
    }

    /// Returns the times of a link.
    #[inline]
    pub fn of(&self, link: Link) -> &LinkTiming {
        &self.links[usize::from(link.speed)]
    }
}

/// A network on which packets can be simulated.
#[derive(Clone)]
pub struct Interconnect {
    pub plane: Plane,
    pub routing: Arc<dyn Routing>,
    pub timing: Timing,
    /// Number of planes over which messages are split evenly; one of them is simulated.
    pub planes: u32,
    /// Number of messages that an accelerator, or each of its links, sends at a time.
    pub send_machines: u32,
    pub send_machines_per: MachinesPer,
    /// Computing capabilities of the network's switches.
    pub computing: Switches,
}

impl Interconnect {
    /// Builds the plane and the routing of a network.
    ///
    /// # Errors
    /// Returns an error if the topology cannot be built, or is too large.
    pub fn new(network: &Network) -> Result<Self, MachineError> {
        let topology = network.topology(&network.name)?;
        let plane = topology.plane()?;
        Ok(Self {
            timing: Timing::new(network, &plane),
            plane,
            routing: topology.routing().into(),
            planes: network.working_planes(),
            send_machines: network.send_machines,
            send_machines_per: network.send_machines_per,
            computing: network.computing(&*topology)?,
        })
    }

    /// Returns the network with each listed link slowed to a fraction of its rate, in every plane. The routing ignores
    /// the slow links. Returns `None` if the links then have too many different speeds.
    ///
    /// # Panics
    /// Panics if a link does not exist.
    #[must_use]
    pub fn slowed(self, network: &Network, shares: &[(u32, f64)]) -> Option<Self> {
        let plane = self.plane.slowed(network.own_speed(), shares)?;
        Some(Self { timing: Timing::new(network, &plane), plane, ..self })
    }
}

/// Options of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Options of the ranks; the seed also determines the random choices of routings.
    pub hosts: endpoint::Options,
    /// Number of messages that an accelerator, or each of its links, sends at a time; `None` for the machine's own
    /// number.
    pub send_machines: Option<u32>,
    /// Node of each rank of the graph: accelerators first, then switches; empty if rank k is on accelerator k.
    pub places: Vec<u32>,
    /// Picoseconds per unit of the graph's calcs; programs in GOAL count nanoseconds.
    pub ps_per_calc: u64,
    /// Greatest number of threads that run regions of the plane; results do not depend on it.
    pub jobs: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { hosts: endpoint::Options::default(), send_machines: None, places: Vec::new(), ps_per_calc: 1, jobs: 1 }
    }
}

/// Results of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Results of the ranks, in picoseconds.
    pub hosts: endpoint::Run,
    /// Number of packets of one plane.
    pub packets: u64,
    /// Number of packet-hops over links of one plane.
    pub hops: u64,
    /// Number of events of the ranks and of one plane.
    pub events: u64,
    /// Number of packets over each link of one plane.
    pub link_packets: Vec<u64>,
}

impl Run {
    fn of_plane(hosts: endpoint::Run, packets: u64, hops: u64, link_packets: Vec<u64>) -> Self {
        // A packet is made once; each of its hops has three events: it starts, frees the link, and returns its credit.
        let events = hosts.events + packets + 3 * hops;
        Self { packets, hops, events, link_packets, hosts }
    }
}

/// Runs a task graph on a network.
///
/// # Errors
/// Returns an error on a deadlock of tasks or packets, which names stuck ones, if the options do not fit, if the
/// routing names no link, or if memory, steps or a time would exceed a limit.
pub fn run(graph: &TaskGraph, interconnect: &Interconnect, options: &Options) -> Result<Run, SimError> {
    check(graph, interconnect, options)?;
    if options.jobs > 1 {
        endpoint::parts::check(graph, &options.hosts)?;
        if let Some(run) = regions::run(graph, interconnect, options) {
            return Ok(run);
        }
    }
    let prices = hosts::HostPrices::new(interconnect, options);
    let (hosts, packets) =
        engine::run_with(graph, &prices, &options.hosts, || packets::Packets::new(graph, interconnect, options))?;
    let (count, hops, link_packets) = packets.counts();
    Ok(Run::of_plane(hosts, count, hops, link_packets))
}

/// Runs a task graph on `options.jobs` threads, with the results of [`run`]. Returns `None` if the run fails or cannot
/// be divided into regions; [`run`] then uses one thread.
pub fn run_in_regions(graph: &TaskGraph, interconnect: &Interconnect, options: &Options) -> Option<Run> {
    check(graph, interconnect, options).and_then(|()| endpoint::parts::check(graph, &options.hosts)).ok()?;
    regions::run(graph, interconnect, options)
}

fn check(graph: &TaskGraph, interconnect: &Interconnect, options: &Options) -> Result<(), SimError> {
    let no = |what, found: String, accepted: String| Err(SimError::Unsupported { what, found, accepted });
    let (ranks, plane) = (graph.rank_count(), &interconnect.plane);
    let accelerators = plane.accelerators();
    if options.places.is_empty() {
        if ranks > accelerators {
            return no("the number of ranks", ranks.to_string(), format!("at most the {accelerators} accelerators"));
        }
    } else if options.places.len() != ranks as usize {
        let accepted = format!("one accelerator for each of {ranks} ranks");
        return no("the number of accelerators given", options.places.len().to_string(), accepted);
    } else if let Some(wrong) = options.places.iter().find(|&&place| place >= plane.nodes()) {
        return no("the place of a node", wrong.to_string(), format!("nodes 0 to {}", plane.nodes() - 1));
    }
    if options.send_machines == Some(0) {
        return no("the number of send machines", "0".to_owned(), "at least 1".to_owned());
    }
    let vcs = interconnect.routing.virtual_channels();
    if vcs > MOST_SIMULATED_CHANNELS {
        return no("the number of virtual channels", vcs.to_string(), format!("at most {MOST_SIMULATED_CHANNELS}"));
    }
    let channels = plane.links().len() as u64 * u64::from(vcs);
    if channels >= 1 << 30 {
        return no("links x virtual channels", channels.to_string(), format!("less than {}", 1 << 30));
    }
    let timing = &interconnect.timing;
    let of_links = timing.links.iter().flat_map(|link| {
        let full = link.serialization_ps(timing.packet_bytes);
        [("the latency of a link", link.hop_ps.max(link.link_ps)), ("the time of a packet on a link", full)]
    });
    let of_hosts = [("the overhead of a host", timing.host_overhead_ps), ("the signal of a message", timing.signal_ps)];
    for (what, ps) in of_links.chain(of_hosts) {
        if ps > MOST_PS {
            return no(what, format!("{ps} ps"), format!("at most {MOST_PS} ps"));
        }
    }
    effort::admit(graph, interconnect, &options.places, options.jobs)
}

/// Greatest time that a packet, a link or a host may take, in picoseconds: 13 days.
const MOST_PS: u64 = 1 << 60;
