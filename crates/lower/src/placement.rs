//! The placement of a schedule on a machine of any kind.

use unisono_base::Diagnostics;
use unisono_machine::{Machine, Wafer, network::Network};
use unisono_schedule::Schedule;

use crate::GridPlacement;

/// Where the nodes of a schedule run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placement {
    /// On a wafer: node k runs on PE k of a grid, and every stream has a route.
    Grid(GridPlacement),
    /// On a network: rank k runs on accelerator `nodes[k]`.
    Nodes(Vec<u32>),
}

impl Placement {
    /// Returns the placement on a grid, if it is one.
    pub fn grid(&self) -> Option<&GridPlacement> {
        match self {
            Self::Grid(grid) => Some(grid),
            Self::Nodes(_) => None,
        }
    }

    /// Returns the accelerator of each rank, if ranks are placed on accelerators.
    pub fn nodes(&self) -> Option<&[u32]> {
        match self {
            Self::Grid(_) => None,
            Self::Nodes(nodes) => Some(nodes),
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
                        None => {
                            Some(format!("{} is of kind {}; a grid is for a wafer", machine.name(), machine.kind()))
                        }
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
                        None => {
                            Some(format!("{} is of kind {}; nodes are for a network", machine.name(), machine.kind()))
                        }
                    },
                    None => None,
                }
            }
        };
        if let Some(fault) = fault {
            found.push("placement-machine", None, None, || fault);
        }
    }
}

/// Runs of consecutive nodes as `(first, count)`, the form in which files hold nodes.
pub(crate) fn runs(nodes: &[u32]) -> impl Iterator<Item = (u32, usize)> {
    nodes.chunk_by(|a, b| a.checked_add(1) == Some(*b)).map(|run| (run[0], run.len()))
}

/// The nodes of such runs.
///
/// # Errors
/// They are not as many as the schedule has ranks, or beyond 32 bits.
pub(crate) fn nodes(runs: impl IntoIterator<Item = (u32, u64)>, ranks: u32) -> Result<Vec<u32>, String> {
    let mut nodes = Vec::new();
    for (first, count) in runs {
        let last = u64::from(first).saturating_add(count.saturating_sub(1));
        if count > u64::from(ranks) - nodes.len() as u64 || last > u64::from(u32::MAX) {
            return Err(format!("more nodes are named than the {ranks} ranks, or one beyond {}", u32::MAX));
        }
        nodes.extend((first..=u32::MAX).take(usize::try_from(count).unwrap_or(usize::MAX)));
    }
    if nodes.len() != ranks as usize {
        return Err(format!("{} nodes are named for {ranks} ranks", nodes.len()));
    }
    Ok(nodes)
}
