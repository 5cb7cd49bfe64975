//! The thread blocks that execute a schedule on GPUs, as an imported plan states them.

use std::collections::BTreeMap;

use unisono_base::{InstrId, NodeId};
use unisono_machine::network::Protocol;

/// The protocol of each instruction that a thread block runs. A lane is a thread block.
///
/// Instructions without a protocol take no time. They represent memory that a thread block of another GPU reads or
/// writes, or the copy of the input that an in-place plan does not make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadBlocks {
    protocols: Vec<Option<Protocol>>,
    /// The rank whose thread block issues each instruction of a switch.
    leaders: BTreeMap<InstrId, NodeId>,
    unserved: Option<String>,
}

impl ThreadBlocks {
    /// Makes thread blocks from the protocol of each instruction, in the order of their ids.
    pub fn new(protocols: Vec<Option<Protocol>>) -> Self {
        Self { protocols, leaders: BTreeMap::new(), unserved: None }
    }

    /// Sets the rank whose thread block issues each instruction of a switch: the block loads what the switch reads from
    /// all ranks, and stores the result to all ranks.
    #[must_use]
    pub fn led_by(self, leaders: BTreeMap<InstrId, NodeId>) -> Self {
        Self { leaders, ..self }
    }

    /// Returns the rank whose thread block issues an instruction of a switch, if the plan states it.
    pub fn leader(&self, id: InstrId) -> Option<NodeId> {
        self.leaders.get(&id).copied()
    }

    /// Sets the reason why the library does not use the imported file for calls of the schedule's size.
    #[must_use]
    pub fn of_file(self, unserved: Option<String>) -> Self {
        Self { unserved, ..self }
    }

    /// Returns the reason why the library does not use the file for calls of this size; None if it does.
    pub fn unserved(&self) -> Option<&str> {
        self.unserved.as_deref()
    }

    /// Returns the protocol of an instruction of a thread block; None for other instructions.
    pub fn protocol(&self, id: InstrId) -> Option<Protocol> {
        self.protocols.get(id.index()).copied().flatten()
    }

    pub fn protocols(&self) -> Vec<Protocol> {
        Protocol::ALL.into_iter().filter(|&protocol| self.protocols.contains(&Some(protocol))).collect()
    }
}
