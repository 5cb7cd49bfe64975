//! Messages of a collective in which all ranks behave in the same way, and totals of messages along trees. Models
//! compute the time of the collective on a network from these two.

use std::{fmt, sync::Arc};

/// A flow: each rank sends `repeat` messages of `bytes` bytes in sequence to one other rank. A rank sends its next
/// message when it has received the previous message of the flow.
#[derive(Clone)]
pub struct Flow {
    to: Arc<dyn Fn(u32) -> u32 + Send + Sync>,
    pub bytes: u64,
    pub repeat: u32,
}

impl Flow {
    pub fn new(bytes: u64, repeat: u32, to: impl Fn(u32) -> u32 + Send + Sync + 'static) -> Self {
        Self { to: Arc::new(to), bytes, repeat }
    }

    /// Returns the receiver of a rank's messages. A rank that is its own receiver sends nothing.
    pub fn to(&self, rank: u32) -> u32 {
        (self.to)(rank)
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} times {} bytes, rank 0 to {}", self.repeat, self.bytes, self.to(0))
    }
}

/// Concurrent flows, each of which carries a part of the vector. Flow k of the next exchange begins when flow k of this
/// exchange has ended.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub flows: Vec<Flow>,
    /// Bytes that each rank reduces in all flows together.
    pub reduced: u64,
}

/// Properties of messages along trees that share links.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trees {
    /// The time in ns, from the start, at which the last message has arrived and is reduced, from the busy intervals of
    /// all links and the work of each host.
    pub end_ns: f64,
    /// The number of messages of the longest chain of dependent messages.
    pub messages: u32,
    /// The largest number of messages that a rank sends and receives together.
    pub messages_of_rank: u64,
    /// The largest number of bytes that a rank reduces.
    pub reduced: u64,
}

impl Trees {
    /// Returns the properties of these messages followed by `next`, which uses the same links and starts when these
    /// messages have ended.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            end_ns: self.end_ns + next.end_ns,
            messages: self.messages + next.messages,
            messages_of_rank: self.messages_of_rank + next.messages_of_rank,
            reduced: self.reduced + next.reduced,
        }
    }

    /// Returns the time in ns. A host works `host_ns` on each message that it sends or receives, and notices an arrival
    /// `signal_ns` late. The time is the larger of [`Self::end_ns`] and the work of the busiest host with its
    /// reductions, plus `signal_ns` for each message of the longest chain.
    pub fn time_ns(&self, host_ns: f64, signal_ns: f64, reduce_ns_per_byte: f64) -> f64 {
        let hosts = self.messages_of_rank as f64 * host_ns + self.reduced as f64 * reduce_ns_per_byte;
        self.end_ns.max(hosts) + f64::from(self.messages) * signal_ns
    }
}
