//! The times alpha and beta of an embedding from its registers, and the closed form of beta: Eq. 2 of
//! "Accelerating Allreduce with in-network reduction on Intel PIUMA".
//!
//! If a buffer is full before the credit of its first packet returns from the next switch, each full buffer takes the
//! time until the credit returns. The equations of the simulation (`crates/sim/src/collective_engine/sweep.rs`) have
//! several cycles of dependencies; the cycle between two neighbors takes the longest time per packet.

use unisono_lower::switches::{Configured, ENGINE, Embedding, LinkLoads, NONE, Registers, loads, ports};
use unisono_machine::{
    InNetwork,
    in_network::{Layout, LevelOf, MEMORY},
};

/// The time T(m) = alpha + beta m of m elements, in ns. The time is longer if a buffer is full before its first credit
/// returns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hockney {
    pub alpha_ns: f64,
    pub beta_ns_per_element: f64,
    /// The number of elements that a buffer can store.
    pub buffer_elements: u32,
    /// The longest time from the departure of a packet until its credit returns.
    pub credit_ns: f64,
}

impl Hockney {
    fn ns(self, elements: u32) -> f64 {
        let waits = elements.saturating_sub(1) / self.buffer_elements;
        let rest = f64::from(elements - waits * self.buffer_elements);
        let waiting = f64::from(waits) * self.credit_ns + self.beta_ns_per_element * rest;
        self.alpha_ns + waiting.max(self.beta_ns_per_element * f64::from(elements))
    }
}

/// Returns Eq. 2: the ns of an element of `bytes` bytes in an allreduce by one embedding. BW_link counts both
/// directions.
pub fn eq2_ns(machine: &InNetwork, bytes: u64) -> f64 {
    let bits = 8.0 * bytes as f64;
    let mut link = machine.core_gbps.min(machine.memory_port_gbps);
    if machine.sockets_per_node > 1 {
        link = link.min(machine.socket_gbps);
    }
    if machine.nodes() > 1 {
        link = link.min(machine.node_gbps);
    }
    (2.0 * bits / (2.0 * link)).max(2.0 * bits / machine.memory_gbps)
}

/// Returns the time, in ns, of the slowest embedding that has elements. The caller has checked the registers of
/// `configured`.
pub fn embedded_ns(machine: &InNetwork, layout: &Layout, configured: &Configured) -> f64 {
    let parts = configured.embeddings.iter().zip(embedded(machine, layout, configured));
    parts.filter(|(e, _)| e.elements > 0).map(|(e, h)| h.ns(e.elements)).fold(0.0, f64::max)
}

/// Returns alpha and beta of each embedding, if all run concurrently.
pub fn embedded(machine: &InNetwork, layout: &Layout, configured: &Configured) -> Vec<Hockney> {
    let mut shares = vec![Shares::default(); layout.switches() as usize];
    for (switch, r) in configured.embeddings.iter().flat_map(|e| &e.registers) {
        let of = &mut shares[*switch as usize];
        of.reads += u8::from(r.sends());
        of.writes += u8::from(r.receives());
        of.uses += 1;
    }
    let rates = Rates { machine, layout, loads: loads(layout, [configured]), shares };
    let width = configured.collective.element_bytes();
    let per_packet = (u64::from(machine.packet_bytes) / width).max(1);
    let bits = 8.0 * width as f64;
    let of = |e: &Embedding| {
        let slowest =
            e.registers.iter().map(|at| rates.memory(at).max(rates.unit(at, false)).max(rates.unit(at, true)));
        Hockney {
            alpha_ns: alpha(machine, layout, configured, e),
            beta_ns_per_element: bits * slowest.fold(0.0, f64::max),
            buffer_elements: u32::try_from(per_packet * u64::from(machine.buffer_packets)).unwrap_or(u32::MAX),
            credit_ns: rates.credit_ns(e, bits * per_packet as f64),
        }
    };
    configured.embeddings.iter().map(of).collect()
}

/// The numbers of embeddings that read the memory of a core, write this memory, and use the switch of the core.
#[derive(Clone, Copy, Default)]
struct Shares {
    reads: u8,
    writes: u8,
    uses: u8,
}

/// The machine with its shared links, memories and engines. `memory` and `unit` return ns per bit of one embedding.
struct Rates<'a> {
    machine: &'a InNetwork,
    layout: &'a Layout,
    loads: LinkLoads,
    shares: Vec<Shares>,
}

impl Rates<'_> {
    fn memory(&self, (switch, r): &(u32, Registers)) -> f64 {
        let Shares { reads, writes, .. } = self.shares[*switch as usize];
        let share = self.machine.memory_gbps / f64::from(u8::from(reads > 0) + u8::from(writes > 0)).max(1.0);
        let rate = share.min(self.machine.memory_port_gbps);
        f64::from(reads * u8::from(r.sends())).max(f64::from(writes * u8::from(r.receives()))) / rate
    }

    /// Returns the ns per bit of the slowest of: the engine of a switch, and the outputs of this engine. If `copies`,
    /// the outputs are those to which the switch copies responses.
    fn unit(&self, (switch, r): &(u32, Registers), copies: bool) -> f64 {
        let shares = self.shares[*switch as usize];
        let link = |port| match self.layout.level(*switch, port) {
            Some(level) => f64::from(self.loads.leaving(*switch, port).max(1)) / gbps(self.machine, level),
            None => f64::from(shares.writes) / self.machine.memory_port_gbps,
        };
        let up = Some(r.request_output).filter(|&port| !copies && port != NONE);
        let responds = copies != (r.response_input == ENGINE);
        let down = if responds { r.response_outputs } else { 0 };
        let engine = self.machine.engine_gbps.map_or(0.0, |gbps| f64::from(shares.uses) / gbps);
        up.into_iter().chain(ports(down)).map(link).fold(engine, f64::max)
    }

    /// Returns the longest time from the departure of a packet to the return of its credit, in ns. The next switch
    /// returns the credit after it has forwarded the packet.
    fn credit_ns(&self, e: &Embedding, packet_bits: f64) -> f64 {
        let places = e.places(self.layout.switches());
        let engine_ns = |r: &Registers| levels(r) * self.machine.engine_level_ns;
        let of = |at: &(u32, Registers)| {
            let (switch, r) = at;
            let responds = r.response_input != ENGINE;
            let up = Some(r.request_output).filter(|&port| port != NONE).map(|port| (port, false, false));
            let down = ports(r.response_outputs & !(1 << MEMORY)).map(|port| (port, responds, true));
            let back = up.into_iter().chain(down).filter_map(|(port, copies, to_copies)| {
                let peer = self.layout.peer(*switch, port)?;
                let next = &e.registers[places[peer.switch as usize] as usize];
                let engine = if to_copies { 0.0 } else { engine_ns(&next.1) };
                let packet = packet_bits * self.unit(at, copies).max(self.unit(next, to_copies));
                Some(2.0 * self.machine.latency_ns(peer.level) + engine + packet)
            });
            let own = self.memory(at).max(self.unit(at, false)).max(self.unit(at, true));
            back.fold(if r.sends() { engine_ns(r) + packet_bits * own } else { 0.0 }, f64::max)
        };
        e.registers.iter().map(of).fold(0.0, f64::max)
    }
}

/// Returns the number of levels of the binary tree in which a switch reduces requests.
fn levels(r: &Registers) -> f64 {
    f64::from(r.request_inputs.count_ones().max(1).next_power_of_two().trailing_zeros())
}

fn gbps(machine: &InNetwork, level: LevelOf) -> f64 {
    match level {
        LevelOf::Core => machine.core_gbps,
        LevelOf::Socket => machine.socket_gbps,
        LevelOf::Node { .. } => machine.node_gbps,
    }
}

/// Returns the longest latency, in ns, from the root to a memory. If the collective reduces, the longest latency from a
/// memory to the root is added.
fn alpha(machine: &InNetwork, layout: &Layout, configured: &Configured, e: &Embedding) -> f64 {
    let places = e.places(layout.switches());
    let reduces = configured.collective.kind.reduces();
    let root = e.registers.iter().position(
        |(_, r)| {
            if reduces { r.request_output == NONE } else { r.response_input == MEMORY }
        },
    );
    let (mut up, mut down) = (0.0_f64, 0.0_f64);
    // For each waiting switch: its index, its latency to the root over links and engines, and the latency from the root
    // over links, both in ns.
    let mut waiting: Vec<(usize, f64, f64)> = root.map(|at| (at, 0.0, 0.0)).into_iter().collect();
    while let Some((at, to_root, from_root)) = waiting.pop() {
        let (switch, r) = e.registers[at];
        let to_root = to_root + levels(&r) * machine.engine_level_ns;
        if r.sends() {
            up = up.max(to_root);
        }
        // In a scan, a switch that takes its result from its own engine does not wait for a response.
        if r.receives() && !(r.response_input == ENGINE && r.request_output != NONE) {
            down = down.max(from_root);
        }
        let below = if reduces { r.request_inputs } else { r.response_outputs };
        for peer in ports(below & !(1 << MEMORY)).filter_map(|port| layout.peer(switch, port)) {
            let link = machine.latency_ns(peer.level);
            waiting.push((places[peer.switch as usize] as usize, to_root + link, from_root + link));
        }
    }
    if reduces { up + down } else { down }
}
