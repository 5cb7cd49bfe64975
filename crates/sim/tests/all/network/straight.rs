//! A direct implementation of the rules of the packet simulator: maps, lists, and every event in one sorted table.

use std::collections::{BTreeMap, VecDeque};

use unisono_machine::network::{Header, Hop};
use unisono_sim::network::{Interconnect, LinkTiming};

#[derive(Clone, Copy, Debug)]
struct Packet {
    message: usize,
    bytes: u32,
    vc: u8,
}

#[derive(Debug)]
enum Event {
    Arrive(u32, Packet),
    Ready(u32, Hop, Packet),
    Free(u32),
    Credit(u32, u8),
    Post(usize),
    Deliver(usize),
}

/// The link over which a packet arrived; `None` at the packet's source.
type Input = Option<u32>;
type FromInput = (Input, VecDeque<Packet>);

pub struct Straight<'a> {
    net: &'a Interconnect,
    machines: usize,
    messages: Vec<(u32, u32, u64)>,
    /// For each message, the sizes of the packets that are still to be made. `missing` has the number of packets that
    /// have not arrived.
    unmade: Vec<VecDeque<u32>>,
    missing: Vec<usize>,
    latest: Vec<u64>,
    delivered: Vec<Option<u64>>,
    /// The events by time, posts after all other events, then by order of creation.
    events: BTreeMap<(u64, bool, u64), Event>,
    made: u64,
    busy: BTreeMap<u32, bool>,
    /// Times at which the tails of a link's packets leave.
    left: BTreeMap<u32, Vec<u64>>,
    turn: BTreeMap<u32, u8>,
    taken: BTreeMap<(u32, u8), u32>,
    /// Inputs in the order of their turns.
    waiting: BTreeMap<(u32, u8), Vec<FromInput>>,
    working: BTreeMap<u32, usize>,
    posted: BTreeMap<u32, VecDeque<usize>>,
}

/// Returns the arrival time of each message `(from, to, bytes)`; `None` for messages that are stuck. Message k is
/// posted at `times[k]`.
pub fn simulate(net: &Interconnect, machines: usize, messages: &[(u32, u32, u64)], times: &[u64]) -> Vec<Option<u64>> {
    let unmade: Vec<VecDeque<u32>> = messages.iter().map(|m| packets(m.2, net.timing.packet_bytes)).collect();
    let mut s = Straight {
        net,
        machines,
        messages: messages.to_vec(),
        missing: unmade.iter().map(VecDeque::len).collect(),
        unmade,
        latest: vec![0; messages.len()],
        delivered: vec![None; messages.len()],
        events: BTreeMap::new(),
        made: 0,
        busy: BTreeMap::new(),
        left: BTreeMap::new(),
        turn: BTreeMap::new(),
        taken: BTreeMap::new(),
        waiting: BTreeMap::new(),
        working: BTreeMap::new(),
        posted: BTreeMap::new(),
    };
    for (message, &time) in times.iter().enumerate() {
        s.add(time, Event::Post(message));
    }
    while let Some(((now, ..), event)) = s.events.pop_first() {
        s.step(now, event);
    }
    s.delivered
}

fn packets(mut bytes: u64, most: u32) -> VecDeque<u32> {
    let mut packets = VecDeque::new();
    while bytes > u64::from(most) {
        packets.push_back(most);
        bytes -= u64::from(most);
    }
    packets.push_back(bytes as u32);
    packets
}

impl Straight<'_> {
    fn add(&mut self, time: u64, event: Event) {
        self.made += 1;
        self.events.insert((time, matches!(event, Event::Post(_)), self.made), event);
    }

    fn step(&mut self, now: u64, event: Event) {
        match event {
            Event::Post(message) => {
                let (from, to, _) = self.messages[message];
                if from == to {
                    self.delivered[message] = Some(now);
                } else {
                    self.posted.entry(from).or_default().push_back(message);
                    if *self.working.entry(from).or_default() < self.machines {
                        *self.working.entry(from).or_default() += 1;
                        self.next_message(now, from);
                    }
                }
            }
            Event::Deliver(message) => self.delivered[message] = Some(now),
            Event::Free(link) => {
                self.busy.insert(link, false);
                self.start(now, link);
            }
            Event::Credit(link, vc) => {
                *self.taken.get_mut(&(link, vc)).unwrap() -= 1;
                if !self.is_busy(link) {
                    self.start(now, link);
                }
            }
            Event::Ready(link, hop, packet) => {
                self.join(now, hop, packet, Some(link));
            }
            Event::Arrive(link, packet) => {
                let node = self.net.plane.link(link).to;
                let ps = self.length(link, packet);
                if node == self.messages[packet.message].1 {
                    self.add(now + ps + self.times(link).link_ps, Event::Credit(link, packet.vc));
                    let m = packet.message;
                    self.latest[m] = self.latest[m].max(now + ps);
                    self.missing[m] -= 1;
                    if self.missing[m] == 0 {
                        self.add(self.latest[m], Event::Deliver(m));
                    }
                } else {
                    let hop = self.choose(now, node, packet);
                    let next = self.length(hop.link, packet);
                    if next < ps {
                        self.add(now + ps - next, Event::Ready(link, hop, packet));
                    } else {
                        self.join(now, hop, packet, Some(link));
                    }
                }
            }
        }
    }

    fn next_message(&mut self, now: u64, node: u32) {
        match self.posted.get_mut(&node).and_then(VecDeque::pop_front) {
            Some(message) => self.next_packet(now, message),
            None => *self.working.get_mut(&node).unwrap() -= 1,
        }
    }

    fn next_packet(&mut self, now: u64, message: usize) {
        let from = self.messages[message].0;
        match self.unmade[message].pop_front() {
            Some(bytes) => {
                let packet = Packet { message, bytes, vc: 0 };
                let hop = self.choose(now, from, packet);
                if self.join(now, hop, packet, None) {
                    self.next_packet(now, message);
                }
            }
            None => self.next_message(now, from),
        }
    }

    fn times(&self, link: u32) -> LinkTiming {
        self.net.timing.links[self.net.plane.link(link).speed as usize]
    }

    fn length(&self, link: u32, packet: Packet) -> u64 {
        self.times(link).serialization_ps(packet.bytes)
    }

    fn is_busy(&self, link: u32) -> bool {
        self.busy.get(&link).copied().unwrap_or(false)
    }

    fn has_credit(&self, link: u32, vc: u8) -> bool {
        self.taken.get(&(link, vc)).copied().unwrap_or(0) < self.net.timing.places
    }

    /// Returns the number of packets that wait for the link, plus the number of packets that the link has sent whose
    /// places are still occupied.
    fn ahead(&self, link: u32) -> usize {
        let of = |key: &(u32, u8)| key.0 == link;
        let waiting = self.waiting.iter().filter(|(k, _)| of(k)).flat_map(|(_, inputs)| inputs);
        let taken = self.taken.iter().filter(|(k, _)| of(k)).map(|(_, &n)| n as usize);
        waiting.map(|(_, packets)| packets.len()).sum::<usize>() + taken.sum::<usize>()
    }

    fn choose(&self, now: u64, node: u32, packet: Packet) -> Hop {
        let mut hops = Vec::new();
        let to = self.messages[packet.message].1;
        self.net.routing.hops(node, Header { to, vc: packet.vc, way: 0 }, &mut hops);
        let full = self.net.timing.packet_bytes;
        let trip = |hop: &Hop| self.times(hop.link).hop_ps + self.times(hop.link).link_ps;
        let unlike = hops.iter().any(|hop| trip(hop) != trip(&hops[0]));
        let left = |hop: &Hop| self.left.get(&hop.link).filter(|_| unlike).into_iter().flatten();
        // As long as a place is free, packets do not count if their places are occupied only because of the round trip
        // of their link.
        let excused = |hop: &Hop| {
            let is_free = self.has_credit(hop.link, hop.vc);
            left(hop).filter(|&&ps| is_free && now < ps + trip(hop)).count()
        };
        let sending = |hop: &Hop| left(hop).max().map_or(0, |ps| ps.saturating_sub(now));
        let counted = |hop: &Hop| (self.ahead(hop.link) - excused(hop)) as u64;
        let through = |hop: &&Hop| (counted(hop) + 1) * self.times(hop.link).serialization_ps(full) + sending(hop);
        *hops.iter().min_by_key(through).unwrap()
    }

    /// Starts a packet or queues it. Returns true if the packet starts at once.
    fn join(&mut self, now: u64, Hop { link, vc }: Hop, packet: Packet, input: Input) -> bool {
        if !self.is_busy(link) && self.has_credit(link, vc) {
            self.depart(now, Hop { link, vc }, packet, input);
            return true;
        }
        let inputs = self.waiting.entry((link, vc)).or_default();
        match inputs.iter_mut().find(|(i, _)| *i == input) {
            Some((_, packets)) => packets.push_back(packet),
            None => inputs.push((input, VecDeque::from([packet]))),
        }
        false
    }

    fn depart(&mut self, now: u64, Hop { link, vc }: Hop, packet: Packet, input: Input) {
        let ps = self.length(link, packet);
        self.busy.insert(link, true);
        self.left.entry(link).or_default().push(now + ps);
        self.turn.insert(link, (vc + 1) % self.net.routing.virtual_channels());
        *self.taken.entry((link, vc)).or_default() += 1;
        self.add(now + self.times(link).hop_ps, Event::Arrive(link, Packet { vc, ..packet }));
        self.add(now + ps, Event::Free(link));
        if let Some(from) = input {
            self.add(now + ps + self.times(from).link_ps, Event::Credit(from, packet.vc));
        }
    }

    fn start(&mut self, now: u64, link: u32) {
        let vcs = self.net.routing.virtual_channels();
        let turn = self.turn.get(&link).copied().unwrap_or(0);
        for vc in (0..vcs).map(|k| (turn + k) % vcs) {
            if !self.has_credit(link, vc) {
                continue;
            }
            let Some(inputs) = self.waiting.get_mut(&(link, vc)).filter(|inputs| !inputs.is_empty()) else { continue };
            let (input, mut packets) = inputs.remove(0);
            let packet = packets.pop_front().unwrap();
            if !packets.is_empty() {
                inputs.push((input, packets));
            }
            self.depart(now, Hop { link, vc }, packet, input);
            if input.is_none() {
                self.next_packet(now, packet.message);
            }
            return;
        }
    }
}
