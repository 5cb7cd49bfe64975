//! The placement of a schedule on a machine of any kind.

use unisono_base::Diagnostics;
use unisono_machine::Machine;
use unisono_schedule::Schedule;

use crate::{GridPlacement, network_placement, switches::SwitchPlacement};

/// The PEs, accelerators, cores or switches on which the nodes of a schedule run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placement {
    /// On a wafer: node k runs on PE k of a grid, and every stream has a route.
    Grid(GridPlacement),
    /// On a network: node k of the schedule runs on node `nodes[k]` of a plane. Ranks run on accelerators, all other
    /// nodes on switches.
    Nodes(Vec<u32>),
    /// On switches that reduce: every node has a core or switch, and every stream a virtual channel.
    Switches(SwitchPlacement),
}

impl Placement {
    pub fn grid(&self) -> Option<&GridPlacement> {
        match self {
            Self::Grid(grid) => Some(grid),
            Self::Nodes(_) | Self::Switches(_) => None,
        }
    }

    /// Returns the node of the network on which each node of the schedule runs, if the placement is on a network.
    pub fn nodes(&self) -> Option<&[u32]> {
        match self {
            Self::Nodes(nodes) => Some(nodes),
            Self::Grid(_) | Self::Switches(_) => None,
        }
    }

    pub fn switches(&self) -> Option<&SwitchPlacement> {
        match self {
            Self::Switches(switches) => Some(switches),
            Self::Grid(_) | Self::Nodes(_) => None,
        }
    }

    /// Reports errors of the placement: in its size, in its routes, and against the machine if there is one.
    pub fn check(&self, schedule: &Schedule, machine: Option<&Machine>, found: &mut Diagnostics) {
        match self {
            Self::Grid(grid) => grid.check_on(schedule, machine, found),
            Self::Nodes(nodes) => network_placement::check_on(schedule, machine, nodes, found),
            Self::Switches(placement) => placement.check_on(schedule, machine, found),
        }
    }
}

/// Reports that a placement does not fit the machine.
pub(crate) fn refuse(fault: String, found: &mut Diagnostics) {
    found.push("placement-machine", None, None, || fault);
}

/// Reports that a placement is for another kind of machine.
pub(crate) fn refuse_kind(machine: &Machine, accepted: &str, found: &mut Diagnostics) {
    refuse(format!("{} is of kind {}; {accepted}", machine.name(), machine.kind()), found);
}

/// Returns runs of consecutive nodes as `(first, count)`, as files store nodes.
pub(crate) fn runs(nodes: &[u32]) -> impl Iterator<Item = (u32, usize)> {
    nodes.chunk_by(|a, b| a.checked_add(1) == Some(*b)).map(|run| (run[0], run.len()))
}

/// Returns the nodes of the machine that runs `(first node, number of nodes)` list: one for each of the `count` nodes
/// of a schedule. The words `nodes` and `placed` name the machine's and the schedule's nodes in errors.
///
/// # Errors
/// Returns an error if the runs have more or fewer nodes, or a number that exceeds 32 bits.
pub(crate) fn nodes(
    runs: impl IntoIterator<Item = (u32, u64)>,
    count: usize,
    [nodes, placed]: [&str; 2],
) -> Result<Vec<u32>, String> {
    let mut read = Vec::new();
    for (first, more) in runs {
        let last = u64::from(first).saturating_add(more.saturating_sub(1));
        if more > (count - read.len()) as u64 || last > u64::from(u32::MAX) {
            return Err(format!("more {nodes} are named than the {count} {placed}, or one beyond {}", u32::MAX));
        }
        read.extend((first..=u32::MAX).take(usize::try_from(more).unwrap_or(usize::MAX)));
    }
    if read.len() != count {
        return Err(format!("{} {nodes} are named for {count} {placed}", read.len()));
    }
    Ok(read)
}

/// Returns the words that errors of [`nodes`] use for nodes on a network.
pub(crate) fn words_of_network(schedule: &Schedule) -> [&'static str; 2] {
    if schedule.check_ranks_only().is_ok() {
        ["nodes", "ranks"]
    } else {
        ["accelerators and switches", "nodes of the schedule"]
    }
}

/// The words that errors of [`nodes`] use for nodes on switches that reduce.
pub(crate) const SWITCHES_OF_NODES: [&str; 2] = ["cores and switches", "nodes of the schedule"];
