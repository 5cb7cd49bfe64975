//! The check of a placement on a network: ranks run on accelerators, all other nodes of the schedule on switches.
//!
//! A message to or from a switch goes over one link between the two nodes. A switch without an entry in the machine's
//! `switches` only forwards: its instructions have one source and one sink. Only a switch that multicasts has several
//! sinks, and only one that reduces with the operator and the datatype of the schedule has several sources. Switches
//! have no memory for operands, so all their sources and sinks are streams.

use unisono_base::{Diagnostics, InstrId, NodeId};
use unisono_machine::{
    Machine, MachineError,
    network::{Network, Plane, Switches},
};
use unisono_schedule::{Operand, Schedule};

use crate::placement::{refuse, refuse_kind};

const CODE: &str = "placement-machine";

/// Reports the errors of a placement: a wrong size, and contradictions to the machine.
pub(crate) fn check_on(schedule: &Schedule, machine: Option<&Machine>, nodes: &[u32], found: &mut Diagnostics) {
    let wanted = schedule.node_count();
    if nodes.len() != wanted {
        let message = || format!("the schedule has {wanted} nodes, and {} are placed", nodes.len());
        return found.push("placement-size", None, None, message);
    }
    let Some(machine) = machine else { return };
    match machine.get().map(|network| check(schedule, network, nodes, found)) {
        Some(Ok(())) => {}
        Some(Err(error)) => refuse(error.to_string(), found),
        None => refuse_kind(machine, "nodes are for a network", found),
    }
}

/// Reports the errors of a placement that has an entry for each node of the schedule.
///
/// # Errors
/// Returns an error if the topology of the machine cannot be built, or if an accelerator does not exist or has two
/// ranks.
fn check(schedule: &Schedule, network: &Network, nodes: &[u32], found: &mut Diagnostics) -> Result<(), MachineError> {
    let topology = network.topology(&network.name)?;
    let (ranks, switches) = nodes.split_at(schedule.collective().ranks as usize);
    network.check_nodes(&*topology, ranks)?;
    if switches.is_empty() {
        return Ok(());
    }
    let plane = topology.plane()?;
    let check = Check { schedule, plane: &plane, nodes, computing: &network.computing(&*topology)? };
    if check.are_switches(found) {
        check.streams(found);
        check.instructions(found);
    }
    Ok(())
}

struct Check<'a> {
    schedule: &'a Schedule,
    plane: &'a Plane,
    nodes: &'a [u32],
    computing: &'a Switches,
}

impl Check<'_> {
    fn ranks(&self) -> usize {
        self.schedule.collective().ranks as usize
    }

    fn others(&self) -> impl Iterator<Item = NodeId> {
        (self.ranks()..self.nodes.len()).map(NodeId::new)
    }

    fn place(&self, node: NodeId) -> u32 {
        self.nodes[node.index()]
    }

    /// Returns whether the nodes after the ranks are on switches, each on its own switch; otherwise reports the first
    /// fault.
    fn are_switches(&self, found: &mut Diagnostics) -> bool {
        let mut taken = vec![false; self.plane.nodes() as usize];
        for node in self.others() {
            let place = self.place(node);
            if place < self.plane.accelerators() || place >= self.plane.nodes() {
                let (first, last) = (self.plane.accelerators(), self.plane.nodes().saturating_sub(1));
                let message = || format!("the node is placed on {place}; accepted are the switches {first} to {last}");
                found.push(CODE, Some(node), None, message);
                return false;
            }
            if std::mem::replace(&mut taken[place as usize], true) {
                found.push(CODE, Some(node), None, || format!("a second node is placed on switch {place}"));
                return false;
            }
        }
        true
    }

    /// Checks that every stream that a switch writes or reads runs between two nodes that a link joins.
    fn streams(&self, found: &mut Diagnostics) {
        for id in self.schedule.all_streams() {
            let from = self.schedule.stream(id).source;
            for &to in self.schedule.stream_sinks(id) {
                let is_of_ranks = from.index() < self.ranks() && to.index() < self.ranks();
                let [a, b] = [from, to].map(|node| self.place(node));
                if !is_of_ranks && self.plane.links_between(a, b).next().is_none() {
                    let message = || format!("{id} goes from node {a} to node {b} of the network, which no link joins");
                    found.push(CODE, Some(from), None, message);
                }
            }
        }
    }

    fn instructions(&self, found: &mut Diagnostics) {
        let c = self.schedule.collective();
        let (operator, dtype) = (c.operator.name(), c.dtype.name());
        for node in self.others() {
            let place = self.place(node);
            let class = self.computing.class(place);
            let multicasts = class.is_some_and(|class| class.multicast);
            let reduces = class.is_some_and(|class| class.reduces(operator, dtype));
            for id in self.schedule.node_instrs(node).map(InstrId::new) {
                let (sources, sinks) = (self.schedule.sources(id), self.schedule.sinks(id));
                let in_memory = |operand: Operand| !matches!(operand, Operand::Stream(_));
                let sent = sinks.iter().map(|sink| match sink {
                    Operand::Stream(stream) => self.schedule.stream_sinks(stream).len(),
                    _ => 1,
                });
                let fault = if sources.iter().any(in_memory) || sinks.iter().any(in_memory) {
                    format!("switch {place} has no memory for operands")
                } else if sources.len() > 1 && !reduces {
                    format!("switch {place} does not reduce with {operator} over {dtype}")
                } else if sent.sum::<usize>() > 1 && !multicasts {
                    format!("switch {place} does not copy a message to several nodes")
                } else {
                    continue;
                };
                found.push(CODE, Some(node), Some(id), || fault);
            }
        }
    }
}
