//! Who sends how much to whom, where all ranks do alike: what the time of a collective on a network is computed from.

use std::{fmt, sync::Arc};

/// `repeat` times after each other every rank sends `bytes` to one other rank; each time after what it received before.
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

    /// Whom a rank sends to; a rank that is its own peer sends nothing.
    pub fn to(&self, rank: u32) -> u32 {
        (self.to)(rank)
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} times {} bytes, rank 0 to {}", self.repeat, self.bytes, self.to(0))
    }
}

/// Flows at the same time, each of a part of the vector. Flow k of the next exchange begins when this flow k has ended.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub flows: Vec<Flow>,
    /// Bytes that a rank reduces in all.
    pub reduced: u64,
}

/// The facts of messages along trees that share links.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trees {
    /// Until the last message is there and added to its sum, by a timetable of all links and of the work of each host.
    pub end_ns: f64,
    /// Messages of a chain from the first to the last.
    pub messages: u32,
    /// Messages that a rank sends and receives, the most of all ranks.
    pub messages_of_rank: u64,
    /// Bytes that a rank reduces, the most of all ranks.
    pub reduced: u64,
}

impl Trees {
    /// The time where a host works `host_ns` on each message that it sends or receives, and knows `signal_ns` late that
    /// one is there: the end of the timetable, unless hosts and reductions of some rank take longer.
    pub fn time_ns(&self, host_ns: f64, signal_ns: f64, reduce_ns_per_byte: f64) -> f64 {
        let hosts = self.messages_of_rank as f64 * host_ns + self.reduced as f64 * reduce_ns_per_byte;
        self.end_ns.max(hosts) + f64::from(self.messages) * signal_ns
    }
}
