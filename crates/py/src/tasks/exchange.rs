//! Exchanges that are under way in memory of this process.

use std::sync::Arc;

use unisono_mpi::{Begun, Library, Outcome, Parts};

use super::{
    memory::{Held, Room, Rows, TaskMemory, keep_for_good},
    ways::LibraryWay,
};

/// The tag of pushes, which separates them from messages of collectives.
pub const PUSH: i32 = 0;
const EXCHANGE: i32 = 1;

/// Messages or a collective, with the memory that they use.
pub struct Exchange {
    pub begun: Vec<Begun>,
    pub array: Arc<Held>,
    /// Data received in separate memory, and its places in the array.
    pub apart: Vec<(Unpacked, Room)>,
    /// Separate memory from which data is sent.
    pub kept: Vec<Room>,
    /// Keeps the counts that the library reads.
    pub way: Option<Arc<LibraryWay>>,
}

/// The destination of packed data in the array.
pub enum Unpacked {
    Region(Arc<Parts>),
    /// The result of the exchange's collective.
    Result,
}

impl Exchange {
    pub fn on(array: Arc<Held>) -> Self {
        Self { begun: Vec::new(), array, apart: Vec::new(), kept: Vec::new(), way: None }
    }

    /// Returns whether all messages are complete.
    pub fn is_over(&mut self, library: &Library) -> Outcome<bool> {
        while let Some(last) = self.begun.last_mut() {
            if !library.is_over(last)? {
                return Ok(false);
            }
            self.begun.pop();
        }
        Ok(true)
    }

    /// Unpacks received data to its places in the array.
    pub fn finish(&mut self) {
        let array = std::ptr::with_exposed_provenance_mut(self.array.address);
        for (places, mut room) in self.apart.drain(..) {
            let parts = match &places {
                Unpacked::Region(parts) => Some(&**parts),
                Unpacked::Result => self.way.as_ref().and_then(|way| way.result()),
            };
            if let Some(parts) = parts {
                // SAFETY: the parts were made for this array's layout and the room has their bytes. All messages are
                // complete, and commands that touch the region wait for this exchange.
                unsafe { parts.unpack(array, room.address()) }
            }
        }
    }

    /// Returns the bytes that are copied when the exchange ends.
    pub fn bytes_apart(&self) -> usize {
        let bytes = |(places, _): &(Unpacked, Room)| match places {
            Unpacked::Region(parts) => parts.packed_bytes(),
            Unpacked::Result => self.way.as_ref().and_then(|way| way.result()).map_or(0, Parts::packed_bytes),
        };
        self.apart.iter().map(bytes).sum()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.begun.is_empty() {
            keep_for_good((self.array.clone(), std::mem::take(&mut self.apart), std::mem::take(&mut self.kept)));
            keep_for_good(self.way.take());
        }
    }
}

/// A message that is sent from a packed copy.
pub struct Departure {
    begun: Vec<Begun>,
    room: Option<Room>,
}

impl Departure {
    pub fn new(begun: Vec<Begun>, room: Room) -> Self {
        Self { begun, room: Some(room) }
    }

    /// Returns whether the message was sent.
    pub fn is_over(&mut self, library: &Library) -> Outcome<bool> {
        while let Some(last) = self.begun.last_mut() {
            if !library.is_over(last)? {
                return Ok(false);
            }
            self.begun.pop();
        }
        Ok(true)
    }
}

impl Drop for Departure {
    fn drop(&mut self) {
        if !self.begun.is_empty() {
            keep_for_good(self.room.take());
        }
    }
}

/// Sends a packed copy, so that the array can be written at once.
pub fn push(memory: &TaskMemory, array: &Held, to: u32, parts: &Parts) -> Outcome<Departure> {
    let (mut begun, room) = (Vec::new(), packed(array, parts));
    let mut room = room;
    // SAFETY: the departure keeps the room until all pieces are over, and nothing writes to it.
    unsafe { memory.send(room.address().expose_provenance(), parts.packed_bytes(), to, PUSH, &mut begun) }?;
    Ok(Departure::new(begun, room))
}

fn packed(array: &Held, parts: &Parts) -> Room {
    let mut room = Room::new(parts.packed_bytes());
    // SAFETY: the parts were made for this array's layout, and the room for their bytes; commands that write the region
    // wait for the one that packs it.
    unsafe { parts.pack(std::ptr::with_exposed_provenance(array.address), room.address()) };
    room
}

/// Begins to receive. A contiguous region is received in place, since nothing else touches it until the exchange is
/// over.
pub fn receive(memory: &TaskMemory, made: &mut Exchange, rows: &Rows, tag: i32) -> Outcome {
    for (from, parts) in rows.iter() {
        let (at, bytes) = match parts.in_place() {
            Some((first, bytes)) => (made.array.address + first, bytes),
            None => {
                let mut room = Room::new(parts.packed_bytes());
                let at = room.address().expose_provenance();
                made.apart.push((Unpacked::Region(parts.clone()), room));
                (at, parts.packed_bytes())
            }
        };
        // SAFETY: a room of this size, or a part of the array, which the exchange keeps until it is over. Commands that
        // touch the region wait for it.
        unsafe { memory.receive(at, bytes, *from, tag, &mut made.begun) }?;
    }
    Ok(())
}

/// Begins a collective of messages between pairs.
pub fn exchange(memory: &TaskMemory, array: Arc<Held>, sends: &Rows, receives: &Rows) -> Outcome<Exchange> {
    let mut made = Exchange::on(array);
    for (to, parts) in sends.iter() {
        let (at, bytes) = match parts.in_place() {
            // The region does not change until the exchange is over.
            Some((first, bytes)) => (made.array.address + first, bytes),
            None => {
                let mut room = packed(&made.array, parts);
                let at = room.address().expose_provenance();
                made.kept.push(room);
                (at, parts.packed_bytes())
            }
        };
        // SAFETY: a room of this size, or a part of the array, which the exchange keeps until it is over. Commands that
        // write the region wait for it.
        unsafe { memory.send(at, bytes, *to, EXCHANGE, &mut made.begun) }?;
    }
    receive(memory, &mut made, receives, EXCHANGE)?;
    Ok(made)
}
