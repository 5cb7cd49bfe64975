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

/// The facts of messages along trees that share links, where every link is busy most of the time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trees {
    /// Until the busiest link has carried all that goes over it.
    pub busiest_ns: f64,
    /// Messages from the first to the last of a chain, and the links that they go over.
    pub messages: u32,
    pub links: u32,
    /// Bytes that pass the links of the deepest tree one after the other before the busiest link has all of its work; with
    /// trees from all ranks it always has some.
    pub filling_bytes: u64,
    /// Messages that a rank sends or receives, the most of all ranks.
    pub messages_of_rank: u64,
    /// Bytes that a rank reduces, the most of all ranks.
    pub reduced: u64,
}
