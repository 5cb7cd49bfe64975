//! The registers of one identifier at one switch, and all registers of a collective.

use std::sync::Arc;

use unisono_base::narrow;
use unisono_collective::{Collective, Operator};
use unisono_machine::in_network::{MEMORY, Port};

/// Marks a missing port.
pub const NONE: Port = 255;
/// Marks that responses come from this switch's own engine instead of a port.
pub const ENGINE: Port = 254;
/// The virtual channels of collective packets, for requests and for responses.
pub const REQUEST: u8 = 0;
pub const RESPONSE: u8 = 1;

/// The contents of one replica of a switch's registers. Sets of ports, including that of the memory, are bit masks.
/// Requests are reduced in the order of ports once all have arrived. Responses leave through all their ports at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Registers {
    pub request_inputs: u64,
    pub response_outputs: u64,
    /// The port by which the reduced request leaves; [`NONE`] if it does not leave.
    pub request_output: Port,
    /// The port by which the response arrives; [`ENGINE`] if it is this switch's own result, [`NONE`] if there is none.
    pub response_input: Port,
    pub request_channel: u8,
    pub response_channel: u8,
    pub identifier: u8,
    /// The operator that reduces requests; None if the registers have no request inputs.
    pub operator: Option<Operator>,
}

impl Registers {
    /// Returns registers without requests and responses.
    pub fn idle(identifier: u8) -> Self {
        Self {
            request_inputs: 0,
            response_outputs: 0,
            request_output: NONE,
            response_input: NONE,
            request_channel: REQUEST,
            response_channel: RESPONSE,
            identifier,
            operator: None,
        }
    }

    /// Returns whether the switch combines several requests, which occupies its engine.
    pub fn reduces(&self) -> bool {
        self.request_inputs.count_ones() > 1
    }

    pub fn sends(&self) -> bool {
        self.request_inputs & 1 << MEMORY != 0 || self.response_input == MEMORY
    }

    pub fn receives(&self) -> bool {
        self.response_outputs & 1 << MEMORY != 0
    }
}

/// Returns the ports of a set in ascending order, the order in which an engine reduces.
pub fn ports(set: u64) -> impl Iterator<Item = Port> {
    (0..64).filter(move |&port| set & 1 << port != 0)
}

/// A tree on one identifier (a chain, for a scan), and the part of the vector that the tree carries.
#[derive(Clone, PartialEq, Debug)]
pub struct Embedding {
    pub identifier: u8,
    /// The index of the part's first element; `elements` is the number of elements in the part.
    pub first: u32,
    pub elements: u32,
    /// The switches of the tree with their registers, in ascending order.
    pub registers: Vec<(u32, Registers)>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Configured {
    pub collective: Collective,
    /// The switch of each rank's core.
    pub ranks: Arc<Vec<u32>>,
    pub embeddings: Vec<Embedding>,
}

impl Embedding {
    /// Returns the index of each switch in `registers`; `u32::MAX` if the switch is not in the tree.
    pub fn places(&self, switches: u32) -> Vec<u32> {
        let mut places = vec![u32::MAX; switches as usize];
        for (at, &(switch, _)) in self.registers.iter().enumerate() {
            if let Some(place) = places.get_mut(switch as usize) {
                *place = narrow(at);
            }
        }
        places
    }
}
