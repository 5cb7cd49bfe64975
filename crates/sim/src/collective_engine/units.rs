//! The units of an embedding (a tree or a chain of switches) and the edges between them, in an order in which every
//! unit follows its inputs.

use unisono_base::{narrow, rounded_up};
use unisono_lower::switches::{Configured, ENGINE, Embedding, LinkLoads, NONE, Registers, loads, ports};
use unisono_machine::{
    InNetwork,
    in_network::{Layout, LevelOf, MEMORY, Port},
};

/// Value of [`Edge::unit`] for the core's own memory.
pub const TO_MEMORY: u32 = u32::MAX;

/// Resources that embeddings share while they run at the same time.
pub struct Shared {
    loads: LinkLoads,
    /// For each core: the number of embeddings that read from its memory, write to its memory, and use its switch.
    reads: Vec<u8>,
    writes: Vec<u8>,
    uses: Vec<u8>,
}

impl Shared {
    pub fn new(layout: &Layout, all: &[Configured]) -> Self {
        let none = vec![0_u8; layout.switches() as usize];
        let mut shared = Self { loads: loads(layout, all), reads: none.clone(), writes: none.clone(), uses: none };
        for (switch, r) in all.iter().flat_map(|c| &c.embeddings).flat_map(|e| &e.registers) {
            shared.reads[*switch as usize] += u8::from(r.sends());
            shared.writes[*switch as usize] += u8::from(r.receives());
            shared.uses[*switch as usize] += 1;
        }
        shared
    }
}

/// Values for a full packet and for the last packet: times in picoseconds, or numbers of bytes.
pub type Both = [u64; 2];

/// An input or output of a unit.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The unit at the other end, or [`TO_MEMORY`]. `latency` is in picoseconds, and `serial` is the time for which a
    /// packet occupies the link or memory.
    pub unit: u32,
    pub latency: u64,
    pub serial: Both,
}

#[derive(Default)]
pub struct Units {
    pub switch: Vec<u32>,
    /// Latency of each unit's reduction tree in picoseconds; 0 for a unit with one input.
    pub engine_latency: Vec<u64>,
    /// Transfer time of a packet on each unit's slowest output, or through the engine of its switch if that is slower.
    pub serial: Vec<Both>,
    pub first_input: Vec<u32>,
    pub inputs: Vec<Edge>,
    pub first_output: Vec<u32>,
    pub outputs: Vec<Edge>,
    /// The time to write a packet to memory; 0 if the unit does not write to memory.
    pub write: Vec<Both>,
}

/// The two units of a switch: its engine and its copying of responses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SwitchUnit {
    Engine,
    Copy,
}

impl Units {
    pub fn count(&self) -> usize {
        self.switch.len()
    }

    pub fn new(machine: &InNetwork, layout: &Layout, e: &Embedding, shared: &Shared, bytes: Both) -> Self {
        let made = Making { machine, layout, e, shared, bytes, places: e.places(layout.switches()) };
        let order = made.order();
        // Index of each unit in the order: two entries for each switch of the embedding, for its engine and its
        // copying.
        let mut number = vec![u32::MAX; 2 * e.registers.len()];
        for (at, &(place, part)) in order.iter().enumerate() {
            number[2 * place as usize + part as usize] = narrow::<u32>(at);
        }
        let mut units = Self::default();
        for &(place, part) in &order {
            made.push(&mut units, &number, place as usize, part);
        }
        units.first_input.push(narrow::<u32>(units.inputs.len()));
        units.first_output.push(narrow::<u32>(units.outputs.len()));
        units
    }

    pub fn inputs(&self, unit: usize) -> &[Edge] {
        &self.inputs[self.first_input[unit] as usize..self.first_input[unit + 1] as usize]
    }

    pub fn outputs(&self, unit: usize) -> &[Edge] {
        &self.outputs[self.first_output[unit] as usize..self.first_output[unit + 1] as usize]
    }
}

struct Making<'a> {
    machine: &'a InNetwork,
    layout: &'a Layout,
    e: &'a Embedding,
    shared: &'a Shared,
    bytes: Both,
    places: Vec<u32>,
}

impl Making<'_> {
    fn at(&self, place: usize) -> (u32, Registers) {
        self.e.registers[place]
    }

    fn place_of(&self, switch: u32) -> usize {
        self.places[switch as usize] as usize
    }

    /// Returns the unit that sends a switch's responses.
    fn responds(r: &Registers) -> SwitchUnit {
        if r.response_input == ENGINE { SwitchUnit::Engine } else { SwitchUnit::Copy }
    }

    /// Returns the units in an order in which each follows the units for which it waits.
    fn order(&self) -> Vec<(u32, SwitchUnit)> {
        let mut waits = vec![0_u8; 2 * self.e.registers.len()];
        let mut ready = Vec::new();
        for place in 0..self.e.registers.len() {
            let (_, r) = self.at(place);
            if r.request_inputs != 0 {
                waits[2 * place] = narrow::<u8>((r.request_inputs & !(1 << MEMORY)).count_ones());
                if waits[2 * place] == 0 {
                    ready.push((narrow::<u32>(place), SwitchUnit::Engine));
                }
            }
            if ![NONE, ENGINE].contains(&r.response_input) {
                waits[2 * place + 1] = u8::from(r.response_input != MEMORY);
                if waits[2 * place + 1] == 0 {
                    ready.push((narrow::<u32>(place), SwitchUnit::Copy));
                }
            }
        }
        let mut next = 0;
        while let Some(&(place, part)) = ready.get(next) {
            next += 1;
            let (switch, r) = self.at(place as usize);
            let mut reached = |port: Port, there: SwitchUnit| {
                let Some(peer) = self.layout.peer(switch, port) else { return };
                let place = self.place_of(peer.switch);
                let waiting = &mut waits[2 * place + there as usize];
                *waiting -= 1;
                if *waiting == 0 {
                    ready.push((narrow::<u32>(place), there));
                }
            };
            if part == SwitchUnit::Engine && r.request_output != NONE {
                reached(r.request_output, SwitchUnit::Engine);
            }
            if Self::responds(&r) == part {
                for port in ports(r.response_outputs & !(1 << MEMORY)) {
                    reached(port, SwitchUnit::Copy);
                }
            }
        }
        ready
    }

    fn push(&self, units: &mut Units, number: &[u32], place: usize, part: SwitchUnit) {
        let (switch, r) = self.at(place);
        units.first_input.push(narrow::<u32>(units.inputs.len()));
        units.first_output.push(narrow::<u32>(units.outputs.len()));
        units.switch.push(switch);
        let incoming: u64 = match part {
            SwitchUnit::Engine => r.request_inputs,
            SwitchUnit::Copy => 1 << r.response_input,
        };
        let levels = u64::from(incoming.count_ones().next_power_of_two().trailing_zeros());
        units.engine_latency.push(levels * picoseconds(self.machine.engine_level_ns));
        for port in ports(incoming) {
            let edge = match self.layout.peer(switch, port) {
                None => Edge { unit: TO_MEMORY, latency: 0, serial: self.read(switch) },
                Some(peer) => {
                    let there = self.place_of(peer.switch);
                    let from =
                        if part == SwitchUnit::Engine { SwitchUnit::Engine } else { Self::responds(&self.at(there).1) };
                    self.edge(number[2 * there + from as usize], peer.switch, peer.port, peer.level)
                }
            };
            units.inputs.push(edge);
        }
        let mut write = [0; 2];
        if part == SwitchUnit::Engine
            && let Some(peer) = Some(r.request_output).filter(|&p| p != NONE).and_then(|p| self.layout.peer(switch, p))
        {
            let there = number[2 * self.place_of(peer.switch)];
            units.outputs.push(self.edge(there, switch, r.request_output, peer.level));
        }
        if Self::responds(&r) == part {
            for port in ports(r.response_outputs) {
                match self.layout.peer(switch, port) {
                    None => {
                        write = self.write(switch);
                        units.outputs.push(Edge { unit: TO_MEMORY, latency: 0, serial: self.port(switch) });
                    }
                    Some(peer) => {
                        let there = number[2 * self.place_of(peer.switch) + 1];
                        units.outputs.push(self.edge(there, switch, port, peer.level));
                    }
                }
            }
        }
        units.write.push(write);
        let first = *units.first_output.last().unwrap_or(&0) as usize;
        let engine = self.engine(switch);
        let slowest = [0, 1].map(|s| units.outputs[first..].iter().map(|o| o.serial[s]).fold(engine[s], u64::max));
        units.serial.push(slowest);
    }

    /// Returns the edge from a switch through a port; `unit` is the unit at its receiving end.
    fn edge(&self, unit: u32, from: u32, port: Port, level: LevelOf) -> Edge {
        let m = self.machine;
        let gbps = match level {
            LevelOf::Core => m.core_gbps,
            LevelOf::Socket => m.socket_gbps,
            LevelOf::Node { .. } => m.node_gbps,
        };
        let load = self.shared.loads.leaving(from, port);
        Edge { unit, latency: picoseconds(m.latency_ns(level)), serial: self.serial(gbps, load) }
    }

    fn serial(&self, gbps: f64, share: u8) -> Both {
        self.bytes.map(|bytes| rounded_up(bytes as f64 * 8.0 * 1000.0 / gbps * f64::from(share.max(1))))
    }

    /// Returns the bandwidth in Gbit/s of a core's memory for each direction: half of the total if both directions are
    /// in use.
    fn memory_gbps(&self, switch: u32) -> f64 {
        let at = switch as usize;
        let directions = u8::from(self.shared.reads[at] > 0) + u8::from(self.shared.writes[at] > 0);
        self.machine.memory_gbps / f64::from(directions.max(1))
    }

    fn read(&self, switch: u32) -> Both {
        let gbps = self.memory_gbps(switch).min(self.machine.memory_port_gbps);
        self.serial(gbps, self.shared.reads[switch as usize])
    }

    fn write(&self, switch: u32) -> Both {
        let gbps = self.memory_gbps(switch).min(self.machine.memory_port_gbps);
        self.serial(gbps, self.shared.writes[switch as usize])
    }

    fn port(&self, switch: u32) -> Both {
        self.serial(self.machine.memory_port_gbps, self.shared.writes[switch as usize])
    }

    fn engine(&self, switch: u32) -> Both {
        self.machine.engine_gbps.map_or([0; 2], |gbps| self.serial(gbps, self.shared.uses[switch as usize]))
    }
}

fn picoseconds(ns: f64) -> u64 {
    rounded_up(ns * 1000.0)
}
