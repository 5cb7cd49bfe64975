//! Alpha and beta of registers, and the paper's closed forms for them.

use unisono_lower::switches::{Configured, ENGINE, Embedding, NONE, loads, ports};
use unisono_machine::{
    InNetwork,
    in_network::{Layout, LevelOf, MEMORY},
};

/// T(m) = alpha + beta m.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hockney {
    pub alpha_ns: f64,
    pub beta_ns_per_element: f64,
}

/// Eq. 1: no way from a core to another, in an allreduce, takes longer.
pub fn eq1_ns(machine: &InNetwork) -> f64 {
    let dims = machine.node_dims.iter().filter(|&&d| d > 1).count() as f64;
    let mesh = machine.core_latency_ns * f64::from(machine.mesh_diameter());
    2.0 * (machine.node_latency_ns * dims + machine.socket_latency_ns * (dims + 1.0) + mesh * (2.0 * dims + 1.0))
}

/// Eq. 2: an element of `bytes` of an allreduce by one embedding. BW_link counts both directions.
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

/// The time of registers that pass their check.
pub fn embedded_ns(machine: &InNetwork, layout: &Layout, configured: &Configured) -> f64 {
    let parts = configured.embeddings.iter().zip(embedded(machine, layout, configured));
    parts
        .filter(|(e, _)| e.elements > 0)
        .map(|(e, h)| h.alpha_ns + h.beta_ns_per_element * f64::from(e.elements))
        .fold(0.0, f64::max)
}

/// Alpha and beta of each embedding, all running at once.
pub fn embedded(machine: &InNetwork, layout: &Layout, configured: &Configured) -> Vec<Hockney> {
    let all = loads(layout, [configured]);
    let mut shares = vec![(0_u8, 0_u8); layout.switches() as usize];
    for (switch, r) in configured.embeddings.iter().flat_map(|e| &e.registers) {
        let (reads, writes) = &mut shares[*switch as usize];
        *reads += u8::from(r.sends());
        *writes += u8::from(r.receives());
    }
    let bits = 8.0 * configured.collective.element_bytes() as f64;
    let beta = |e: &Embedding| {
        let of = |&(switch, r): &(u32, unisono_lower::switches::Registers)| {
            let (reads, writes) = shares[switch as usize];
            let share = machine.memory_gbps / f64::from(u8::from(reads > 0) + u8::from(writes > 0)).max(1.0);
            let rate = share.min(machine.memory_port_gbps);
            let memory = f64::from(reads * u8::from(r.sends())).max(f64::from(writes * u8::from(r.receives()))) / rate;
            let up = Some(r.request_output).filter(|&port| port != NONE);
            let links = up.into_iter().chain(ports(r.response_outputs & !(1 << MEMORY)));
            let link = links.map(|port| {
                let gbps = layout.level(switch, port).map_or(f64::INFINITY, |level| gbps(machine, level));
                f64::from(all.leaving(switch, port)) / gbps
            });
            link.fold(memory, f64::max)
        };
        bits * e.registers.iter().map(of).fold(0.0, f64::max)
    };
    let of = |e| Hockney { alpha_ns: alpha(machine, layout, configured, e), beta_ns_per_element: beta(e) };
    configured.embeddings.iter().map(of).collect()
}

fn gbps(machine: &InNetwork, level: LevelOf) -> f64 {
    match level {
        LevelOf::Core => machine.core_gbps,
        LevelOf::Socket => machine.socket_gbps,
        LevelOf::Node => machine.node_gbps,
    }
}

fn latency_ns(machine: &InNetwork, level: LevelOf) -> f64 {
    match level {
        LevelOf::Core => machine.core_latency_ns,
        LevelOf::Socket => machine.socket_latency_ns,
        LevelOf::Node => machine.node_latency_ns,
    }
}

/// The longest way from a memory up to the root and down to a memory.
fn alpha(machine: &InNetwork, layout: &Layout, configured: &Configured, e: &Embedding) -> f64 {
    let places = e.places(layout.switches());
    let reduces = configured.collective.kind.reduces();
    let root = e.registers.iter().position(
        |(_, r)| {
            if reduces { r.request_output == NONE } else { r.response_input == MEMORY }
        },
    );
    let (mut up, mut down) = (0.0_f64, 0.0_f64);
    // Place, the way to the root by links and engines, and the way from it by links.
    let mut waiting: Vec<(usize, f64, f64)> = root.map(|at| (at, 0.0, 0.0)).into_iter().collect();
    while let Some((at, to_root, from_root)) = waiting.pop() {
        let (switch, r) = e.registers[at];
        let levels = f64::from(r.request_inputs.count_ones().max(1).next_power_of_two().trailing_zeros());
        let to_root = to_root + levels * machine.engine_level_ns;
        if r.sends() {
            up = up.max(to_root);
        }
        // What a scan's engine keeps has come by the chain already.
        if r.receives() && !(r.response_input == ENGINE && r.request_output != NONE) {
            down = down.max(from_root);
        }
        let below = if reduces { r.request_inputs } else { r.response_outputs };
        for peer in ports(below & !(1 << MEMORY)).filter_map(|port| layout.peer(switch, port)) {
            let link = latency_ns(machine, peer.level);
            waiting.push((places[peer.switch as usize] as usize, to_root + link, from_root + link));
        }
    }
    if reduces { up + down } else { down }
}
