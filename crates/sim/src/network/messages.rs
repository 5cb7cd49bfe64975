//! The messages in transit: a table for the interfaces that send them, and a table for their arriving packets.
//!
//! An arriving packet changes only its message's entry in the second table. Such an entry has 16 bytes, so that an
//! all-to-all, in which every rank has thousands of messages in transit, touches few cache lines.

pub(super) const NONE: u32 = u32::MAX;

/// Fields of a message that the sender's interface reads and changes.
#[derive(Clone, Copy)]
pub(super) struct Sending {
    /// Task id of the send.
    pub id: u32,
    pub from: u32,
    pub to: u32,
    /// Number of packets not made yet.
    pub unmade: u32,
    pub last_bytes: u32,
    /// Next message in the queue of the interface.
    pub next: u32,
    /// Class of the last packet's length ([`super::packet::Lengths`]).
    pub length: u8,
}

/// Fields of a message that arriving packets change.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Arriving {
    /// Latest time at which the tail of a packet arrived.
    latest: u64,
    /// Number of packets that have not arrived; in an unused entry, the number of the next unused one.
    missing: u32,
    /// Task id of the send.
    id: u32,
}

pub(super) struct Messages {
    sending: Vec<Sending>,
    arriving: Vec<Arriving>,
    /// Start of the list of unused entries.
    unused: u32,
    /// Upper bits that all numbers of these messages have, above the index in the tables.
    base: u32,
}

/// Number of low bits of a message's number that are its index in the tables.
pub(super) const PLACE_BITS: u32 = 26;

impl Messages {
    /// Bytes of a message in both tables.
    pub const BYTES: usize = size_of::<Sending>() + size_of::<Arriving>();

    pub fn new() -> Self {
        Self { sending: Vec::new(), arriving: Vec::new(), unused: NONE, base: 0 }
    }

    /// Creates the table of one of several regions, each of which has fewer than 2^[`PLACE_BITS`] messages.
    pub fn of_region(region: u32) -> Self {
        Self { base: region << PLACE_BITS, ..Self::new() }
    }

    /// Returns whether another region assigned this number.
    #[inline]
    pub fn is_foreign(&self, at: u32) -> bool {
        (at ^ self.base) >> PLACE_BITS != 0
    }

    /// Adds a message, and returns its number.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a send has at most one message, and sends have 32-bit numbers"
    )]
    pub fn add(&mut self, time: u64, message: Sending) -> u32 {
        let arriving = Arriving { latest: time, missing: message.unmade, id: message.id };
        if self.unused == NONE {
            self.sending.push(message);
            self.arriving.push(arriving);
            return self.base + self.sending.len() as u32 - 1;
        }
        let at = self.unused;
        self.unused = self.arriving[(at - self.base) as usize].missing;
        self.sending[(at - self.base) as usize] = message;
        self.arriving[(at - self.base) as usize] = arriving;
        at
    }

    #[inline]
    pub fn sending(&self, at: u32) -> &Sending {
        &self.sending[(at - self.base) as usize]
    }

    #[inline]
    pub fn sending_mut(&mut self, at: u32) -> &mut Sending {
        &mut self.sending[(at - self.base) as usize]
    }

    /// Records that a packet's tail arrives at `time`; after the last one, returns the message's arrival time.
    #[inline]
    pub fn arrive(&mut self, at: u32, time: u64) -> Option<u64> {
        let message = &mut self.arriving[(at - self.base) as usize];
        message.latest = message.latest.max(time);
        message.missing -= 1;
        (message.missing == 0).then_some(message.latest)
    }

    /// Reads the count that [`Messages::arrive`] will change, to load it into the cache. The value has no meaning.
    #[inline]
    pub fn read_ahead(&self, at: u32) -> u32 {
        // The message may belong to another region.
        self.arriving.get(at.wrapping_sub(self.base) as usize).map_or(0, |message| message.missing)
    }

    /// Frees the number of a message that has arrived, and returns the task id of its send.
    pub fn remove(&mut self, at: u32) -> u32 {
        let message = &mut self.arriving[(at - self.base) as usize];
        message.missing = std::mem::replace(&mut self.unused, at);
        message.id
    }
}
