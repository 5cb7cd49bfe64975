//! Exchanges under way in memory of this process.

use std::{mem, sync::Arc};

use unisono_mpi::{Outcome, Parts};

use crate::{
    layer::MessageLayer,
    memory::{Array, Memory, Room, Rows},
    ways::{library_call::LibraryCall, sums::PairSums},
};

/// The tag of pushes, which are messages of reads without a collective. It distinguishes them from the messages of
/// collectives.
pub const PUSH: i32 = 0;
pub const EXCHANGE: i32 = 1;

/// A set of messages or a collective, with the memory that it uses.
pub struct Exchange<L: MessageLayer> {
    pub begun: Vec<L::Request>,
    pub array: Arc<Array>,
    /// Separate memory for received data, each with its destination in the array.
    pub apart: Vec<(Unpacked, Room)>,
    /// Packed copies outside of the array that are being sent.
    pub kept: Vec<Room>,
    /// The call whose counts the library reads until the collective is complete; None for messages between pairs of
    /// ranks.
    pub call: Option<Arc<LibraryCall>>,
    /// A reduction by messages.
    pub sums: Option<Arc<PairSums>>,
    /// The contributions to `sums`: the one of this rank, and the received ones.
    pub contributions: Vec<Room>,
}

/// The destination of packed data in the array.
pub enum Unpacked {
    Region(Arc<Parts>),
    /// The result of the exchange's collective.
    Result,
}

impl<L: MessageLayer> Exchange<L> {
    pub fn on(array: Arc<Array>) -> Self {
        let (begun, apart, kept, contributions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { begun, array, apart, kept, call: None, sums: None, contributions }
    }

    /// Returns whether all messages, or the collective, are complete.
    pub fn is_over(&mut self, layer: &L) -> Outcome<bool> {
        are_over(&mut self.begun, layer)
    }

    fn parts<'a>(&'a self, places: &'a Unpacked) -> Option<&'a Parts> {
        match places {
            Unpacked::Region(parts) => Some(parts),
            Unpacked::Result => self.call.as_ref().and_then(|call| call.result()),
        }
    }

    /// Unpacks received data to its destinations in the array.
    pub fn finish(&mut self) {
        for (places, mut room) in mem::take(&mut self.apart) {
            if let Some(parts) = self.parts(&places) {
                // SAFETY: the parts were made for this array's layout and the room has their bytes. All messages are
                // complete, and commands that touch the region wait for this exchange.
                unsafe { parts.unpack(self.array.at(0), room.address()) }
            }
        }
    }

    /// Returns the number of bytes that will be unpacked when the exchange ends.
    pub fn bytes_apart(&self) -> usize {
        self.apart.iter().filter_map(|(places, _)| self.parts(places)).map(Parts::packed_bytes).sum()
    }
}

impl<L: MessageLayer> Drop for Exchange<L> {
    fn drop(&mut self) {
        if !self.begun.is_empty() {
            // The memory is leaked on purpose, because the message layer may still use it.
            mem::forget((self.array.clone(), self.call.take(), mem::take(&mut self.apart)));
            mem::forget((mem::take(&mut self.kept), mem::take(&mut self.contributions)));
        }
    }
}

fn are_over<L: MessageLayer>(begun: &mut Vec<L::Request>, layer: &L) -> Outcome<bool> {
    while let Some(last) = begun.last_mut() {
        if !layer.is_over(last)? {
            return Ok(false);
        }
        begun.pop();
    }
    Ok(true)
}

/// A message that is sent from a packed copy.
pub struct Departure<L: MessageLayer> {
    begun: Vec<L::Request>,
    room: Room,
}

impl<L: MessageLayer> Departure<L> {
    pub fn of(room: Room) -> Self {
        Self { begun: Vec::new(), room }
    }

    pub fn address(&mut self) -> *mut u8 {
        self.room.address()
    }

    pub fn begun(&mut self) -> &mut Vec<L::Request> {
        &mut self.begun
    }

    pub fn is_over(&mut self, layer: &L) -> Outcome<bool> {
        are_over(&mut self.begun, layer)
    }
}

impl<L: MessageLayer> Drop for Departure<L> {
    fn drop(&mut self) {
        if !self.begun.is_empty() {
            mem::forget(mem::take(&mut self.room));
        }
    }
}

/// Sends a packed copy of some parts, so that the array may be overwritten immediately.
pub fn push<L: MessageLayer>(memory: &Memory<L>, array: &Array, to: u32, parts: &Parts) -> Outcome<Departure<L>> {
    let mut sent = Departure::of(packed(array, parts));
    // SAFETY: `sent` keeps the memory until all pieces are sent, and nothing writes to it.
    unsafe { memory.send(sent.address(), parts.packed_bytes(), to, PUSH, sent.begun()) }?;
    Ok(sent)
}

fn packed(array: &Array, parts: &Parts) -> Room {
    let mut room = Room::new(parts.packed_bytes());
    // SAFETY: the parts were made for this array's layout, and the room for their bytes; commands that write the region
    // wait for the one that packs it.
    unsafe { parts.pack(array.at(0), room.address()) };
    room
}

/// Starts to receive the data that other ranks push.
pub fn receive_pushed<L: MessageLayer>(memory: &Memory<L>, array: Arc<Array>, rows: &Rows) -> Outcome<Exchange<L>> {
    let mut made = Exchange::on(array);
    receive(memory, &mut made, rows, PUSH)?;
    Ok(made)
}

/// Starts to receive. A contiguous region is received into the array itself, since no other command accesses the region
/// until the exchange is complete.
fn receive<L: MessageLayer>(memory: &Memory<L>, made: &mut Exchange<L>, rows: &Rows, tag: i32) -> Outcome {
    for (from, parts) in rows.iter() {
        let (at, bytes) = match parts.in_place() {
            Some((first, bytes)) => (made.array.at(first), bytes),
            None => {
                let mut room = Room::new(parts.packed_bytes());
                let at = room.address();
                made.apart.push((Unpacked::Region(parts.clone()), room));
                (at, parts.packed_bytes())
            }
        };
        // SAFETY: `at` is a room of this size or a part of the array, kept until the exchange is complete. Commands
        // that touch the region wait for the exchange.
        unsafe { memory.receive(at, bytes, *from, tag, &mut made.begun) }?;
    }
    Ok(())
}

/// Starts a collective that consists of messages between pairs of ranks.
pub fn exchange<L: MessageLayer>(
    memory: &Memory<L>,
    array: Arc<Array>,
    sends: &Rows,
    receives: &Rows,
) -> Outcome<Exchange<L>> {
    let mut made = Exchange::on(array);
    for (to, parts) in sends.iter() {
        let (at, bytes) = match parts.in_place() {
            // A contiguous region is sent from the array itself, because it does not change until the exchange is
            // complete.
            Some((first, bytes)) => (made.array.at(first), bytes),
            None => {
                let mut room = packed(&made.array, parts);
                let at = room.address();
                made.kept.push(room);
                (at, parts.packed_bytes())
            }
        };
        // SAFETY: `at` is a room of this size or a part of the array, kept until the exchange is complete. Commands
        // that write the region wait for the exchange.
        unsafe { memory.send(at, bytes, *to, EXCHANGE, &mut made.begun) }?;
    }
    receive(memory, &mut made, receives, EXCHANGE)?;
    Ok(made)
}
