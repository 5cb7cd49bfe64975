//! Compares the sweep of the collective engine with a direct simulation of events in order of time, packets in buffers,
//! and credits that travel.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use unisono_algorithms::{ALGORITHMS, Case, Params, Profile, switches::Site};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::switches::{Configured, ENGINE, NONE, ports, raise};
use unisono_machine::{
    InNetwork, Machine,
    in_network::{LevelOf, MEMORY},
};
use unisono_schedule::verify::{Method, Verified};
use unisono_sim::collective_engine::run;

/// A buffer for packets: the switch and the unit (true: engine) that take them, and the port by which they arrive.
type Slot = (u32, bool, u8);

#[derive(Default)]
struct Unit {
    inputs: Vec<u8>,
    outputs: Vec<Output>,
    writes: Option<(u64, u64)>,
    engine: u64,
    done: u64,
    free_at: u64,
    memory_free: u64,
    read_free: u64,
    read: u64,
    reads: bool,
}

#[derive(Clone, Copy)]
struct Output {
    slot: Slot,
    latency: u64,
    serial: u64,
}

struct Oracle<'a> {
    site: &'a Site,
    packets: u64,
    bytes: [u64; 2],
    units: BTreeMap<(u32, bool), Unit>,
    /// The head and tail times of waiting packets. `credits` has the times at which the credits of each slot return.
    waiting: BTreeMap<Slot, VecDeque<(u64, u64)>>,
    credits: BTreeMap<Slot, VecDeque<u64>>,
    feeds: BTreeMap<Slot, ((u32, bool), u64)>,
    finish: BTreeMap<u32, u64>,
    tries: BTreeSet<(u64, u32, bool)>,
}

fn serial(bytes: u64, gbps: f64) -> u64 {
    (bytes as f64 * 8000.0 / gbps).ceil() as u64
}

impl Oracle<'_> {
    fn size(&self, packet: u64) -> u64 {
        self.bytes[usize::from(packet + 1 == self.packets)]
    }

    /// Runs the unit as far as possible at time `now`.
    fn attempt(&mut self, now: u64, key: (u32, bool)) {
        let m = self.site.machine.clone();
        loop {
            let unit = &self.units[&key];
            let packet = unit.done;
            // Reads packets ahead into the memory's own buffer.
            if unit.reads && unit.read < self.packets && unit.read < packet + u64::from(m.buffer_packets) {
                let slot = (key.0, key.1, MEMORY);
                let free = self.credits.get_mut(&slot).and_then(|c| c.front().copied());
                if let Some(credit) = free {
                    let start = unit.read_free.max(credit);
                    if start > now {
                        self.tries.insert((start, key.0, key.1));
                    } else {
                        let gbps = (m.memory_gbps / self.directions(key.0)).min(m.memory_port_gbps);
                        let tail = start + serial(self.size(unit.read), gbps);
                        self.credits.get_mut(&slot).unwrap().pop_front();
                        self.waiting.entry(slot).or_default().push_back((start, tail));
                        let unit = self.units.get_mut(&key).unwrap();
                        (unit.read, unit.read_free) = (unit.read + 1, tail);
                        let finish = self.finish.entry(key.0).or_default();
                        *finish = tail.max(*finish);
                        continue;
                    }
                }
            }
            let unit = &self.units[&key];
            if packet == self.packets {
                return;
            }
            let mut start = unit.free_at.max(if unit.writes.is_some() { unit.memory_free } else { 0 });
            let mut tail = 0;
            for &port in &unit.inputs {
                let Some(&(head, end)) = self.waiting.get(&(key.0, key.1, port)).and_then(|w| w.front()) else {
                    return;
                };
                start = start.max(head + unit.engine);
                tail = tail.max(end + unit.engine);
            }
            for output in &unit.outputs {
                let Some(&credit) = self.credits.get(&output.slot).and_then(|c| c.front()) else { return };
                start = start.max(credit);
            }
            if start > now {
                self.tries.insert((start, key.0, key.1));
                return;
            }
            let last = usize::from(packet + 1 == self.packets);
            let bytes = self.bytes[last];
            let mut slowest = 0;
            let outputs = unit.outputs.clone();
            let writes = unit.writes;
            let inputs = unit.inputs.clone();
            for output in &outputs {
                slowest = slowest.max(serial(bytes, f64::from_bits(output.serial)));
            }
            if let Some((port, _)) = writes {
                slowest = slowest.max(serial(bytes, f64::from_bits(port)));
            }
            tail = tail.max(start + slowest);
            for port in inputs {
                let slot = (key.0, key.1, port);
                self.waiting.get_mut(&slot).unwrap().pop_front();
                let (from, latency) = self.feeds.get(&slot).copied().unwrap_or((key, 0));
                self.credits.entry(slot).or_default().push_back(tail + latency);
                self.tries.insert((tail + latency, from.0, from.1));
            }
            for output in outputs {
                self.credits.get_mut(&output.slot).unwrap().pop_front();
                self.waiting.entry(output.slot).or_default().push_back((start + output.latency, tail + output.latency));
                self.tries.insert((start + output.latency, output.slot.0, output.slot.1));
            }
            let unit = self.units.get_mut(&key).unwrap();
            unit.done += 1;
            unit.free_at = tail;
            if let Some((_, write)) = writes {
                unit.memory_free = tail.max(start + serial(bytes, f64::from_bits(write)));
                let finish = self.finish.entry(key.0).or_default();
                *finish = unit.memory_free.max(*finish);
            }
        }
    }

    fn directions(&self, switch: u32) -> f64 {
        let of = |engine| self.units.get(&(switch, engine));
        let reads = [true, false].iter().any(|&e| of(e).is_some_and(|u| u.reads));
        let writes = [true, false].iter().any(|&e| of(e).is_some_and(|u| u.writes.is_some()));
        f64::from(u8::from(reads) + u8::from(writes)).max(1.0)
    }
}

fn oracle(site: &Site, c: &Configured) -> Vec<u64> {
    let (m, layout, e) = (&site.machine, &*site.layout, &c.embeddings[0]);
    let width = c.collective.dtype.bytes();
    let per_packet = (u64::from(m.packet_bytes) / width).max(1);
    let packets = u64::from(e.elements).div_ceil(per_packet);
    let last = u64::from(e.elements) - (packets - 1) * per_packet;
    let mut o = Oracle {
        site,
        packets,
        bytes: [per_packet * width, last * width],
        units: BTreeMap::new(),
        waiting: BTreeMap::new(),
        credits: BTreeMap::new(),
        feeds: BTreeMap::new(),
        finish: BTreeMap::new(),
        tries: BTreeSet::new(),
    };
    let full: VecDeque<u64> = std::iter::repeat_n(0, m.buffer_packets as usize).collect();
    let link = |level| match level {
        LevelOf::Core => (m.core_latency_ns, m.core_gbps),
        LevelOf::Socket => (m.socket_latency_ns, m.socket_gbps),
        LevelOf::Node { .. } => (m.latency_ns(level), m.node_gbps),
    };
    for &(switch, r) in &e.registers {
        let engine_responds = r.response_input == ENGINE;
        for engine in [true, false] {
            let incoming = if engine {
                r.request_inputs
            } else if [NONE, ENGINE].contains(&r.response_input) {
                0
            } else {
                1 << r.response_input
            };
            if incoming == 0 {
                continue;
            }
            let mut unit = Unit { inputs: ports(incoming).collect(), ..Unit::default() };
            unit.reads = incoming & 1 << MEMORY != 0;
            let levels = (unit.inputs.len() as f64).log2().ceil();
            unit.engine = levels as u64 * (m.engine_level_ns * 1000.0).ceil() as u64;
            let mut leaving: Vec<(u8, bool)> = Vec::new();
            if engine && r.request_output != NONE {
                leaving.push((r.request_output, true));
            }
            if engine == engine_responds {
                leaving.extend(ports(r.response_outputs & !(1 << MEMORY)).map(|port| (port, false)));
                if r.response_outputs & 1 << MEMORY != 0 {
                    unit.writes = Some((m.memory_port_gbps.to_bits(), 0));
                }
            }
            for (port, to_engine) in leaving {
                let peer = layout.peer(switch, port).unwrap();
                let (ns, gbps) = link(peer.level);
                let latency = (ns * 1000.0).ceil() as u64;
                let slot = (peer.switch, to_engine, peer.port);
                unit.outputs.push(Output { slot, latency, serial: gbps.to_bits() });
                o.feeds.insert(slot, ((switch, engine), latency));
            }
            for &port in &unit.inputs {
                o.credits.insert((switch, engine, port), full.clone());
            }
            o.units.insert((switch, engine), unit);
            o.tries.insert((0, switch, engine));
        }
    }
    let keys: Vec<_> = o.units.keys().copied().collect();
    for key in keys {
        let gbps = (m.memory_gbps / o.directions(key.0)).min(m.memory_port_gbps);
        if let Some((_, write)) = &mut o.units.get_mut(&key).unwrap().writes {
            *write = gbps.to_bits();
        }
    }
    while let Some((now, switch, engine)) = o.tries.pop_first() {
        o.attempt(now, (switch, engine));
    }
    assert!(o.units.values().all(|u| u.done == packets), "the oracle is stuck");
    c.ranks.iter().map(|switch| o.finish.get(switch).copied().unwrap_or(0)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::soak::cases(100), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn times_are_those_of_events(
        (kind, nodes, elements) in (0_usize..4, 1_u32..7, 1_u64..400),
        (buffers, packet) in (1_u32..6, 2_u32..20),
        (core, socket, node, memory, port) in (20.0..80.0_f64, 20.0..80.0_f64, 10.0..80.0_f64, 20.0..200.0_f64, 20.0..80.0_f64),
        engine in 0.0..3.0_f64,
        step in prop::sample::select(vec![0.0, 7.5, 90.0]),
        root in any::<u64>(),
    ) {
        let m = Machine::preset("piuma").unwrap().get::<InNetwork>().unwrap().clone();
        let m = InNetwork {
            cores_per_socket: 4,
            mesh: [2, 2],
            sockets_per_node: 3,
            socket_ports: vec![0, 1, 2],
            node_ports: vec![3, 2],
            buffer_packets: buffers,
            packet_bytes: 4 * packet,
            core_gbps: core,
            socket_gbps: socket,
            node_gbps: node,
            memory_gbps: memory,
            memory_port_gbps: port,
            engine_level_ns: engine,
            node_step_ns: step,
            ..m
        };
        let site = Site::all(&m.with_nodes(nodes).unwrap());
        let kind = [Kind::Allreduce, Kind::Reduce, Kind::Broadcast, Kind::Barrier][kind];
        let root = root % u64::from(site.ranks());
        let c = Collective::new(kind, site.ranks(), elements, root, Operator::Sum, Dtype::F32).unwrap();
        let unit = ALGORITHMS.iter().find(|a| a.name() == "in-network").unwrap();
        let profile = unit.profile(&Case::on_switches(c, &site), &Params::new());
        let Some(Profile::Registers(made)) = profile else { panic!("it has registers") };
        let (schedule, placement) = raise(&site.layout, &made).unwrap();
        let proven = Verified::new(schedule, Method::Auto).unwrap();
        let ran = run(&site.machine, &proven, &placement).unwrap();
        prop_assert_eq!(&ran.finish, &oracle(&site, &made));
        prop_assert!(ran.computed <= ran.events);
    }
}
