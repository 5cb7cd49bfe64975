//! The rules of a plane: links, credits, choices, and the interfaces of accelerators.

use rustc_hash::FxHashMap;
use unisono_base::{TaskId, interrupt::poll, mix, narrow};
use unisono_machine::network::{Header, Hop, MOST_SIMULATED_CHANNELS, MachinesPer, Plane, Routing};

use super::{
    Interconnect, Options, SimError, Timing,
    events::{Events, Happening},
    waiting::{Ring, Waiting},
};
use crate::endpoint::{
    STUCK_KEPT,
    engine::{Carried, Carrier},
};

/// What of a packet is carried along: so much that no table of messages is looked at on the way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Packet {
    pub message: u32,
    to: u32,
    /// From the lowest: 6 bits the virtual channel it came on, 8 bits the class of its length, 18 bits what its source chose.
    rest: u32,
}

/// What a source may choose among.
const MOST_WAYS: u32 = 1 << 18;
const _: () = assert!(MOST_SIMULATED_CHANNELS == 1 << 6);

impl Packet {
    pub fn new(message: u32, to: u32, length: u8, way: u32) -> Self {
        Self { message, to, rest: way << 14 | u32::from(length) << 6 }
    }

    fn vc(self) -> u8 {
        (self.rest & 0x3f) as u8
    }

    fn on(self, vc: u8) -> Self {
        Self { rest: self.rest & !0x3f | u32::from(vc), ..self }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the hot loop; fields of a packet, and tables whose sizes are checked before"
    )]
    fn length(self) -> u8 {
        (self.rest >> 6) as u8
    }

    fn header(self) -> Header {
        Header { to: self.to, vc: self.vc(), way: self.rest >> 14 }
    }
}

/// How long packets hold a link, by the class of their length and the speed of the link; class 0 is full packets.
struct Lengths {
    /// A row a class, of 2^`shift` places of which the first are speeds.
    ps: Vec<u64>,
    shift: u32,
    classes: FxHashMap<u32, u8>,
}

/// Lengths that found no class more: the message says.
const UNCLASSED: u8 = u8::MAX;

impl Lengths {
    fn new(timing: &Timing) -> Self {
        let shift = timing.links.len().next_power_of_two().trailing_zeros();
        let mut lengths = Self { ps: Vec::new(), shift, classes: FxHashMap::default() };
        lengths.class(timing.packet_bytes, timing);
        lengths
    }

    /// Nothing for a length without a class.
    #[inline]
    fn ps(&self, class: u8, speed: u8) -> Option<u64> {
        self.ps.get(usize::from(class) << self.shift | usize::from(speed)).copied()
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the hot loop; fields of a packet, and tables whose sizes are checked before"
    )]
    fn class(&mut self, bytes: u32, timing: &Timing) -> u8 {
        if let Some(&class) = self.classes.get(&bytes) {
            return class;
        }
        if self.classes.len() == usize::from(UNCLASSED) {
            return UNCLASSED;
        }
        let class = self.classes.len() as u8;
        self.ps.extend(timing.links.iter().map(|link| link.serialization_ps(bytes)));
        self.ps.resize((usize::from(class) + 1) << self.shift, 0);
        self.classes.insert(bytes, class);
        class
    }
}

/// A link as the simulator looks at it.
struct Wire {
    to: u32,
    /// Its number among the inputs of `to`.
    input: u32,
    /// Its queues are the `inputs` of the node it leaves, for each virtual channel.
    queues: u32,
    inputs: u32,
}

#[derive(Clone, Copy, Default)]
struct Output {
    busy: bool,
    /// The virtual channel whose turn it is.
    turn: u8,
    /// Of the link.
    speed: u8,
    /// Packets that wait for it, and packets that it sent whose places are not free again.
    ahead: u32,
    sent: u64,
}

/// A link and a virtual channel.
#[derive(Clone, Copy)]
struct Channel {
    credits: u32,
    ring: Ring,
}

struct Message {
    /// The caller's.
    id: u32,
    from: u32,
    to: u32,
    /// Packets that are not made yet.
    unmade: u32,
    /// Packets that have not arrived.
    missing: u32,
    last_bytes: u32,
    /// Of the last packet.
    length: u8,
    /// When the last tail is there of those that have arrived.
    latest: u64,
    /// The next one that waits for its interface, or that is unused.
    next: u32,
}

const NONE: u32 = u32::MAX;

/// Bytes of the tables, for estimates; a message has an event too.
pub(super) const MESSAGE_BYTES: u128 = (size_of::<Message>() + size_of::<crate::queue::Event<u64>>()) as u128;
pub(super) const CHANNEL_BYTES: u128 = size_of::<Channel>() as u128;
pub(super) const LINK_BYTES: u128 = (size_of::<Wire>() + size_of::<Output>() + 64) as u128;
pub(super) const QUEUE_BYTES: u128 = Waiting::QUEUE_BYTES as u128;

/// Of an accelerator, or of a link that leaves one or a switch that computes.
struct Interface {
    idle_machines: u32,
    /// Messages that wait for one.
    first: u32,
    last: u32,
}

pub(super) struct Packets<'a> {
    plane: &'a Plane,
    routing: &'a dyn Routing,
    timing: &'a Timing,
    /// Links have unlike speeds.
    is_unlike: bool,
    has_detours: bool,
    planes: u64,
    vcs: u8,
    seed: u64,
    places: &'a [u32],
    lengths: Lengths,
    wires: Vec<Wire>,
    outputs: Vec<Output>,
    channels: Vec<Channel>,
    waiting: Waiting,
    events: Events,
    messages: Vec<Message>,
    /// First of the messages that are unused.
    unused: u32,
    /// Of each accelerator or of each link; those of links follow if a rank of the graph is a switch.
    interfaces: Vec<Interface>,
    per_link: bool,
    /// Of each node; empty unless a rank of the graph is a switch.
    latency_ps: Vec<u64>,
    /// Packets that have not arrived.
    under_way: u64,
    packets: u64,
    hops: u64,
    /// Of the choice at work.
    candidates: Vec<Hop>,
    fault: Option<String>,
    /// The accelerator at which times went beyond [`LAST`] first.
    late: Option<u32>,
    /// Sends, ascending, of which it is wanted when their messages leave.
    leaving: &'a [TaskId],
    /// What is not reported of them.
    news: Vec<(u64, u32, Carried)>,
}

/// Times after this are an error; delays are shorter, so that no sum of both overflows.
const LAST: u64 = 1 << 62;

impl Carrier for Packets<'_> {
    const PRICED: bool = false;

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the hot loop; fields of a packet, and tables whose sizes are checked before"
    )]
    fn carry(&mut self, time: u64, id: u32, from: u32, to: u32, bytes: u64) {
        let place = |rank: u32| self.places.get(rank as usize).copied().unwrap_or(rank);
        let (from, to, bytes) = (place(from), place(to), bytes.div_ceil(self.planes));
        let full = u64::from(self.timing.packet_bytes);
        // Also a message without bytes is a packet.
        let packets = bytes.div_ceil(full).max(1);
        let last_bytes = (bytes - (packets - 1) * full) as u32;
        let length = self.lengths.class(last_bytes, self.timing);
        // As checked before the run.
        let packets = u32::try_from(packets).expect("the packets of a message are at most 2^32 - 1");
        let message =
            Message { id, from, to, unmade: packets, missing: packets, last_bytes, length, latest: time, next: NONE };
        let at = self.add_message(message);
        let time = self.latency_ps.get(from as usize).map_or(time, |latency_ps| time.saturating_add(*latency_ps));
        if from == to {
            self.note(time, id, Carried::Begun);
            self.note(time, id, Carried::Left);
            self.events.delivered(time, at);
        } else {
            self.events.posted(time, at);
        }
    }

    fn report(&mut self, until: u64) -> Option<(u64, u32, Carried)> {
        while self.fault.is_none() && self.late.is_none() {
            poll();
            if let Some(news) = self.news.pop() {
                return Some(news);
            }
            let (now, what) = self.events.pop(until)?;
            if now > LAST {
                self.late = Some(self.place_of(what));
                return None;
            }
            match what {
                Happening::Arrival(link, packet) => self.arrive(now, link, packet),
                Happening::Ready(link, hop, packet) => {
                    self.offer(now, hop, packet, Some(link));
                }
                Happening::Free(link) => {
                    self.outputs[link as usize].busy = false;
                    self.start_waiting(now, link);
                }
                Happening::Credit(channel) => self.credit(now, channel),
                Happening::Posted(message) => self.post(now, message),
                Happening::Delivered(message) => {
                    let id = self.messages[message as usize].id;
                    self.messages[message as usize].next = self.unused;
                    self.unused = message;
                    return Some((now, id, Carried::Arrived));
                }
            }
        }
        None
    }

    fn jam(&self) -> Option<SimError> {
        if let Some(what) = &self.fault {
            return Some(SimError::Routing { routing: self.routing.name().to_owned(), what: what.clone() });
        }
        if let Some(rank) = self.late {
            return Some(SimError::Overflow { rank });
        }
        if self.under_way == 0 {
            return None;
        }
        let stuck = self.waiting.all().take(STUCK_KEPT).map(|(queue, packet)| self.describe(queue, packet)).collect();
        Some(SimError::Jammed { packets: self.under_way, stuck })
    }
}

impl<'a> Packets<'a> {
    pub fn new(interconnect: &'a Interconnect, options: &'a Options) -> Self {
        let Interconnect { plane, routing, timing, planes, send_machines, send_machines_per, computing } = interconnect;
        let per_link = *send_machines_per == MachinesPer::Link;
        let vcs = routing.virtual_channels().max(1);
        let is_switch = |&place: &u32| place >= plane.accelerators();
        let has_switches = options.places.iter().any(is_switch);
        let latency_ps = if has_switches {
            (0..plane.nodes()).map(|node| super::whole_ps(computing.latency_ns(node) * 1e3)).collect()
        } else {
            Vec::new()
        };
        let mut wires = Vec::with_capacity(plane.links().len());
        let mut waiting = Waiting::new();
        for link in plane.links() {
            poll();
            let incoming = plane.leaving(link.from).map(|port| Some(plane.link(port).back));
            // The interface of an accelerator, or of a switch that computes, is one more input.
            let own = (has_switches || link.from < plane.accelerators()).then_some(None);
            let inputs: Vec<_> = incoming.chain(own).collect();
            let input = link.back - plane.leaving(link.to).start;
            let queues = narrow::<u32>(waiting.queue_count());
            wires.push(Wire { to: link.to, input, queues, inputs: narrow::<u32>(inputs.len()) });
            (0..vcs).for_each(|_| inputs.iter().for_each(|&from| waiting.add_queue(from)));
        }
        let links = wires.len();
        let of_nodes = if per_link { 0 } else { plane.accelerators() as usize };
        let of_links = if per_link || has_switches { links } else { 0 };
        let idle =
            Interface { idle_machines: options.send_machines.unwrap_or(*send_machines), first: NONE, last: NONE };
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
            outputs: plane.links().iter().map(|link| Output { speed: link.speed, ..Output::default() }).collect(),
            channels: vec![Channel { credits: timing.places, ring: Ring::EMPTY }; links * usize::from(vcs)],
            waiting,
            events: Events::new(timing),
            messages: Vec::new(),
            unused: NONE,
            per_link,
            interfaces: (0..of_nodes + of_links).map(|_| Interface { ..idle }).collect(),
            latency_ps,
            under_way: 0,
            packets: 0,
            hops: 0,
            candidates: Vec::new(),
            fault: None,
            late: None,
            leaving: &options.hosts.leaving,
            news: Vec::new(),
        }
    }

    /// Packets, hops, and packets over each link.
    pub fn counts(&self) -> (u64, u64, Vec<u64>) {
        (self.packets, self.hops, self.outputs.iter().map(|output| output.sent).collect())
    }

    /// The node at which something happens.
    fn place_of(&self, what: Happening) -> u32 {
        match what {
            Happening::Arrival(link, _) | Happening::Ready(link, ..) | Happening::Free(link) => {
                self.plane.link(link).from
            }
            Happening::Credit(channel) => self.plane.link(channel / u32::from(self.vcs)).from,
            Happening::Posted(message) | Happening::Delivered(message) => self.messages[message as usize].from,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the hot loop; fields of a packet, and tables whose sizes are checked before"
    )]
    fn add_message(&mut self, message: Message) -> u32 {
        if self.unused == NONE {
            self.messages.push(message);
            return self.messages.len() as u32 - 1;
        }
        let at = self.unused;
        self.unused = self.messages[at as usize].next;
        self.messages[at as usize] = message;
        at
    }

    /// The interface that sends a message; none where the routing is at fault.
    fn interface(&mut self, at: u32) -> Option<usize> {
        let Message { id, from, to, .. } = self.messages[at as usize];
        if !self.per_link && from < self.plane.accelerators() {
            return Some(from as usize);
        }
        self.candidates.clear();
        if self.is_direct(from, to) {
            self.direct(from, to);
        } else {
            let way = self.routing.choose(from, to, mix(self.seed ^ mix(u64::from(id) << 32)));
            self.routing.hops(from, Header { to, vc: 0, way }, &mut self.candidates);
        }
        let of_nodes = if self.per_link { 0 } else { self.plane.accelerators() as usize };
        let first = self.candidates.first().map(|hop| of_nodes + hop.link as usize);
        if first.is_none() {
            self.fault = Some(format!("at node {from} it names no link for a packet to {to} on channel 0"));
        }
        first
    }

    /// Whether a message goes over one link, because a switch sends or receives it.
    fn is_direct(&self, from: u32, to: u32) -> bool {
        from.max(to) >= self.plane.accelerators()
    }

    /// Lists the links from one node to another.
    fn direct(&mut self, from: u32, to: u32) {
        self.candidates.extend(self.plane.links_between(from, to).map(|link| Hop { link, vc: 0 }));
    }

    /// A message waits for a machine of its interface, or has one at once.
    fn post(&mut self, now: u64, at: u32) {
        let Some(interface) = self.interface(at) else { return };
        let interface = &mut self.interfaces[interface];
        if interface.idle_machines > 0 {
            interface.idle_machines -= 1;
            self.begin(now, at);
            self.inject(now, at);
        } else if interface.first == NONE {
            (interface.first, interface.last) = (at, at);
        } else {
            self.messages[interface.last as usize].next = at;
            interface.last = at;
        }
    }

    /// A machine makes packets, of its message and then of the next ones, until one has to wait.
    fn inject(&mut self, now: u64, mut at: u32) {
        let node = self.messages[at as usize].from;
        loop {
            let Some(packet) = self.next_packet(at) else {
                let Some(interface) = self.interface(at) else { return };
                let interface = &mut self.interfaces[interface];
                at = interface.first;
                if at == NONE {
                    interface.idle_machines += 1;
                    return;
                }
                interface.first = std::mem::replace(&mut self.messages[at as usize].next, NONE);
                self.begin(now, at);
                continue;
            };
            let Some(hop) = self.choose_first(node, packet) else { return };
            if !self.offer(now, hop, packet, None) {
                return;
            }
        }
    }

    fn next_packet(&mut self, at: u32) -> Option<Packet> {
        let message = &mut self.messages[at as usize];
        message.unmade = message.unmade.checked_sub(1)?;
        let length = if message.unmade == 0 { message.length } else { 0 };
        let random = mix(self.seed ^ mix(u64::from(message.id) << 32 | u64::from(message.unmade)));
        let (from, to) = (message.from, message.to);
        let is_direct = from.max(to) >= self.plane.accelerators();
        let way = if is_direct { 0 } else { self.routing.choose(from, to, random) };
        if way >= MOST_WAYS {
            self.fault = Some(format!("it chooses way {way} of a packet; accepted are ways below {MOST_WAYS}"));
        }
        self.packets += 1;
        self.under_way += 1;
        Some(Packet::new(at, to, length, way))
    }

    #[inline]
    fn arrive(&mut self, now: u64, link: u32, packet: Packet) {
        let node = self.wires[link as usize].to;
        if node == packet.to {
            self.take_in(now, link, packet);
            return;
        }
        if let Some(hop) = self.choose(node, packet) {
            if self.is_unlike {
                let [before, next] = [link, hop.link].map(|link| self.serialization_ps(link, packet));
                if before > next {
                    self.events.ready(now, before - next, link, hop, packet);
                    return;
                }
            }
            self.offer(now, hop, packet, Some(link));
        }
    }

    /// A packet is where it was sent to.
    fn take_in(&mut self, now: u64, link: u32, packet: Packet) {
        let ps = self.serialization_ps(link, packet);
        let back_ps = self.credit_ps(link);
        self.events.credit(now, ps + back_ps, link * u32::from(self.vcs) + u32::from(packet.vc()));
        self.under_way -= 1;
        let message = &mut self.messages[packet.message as usize];
        message.latest = message.latest.max(now + ps);
        message.missing -= 1;
        if message.missing == 0 {
            self.events.delivered(message.latest, packet.message);
        }
    }

    /// The index of a link's times.
    #[inline]
    fn speed(&self, link: u32) -> u8 {
        // Where links are alike, no table of links is looked at.
        if self.is_unlike { self.outputs[link as usize].speed } else { 0 }
    }

    #[inline]
    fn serialization_ps(&self, link: u32, packet: Packet) -> u64 {
        let speed = self.speed(link);
        self.lengths.ps(packet.length(), speed).unwrap_or_else(|| {
            let bytes = self.messages[packet.message as usize].last_bytes;
            self.timing.links[usize::from(speed)].serialization_ps(bytes)
        })
    }

    /// Of a credit of a link on its way back.
    #[inline]
    fn credit_ps(&self, link: u32) -> u64 {
        self.timing.links[usize::from(self.speed(link))].link_ps
    }

    /// Chooses the first hop of a packet.
    fn choose_first(&mut self, node: u32, packet: Packet) -> Option<Hop> {
        if !self.is_direct(node, packet.to) {
            return self.choose(node, packet);
        }
        self.candidates.clear();
        self.direct(node, packet.to);
        self.best(node, packet)
    }

    #[inline]
    fn choose(&mut self, node: u32, packet: Packet) -> Option<Hop> {
        self.candidates.clear();
        self.routing.hops(node, packet.header(), &mut self.candidates);
        self.best(node, packet)
    }

    /// Chooses among the hops that are listed.
    #[inline]
    fn best(&mut self, node: u32, packet: Packet) -> Option<Hop> {
        let header = packet.header();
        let ahead = |hop: &&Hop| {
            let ahead = self.outputs[hop.link as usize].ahead;
            if self.has_detours { ahead.saturating_mul(self.routing.detour(header, **hop)) } else { ahead }
        };
        let through_ps = |hop: &&Hop| {
            let full = self.lengths.ps(0, self.speed(hop.link)).unwrap_or(0);
            (u64::from(ahead(hop)) + 1).saturating_mul(full)
        };
        let best = match &self.candidates[..] {
            [only] => Some(*only),
            several if self.is_unlike => several.iter().min_by_key(through_ps).copied(),
            several => several.iter().min_by_key(ahead).copied(),
        };
        if best.is_none() {
            let to = packet.to;
            self.fault =
                Some(format!("at node {node} it names no link for a packet to {to} on channel {}", packet.vc()));
        }
        best
    }

    /// A packet at a node goes over a link at once, or waits for it; whether it went. `from`: the link that brought it; none
    /// brings those of the node's own interface.
    #[inline]
    fn offer(&mut self, now: u64, hop: Hop, packet: Packet, from: Option<u32>) -> bool {
        let channel = &mut self.channels[hop.link as usize * usize::from(self.vcs) + usize::from(hop.vc)];
        let output = &mut self.outputs[hop.link as usize];
        output.ahead += 1;
        // Where a link is free, nothing that it has a credit for waits.
        if !output.busy && channel.credits > 0 {
            self.depart(now, hop, packet, from);
            return true;
        }
        let wire = &self.wires[hop.link as usize];
        let input = from.map_or(wire.inputs - 1, |link| self.wires[link as usize].input);
        let queue = wire.queues + u32::from(hop.vc) * wire.inputs + input;
        self.waiting.push(&mut channel.ring, queue, packet);
        false
    }

    /// A packet starts on a free link that has a credit.
    #[inline]
    fn depart(&mut self, now: u64, hop: Hop, packet: Packet, from: Option<u32>) {
        let vcs = u32::from(self.vcs);
        let output = &mut self.outputs[hop.link as usize];
        output.busy = true;
        output.turn = if hop.vc + 1 == self.vcs { 0 } else { hop.vc + 1 };
        output.sent += 1;
        self.hops += 1;
        self.channels[(hop.link * vcs + u32::from(hop.vc)) as usize].credits -= 1;
        let ps = self.serialization_ps(hop.link, packet);
        let speed = self.speed(hop.link);
        self.events.arrival(now, speed, hop.link, packet.on(hop.vc));
        self.events.free(now, ps, hop.link);
        if let Some(link) = from {
            let back_ps = self.credit_ps(link);
            self.events.credit(now, ps + back_ps, link * vcs + u32::from(packet.vc()));
        } else if !self.leaving.is_empty() {
            let message = &self.messages[packet.message as usize];
            if message.unmade == 0 {
                let id = message.id;
                self.note(now + ps, id, Carried::Left);
            }
        }
    }

    /// A machine takes a message.
    fn begin(&mut self, now: u64, at: u32) {
        if !self.leaving.is_empty() {
            self.note(now, self.messages[at as usize].id, Carried::Begun);
        }
    }

    /// Notes when a message leaves, if that is wanted.
    fn note(&mut self, time: u64, id: u32, carried: Carried) {
        if self.leaving.binary_search(&TaskId(id)).is_ok() {
            self.news.push((time, id, carried));
        }
    }

    fn credit(&mut self, now: u64, channel: u32) {
        let link = channel / u32::from(self.vcs);
        self.channels[channel as usize].credits += 1;
        let output = &mut self.outputs[link as usize];
        output.ahead -= 1;
        if !output.busy && self.channels[channel as usize].credits == 1 {
            self.start_waiting(now, link);
        }
    }

    /// The link is free: the packet whose turn it is starts.
    #[inline]
    fn start_waiting(&mut self, now: u64, link: u32) {
        let vcs = self.vcs;
        let turn = self.outputs[link as usize].turn;
        let first = link as usize * usize::from(vcs);
        for vc in (turn..vcs).chain(0..turn) {
            let channel = &mut self.channels[first + usize::from(vc)];
            if channel.credits == 0 || channel.ring.is_empty() {
                continue;
            }
            let (from, packet) = self.waiting.pop(&mut channel.ring);
            self.depart(now, Hop { link, vc }, packet, from);
            if from.is_none() {
                self.inject(now, packet.message);
            }
            return;
        }
    }

    /// What a packet in a queue waits for.
    fn describe(&self, queue: u32, packet: Packet) -> String {
        let link = self.wires.partition_point(|wire| wire.queues <= queue) - 1;
        let wire = &self.wires[link];
        let vc = (queue - wire.queues) / wire.inputs;
        let node = self.plane.link(narrow::<u32>(link)).from;
        let Message { from, to, .. } = self.messages[packet.message as usize];
        format!("a packet from {from} to {to} waits at node {node} for the link to node {} on channel {vc}", wire.to)
    }
}
