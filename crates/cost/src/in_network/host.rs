//! Algorithms on the cores, by messages between their memories: the baselines of "Accelerating Allreduce with
//! in-network reduction on Intel PIUMA".
//!
//! A round costs `machine.host.round_ns` of software and `machine.host.traversals` times the latency to the partner;
//! both parameters are calibrated, because the paper does not state them. The latency to a partner in another socket or
//! node is the largest possible: half of Eq. 1 with one dimension of nodes or, for a partner in the same node, without
//! such a dimension. The data of a round goes through the memory port: a sent element is read, an arriving element is
//! written, and a reduction in software reads two elements and writes one. Congestion is ignored, as in the paper.

use unisono_machine::{InNetwork, in_network::LevelOf};

unisono_base::named! {
    /// An algorithm of the hosts, by its name in the registry of algorithms.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Host {
        RecursiveDoubling = "recursive-doubling",
        Rabenseifner = "rabenseifner",
    }
}

impl Host {
    pub const NAMES: &[&str] = &[Host::RecursiveDoubling.name(), Host::Rabenseifner.name()];
}

/// Returns the time, in ns, of the algorithm `host` for an allreduce of `elements` elements of `bytes` bytes each on
/// the first `ranks` cores.
pub fn host_ns(machine: &InNetwork, ranks: u32, elements: u64, bytes: u64, host: Host) -> f64 {
    let whole = ranks.max(1).ilog2();
    let mut ways: Vec<f64> = (0..whole).map(|round| way_ns(machine, 1 << round)).collect();
    if !ranks.is_power_of_two() {
        // Ranks beyond the largest power of two send their vector first, and receive the result at the end.
        ways.extend([way_ns(machine, 1 << whole); 2]);
    }
    let round = |way: f64| machine.host.round_ns + machine.host.traversals * way;
    let rounds: f64 = ways.iter().copied().map(round).sum();
    // A port transfers reads and writes concurrently. There are fewer writes than reads, so reads limit the port.
    let vector_ns = |accesses: f64, reads: f64| {
        8.0 * bytes as f64 * (accesses / machine.memory_gbps).max(reads / machine.memory_port_gbps) * elements as f64
    };
    match host {
        // In every round each element has 2 accesses for the message (1 read) and 3 for the reduction (2 reads).
        Host::RecursiveDoubling => rounds + ways.len() as f64 * vector_ns(5.0, 3.0),
        // Halving and doubling on n ranks: (n - 1)/n of the vector has 4 accesses for messages (2 reads) and 3 for
        // reductions (2 reads).
        Host::Rabenseifner => 2.0 * rounds + vector_ns(7.0, 4.0) * f64::from(ranks - 1) / f64::from(ranks),
    }
}

/// Returns the latency in ns to a partner whose rank differs by `distance`, a power of two.
fn way_ns(machine: &InNetwork, distance: u32) -> f64 {
    let mesh = machine.core_latency_ns * f64::from(machine.mesh_diameter());
    let columns = machine.mesh[1];
    if distance >= machine.cores_per_node() {
        link_ns(machine, distance / machine.cores_per_node()) + 2.0 * machine.socket_latency_ns + 3.0 * mesh
    } else if distance >= machine.cores_per_socket {
        machine.socket_latency_ns + mesh
    } else {
        machine.core_latency_ns * f64::from(if distance < columns { distance } else { distance / columns })
    }
}

/// Returns the latency in ns of the link to a node whose number differs by `nodes`, in the dimension in which the two
/// differ.
fn link_ns(machine: &InNetwork, nodes: u32) -> f64 {
    let mut distance = nodes;
    for &size in machine.node_dims.iter().rev().take_while(|&&size| size > 0) {
        if distance < size {
            break;
        }
        distance = (distance / size).max(1);
    }
    machine.latency_ns(LevelOf::Node { distance })
}
