//! The time of a collective on a network, from the senders, receivers and bytes of its exchanges.
//!
//! T = latency of the slowest part of the vector + the sum, over exchanges, of the time of the bytes on the busiest
//! link, by these rules:
//! * a message over h links has the latency h alpha + 2 o. alpha is the output, link and input latency of one link
//!   (virtual cut-through: only the head waits at each link), and o is the host's overhead at either end. If links
//!   differ, each has its own alpha. If the machine states a signal, its latency is added to each message, and the
//!   start of a kernel is added once. Copies count in the timetable of a schedule, and not in closed form;
//! * flow k of each exchange carries part k of the vector, and the latency of a part is the sum over its flows. A
//!   repeated flow is a chain: a message of a rank waits for the message that the rank received before, so the flow's
//!   latency is the longest sum along `repeat` consecutive messages;
//! * all flows of an exchange are under way at once, over all ports and in all directions, and share links
//!   ([`super::loads`]);
//! * reductions and the work of hosts on messages overlap with transfers, so an exchange takes the longest of the
//!   three; planes are equal, and each transfers an equal share of every vector.
//!
//! On rings in which each message crosses one link, these rules give the formulas of "HammingMesh", section 4, for p
//! accelerators, S bytes and the time beta of a byte on one link: 2 p alpha + 2 S beta for the ring, 2 p alpha + S/2
//! beta for dual rings, 4 sqrt p alpha + S/2 beta for bucket, each with its exact (p-1)/p.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use unisono_base::{Diagnostic, narrow, parallel};
use unisono_lower::{Exchange, Flow, Trees};
use unisono_machine::{
    MachineError,
    network::{MachinesPer, Network, Plane, Routing, Switches, Topology},
};
use unisono_schedule::Schedule;

use super::{
    loads::{Loads, Sent},
    routed::{Patterns, add},
    schedule::{Message, MessageRound, message_rounds},
    speeds::Speeds,
    timetable,
    ways::KnownWays,
};

/// The most messages that are routed for one predicted time. If there are more messages, only every n-th flow or
/// exchange is routed.
const MOST_ROUTED: u64 = 1 << 21;

/// The ranks whose messages are followed to estimate the links that all messages of a flow cross.
const PROBED: u32 = 16;

/// The most instructions of a schedule among ranks that gets a timetable; longer schedules are timed by the rounds of
/// their messages. Schedules with switches always get a timetable.
const MOST_TIMETABLED: usize = 1 << 20;

pub struct NetworkModel {
    pub(super) plane: Plane,
    pub(super) routing: Box<dyn Routing>,
    places: Vec<u32>,
    pub(super) speeds: Speeds,
    /// The overheads of a message at the sending and at the receiving host, together.
    pub overhead_ns: f64,
    /// The time from the arrival of a message at a rank until the rank notices it.
    pub signal_ns: f64,
    /// The time before a rank begins the collective.
    pub launch_ns: f64,
    /// The time per byte of the vector that a rank copies.
    pub(super) copy_ns_per_byte: f64,
    /// The time per byte of the vector on links of the machine's own rate, divided by the number of planes, which share
    /// the vector.
    pub ns_per_byte: f64,
    pub reduce_ns_per_byte: f64,
    /// The bytes of a message besides its data, summed over all planes.
    header_bytes: u64,
    /// The bytes of the vector in one packet on each plane, summed over all planes.
    pub(super) packet_bytes: u64,
    /// The number of packets that fit into the buffer of a virtual channel at the end of a link.
    pub(super) places_of_buffer: u64,
    pub(super) send_machines: u32,
    pub(super) send_machines_per: MachinesPer,
    pub(super) computing: Switches,
    pub(super) planes: u32,
    pub(super) patterns: Patterns,
    pub(super) ways: KnownWays,
}

impl NetworkModel {
    /// # Errors
    /// Returns an error if the topology is invalid or too large.
    pub fn new(network: &Network, places: Vec<u32>) -> Result<Self, MachineError> {
        Self::on(network, &*network.topology(&network.name)?, places)
    }

    /// Returns the model of a network whose topology is known.
    ///
    /// # Errors
    /// Returns an error if the topology is too large.
    pub(super) fn on(network: &Network, topology: &dyn Topology, places: Vec<u32>) -> Result<Self, MachineError> {
        let plane = topology.plane()?;
        let planes = f64::from(network.working_planes());
        Ok(Self {
            speeds: Speeds::new(network, &plane),
            plane,
            routing: topology.routing(),
            places,
            overhead_ns: 2.0 * network.host_overhead_ns,
            signal_ns: network.signal_ns,
            launch_ns: network.launch_ns,
            copy_ns_per_byte: network.copy_ns_per_byte,
            ns_per_byte: 8.0 / network.own_speed().gbps / planes,
            reduce_ns_per_byte: network.gamma_ns_per_byte / planes,
            header_bytes: u64::from(network.header_bytes) * u64::from(network.working_planes()),
            packet_bytes: u64::from(network.packet_bytes) * u64::from(network.working_planes()),
            places_of_buffer: (network.buffer_bytes / u64::from(network.packet_bytes.max(1))).max(1),
            send_machines: network.send_machines,
            send_machines_per: network.send_machines_per,
            computing: network.computing(topology)?,
            planes: network.working_planes(),
            patterns: Patterns::default(),
            ways: KnownWays::default(),
        })
    }

    pub fn ranks(&self) -> u32 {
        narrow::<u32>(self.places.len())
    }

    pub fn places(&self) -> &[u32] {
        &self.places
    }

    pub fn computing(&self) -> &Switches {
        &self.computing
    }

    pub fn plane(&self) -> &Plane {
        &self.plane
    }

    pub fn speeds(&self) -> &Speeds {
        &self.speeds
    }

    pub(super) fn routing(&self) -> &dyn Routing {
        &*self.routing
    }

    pub(super) fn loads(&self) -> Loads<'_> {
        Loads::new(&self.plane, &*self.routing, &self.speeds)
    }

    /// Returns the nanoseconds of a single message between two ranks while no other message is under way.
    pub fn lone_message_ns(&self, from: u32, to: u32, bytes: u64) -> f64 {
        let places = [from, to].map(|rank| self.places[rank as usize]);
        let mut loads = self.loads();
        let way_ns = loads.latency_ns(places[0], places[1]);
        let sent = Sent { from: places[0], to: places[1], bytes: self.with_header(bytes) as f64 };
        let transfer_ns = loads.busiest(&[sent]) * self.ns_per_byte;
        self.message_ns(from, to, way_ns) + transfer_ns
    }

    /// Returns the first and the last links of messages between two ranks, each as `(link, busy time relative to the
    /// busiest link of the message)`.
    pub fn ports_of_pair(&self, from: u32, to: u32) -> [Vec<(u32, f64)>; 2] {
        let [from, to] = [from, to].map(|rank| self.places[rank as usize]);
        let mut on_links = FxHashMap::<u32, f64>::default();
        let sent = Sent { from, to, bytes: 1.0 };
        self.loads().route(&sent, 0.0, |link, load| *on_links.entry(link).or_default() += load);
        let busiest = on_links.values().copied().fold(0.0, f64::max);
        let mut ports = [Vec::new(), Vec::new()];
        for (link, load) in on_links {
            let ends = self.plane.link(link);
            for (ports, _) in ports.iter_mut().zip([ends.from == from, ends.to == to]).filter(|(_, meets)| *meets) {
                ports.push((link, load / busiest));
            }
        }
        ports.iter_mut().for_each(|of| of.sort_unstable_by_key(|port| port.0));
        ports
    }

    /// Returns the nanoseconds of consecutive exchanges.
    pub fn exchanges_ns(&self, exchanges: &[Exchange]) -> f64 {
        self.exchanges_within_ns(exchanges, MOST_ROUTED)
    }

    /// Returns the time as [`Self::exchanges_ns`] does, but routes only a sample if there are more than `most`
    /// messages.
    pub fn exchanges_within_ns(&self, exchanges: &[Exchange], most: u64) -> f64 {
        let (outer, inner) = self.sampling(exchanges, most);
        let (mut latency, mut transfers) = (Vec::<f64>::new(), 0.0);
        for run in exchanges.chunk_by(are_alike) {
            let routed: Vec<&Exchange> = run.iter().step_by(outer).collect();
            let scale = run.len() as f64 / routed.len() as f64;
            let (mut of_run, mut transfer) = (Vec::new(), 0.0);
            for (ns, ways) in parallel::map(&routed, |exchange| self.routed_ns(exchange, inner)) {
                transfer += ns;
                add(&mut of_run, ways, 1.0);
            }
            transfers += transfer * scale;
            add(&mut latency, of_run, scale);
        }
        self.launch_ns + latency.into_iter().fold(0.0, f64::max) + transfers
    }

    /// Returns about the number of links that the routed messages of [`Self::exchanges_ns`] cross together, by the
    /// messages of [`PROBED`] ranks in each flow; 0 if less than half of [`MOST_ROUTED`] are routed.
    pub fn crossed_links(&self, exchanges: &[Exchange]) -> u128 {
        let (outer, inner) = self.sampling(exchanges, MOST_ROUTED);
        let routed = || exchanges.chunk_by(are_alike).flat_map(|run| run.iter().step_by(outer));
        let flows = || routed().flat_map(|exchange| exchange.flows.iter().step_by(inner));
        if (flows().count() as u64).saturating_mul(self.ranks().into()) < MOST_ROUTED / 2 {
            return 0;
        }
        let every = self.ranks().div_ceil(PROBED);
        let (mut loads, place) = (self.loads(), |rank: u32| self.places()[rank as usize]);
        let probes =
            flows().flat_map(|flow| (0..self.ranks()).step_by(every as usize).map(|rank| (rank, flow.to(rank))));
        probes.map(|(from, to)| loads.crossed(place(from), place(to)) as u128 * u128::from(every)).sum()
    }

    /// Returns `(m, n)`: every m-th exchange, and every n-th flow of an exchange, is routed, about `most` messages
    /// together.
    pub(super) fn sampling(&self, exchanges: &[Exchange], most: u64) -> (usize, usize) {
        let messages = exchanges.iter().map(|e| e.flows.len() as u64).sum::<u64>() * u64::from(self.ranks());
        let every = narrow::<usize>(messages.div_ceil(most.max(1)).max(1));
        // Whole exchanges are sampled if there are enough exchanges, otherwise flows of each exchange.
        if exchanges.len() >= every { (every, 1) } else { (1, every) }
    }

    /// Returns the ns for which a host works in an exchange: on reductions or on messages, whichever is longer.
    pub(super) fn host_ns(&self, exchange: &Exchange) -> f64 {
        let messages: f64 = exchange.flows.iter().map(|flow| f64::from(flow.repeat)).sum();
        (exchange.reduced as f64 * self.reduce_ns_per_byte).max(messages * self.overhead_ns)
    }

    /// Returns the nanoseconds of messages along trees.
    pub fn trees_ns(&self, trees: &Trees) -> f64 {
        self.launch_ns + trees.time_ns(self.overhead_ns / 2.0, self.signal_ns, self.reduce_ns_per_byte)
    }

    /// Returns the latency in ns of a message over a path with the latency `way_ns`; 0 for a message from a rank to
    /// itself.
    pub(super) fn message_ns(&self, from: u32, to: u32, way_ns: f64) -> f64 {
        if from == to { 0.0 } else { way_ns + self.overhead_ns + self.signal_ns }
    }

    /// Returns the nanoseconds of a schedule by a timetable of its messages, or by their rounds if it has no switches
    /// and more than `MOST_TIMETABLED` instructions. `places` has the nodes of the network for the ranks, then for the
    /// switches of the schedule.
    ///
    /// # Errors
    /// Returns the faults of a schedule that is not well-formed, or that cannot run.
    pub fn schedule_ns(&self, schedule: &Schedule, places: &[u32]) -> Result<f64, Vec<Diagnostic>> {
        self.schedule_within_ns(schedule, places, f64::INFINITY).map(|ns| ns.expect("no time is longer"))
    }

    /// Returns the time as [`Self::schedule_ns`] does, or `None` as soon as the timetable shows that the schedule takes
    /// longer than `most_ns`.
    ///
    /// # Errors
    /// Returns the errors of [`Self::schedule_ns`].
    pub fn schedule_within_ns(
        &self,
        schedule: &Schedule,
        places: &[u32],
        most_ns: f64,
    ) -> Result<Option<f64>, Vec<Diagnostic>> {
        let has_switches = schedule.check_ranks_only().is_err();
        if schedule.instr_count() > MOST_TIMETABLED && !has_switches {
            self.rounds_ns(schedule).map(Some)
        } else {
            let ends = timetable::end_ns(schedule, self, places, most_ns)?;
            // The clock of a timetable can count 213 days. A longer schedule is timed by rounds.
            let is_beyond = ends.is_some_and(|ns| ns >= u64::MAX as f64 / timetable::PS_PER_NS) && !has_switches;
            if is_beyond { self.rounds_ns(schedule).map(Some) } else { Ok(ends) }
        }
    }

    /// Returns the bytes of a message on links, with its header.
    pub(super) fn with_header(&self, bytes: u64) -> u64 {
        bytes.saturating_add(self.header_bytes)
    }

    /// Returns the bytes of all messages of a flow from one rank.
    pub(super) fn flow_bytes(&self, flow: &Flow) -> f64 {
        self.with_header(flow.bytes) as f64 * f64::from(flow.repeat)
    }

    /// Returns the number of packets of a message; a message without bytes has one packet.
    pub(super) fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.packet_bytes.max(1)).max(1)
    }

    /// Returns the nanoseconds of a schedule in rounds ([`MessageRound`]): the latency of its longest chain of
    /// messages, plus, for each round, the longer of two times: of the bytes on the busiest link, or of the work of the
    /// busiest host.
    ///
    /// # Errors
    ///
    /// Returns the faults of a schedule that is not well-formed, or that cannot run.
    pub fn rounds_ns(&self, schedule: &Schedule) -> Result<f64, Vec<Diagnostic>> {
        let place = |rank: u32| self.places[rank as usize];
        let mut loads = self.loads();
        let known = RefCell::new((self.loads(), FxHashMap::default()));
        let latency = |from: u32, to: u32| {
            let (ways, known) = &mut *known.borrow_mut();
            let way_ns = *known.entry((from, to)).or_insert_with(|| ways.latency_ns(place(from), place(to)));
            self.message_ns(from, to, way_ns)
        };
        let (rounds, longest) = message_rounds(schedule, latency)?;
        let transfer_ns = |round: &MessageRound| {
            let sent =
                |m: &Message| Sent { from: place(m.from), to: place(m.to), bytes: self.with_header(m.bytes) as f64 };
            let messages: Vec<Sent> = round.messages.iter().map(sent).collect();
            let transfer = loads.busiest(&messages) * self.ns_per_byte;
            let hosts = f64::from(round.most_messages(self.ranks())) * self.overhead_ns;
            transfer.max(round.reduced as f64 * self.reduce_ns_per_byte).max(hosts)
        };
        Ok(self.launch_ns + longest + rounds.iter().map(transfer_ns).sum::<f64>())
    }
}

/// Returns true if two exchanges have flows of equal bytes and repetitions, and reduce equally many bytes.
pub(super) fn are_alike(a: &Exchange, b: &Exchange) -> bool {
    let bytes = |e: &Exchange| (e.reduced, e.flows.len());
    let same = |(a, b): (&Flow, &Flow)| (a.bytes, a.repeat) == (b.bytes, b.repeat);
    bytes(a) == bytes(b) && a.flows.iter().zip(&b.flows).all(same)
}
