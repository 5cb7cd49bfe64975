//! The part of a machine that runs a collective: the core of each rank.

use std::sync::Arc;

use unisono_base::narrow;

use super::{InNetwork, Layout};
use crate::MachineError;

#[derive(Clone, Debug)]
pub struct Site {
    pub machine: InNetwork,
    pub layout: Arc<Layout>,
    /// The core of each rank, ascending.
    pub cores: Arc<Vec<u32>>,
    /// The number of replicas of each switch's registers that other collectives use.
    pub taken: u8,
}

impl Site {
    /// Selects every core of the machine.
    pub fn all(machine: &InNetwork) -> Self {
        Self {
            layout: Arc::new(machine.layout()),
            cores: Arc::new((0..machine.cores()).collect()),
            machine: machine.clone(),
            taken: 0,
        }
    }

    /// Selects the first `cores` cores of the machine.
    ///
    /// # Errors
    /// Returns an error if `cores` is 0, or the machine has fewer cores.
    pub fn first(machine: &InNetwork, cores: u32) -> Result<Self, MachineError> {
        if cores == 0 || cores > machine.cores() {
            let most = machine.cores();
            return Err(MachineError::Cores { machine: machine.name.clone(), found: cores, most });
        }
        Ok(Self { cores: Arc::new((0..cores).collect()), ..Self::all(machine) })
    }

    /// Selects all cores of some nodes.
    ///
    /// # Errors
    /// Returns an error if `nodes` is empty, or a node does not exist.
    pub fn on_nodes(machine: &InNetwork, nodes: &[u32]) -> Result<Self, MachineError> {
        let most = machine.nodes();
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        match nodes.last() {
            Some(&last) if last < most => {}
            last => {
                let found = last.map_or_else(|| "nothing".to_owned(), |last| format!("node {last}"));
                return Err(MachineError::Subset { machine: machine.name.clone(), found, last: most - 1 });
            }
        }
        let per = machine.cores_per_node();
        let cores = nodes.iter().flat_map(|node| node * per..(node + 1) * per).collect();
        Ok(Self { cores: Arc::new(cores), ..Self::all(machine) })
    }

    pub fn ranks(&self) -> u32 {
        narrow(self.cores.len())
    }

    /// Returns the nodes with a rank, ascending.
    pub fn nodes(&self) -> Vec<u32> {
        let mut nodes: Vec<u32> = self.cores.iter().map(|&core| self.layout.node_of(core)).collect();
        nodes.dedup();
        nodes
    }
}
