//! The thread blocks that execute a schedule on GPUs, as an imported plan states them.

use unisono_base::InstrId;
use unisono_machine::network::Protocol;

/// The protocol of each instruction that a thread block runs. A lane is a thread block.
///
/// Other instructions represent memory that a thread block of another GPU reads or writes, and the copy of an input
/// that an in-place plan does not make. They take no time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadBlocks(Vec<Option<Protocol>>);

impl ThreadBlocks {
    /// Makes thread blocks from the protocol of each instruction, in the order of their ids.
    pub fn new(protocols: Vec<Option<Protocol>>) -> Self {
        Self(protocols)
    }

    /// Returns the protocol of an instruction of a thread block; None for other instructions.
    pub fn protocol(&self, id: InstrId) -> Option<Protocol> {
        self.0.get(id.index()).copied().flatten()
    }

    pub fn protocols(&self) -> Vec<Protocol> {
        Protocol::ALL.into_iter().filter(|&protocol| self.0.contains(&Some(protocol))).collect()
    }
}
