//! A reduction by messages between pairs of ranks, for operations that neither a plan nor the library supports.
//!
//! `unisono_discover` makes one schedule of the messages of an operation, which predictions use too, proves it, and
//! returns this rank's part. The rank sends and receives in the order of its instructions. When all partial results
//! have arrived, it combines them in the order of the schedule, so that all ranks get the same bits. If tasks had
//! several operators, a message contains the code of each element's operator after the elements.

use std::sync::Arc;

use unisono_discover::{Box3, RankPart};
use unisono_mpi::{Layout, Outcome, Parts};

use super::about::volume;
use crate::{
    error::RunError,
    exchange::{Departure, EXCHANGE, Exchange},
    host::Host,
    layer::MessageLayer,
    memory::{Array, Memory, Room, parts_of},
};

/// A region that is packed in a message, with the number of its elements.
struct Region {
    rank: u32,
    parts: Parts,
    codes: Option<Parts>,
    elements: usize,
}

/// One box of a contribution.
struct Piece {
    /// 0 for this rank's own contribution, else the index of a received message, from 1 on.
    source: usize,
    part: Box3,
    places: Parts,
    /// The index of the piece's first element in the contribution.
    start: usize,
    /// True for the first contribution to its box, which is copied. Later ones are combined with the result so far.
    first: bool,
}

pub struct PairSums {
    own: Region,
    sends: Vec<Region>,
    receives: Vec<Region>,
    pieces: Vec<Piece>,
    element_bytes: usize,
}

impl PairSums {
    /// Creates the reduction of an array from this rank's part in the proved schedule.
    ///
    /// # Errors
    /// Returns an error if a region is not in the array.
    pub fn new(layout: &Layout, part: &RankPart, rank: u32, coded: bool) -> Result<Self, RunError> {
        let of_codes = Layout { element_bytes: 1, ..*layout };
        let region = |rank: u32, boxes: &[Box3]| {
            let codes = coded.then(|| parts_of(&of_codes, boxes)).transpose()?;
            Ok(Region { rank, parts: parts_of(layout, boxes)?, codes, elements: volume(boxes) })
        };
        let regions = |rows: &[(u32, Vec<Box3>)]| {
            rows.iter().map(|(rank, boxes)| region(*rank, boxes)).collect::<Result<Vec<_>, RunError>>()
        };
        let mut pieces = Vec::new();
        // If the first contribution is this rank's own, no copy is needed, because the array is both input and output.
        let mut own = Vec::new();
        for row in &part.pieces {
            let source = part.receives.iter().position(|(from, _)| *from == row.from).map_or(0, |at| at + 1);
            let mut start = usize::try_from(row.start).unwrap_or(usize::MAX);
            if row.from == rank {
                if row.first {
                    continue;
                }
                start = volume(&own);
                own.extend(&row.boxes);
            }
            for part in &row.boxes {
                let places = parts_of(layout, &[*part])?;
                pieces.push(Piece { source, part: *part, places, start, first: row.first });
                start += volume(&[*part]);
            }
        }
        let (sends, receives) = (regions(&part.sends)?, regions(&part.receives)?);
        Ok(Self { own: region(rank, &own)?, sends, receives, pieces, element_bytes: layout.element_bytes })
    }

    fn bytes(&self, region: &Region) -> usize {
        region.elements * (self.element_bytes + usize::from(region.codes.is_some()))
    }

    /// Packs a region, and the codes after its elements.
    fn packed(&self, region: &Region, array: &Array, codes: Option<&Array>) -> Room {
        let mut room = Room::new(self.bytes(region));
        // SAFETY: the parts were made for this layout and the room for their bytes. Commands that write the region wait
        // for this exchange.
        unsafe { region.parts.pack(array.at(0), room.address()) };
        if let Some((parts, codes)) = region.codes.as_ref().zip(codes) {
            let behind = room.address().wrapping_add(region.elements * self.element_bytes);
            // SAFETY: as above, for the codes, which have one byte an element behind the elements.
            unsafe { parts.pack(codes.at(0), behind) };
        }
        room
    }

    /// Starts to send copies of this rank's partial results, and to receive those of other ranks. Returns the sends
    /// separately, because no later command waits for them.
    ///
    /// # Errors
    /// Returns the errors of the message layer.
    pub fn begin<L: MessageLayer>(
        self: &Arc<Self>,
        memory: &Memory<L>,
        array: Arc<Array>,
        codes: Option<&Array>,
    ) -> Outcome<(Exchange<L>, Vec<Departure<L>>)> {
        let mut departures = Vec::new();
        for region in &self.sends {
            let mut sent = Departure::of(self.packed(region, &array, codes));
            // SAFETY: `sent` keeps the memory until all pieces are sent, and nothing writes to it.
            unsafe { memory.send(sent.address(), self.bytes(region), region.rank, EXCHANGE, sent.begun()) }?;
            departures.push(sent);
        }
        let own = self.packed(&self.own, &array, codes);
        let mut made = Exchange::on(array);
        made.contributions.push(own);
        made.sums = Some(self.clone());
        for region in &self.receives {
            let (mut room, bytes) = (Room::new(self.bytes(region)), self.bytes(region));
            let into = room.address();
            made.contributions.push(room);
            // SAFETY: the exchange keeps the room until it is complete, and nothing else uses the room.
            unsafe { memory.receive(into, bytes, region.rank, EXCHANGE, &mut made.begun) }?;
        }
        Ok((made, departures))
    }

    /// Copies the first contribution to each element, and lets the host combine later ones with it.
    ///
    /// # Errors
    /// Returns the errors of the host.
    pub fn combine<H: Host>(&self, host: &H, number: usize, array: &Array, rooms: &mut [Room]) -> Result<(), H::Error> {
        for piece in &self.pieces {
            let region = if piece.source == 0 { &self.own } else { &self.receives[piece.source - 1] };
            let (room, size) = (rooms[piece.source].address(), self.element_bytes);
            let (values, count) = (room.wrapping_add(piece.start * size), volume(&[piece.part]));
            if piece.first {
                // SAFETY: the contribution has the elements of the piece. All messages are complete, and commands that
                // touch the region wait for this exchange.
                unsafe { piece.places.unpack(array.at(0), values) };
                continue;
            }
            // SAFETY: as above; nothing writes the room any more.
            let values = unsafe { std::slice::from_raw_parts(values, count * size) };
            let codes = region.codes.is_some().then(|| {
                let at = room.wrapping_add(region.elements * size + piece.start);
                // SAFETY: as above; the codes are behind the elements.
                unsafe { std::slice::from_raw_parts(at, count) }
            });
            host.combine(number, &piece.part, values, codes)?;
        }
        Ok(())
    }
}
