//! Registers of one identifier at one switch, and all of them that make up a collective.

use std::sync::Arc;

use unisono_base::narrow;
use unisono_collective::{Collective, Operator};
use unisono_machine::in_network::{MEMORY, Port};

/// In place of a port: nothing.
pub const NONE: Port = 255;
/// In place of the port that responses come in by: what this switch's own engine has reduced.
pub const ENGINE: Port = 254;
/// Virtual channels of collective packets.
pub const REQUEST: u8 = 0;
pub const RESPONSE: u8 = 1;

/// What one replica of a switch's registers says. Ports are sets of bits, the memory's among them; requests are reduced
/// in the order of ports once all are there, responses go to all their ports at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Registers {
    pub request_inputs: u64,
    pub response_outputs: u64,
    /// A port, or [`NONE`].
    pub request_output: Port,
    /// A port, [`ENGINE`] or [`NONE`].
    pub response_input: Port,
    pub request_channel: u8,
    pub response_channel: u8,
    pub identifier: u8,
    /// What requests are reduced with; none where none come.
    pub operator: Option<Operator>,
}

impl Registers {
    /// Neither request nor response.
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

    /// Whether requests meet here: only then is the engine needed.
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

/// The ports of a set, ascending: the order in which an engine reduces.
pub fn ports(set: u64) -> impl Iterator<Item = Port> {
    (0..64).filter(move |&port| set & 1 << port != 0)
}

/// One tree (a chain, for a scan) on one identifier, and the part of the vector that goes through it.
#[derive(Clone, PartialEq, Debug)]
pub struct Embedding {
    pub identifier: u8,
    /// First element, and how many.
    pub first: u32,
    pub elements: u32,
    /// Switches that take part with their registers, ascending.
    pub registers: Vec<(u32, Registers)>,
}

/// A collective on switches.
#[derive(Clone, PartialEq, Debug)]
pub struct Configured {
    pub collective: Collective,
    /// The switch of each rank's core.
    pub ranks: Arc<Vec<u32>>,
    pub embeddings: Vec<Embedding>,
}

impl Embedding {
    /// The place of each switch in `registers`; `u32::MAX` where it takes no part.
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
