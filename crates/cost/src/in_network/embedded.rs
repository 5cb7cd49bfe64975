//! Alpha and beta of registers, and the paper's closed forms for them.
//!
//! If buffers do not cover the time of a packet to the next switch and of its credit back, a full buffer takes that
//! time: of all cycles in the simulation's equations (`crates/sim/src/collective_engine/sweep.rs`), that of two
//! neighbors takes longest per packet.

use unisono_lower::switches::{Configured, ENGINE, Embedding, LinkLoads, NONE, Registers, loads, ports};
use unisono_machine::{
    InNetwork,
    in_network::{Layout, LevelOf, MEMORY},
};

/// T(m) = alpha + beta m, or longer if a credit returns only after the buffers are full.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hockney {
    pub alpha_ns: f64,
    pub beta_ns_per_element: f64,
    /// The elements that a buffer holds, and the time from the departure of the first of them to the return of its
    /// credit.
    pub buffer_elements: u32,
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

/// Returns Eq. 1: no way from a core to another, in an allreduce, takes longer. Where latency grows with distance, the
/// links between nodes count as long as those from the middle of each dimension to its farther end.
pub fn eq1_ns(machine: &InNetwork) -> f64 {
    let sizes = machine.node_dims.iter().filter(|&&d| d > 1);
    let nodes: f64 = sizes.clone().map(|&d| machine.latency_ns(LevelOf::Node { distance: d / 2 })).sum();
    let dims = sizes.count() as f64;
    let mesh = machine.core_latency_ns * f64::from(machine.mesh_diameter());
    2.0 * (nodes + machine.socket_latency_ns * (dims + 1.0) + mesh * (2.0 * dims + 1.0))
}

/// Returns Eq. 2: the time of an element of `bytes` of an allreduce by one embedding. BW_link counts both directions.
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

/// Returns the time of registers that passed their check.
pub fn embedded_ns(machine: &InNetwork, layout: &Layout, configured: &Configured) -> f64 {
    let parts = configured.embeddings.iter().zip(embedded(machine, layout, configured));
    parts.filter(|(e, _)| e.elements > 0).map(|(e, h)| h.ns(e.elements)).fold(0.0, f64::max)
}

/// Returns alpha and beta of each embedding, all running concurrently.
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

/// The number of embeddings that read and write the memory of a core, and that use its switch.
#[derive(Clone, Copy, Default)]
struct Shares {
    reads: u8,
    writes: u8,
    uses: u8,
}

/// The time of a bit in ns, if embeddings share links, memories and engines.
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

    /// Returns the time of a bit at the slowest output of a switch's engine, or of its copying of responses.
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

    /// Returns the time from the departure of a packet from a unit to the return of its credit, after the next unit has
    /// forwarded the packet.
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

/// Returns the levels of the tree that reduces.
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

/// Returns the longest way from a memory up to the root and down to a memory.
fn alpha(machine: &InNetwork, layout: &Layout, configured: &Configured, e: &Embedding) -> f64 {
    let places = e.places(layout.switches());
    let reduces = configured.collective.kind.reduces();
    let root = e.registers.iter().position(
        |(_, r)| {
            if reduces { r.request_output == NONE } else { r.response_input == MEMORY }
        },
    );
    let (mut up, mut down) = (0.0_f64, 0.0_f64);
    // The index, the way to the root by links and engines, and the way from it by links.
    let mut waiting: Vec<(usize, f64, f64)> = root.map(|at| (at, 0.0, 0.0)).into_iter().collect();
    while let Some((at, to_root, from_root)) = waiting.pop() {
        let (switch, r) = e.registers[at];
        let to_root = to_root + levels(&r) * machine.engine_level_ns;
        if r.sends() {
            up = up.max(to_root);
        }
        // A result that a scan's engine keeps has arrived by the chain already.
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
