//! Packets that wait for links: a queue for each link, virtual channel and input, and the turns of the inputs.
//!
//! Packets are stored in the queues by value, in linked chunks, so that a long queue is read in order. The nonempty
//! queues of a channel form a ring; the first queue of the ring sends next.

use super::packet::Packet;

const NONE: u32 = u32::MAX;
/// Number of packets of a chunk: with its link to the next chunk it fills one cache line.
const CHUNK: usize = 5;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Chunk {
    packets: [Packet; CHUNK],
    next: u32,
}

/// A queue in 16 bytes, so that each is in one cache line. The place of a packet is `chunk << INDEX_BITS | index`.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Queue {
    /// Place of the first packet; `end` is the place after the last packet in its chunk.
    first: u32,
    end: u32,
    /// Next queue of the ring; stale for the last queue.
    next: u32,
    /// Link that brings the packets; `NONE` for the interface of the node.
    from: u32,
}

const INDEX_BITS: u32 = 3;
const _: () = assert!(CHUNK < 1 << INDEX_BITS);

/// Returns the chunk and the index of a place.
#[inline]
fn chunk_of(place: u32) -> (usize, usize) {
    ((place >> INDEX_BITS) as usize, place as usize % (1 << INDEX_BITS))
}

/// Nonempty queues of a channel, in the order in which they send.
#[derive(Clone, Copy)]
pub struct Ring {
    first: u32,
    last: u32,
}

impl Ring {
    pub const EMPTY: Self = Self { first: NONE, last: NONE };

    pub fn is_empty(self) -> bool {
        self.first == NONE
    }
}

pub struct Waiting {
    queues: Vec<Queue>,
    /// A bit for each queue: whether it has packets. This small table stays in the cache, so that a packet that joins
    /// an empty queue waits for no read of `queues`.
    filled: Vec<u64>,
    chunks: Vec<Chunk>,
    /// Start of the list of unused chunks.
    unused: u32,
}

impl Default for Waiting {
    fn default() -> Self {
        Self::new()
    }
}

impl Waiting {
    pub const QUEUE_BYTES: usize = size_of::<Queue>();

    pub fn new() -> Self {
        Self { queues: Vec::new(), filled: Vec::new(), chunks: Vec::new(), unused: NONE }
    }

    /// Adds a queue for the packets of a link, or of the node's own interface.
    pub fn add_queue(&mut self, from: Option<u32>) {
        self.queues.push(Queue { first: 0, end: 0, next: NONE, from: from.unwrap_or(NONE) });
        self.filled.resize(self.queues.len().div_ceil(64), 0);
    }

    pub fn queue_count(&self) -> usize {
        self.queues.len()
    }

    pub fn push(&mut self, ring: &mut Ring, at: u32, packet: Packet) {
        let (word, bit) = (at as usize / 64, 1 << (at % 64));
        if self.filled[word] & bit == 0 {
            self.filled[word] |= bit;
            let first = self.take_chunk() << INDEX_BITS;
            self.put(first, packet);
            let queue = &mut self.queues[at as usize];
            (queue.first, queue.end) = (first, first + 1);
            self.append(ring, at);
            return;
        }
        let mut end = self.queues[at as usize].end;
        let (chunk, index) = chunk_of(end);
        if index == CHUNK {
            let next = self.take_chunk();
            self.chunks[chunk].next = next;
            end = next << INDEX_BITS;
        }
        self.put(end, packet);
        self.queues[at as usize].end = end + 1;
    }

    fn put(&mut self, place: u32, packet: Packet) {
        let (chunk, index) = chunk_of(place);
        self.chunks[chunk].packets[index] = packet;
    }

    /// Removes the next packet of a nonempty ring, and returns it with the link that brought it, if any.
    pub fn pop(&mut self, ring: &mut Ring) -> (Option<u32>, Packet) {
        let at = ring.first;
        let queue = &mut self.queues[at as usize];
        let (used, index) = chunk_of(queue.first);
        let Chunk { packets, next: following } = &self.chunks[used];
        let (packet, from, next) = (packets[index], (queue.from != NONE).then_some(queue.from), queue.next);
        queue.first += 1;
        let is_empty = queue.first == queue.end;
        if is_empty {
            self.filled[at as usize / 64] &= !(1 << (at % 64));
            self.give_chunk(used);
        } else if index + 1 == CHUNK {
            queue.first = following << INDEX_BITS;
            self.give_chunk(used);
        }
        if at != ring.last {
            ring.first = next;
            if !is_empty {
                self.append(ring, at);
            }
        } else if is_empty {
            *ring = Ring::EMPTY;
        }
        (from, packet)
    }

    /// Reads the packet that [`Waiting::pop`] will return, to load it into the cache. The value has no meaning.
    #[inline]
    pub fn read_ahead(&self, ring: Ring) -> u32 {
        let Some(queue) = self.queues.get(ring.first as usize) else { return 0 };
        let (chunk, index) = chunk_of(queue.first);
        self.chunks[chunk].packets[index].message
    }

    /// Appends a queue to a ring as the last to send.
    fn append(&mut self, ring: &mut Ring, at: u32) {
        if ring.is_empty() {
            ring.first = at;
        } else {
            self.queues[ring.last as usize].next = at;
        }
        ring.last = at;
    }

    /// Returns all waiting packets, with their queues.
    #[expect(clippy::cast_possible_truncation, reason = "the hot loop; channels have 32-bit numbers")]
    pub fn all(&self) -> impl Iterator<Item = (u32, Packet)> + '_ {
        let is_filled = |at: usize| self.filled[at / 64] >> (at % 64) & 1 == 1;
        self.queues.iter().enumerate().filter(move |&(at, _)| is_filled(at)).flat_map(move |(at, queue)| {
            let mut place = queue.first;
            std::iter::from_fn(move || {
                if place == queue.end {
                    return None;
                }
                let (chunk, index) = chunk_of(place);
                let Chunk { packets, next } = &self.chunks[chunk];
                let packet = packets[index];
                place += 1;
                if index + 1 == CHUNK && place != queue.end {
                    place = next << INDEX_BITS;
                }
                Some((at as u32, packet))
            })
        })
    }

    #[expect(clippy::cast_possible_truncation, reason = "the hot loop; channels have 32-bit numbers")]
    fn take_chunk(&mut self) -> u32 {
        let chunk = self.unused;
        if chunk == NONE {
            let chunk = self.chunks.len();
            assert!(chunk < 1 << (32 - INDEX_BITS), "too many packets wait");
            self.chunks.push(Chunk { packets: [Packet::NOTHING; CHUNK], next: NONE });
            return chunk as u32;
        }
        self.unused = self.chunks[chunk as usize].next;
        chunk
    }

    #[expect(clippy::cast_possible_truncation, reason = "the hot loop; chunks have 29-bit numbers")]
    fn give_chunk(&mut self, chunk: usize) {
        self.chunks[chunk].next = self.unused;
        self.unused = chunk as u32;
    }
}

const _: () = assert!(size_of::<Chunk>() == 64);
