//! Collectives of the message layer on an array: the memory of input and result, and the start of a call.

use std::{ffi::c_int, sync::Arc};

use unisono_discover::Box3;
use unisono_mpi::{Function, Layout, Outcome, Parts, Shares, int};

use crate::{
    error::RunError,
    exchange::{Exchange, Unpacked},
    layer::MessageLayer,
    memory::{Array, Memory, Room, corners},
};

/// A part of an array in packed memory: its box; the offset in packed memory, in elements, of a box that encloses the
/// part; and the enclosing box.
pub type Part = (Box3, usize, Box3);

/// The input or the result of a collective: parts of the array in packed memory.
#[derive(Clone)]
pub struct Packed {
    pub parts: Parts,
    pub bytes: usize,
    counts: Vec<c_int>,
    places: Vec<c_int>,
}

impl Packed {
    /// Describes packed memory of `bytes` bytes, with the lengths and offsets of ranks' parts.
    ///
    /// # Errors
    /// Returns an error if parts are not in the array or not in packed memory, or if numbers exceed MPI's integers.
    pub fn new(
        layout: &Layout,
        rows: impl IntoIterator<Item = Part>,
        bytes: usize,
        counts: &[usize],
        places: &[usize],
    ) -> Result<Self, RunError> {
        let mut parts = Parts::default();
        for (part, start, packed) in rows {
            let added = corners(&part)
                .zip(corners(&packed))
                .and_then(|(part, packed)| parts.add(layout, &part, start, &packed));
            added.ok_or_else(|| RunError::input("a part is not in its box, or the box is not in the array"))?;
        }
        if parts.packed_bytes() > bytes {
            let needed = parts.packed_bytes();
            return Err(RunError::input(format!("packed memory has {bytes} bytes; the parts need {needed}")));
        }
        Ok(Self { parts, bytes, counts: counted(counts)?, places: counted(places)? })
    }

    fn shares(&self, address: *mut u8) -> Shares<'_> {
        Shares { address, counts: &self.counts, places: &self.places, in_place: false }
    }

    /// Returns the largest end of a rank's part, in elements of the call; `None` if it overflows.
    fn end(&self) -> Option<usize> {
        let rows = self.counts.iter().enumerate().map(|(k, &count)| (self.places.get(k).copied().unwrap_or(0), count));
        rows.map(|(at, count)| usize::try_from(at).ok()?.checked_add(usize::try_from(count).ok()?))
            .try_fold(0, |end, row| Some(end.max(row?)))
    }
}

/// The memory of a collective on one array: packed memory, or offsets in the array itself.
#[derive(Clone, Default)]
pub struct Packing {
    pub given: Option<Packed>,
    pub got: Option<Packed>,
    /// The bytes that are written to packed memory repeatedly, until it is full, before the parts are packed.
    pub neutral: Vec<u8>,
    /// True if input and result share memory.
    pub shared: bool,
    /// The offset of the shared memory in the array in bytes; `None` if this memory is outside of the array.
    pub at: Option<usize>,
    /// The offset of the result in the array in bytes, and the offsets of ranks' parts from there, for calls during
    /// which nothing else accesses the array. If there are no offsets, the parts are equal and consecutive.
    pub in_place: Option<(usize, Vec<c_int>)>,
}

impl Packing {
    /// Packs this rank's input, if it has one. Memory without parts is filled with `neutral`, unless that is empty.
    ///
    /// # Safety
    /// The parts must be of this array's layout. The memory must have the bytes of the input, and nothing else may use
    /// it, nor write the parts, meanwhile.
    pub unsafe fn pack(&self, array: &Array, into: *mut u8) {
        let Some(side) = &self.given else { return };
        for at in (0..side.bytes).step_by(self.neutral.len().max(1)) {
            let bytes = self.neutral.len().min(side.bytes - at);
            if bytes == 0 {
                break;
            }
            // SAFETY: the memory has this number of bytes, and `at + bytes` is not larger.
            unsafe { std::ptr::copy_nonoverlapping(self.neutral.as_ptr(), into.wrapping_add(at), bytes) };
        }
        // SAFETY: as the caller guarantees; the parts need no more bytes than the side has.
        unsafe { side.parts.pack(array.at(0), into) };
    }
}

/// The arguments of a collective that are equal on all ranks, with the host's handles.
#[derive(Clone, Copy, Debug)]
pub struct Arguments {
    pub function: Function,
    pub comm: usize,
    /// The datatype and the operator of a reduction. `None` if elements are bytes.
    pub reduction: Option<(usize, usize)>,
    pub root: u32,
}

/// A collective of the message layer on one array.
#[derive(Clone)]
pub struct LibraryCall {
    pub(crate) arguments: Arguments,
    pub(crate) layout: Layout,
    pub(crate) packing: Packing,
}

impl LibraryCall {
    /// Creates a call, which must pass [`Self::checked`] before it starts.
    pub fn new(arguments: Arguments, layout: Layout, packing: Packing) -> Self {
        Self { arguments, layout, packing }
    }

    pub fn is_in_place(&self) -> bool {
        self.packing.in_place.is_some()
    }

    pub fn result(&self) -> Option<&Parts> {
        self.packing.got.as_ref().map(|side| &side.parts)
    }

    fn pack(&self, array: &Array) -> Option<Room> {
        let mut room = Room::new(self.packing.given.as_ref()?.bytes);
        // SAFETY: the parts were made for this layout and the room for the side's bytes. Kernels that write the region
        // wait for this exchange.
        unsafe { self.packing.pack(array, room.address()) };
        Some(room)
    }

    /// Starts the collective on this rank; with `in_place`, the result is written to the array itself if
    /// [`Packing::in_place`] has an offset there.
    pub fn begin<L: MessageLayer>(
        self: &Arc<Self>,
        memory: &Memory<L>,
        array: Arc<Array>,
        in_place: bool,
    ) -> Outcome<Exchange<L>> {
        let mut made = Exchange::on(array.clone());
        made.call = Some(self.clone());
        let none = Shares::NONE;
        let Packing { given, got, shared, at, in_place: placed, .. } = &self.packing;
        let inside = Shares { in_place: true, ..given.as_ref().map_or(none, |side| side.shares(none.address)) };
        let result = got.as_ref();
        let (from, to) = if let Some(at) = at {
            (inside, result.map_or(none, |side| side.shares(array.at(*at))))
        } else if let (true, Some((at, places)), Some(side)) = (in_place, placed, result) {
            (inside, Shares { places, ..side.shares(array.at(*at)) })
        } else if *shared {
            let mut room = self.pack(&array).unwrap_or_else(|| Room::new(result.map_or(0, |side| side.bytes)));
            let to = result.or(given.as_ref()).map_or(none, |side| side.shares(room.address()));
            made.apart.push((Unpacked::Result, room));
            (inside, to)
        } else {
            let from = self.pack(&array).zip(given.as_ref()).map_or(none, |(mut room, side)| {
                let shares = side.shares(room.address());
                made.kept.push(room);
                shares
            });
            let to = result.map_or(none, |side| {
                let mut room = Room::new(side.bytes);
                let shares = side.shares(room.address());
                made.apart.push((Unpacked::Result, room));
                shares
            });
            (from, to)
        };
        // SAFETY: rooms have the bytes of their sides. `checked` compared these bytes, and the offsets in the array,
        // with the counts and places. The exchange owns the array, the rooms and this call with its counts until it is
        // complete. Commands that touch the regions wait for it. If the result is in the array, all of it is wanted and
        // nothing else reads the array.
        made.begun.push(unsafe { memory.layer.collective(&self.arguments, from, to) }?);
        Ok(made)
    }

    /// Compares the memory of input and result with the bytes that the message layer will access. `unit` is the number
    /// of bytes of an element of the call.
    ///
    /// # Errors
    /// Returns an error if input or result is missing or does not fit.
    pub fn checked(self, ranks: usize, is_root: bool, unit: usize) -> Result<Arc<Self>, RunError> {
        let function = self.arguments.function;
        let Packing { given, got, shared, at, in_place, .. } = &self.packing;
        let bytes = |side: &Packed| side.end().and_then(|end| end.checked_mul(unit));
        let whole = self.layout.bytes().unwrap_or(0);
        let sides = [(given, function.divides_input()), (got, function.divides_result())];
        for (side, divides) in sides.into_iter().filter_map(|(side, divides)| Some((side.as_ref()?, divides))) {
            let rows = if divides { ranks } else { 1 };
            let lists = side.counts.len() == rows && (side.places.is_empty() || side.places.len() == rows);
            // The function has one count, that of a single part, although the memory has a part for each rank.
            let many = match function {
                Function::Allgather => got.as_ref().is_some_and(|got| std::ptr::eq(got, side)),
                Function::ReduceScatterBlock => given.as_ref().is_some_and(|given| std::ptr::eq(given, side)),
                _ => false,
            };
            let all = bytes(side).and_then(|part| part.checked_mul(if many { ranks } else { 1 }));
            if !lists || all.is_none_or(|all| all > side.bytes) {
                return Err(RunError::input("counts and places of a collective do not fit its packed memory"));
            }
        }
        let needs = |input: bool, result: bool| (!input || given.is_some()) && (!result || got.is_some());
        let complete = match function {
            Function::Allgather
            | Function::Allgatherv
            | Function::Alltoallv
            | Function::ReduceScatter
            | Function::ReduceScatterBlock => needs(true, true),
            Function::Allreduce => needs(true, true) && *shared,
            Function::Broadcast => needs(false, true) && *shared,
            Function::Gatherv => needs(true, is_root),
            Function::Reduce => needs(true, is_root) && *shared == is_root,
            Function::Scatterv => needs(is_root, true),
        };
        let in_array =
            |at: usize, bytes: Option<usize>| bytes.and_then(|b| b.checked_add(at)).is_some_and(|end| end <= whole);
        let fixed = at.is_none_or(|at| *shared && in_array(at, got.as_ref().and_then(bytes)));
        let placed = in_place.as_ref().is_none_or(|(at, places)| {
            let Some(got) = got else { return false };
            let ends = got.counts.iter().zip(places).map(|(&count, &at)| i64::from(count) + i64::from(at));
            let end = match function {
                Function::Allgather => bytes(got).and_then(|part| part.checked_mul(ranks)),
                _ => ends.max().and_then(|end| usize::try_from(end).ok()).and_then(|end| end.checked_mul(unit)),
            };
            (function == Function::Allgather || places.len() == ranks) && in_array(*at, end)
        });
        if complete && fixed && placed {
            Ok(Arc::new(self))
        } else {
            Err(RunError::input("a side of a collective is missing or not in its array"))
        }
    }
}

/// Converts numbers to MPI's integers.
///
/// # Errors
/// Returns an error if a number is too large.
pub fn counted(list: &[usize]) -> Result<Vec<c_int>, RunError> {
    let refused = |n| RunError::input(format!("a count or a place is {n}; accepted are up to {}", c_int::MAX));
    list.iter().map(|&n| int(n).map_err(|_| refused(n))).collect()
}
