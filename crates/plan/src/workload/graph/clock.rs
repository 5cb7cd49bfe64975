//! The start and end of each node of a program.

use super::{Messages, OnePort, events::Simulation};
use unisono_workload::WorkloadGraph;

/// The time of one node, in seconds from the start of the program.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Interval {
    pub begin: f64,
    pub end: f64,
}

/// The times of all nodes, by class and node. The interval of a receive begins when its message has been sent and the
/// receive has been posted, whichever is later, and ends when the message has arrived.
#[derive(Clone, PartialEq, Debug)]
pub struct Clock(pub Vec<Vec<Interval>>);

/// The error for classes that wait for each other in a cycle, or that wait for a class that does not take part.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ClockError {
    #[error(
        "rank {rank} waits in node {node} ('{name}') for ranks that do not come to it; accepted are programs in which the ranks \
         of a group make the same collectives in the same order"
    )]
    Meeting { rank: u32, node: usize, name: String },
    #[error(
        "rank {rank} waits in node {node} ('{name}') for a message that rank {from} cannot send, because ranks wait for each \
         other in a circle; accepted are programs in which some rank can always go on"
    )]
    Message { rank: u32, node: usize, name: String, from: u32 },
}

impl Clock {
    /// Computes the times of a program without messages between pairs. `seconds` returns the time of a node, given the
    /// indices of class and node.
    ///
    /// # Errors
    /// Returns an error if classes wait for each other in a cycle.
    pub fn new(
        graph: &WorkloadGraph,
        overlap: bool,
        seconds: impl Fn(usize, usize) -> f64,
    ) -> Result<Self, ClockError> {
        Self::with_messages(graph, overlap, seconds, &OnePort)
    }

    /// Computes the times of a program with messages between pairs, whose times `messages` returns.
    ///
    /// # Errors
    /// Returns the errors of [`Clock::new`].
    pub fn with_messages(
        graph: &WorkloadGraph,
        overlap: bool,
        seconds: impl Fn(usize, usize) -> f64,
        messages: &impl Messages,
    ) -> Result<Self, ClockError> {
        Simulation::new(graph, overlap, seconds, messages).run().map(Self)
    }

    /// Returns the end of the last node of a class.
    pub fn end(&self, class: usize) -> f64 {
        self.0[class].iter().map(|node| node.end).fold(0.0, f64::max)
    }
}
