//! The state of a plane on which packets move, and the events through which ranks drive it. Two other files contain the
//! rules: `interfaces.rs` makes packets of messages, `links.rs` moves packets.

use std::hint::black_box;

use unisono_base::{TaskId, interrupt::poll, narrow, rounded_up};
use unisono_lower::tasks::TaskGraph;
use unisono_machine::network::{Hop, MachinesPer, Plane, Routing};

use super::{
    Interconnect, Options, SimError, Timing,
    events::{Events, Happening, Place},
    interfaces::Interface,
    links::{Channel, Left, Wire},
    messages::{Messages, NONE, Sending},
    packet::Lengths,
    regions::Border,
    stored,
    waiting::Waiting,
};
use crate::endpoint::{
    STUCK_KEPT,
    carrier::{Carried, Carrier},
};

/// Bytes in the tables, for estimates: of a message with its event, of a channel, of a link, and of a queue.
pub(super) const MESSAGE_BYTES: u128 = (Messages::BYTES + size_of::<unisono_base::queue::Event<u64>>()) as u128;
pub(super) const CHANNEL_BYTES: u128 = size_of::<Channel>() as u128;
pub(super) const LINK_BYTES: u128 = (size_of::<Wire>() + 64) as u128;
pub(super) const QUEUE_BYTES: u128 = Waiting::QUEUE_BYTES as u128;

pub(super) struct Packets<'a> {
    pub(super) plane: &'a Plane,
    pub(super) routing: &'a dyn Routing,
    pub(super) timing: &'a Timing,
    /// True if links have different speeds.
    pub(super) is_unlike: bool,
    pub(super) has_detours: bool,
    pub(super) planes: u64,
    pub(super) vcs: u8,
    pub(super) seed: u64,
    pub(super) places: &'a [u32],
    pub(super) lengths: Lengths,
    pub(super) wires: Vec<Wire>,
    /// For each link, the packets that wait for it, plus packets that it sent whose buffer places are still occupied. A
    /// choice reads the numbers of many links, which are in few cache lines.
    pub(super) ahead: Vec<u32>,
    /// One entry for each link; empty if all links have the same round trip.
    pub(super) left: Vec<Left>,
    pub(super) channels: Vec<Channel>,
    pub(super) waiting: Waiting,
    pub(super) events: Events,
    pub(super) messages: Messages,
    /// One interface for each accelerator or link; if a rank of the graph is a switch, those of all links follow.
    pub(super) interfaces: Vec<Interface>,
    pub(super) per_link: bool,
    /// Latency of each node in picoseconds; empty unless a rank of the graph is a switch.
    pub(super) latency_ps: Vec<u64>,
    /// Sends of sums that an accelerator stores, in ascending order, with the additional delay of each in picoseconds.
    pub(super) stored: Vec<(u32, u64)>,
    /// Number of packets that have been made and have not arrived.
    pub(super) under_way: u64,
    pub(super) packets: u64,
    pub(super) hops: u64,
    /// Scratch space: the hops offered for the present choice.
    pub(super) candidates: Vec<Hop>,
    /// Number of links that wait for credits.
    pub(super) stalled: usize,
    pub(super) fault: Option<String>,
    /// Node of the first event whose time is beyond [`LAST`].
    pub(super) late: Option<u32>,
    /// Sends, in ascending order, whose messages' departures are reported.
    pub(super) leaving: &'a [TaskId],
    /// Reports of [`Carried`] events that the ranks have not taken yet.
    pub(super) news: Vec<(u64, u32, Carried)>,
    /// Border of this region, if the run is divided into regions.
    pub(super) border: Option<Border<'a>>,
}

/// Times after this are an error. Delays are at most as long, so that no sum overflows.
pub(super) const LAST: u64 = 1 << 62;

impl Carrier for Packets<'_> {
    const PRICED: bool = false;

    #[expect(clippy::cast_possible_truncation, reason = "the last packet is no longer than a full one")]
    fn carry(&mut self, time: u64, id: u32, from: u32, to: u32, bytes: u64) {
        let place = |rank: u32| self.places.get(rank as usize).copied().unwrap_or(rank);
        let (from, to, bytes) = (place(from), place(to), self.timing.bytes_on_plane(bytes, self.planes));
        let full = u64::from(self.timing.packet_bytes);
        // A message without bytes is one packet.
        let packets = bytes.div_ceil(full).max(1);
        let last_bytes = (bytes - (packets - 1) * full) as u32;
        let length = self.lengths.class(last_bytes, self.timing);
        // `effort::admit` has checked this before the run.
        let packets = u32::try_from(packets).expect("the packets of a message are at most 2^32 - 1");
        let at = self.messages.add(time, Sending { id, from, to, unmade: packets, last_bytes, next: NONE, length });
        let latency_ps = self.latency_ps.get(from as usize).copied().unwrap_or(0);
        let stored = self.stored.binary_search_by_key(&id, |&(send, _)| send).ok();
        let time = time.saturating_add(latency_ps).saturating_add(stored.map_or(0, |at| self.stored[at].1));
        if from == to {
            self.note(time, id, Carried::Begun);
            self.note(time, id, Carried::Left);
            self.events.delivered(time, at);
        } else {
            self.events.posted(time, at);
        }
        if let Some(border) = &mut self.border {
            border.announce(to, at, id, packets);
        }
    }

    fn began(&mut self, rank: u32, made: u32) {
        if let Some(border) = &mut self.border {
            border.log.began(rank, made);
        }
    }

    fn stepped(&mut self, time: u64, stamp: u32, made: u32) {
        if let Some(border) = &mut self.border {
            border.log.stepped(time, stamp, self.events.made(), made);
        }
    }

    fn report(&mut self, until: u64) -> Option<(u64, u32, Carried)> {
        while self.fault.is_none() && self.late.is_none() {
            poll();
            if let Some(news) = self.news.pop() {
                return Some(news);
            }
            let (now, what) = self.events.pop(until)?;
            if let Some(place) = self.events.take_due() {
                self.take_credits();
                self.read_ahead(place);
            }
            if now > LAST {
                // A region only reports that it failed, so any node will do.
                self.late = Some(if self.border.is_some() { 0 } else { self.place_of(what) });
                return None;
            }
            match what {
                Happening::Arrival(link, packet) => self.arrive(now, link, packet),
                Happening::Ready(link, hop, packet) => {
                    self.offer(now, hop, packet, Some(link));
                }
                Happening::Free(link) => self.free(now, link),
                Happening::Credit(link, vc) => self.credit(now, link, vc),
                Happening::LateCredit(channel) => {
                    let vcs = u32::from(self.vcs);
                    self.credit(now, channel / vcs, narrow(channel % vcs));
                }
                Happening::Posted(message) => self.post(now, message),
                Happening::Delivered(message) => {
                    let id = match &mut self.border {
                        Some(border) => {
                            border.log.moved(now, self.events.popped(), self.events.made(), 1);
                            let is_foreign = self.messages.is_foreign(message);
                            if is_foreign { border.remove(message) } else { self.messages.remove(message) }
                        }
                        None => self.messages.remove(message),
                    };
                    return Some((now, id, Carried::Arrived));
                }
            }
            if let Some(border) = &mut self.border {
                border.log.moved(now, self.events.popped(), self.events.made(), 0);
            }
        }
        None
    }

    fn jam(&self) -> Option<SimError> {
        if let Some(what) = &self.fault {
            return Some(SimError::Routing { routing: self.routing.name().to_owned(), what: what.clone() });
        }
        if let Some(node) = self.late {
            return Some(SimError::Overflow { place: format!("node {node}") });
        }
        if self.under_way == 0 {
            return None;
        }
        let stuck = self.waiting.all().take(STUCK_KEPT).map(|(queue, packet)| self.describe(queue, packet)).collect();
        Some(SimError::Jammed { packets: self.under_way, stuck })
    }
}

impl<'a> Packets<'a> {
    pub fn new(graph: &TaskGraph, interconnect: &'a Interconnect, options: &'a Options) -> Self {
        let Interconnect { plane, routing, timing, planes, send_machines, send_machines_per, computing } = interconnect;
        let per_link = *send_machines_per == MachinesPer::Link;
        let vcs = routing.virtual_channels().max(1);
        let is_switch = |&place: &u32| place >= plane.accelerators();
        let has_switches = options.places.iter().any(is_switch);
        let latency_ps = if has_switches {
            (0..plane.nodes()).map(|node| rounded_up(computing.latency_ns(node) * 1e3)).collect()
        } else {
            Vec::new()
        };
        let mut wires = Vec::with_capacity(plane.links().len());
        let mut waiting = Waiting::new();
        for link in plane.links() {
            poll();
            // The interface of an accelerator, or of a switch that computes, is an additional input.
            let own = has_switches || link.from < plane.accelerators();
            let incoming = plane.leaving(link.from).map(|port| Some(plane.link(port).back));
            let inputs: Vec<_> = incoming.chain(own.then_some(None)).collect();
            let input = link.back - plane.leaving(link.to).start;
            wires.push(Wire::new(link, input, narrow(waiting.queue_count()), narrow(inputs.len())));
            (0..vcs).for_each(|_| inputs.iter().for_each(|&from| waiting.add_queue(from)));
        }
        let links = wires.len();
        let has_unlike_trips = timing.links.iter().any(|link| link.round_trip_ps() != timing.links[0].round_trip_ps());
        let of_nodes = if per_link { 0 } else { plane.accelerators() as usize };
        let of_links = if per_link || has_switches { links } else { 0 };
        let machines = options.send_machines.unwrap_or(*send_machines);
        Self {
            plane,
            routing: routing.as_ref(),
            timing,
            is_unlike: timing.links.len() > 1,
            has_detours: routing.has_detours(),
            planes: u64::from((*planes).max(1)),
            vcs,
            seed: options.hosts.seed,
            places: &options.places,
            lengths: Lengths::new(timing),
            wires,
            ahead: vec![0; links],
            left: vec![Left::new(); if has_unlike_trips { links } else { 0 }],
            channels: vec![Channel::new(timing.places); links * usize::from(vcs)],
            waiting,
            events: Events::new(timing),
            messages: Messages::new(),
            per_link,
            interfaces: (0..of_nodes + of_links).map(|_| Interface::new(machines)).collect(),
            latency_ps,
            stored: stored::sends(graph, interconnect, options),
            under_way: 0,
            packets: 0,
            hops: 0,
            candidates: Vec::new(),
            stalled: 0,
            fault: None,
            late: None,
            leaving: &options.hosts.leaving,
            news: Vec::new(),
            border: None,
        }
    }

    /// Reads the table entries that the next events of a lane need, so that cache misses overlap.
    fn read_ahead(&self, place: Place) {
        black_box(match place {
            Place::Arrivals(lane) => {
                let arrivals = self.events.coming_arrivals(lane);
                arrivals.fold(0, |sum, (link, packet)| sum ^ self.read_arrival(link, packet))
            }
            Place::Lane(lane) => self.events.coming_free(lane).fold(0, |sum, link| sum ^ self.read_waiting(link)),
            Place::Others | Place::Late | Place::Credits(_) => 0,
        });
    }

    /// Returns the number of packets, of hops, and of packets over each link.
    pub fn counts(&self) -> (u64, u64, Vec<u64>) {
        (self.packets, self.hops, self.wires.iter().map(|wire| wire.sent).collect())
    }

    /// Returns a node that an event concerns.
    fn place_of(&self, what: Happening) -> u32 {
        match what {
            Happening::Arrival(link, _)
            | Happening::Ready(link, ..)
            | Happening::Free(link)
            | Happening::Credit(link, _) => self.plane.link(link).from,
            Happening::LateCredit(channel) => self.plane.link(channel / u32::from(self.vcs)).from,
            Happening::Posted(message) | Happening::Delivered(message) => self.messages.sending(message).from,
        }
    }
}
