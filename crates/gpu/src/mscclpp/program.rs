//! A plan with its references resolved: thread blocks as steps, channels as pairs of ends, buffers as spans of grains.
//!
//! A grain is the unit in which thread blocks of a group divide an operation: the buffer alignment of the runtime.

use super::fault::Place;

unisono_base::named! {
    /// The memories of a GPU. Packets are data with flags in scratch memory, and take twice the memory of their data.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Space {
        Input = "input",
        Output = "output",
        Scratch = "scratch",
        Packets = "packets",
    }
}

/// An interval of grains of a memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub gpu: u32,
    pub space: Space,
    pub start: u32,
    pub len: u32,
}

impl Span {
    pub fn end(self) -> u32 {
        self.start + self.len
    }

    pub fn meets(self, other: Self) -> bool {
        (self.gpu, self.space) == (other.gpu, other.space) && self.start < other.end() && other.start < self.end()
    }

    /// Returns grains `from` to `from + len` of the span.
    pub fn part(self, from: u32, len: u32) -> Self {
        Self { start: self.start + from, len, ..self }
    }
}

/// `combine(reads) -> writes`: element `k` of each write is the sum of element `k` of the reads, in their order.
#[derive(Clone, Debug)]
pub struct Move {
    pub reads: Vec<Span>,
    pub writes: Vec<Span>,
    /// The end of the port channel that performs the move after the operation was issued, and the thread that requests
    /// it.
    pub port: Option<(u32, u32)>,
    /// True if a switch multicasts the result, after reducing the reads if there are several.
    pub by_switch: bool,
    /// True if the sum starts from +0.
    pub from_zero: bool,
}

impl Move {
    pub fn len(&self) -> u32 {
        self.writes.first().map_or(0, |w| w.len)
    }

    pub fn has_packets(&self) -> bool {
        self.reads.iter().chain(&self.writes).any(|s| s.space == Space::Packets)
    }
}

/// One effect of an operation.
#[derive(Clone, Debug)]
pub enum Act {
    /// All threads of the thread block wait for each other.
    Sync,
    /// All threads of `blocks` thread blocks wait for each other.
    Barrier {
        id: u32,
        blocks: u32,
    },
    /// A signal by thread `thread` of the block; a flush has the same field.
    Signal {
        end: u32,
        relaxed: bool,
        thread: u32,
    },
    Wait {
        end: u32,
        relaxed: bool,
    },
    Flush {
        end: u32,
        thread: u32,
    },
    Acquire(u32),
    Release(u32),
    Move(Move),
}

/// An operation, in one iteration of its pipeline. The effects of a step begin together when all waits of the step are
/// satisfied.
#[derive(Clone, Debug)]
pub struct Step {
    pub place: Place,
    pub acts: Vec<Act>,
}

#[derive(Clone, Debug)]
pub struct Block {
    pub gpu: u32,
    pub id: u32,
    pub steps: Vec<Step>,
}

/// One GPU's end of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    pub gpu: u32,
    pub peer_gpu: u32,
    /// The index among the GPU's channels of its type.
    pub index: u32,
    pub is_port: bool,
    /// The index of the other end among the ends of all GPUs, if the peer has one.
    pub peer: Option<u32>,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.is_port { "port" } else { "memory" };
        write!(f, "{kind} channel {} of gpu {} to gpu {}", self.index, self.gpu, self.peer_gpu)
    }
}

#[derive(Clone, Debug)]
pub struct Program {
    pub gpus: u32,
    pub blocks: Vec<Block>,
    pub ends: Vec<End>,
    /// The GPU, index and initial value of each semaphore.
    pub semaphores: Vec<(u32, u32, u32)>,
}

impl Program {
    pub fn step(&self, (block, step): (usize, usize)) -> &Step {
        &self.blocks[block].steps[step]
    }

    pub fn moves(&self) -> impl Iterator<Item = (&Step, &Move)> {
        self.blocks.iter().flat_map(|b| &b.steps).flat_map(|step| {
            step.acts.iter().filter_map(move |act| if let Act::Move(m) = act { Some((step, m)) } else { None })
        })
    }
}
