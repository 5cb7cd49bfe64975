//! The placement of a schedule on a machine of any kind.

use unisono_base::Diagnostics;
use unisono_machine::{InNetwork, Machine, Wafer, network::Network};
use unisono_schedule::Schedule;

use crate::{
    GridPlacement,
    switches::{self, SwitchPlacement},
};

/// Where the nodes of a schedule run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placement {
    /// On a wafer: node k runs on PE k of a grid, and every stream has a route.
    Grid(GridPlacement),
    /// On a network: rank k runs on accelerator `nodes[k]`.
    Nodes(Vec<u32>),
    /// On switches that reduce: every node has a core or switch, and every stream a virtual channel.
    Switches(SwitchPlacement),
}

impl Placement {
    /// Returns the placement on a grid, if it is one.
    pub fn grid(&self) -> Option<&GridPlacement> {
        match self {
            Self::Grid(grid) => Some(grid),
            Self::Nodes(_) | Self::Switches(_) => None,
        }
    }

    /// Returns the accelerator of each rank, if ranks are placed on accelerators.
    pub fn nodes(&self) -> Option<&[u32]> {
        match self {
            Self::Nodes(nodes) => Some(nodes),
            Self::Grid(_) | Self::Switches(_) => None,
        }
    }

    /// Returns the placement on switches that reduce, if it is one.
    pub fn switches(&self) -> Option<&SwitchPlacement> {
        match self {
            Self::Switches(switches) => Some(switches),
            Self::Grid(_) | Self::Nodes(_) => None,
        }
    }

    /// Reports errors of the placement: of its size, of its routes, and against the machine.
    pub fn check(&self, schedule: &Schedule, machine: Option<&Machine>, found: &mut Diagnostics) {
        let fault = match self {
            Self::Grid(grid) => {
                grid.check(schedule, found);
                match machine {
                    Some(machine) => match machine.get::<Wafer>() {
                        Some(wafer) => wafer.choose(Some(grid.shape())).err().map(|e| e.to_string()),
                        None => Some(wrong_kind(machine, "a grid is for a wafer")),
                    },
                    None => None,
                }
            }
            Self::Nodes(nodes) => {
                let ranks = schedule.collective().ranks as usize;
                if nodes.len() != ranks {
                    found.push("placement-size", None, None, || {
                        format!("the schedule has {ranks} ranks, and {} are placed", nodes.len())
                    });
                }
                match machine {
                    Some(machine) => match machine.get::<Network>() {
                        Some(network) => network
                            .topology(&network.name)
                            .and_then(|topology| network.check_nodes(&*topology, nodes))
                            .err()
                            .map(|e| e.to_string()),
                        None => Some(wrong_kind(machine, "nodes are for a network")),
                    },
                    None => None,
                }
            }
            Self::Switches(placement) => {
                let (checked, fault) = match machine.map(|machine| (machine, machine.get::<InNetwork>())) {
                    Some((_, Some(machine))) => {
                        (switches::draft(machine, &machine.layout(), schedule, placement).map(drop), None)
                    }
                    Some((other, None)) => (Ok(()), Some(wrong_kind(other, "switches are for one of kind in-network"))),
                    None => (placement.check_size(schedule), None),
                };
                checked.err().into_iter().for_each(|finding| found.add(finding));
                fault
            }
        };
        if let Some(fault) = fault {
            found.push("placement-machine", None, None, || fault);
        }
    }
}

fn wrong_kind(machine: &Machine, accepted: &str) -> String {
    format!("{} is of kind {}; {accepted}", machine.name(), machine.kind())
}

/// Runs of consecutive nodes as `(first, count)`, the form in which files hold nodes.
pub(crate) fn runs(nodes: &[u32]) -> impl Iterator<Item = (u32, usize)> {
    nodes.chunk_by(|a, b| a.checked_add(1) == Some(*b)).map(|run| (run[0], run.len()))
}

/// The nodes of such runs, one for each of `count` ranks; with other words, the switches of the nodes of a schedule.
///
/// # Errors
/// They are more or fewer, or beyond 32 bits.
pub(crate) fn nodes(
    runs: impl IntoIterator<Item = (u32, u64)>,
    count: usize,
    [nodes, ranks]: [&str; 2],
) -> Result<Vec<u32>, String> {
    let mut read = Vec::new();
    for (first, more) in runs {
        let last = u64::from(first).saturating_add(more.saturating_sub(1));
        if more > (count - read.len()) as u64 || last > u64::from(u32::MAX) {
            return Err(format!("more {nodes} are named than the {count} {ranks}, or one beyond {}", u32::MAX));
        }
        read.extend((first..=u32::MAX).take(usize::try_from(more).unwrap_or(usize::MAX)));
    }
    if read.len() != count {
        return Err(format!("{} {nodes} are named for {count} {ranks}", read.len()));
    }
    Ok(read)
}

/// The words of [`nodes`] for ranks on a network, and for nodes on switches.
pub(crate) const NODES_OF_RANKS: [&str; 2] = ["nodes", "ranks"];
pub(crate) const SWITCHES_OF_NODES: [&str; 2] = ["cores and switches", "nodes of the schedule"];
