//! A timetable of a schedule on a network: the start of each instruction, and the arrival of each message.
//!
//! * An instruction begins when its predecessors in its lane and by dependency are done, and the messages that it reads
//!   are received. A rank has one host. The host receives each message on arrival, even before an instruction reads the
//!   message, and reduces and sends for one instruction after the other.
//! * A message is cut into parts of equal length. An accelerator, or each of its links, works on as many messages at a
//!   time as it has send machines. A machine starts the next part of its message when the part before starts on its
//!   first link. It takes the next message when the last packet of the last part starts there.
//! * A part occupies each link of its path for the time of its bytes, in the order in which parts reach the link. The
//!   head of the part continues after the latency of the link, while its tail still arrives. Among the hops that the
//!   routing allows, the part takes the hop whose link is free first, as far as the node knows: a part counts as on the
//!   link until an answer could be back. If links differ, the packets queued before the part decide, as in the
//!   simulator.
//! * A switch that computes is an additional node. It has no host overhead; its lanes are distributed to its engines,
//!   and its results can leave after its latency. If an accelerator requests and stores a sum
//!   ([`Switches::is_stored`]), the sum also waits for a signal and the latency to that accelerator and back. A message
//!   that a switch sends or receives crosses a link between the two nodes, with the number of bytes that the switch
//!   makes of the message ([`Switches::crossings`]).
//!
//! So consecutive segments overlap, messages that share a link share its rate, and a round does not wait for the
//! slowest message of the round before. A channel of a link sends no more packets than its buffer has places for in the
//! time until a place is free again ([`windows`]). If no channel is that slow, the queues of links are unlimited.

mod events;
mod links;
pub(crate) mod unlike;
mod windows;

use unisono_base::{Diagnostic, Diagnostics, InstrId, NodeId, interrupt::poll, limits, narrow, rounded_up};
use unisono_lower::tasks::crossings;
use unisono_machine::network::{Hop, MachinesPer};
use unisono_schedule::{Flow, Schedule, topological};

use self::{
    events::{Event, Events, MOST_NUMBERED},
    links::{Interface, LinkPrice, Message, Part},
    unlike::{Ahead, Unlike},
    windows::Windows,
};
use super::NetworkModel;

/// The most parts of all messages together, except that each message has at least one.
const PARTS: u64 = 1 << 19;
/// The most parts of one message.
const MOST_PARTS: u64 = 16;

/// The same limits in two further cases: if messages choose among links of different speeds, and, for all messages, if
/// packets wait for places in buffers. Real packets choose a few at a time, but all packets of a part make one choice,
/// so long messages have more parts in these cases.
const PARTS_UNLIKE: u64 = 1 << 16;
const MOST_PARTS_UNLIKE: u64 = 1 << 10;

/// The bytes of memory of a message with its parts and events.
const MESSAGE_BYTES: u128 = 160;

/// Returns the nanoseconds until the last instruction of a schedule is done and the last message has arrived; `None` if
/// they exceed `most_ns`. `places` has the accelerator of each rank, then the switch of each other node.
///
/// # Errors
/// Returns the faults of a schedule that is not well-formed, or that cannot run.
pub(super) fn end_ns(
    schedule: &Schedule,
    model: &NetworkModel,
    places: &[u32],
    most_ns: f64,
) -> Result<Option<f64>, Vec<Diagnostic>> {
    let mut found = Diagnostics::default();
    let flow = Flow::new(schedule, &mut found);
    if found.is_empty() {
        let mut run = Run::new(schedule, &flow, model, places);
        let most_ps = most_ns * PS_PER_NS;
        if run.least_ps() > most_ps || !run.all(most_ps) {
            return Ok(None);
        }
        if run.done == schedule.instr_count() {
            return Ok(Some(run.end as f64 / PS_PER_NS));
        }
        topological(schedule, &flow, &mut found);
    }
    Err(found.into_vec())
}

pub(super) const PS_PER_NS: f64 = 1e3;

const NONE: u32 = u32::MAX;

struct Run<'a> {
    schedule: &'a Schedule,
    flow: &'a Flow,
    model: &'a NetworkModel,
    places: &'a [u32],
    /// For each instruction, the number of predecessors and messages that are not done.
    missing: Vec<u32>,
    /// For each instruction, the index in `messages` of the first message that it sends; then the number of all
    /// messages.
    first_message: Vec<u32>,
    /// For each instruction, the latest end, in ps, of the predecessors and messages that are done.
    ready: Vec<u64>,
    /// Dependencies as (earlier, later), sorted.
    later: Vec<(InstrId, InstrId)>,
    messages: Vec<Message>,
    parts: Vec<Part>,
    unused: Vec<u32>,
    /// The time, in ps, at which each host, or each engine of a switch, becomes free.
    hosts: Vec<u64>,
    /// The index in `hosts` of the first host of each node.
    first_host: Vec<u32>,
    interfaces: Vec<Interface>,
    free: Vec<u64>,
    links: Vec<LinkPrice>,
    /// Present if messages choose among links of different speeds.
    ahead: Option<Ahead>,
    /// Present if a buffer has fewer places than its link sends packets until a place is free again.
    windows: Option<Windows>,
    events: Events,
    hops: Vec<Hop>,
    done: usize,
    end: u64,
}

impl<'a> Run<'a> {
    fn new(schedule: &'a Schedule, flow: &'a Flow, model: &'a NetworkModel, places: &'a [u32]) -> Self {
        let count = schedule.instr_count();
        let width = schedule.collective().element_bytes();
        let (mut all, mut shortest_bytes) = (0, f64::INFINITY);
        for id in (0..count).map(InstrId::new) {
            for (stream, span) in flow.pushes(schedule, id) {
                let bytes = model.with_header(u64::from(span.len) * width);
                all += schedule.stream_sinks(stream).len() as u64;
                shortest_bytes = shortest_bytes.min(bytes as f64 / model.packets(bytes) as f64);
            }
        }
        limits::take("the timetable of messages", MESSAGE_BYTES * u128::from(all));
        assert!(all < MOST_NUMBERED, "a timetable of {all} messages");
        let most = (PARTS / all.max(1)).clamp(1, MOST_PARTS);
        let most_unlike = (PARTS_UNLIKE / all.max(1)).clamp(most, MOST_PARTS_UNLIKE);
        let windows = Windows::new(model, shortest_bytes * model.ns_per_byte * PS_PER_NS);
        // If packets wait for places, messages have more parts, so that they alternate with other messages as packets
        // do.
        let most = if windows.is_some() { most_unlike } else { most };
        let (mut unlike, mut chooses) = (Unlike::new(model), false);
        let ps_per_byte = model.ns_per_byte * PS_PER_NS;
        let crossings = crossings(schedule, flow, &model.computing, places, &|_| None);
        let (mut missing, mut first_message, mut messages) =
            (vec![0; count], Vec::with_capacity(count + 1), Vec::new());
        for id in (0..count).map(InstrId::new) {
            poll();
            first_message.push(narrow(messages.len()));
            let lane = flow.lane_of(id);
            missing[id.index()] += u32::from(id.0 > 0 && flow.lane_of(InstrId(id.0 - 1)) == lane);
            missing[id.index()] += narrow::<u32>(schedule.after(id).len());
            for (stream, span) in flow.pushes(schedule, id) {
                let bytes = model.with_header(u64::from(span.len) * width);
                let crossing = bytes as f64 * crossings[stream.index()];
                let packets = model.packets(rounded_up(crossing));
                for readers in flow.readers_by_sink(stream) {
                    let before = readers.partition_point(|piece| piece.start <= span.start);
                    let reader = readers[before.saturating_sub(1)].instr;
                    missing[reader.index()] += 1;
                    let [from, to] = [id, reader].map(|id| places[flow.node_of(id).index()]);
                    let is_unlike = unlike.between(from, to);
                    chooses |= is_unlike;
                    let most = if is_unlike { most_unlike } else { most };
                    let parts = packets.min(most);
                    let part_ps = crossing / parts as f64 * ps_per_byte;
                    let packet_ps = model.packet_bytes as f64 * ps_per_byte;
                    let (each, mean) = (narrow(packets.div_ceil(parts)), packets as f64 / parts as f64);
                    let parts = narrow(parts);
                    messages.push(Message {
                        from,
                        to,
                        packets: each,
                        mean_packets: mean,
                        reader: reader.0,
                        part_ps,
                        gap_ps: part_ps.min(packet_ps),
                        packet_ps,
                        unmade: parts,
                        missing: parts,
                        latest: 0,
                    });
                }
            }
        }
        first_message.push(narrow(messages.len()));
        let mut later: Vec<_> = schedule.dependencies().iter().map(|&(later, earlier)| (earlier, later)).collect();
        later.sort_unstable();
        let links = model.plane.links().len();
        let has_switches = schedule.node_count() > schedule.collective().ranks as usize;
        let by_link = model.send_machines_per == MachinesPer::Link;
        let of_nodes = if by_link { 0 } else { model.plane.accelerators() as usize };
        let of_links = if by_link || has_switches { links } else { 0 };
        let mut first_host = vec![0];
        for node in schedule.all_nodes() {
            first_host.push(first_host[node.index()] + u32::from(model.computing.engines(places[node.index()])));
        }
        let mut run = Self {
            schedule,
            flow,
            model,
            places,
            missing,
            first_message,
            ready: vec![0; count],
            later,
            messages,
            parts: Vec::new(),
            unused: Vec::new(),
            hosts: vec![0; first_host[schedule.node_count()] as usize],
            first_host,
            interfaces: (0..of_nodes + of_links).map(|_| Interface::default()).collect(),
            free: vec![0; links],
            links: model.plane.links().iter().map(|link| LinkPrice::new(link.speed, &model.speeds)).collect(),
            windows,
            ahead: chooses.then(|| Ahead::new(links, model.places_of_buffer)),
            events: Events::default(),
            hops: Vec::new(),
            done: 0,
            end: 0,
        };
        for id in 0..narrow::<u32>(count) {
            if run.missing[id as usize] == 0 {
                let node = flow.node_of(InstrId(id));
                let begin = if run.is_switch(node) { 0.0 } else { model.launch_ns };
                run.events.add(rounded_up(begin * PS_PER_NS), Event::Begin(id));
            }
        }
        run
    }

    /// Returns a lower bound on the time of the schedule in ps: the most time for which the links of one accelerator
    /// are busy. 0 if links differ.
    fn least_ps(&self) -> f64 {
        let NetworkModel { speeds, plane, .. } = self.model;
        let mut sent = vec![0.0; plane.accelerators() as usize];
        for message in self.messages.iter().filter(|message| message.from != message.to && speeds.is_even()) {
            if let Some(sent) = sent.get_mut(message.from as usize) {
                *sent += message.part_ps * f64::from(message.unmade);
            }
        }
        let busy = |(node, sent): (u32, &f64)| if *sent > 0.0 { sent / speeds.injection(plane, node) } else { 0.0 };
        (0..).zip(&sent).map(busy).fold(0.0, f64::max)
    }

    /// Handles all events. Returns false if an event comes after `most_ps`.
    fn all(&mut self, most_ps: f64) -> bool {
        while let Some((now, event)) = self.events.next() {
            poll();
            if now as f64 > most_ps {
                return false;
            }
            self.end = self.end.max(now);
            match event {
                Event::Begin(id) => self.begin(now, InstrId(id)),
                Event::Posted(message) => self.post(now, message),
                Event::Part(message) => self.make(now, message),
                Event::Head(part) => self.go_on(now, part),
                Event::There(message) => self.receive(now, self.messages[message as usize].reader),
            }
        }
        true
    }

    /// Records that a predecessor of instruction `id`, or a message for it, is done at `time` in ps. The instruction
    /// begins when all of them are done.
    fn needed_less(&mut self, time: u64, id: u32) {
        let at = id as usize;
        self.missing[at] -= 1;
        self.ready[at] = self.ready[at].max(time);
        if self.missing[at] == 0 {
            self.events.add(self.ready[at], Event::Begin(id));
        }
    }

    fn receive(&mut self, now: u64, id: u32) {
        let node = self.flow.node_of(InstrId(id));
        let host_ps = self.host_ps(node);
        if host_ps == 0 {
            return self.needed_less(now, id);
        }
        let host = self.host(node, InstrId(id));
        let received = now.max(self.hosts[host]).saturating_add(host_ps);
        self.hosts[host] = received;
        self.end = self.end.max(received);
        self.needed_less(received, id);
    }

    /// Returns the ps in which the host of a node sends or receives a message; 0 for a switch.
    fn host_ps(&self, node: NodeId) -> u64 {
        if self.is_switch(node) { 0 } else { rounded_up(self.model.overhead_ns / 2.0 * PS_PER_NS) }
    }

    fn is_switch(&self, node: NodeId) -> bool {
        self.places[node.index()] >= self.model.plane.accelerators()
    }

    fn begin(&mut self, now: u64, id: InstrId) {
        let (schedule, flow, model) = (self.schedule, self.flow, self.model);
        let node = flow.node_of(id);
        let place = self.places[node.index()];
        let is_switch = self.is_switch(node);
        let host = self.host(node, id);
        let host_ps = self.host_ps(node);
        let operands = schedule.sources(id).len() as u64;
        let bytes = u64::from(schedule.instr(id).len) * schedule.collective().element_bytes();
        // A switch uses an engine only for reductions.
        let is_engine = is_switch && operands > 1;
        let reduce_ns = match (is_switch, is_engine) {
            (true, true) => bytes as f64 * model.computing.reduce_ns_per_byte(place) / f64::from(model.planes.max(1)),
            (true, false) => 0.0,
            (false, _) => (operands.saturating_sub(1) * bytes) as f64 * model.reduce_ns_per_byte,
        };
        let messages = self.first_message[id.index()]..self.first_message[id.index() + 1];
        let is_stored = model.computing.is_stored(place, schedule.sources(id).len(), messages.len());
        let stored_ps = if is_stored { self.stored_ps(place) } else { 0 };
        let latency_ps = rounded_up(model.computing.latency_ns(place) * PS_PER_NS).saturating_add(stored_ps);
        let free = if is_switch && !is_engine { now } else { self.hosts[host] };
        let mut time = now.max(free).saturating_add(rounded_up(reduce_ns * PS_PER_NS));
        for message in messages {
            time = time.saturating_add(host_ps);
            let posted = time.saturating_add(latency_ps);
            if posted == now {
                self.post(now, message);
            } else {
                self.events.add(posted, Event::Posted(message));
            }
        }
        if !is_switch && schedule.is_copy(id) {
            // The sends of an instruction do not wait for its copy.
            time = time.saturating_add(rounded_up(bytes as f64 * model.copy_ns_per_byte * PS_PER_NS));
        }
        if !is_switch || is_engine {
            self.hosts[host] = time;
        }
        self.end = self.end.max(time);
        self.done += 1;
        let next = InstrId(id.0 + 1);
        if next.index() < schedule.instr_count() && flow.lane_of(next) == flow.lane_of(id) {
            self.needed_less(time, next.0);
        }
        let first = self.later.partition_point(|&(earlier, _)| earlier < id);
        for at in first..self.later.len() {
            let (earlier, later) = self.later[at];
            if earlier != id {
                break;
            }
            self.needed_less(time, later.0);
        }
    }

    /// Returns the ps in which a sum travels from a switch to the accelerator that stores it, and back to the switch.
    fn stored_ps(&self, switch: u32) -> u64 {
        let links = self.model.plane.leaving(switch).map(|link| self.links[link as usize].latency_ps());
        rounded_up(self.model.signal_ns * PS_PER_NS).saturating_add(2 * links.max().unwrap_or(0))
    }

    /// Returns the index of the host of a rank, or of the engine of a switch that executes the lane of the instruction.
    fn host(&self, node: NodeId, id: InstrId) -> usize {
        let (first, end) = (self.first_host[node.index()], self.first_host[node.index() + 1]);
        if end - first < 2 {
            return first as usize;
        }
        let lane = self.flow.lane_of(id).index() - self.schedule.lanes(node).start;
        first as usize + lane % (end - first) as usize
    }
}
