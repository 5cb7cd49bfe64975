//! The program's memory in a call, and its copies without gaps.

use std::borrow::Cow;

use unisono_mpi::{Comm, Datatype, Library, Outcome};

/// A list in the program's memory with one number for each rank: of type `int` or, if `wide` is true, `MPI_Count` or
/// `MPI_Aint`.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    pub address: usize,
    pub wide: bool,
}

impl Numbers {
    /// Returns the rest of the list, from the number of `rank` on.
    pub fn from(self, rank: usize) -> Self {
        let bytes = if self.wide { size_of::<i64>() } else { size_of::<i32>() };
        Self { address: self.address.wrapping_add(rank * bytes), ..self }
    }

    pub fn is_null(self) -> bool {
        self.address == 0
    }

    pub fn at(self, rank: usize) -> i64 {
        let bytes = if self.wide { size_of::<i64>() } else { size_of::<i32>() };
        let at = std::ptr::with_exposed_provenance::<u8>(self.address.wrapping_add(rank * bytes));
        if self.wide {
            // SAFETY: the program passes an array with a number for every rank, as in a call of MPI.
            unsafe { at.cast::<i64>().read_unaligned() }
        } else {
            // SAFETY: as above.
            i64::from(unsafe { at.cast::<i32>().read_unaligned() })
        }
    }
}

/// The counts of a call that has a count for every rank.
#[derive(Clone, Copy, Debug)]
pub struct Vector {
    pub counts: Numbers,
    /// The index of each piece's first element; None if pieces follow each other.
    pub displs: Option<Numbers>,
}

#[derive(Clone, Copy, Debug)]
pub struct Places {
    pub displs: Numbers,
    /// The bytes from the start of one element to the start of the next one.
    pub extent: usize,
}

impl Places {
    pub fn address(&self, first: usize, rank: usize) -> usize {
        // A negative index wraps around, so the sum moves backwards.
        first.wrapping_add(self.extent.wrapping_mul(self.displs.at(rank).cast_unsigned() as usize))
    }

    pub fn are_one_after_the_other(&self, count: i64, ranks: u32) -> bool {
        let first = self.displs.at(0);
        (0..i64::from(ranks)).all(|k| {
            let here = count.checked_mul(k).and_then(|elements| elements.checked_add(first));
            here == Some(self.displs.at(k as usize))
        })
    }
}

/// Elements of one datatype in the program's memory.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    pub address: usize,
    pub count: usize,
    pub datatype: Datatype,
    /// The bytes of all elements without their gaps.
    pub bytes: usize,
    /// True if elements are contiguous, so that no copy is needed.
    pub plain: bool,
    pieces: Option<Pieces>,
}

/// The division of a memory into pieces that are not contiguous, or have unequal lengths.
#[derive(Clone, Copy, Debug)]
struct Pieces {
    place: Place,
    number: usize,
    /// True if the elements of a piece are contiguous.
    plain: bool,
    /// The number of elements of each piece, if pieces may be shorter than their room.
    counts: Option<Numbers>,
    /// The bytes of the only piece, if it is shorter than its room.
    given: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Given(Places),
    /// Pieces follow each other, with this number of bytes from one element to the next.
    Next(usize),
}

impl Memory {
    pub fn new(address: usize, (count, datatype): (usize, Datatype), bytes: usize, plain: bool) -> Self {
        Self { address, count, datatype, bytes, plain, pieces: None }
    }

    /// Returns a memory of equally many elements at another address.
    pub fn at(self, address: usize) -> Self {
        Self { address, ..self }
    }

    /// Returns the same elements with another handle of their datatype.
    pub fn of_type(self, datatype: Datatype) -> Self {
        Self { datatype, ..self }
    }

    /// Returns the same elements as `number` pieces of equal length, with `places` relative to the address `first`.
    pub fn in_pieces(self, first: usize, places: Places, number: usize) -> Self {
        let pieces = Some(Pieces { place: Place::Given(places), number, plain: self.plain, counts: None, given: None });
        Self { address: first, plain: false, pieces, ..self }
    }

    /// Returns the memory as `number` pieces of unequal lengths. The pieces begin at their places (`Ok`), or follow
    /// each other, with the given number of bytes from one element to the next (`Err`).
    pub fn of_counts(self, first: usize, (counts, number): (Numbers, usize), places: Result<Places, usize>) -> Self {
        let place = places.map_or_else(Place::Next, Place::Given);
        let pieces = Some(Pieces { place, number, plain: self.plain, counts: Some(counts), given: None });
        Self { address: first, plain: false, pieces, ..self }
    }

    /// Returns the same elements as memory whose copy has `bytes` bytes. The bytes after the elements are unused.
    pub fn in_room(self, bytes: usize) -> Self {
        let (place, given) = (Place::Next(0), Some(self.bytes));
        let pieces = Some(Pieces { place, number: 1, plain: self.plain, counts: None, given });
        Self { bytes, plain: false, pieces, ..self }
    }

    /// Returns the bytes of a copy that belong to the program, without the unused room of pieces.
    pub fn trimmed<'a>(&self, copy: &'a [u8]) -> Cow<'a, [u8]> {
        match self.pieces.filter(|pieces| pieces.counts.is_some()) {
            Some(pieces) => {
                self.parts(pieces).flat_map(|(before, part)| copy[before..before + part.bytes].to_vec()).collect()
            }
            None => Cow::Borrowed(copy),
        }
    }

    /// Returns whether two memories overlap; false if one has gaps, because the elements of such memory are copied
    /// before or after a call.
    pub fn meets(&self, other: &Self) -> bool {
        let (first, last) = (self.address.max(other.address), |m: &Self| m.address.wrapping_add(m.bytes));
        self.plain && other.plain && first < last(self).min(last(other))
    }

    /// Returns the pieces that are not empty, each with its offset in the copy in bytes.
    fn parts(&self, pieces: Pieces) -> impl Iterator<Item = (usize, Self)> {
        let Pieces { place, number, plain, counts, given } = pieces;
        let (room, bytes, whole) = (self.count / number.max(1), self.bytes / number.max(1), *self);
        let size = bytes.checked_div(room).unwrap_or(0);
        let mut next = whole.address;
        let part = move |k: usize| {
            if let Some(bytes) = given {
                return (0, Self::new(whole.address, (whole.count, whole.datatype), bytes, plain));
            }
            let count = counts.map_or(room, |counts| usize::try_from(counts.at(k)).unwrap_or(0).min(room));
            let address = match place {
                Place::Given(places) => places.address(whole.address, k),
                Place::Next(extent) => {
                    let here = next;
                    next = next.wrapping_add(count.wrapping_mul(extent));
                    here
                }
            };
            (k * bytes, Self::new(address, (count, whole.datatype), count * size, plain))
        };
        (0..number).map(part).filter(|(_, part)| part.bytes > 0)
    }

    /// Copies the program's elements to `to`, without gaps.
    ///
    /// # Errors
    /// Returns errors of the library.
    ///
    /// # Safety
    /// The memory must hold the elements, and `to` must have room for their bytes.
    pub unsafe fn copy_out(&self, library: &Library, to: *mut u8, comm: Comm) -> Outcome {
        let Some(pieces) = self.pieces else {
            // SAFETY: as the caller guarantees.
            return unsafe { self.copy_whole_out(library, to, comm) };
        };
        for (before, part) in self.parts(pieces) {
            // SAFETY: as the caller guarantees.
            unsafe { part.copy_whole_out(library, to.wrapping_add(before), comm)? };
        }
        for (before, bytes) in self.room_left(pieces) {
            // SAFETY: `to` has room for all pieces, of which these bytes are a part.
            unsafe { to.wrapping_add(before).write_bytes(0, bytes) };
        }
        Ok(())
    }

    /// Returns the unused ranges of a copy if pieces have counts: offset and length in bytes. A reduction combines
    /// these bytes too, so they are set to zero, which raises no floating-point exception.
    fn room_left(&self, pieces: Pieces) -> impl Iterator<Item = (usize, usize)> {
        let Pieces { number, counts, .. } = pieces;
        let (room, bytes) = (self.count / number.max(1), self.bytes / number.max(1));
        let size = bytes.checked_div(room).unwrap_or(0);
        counts.into_iter().flat_map(move |counts| {
            (0..number).map(move |k| {
                let used = usize::try_from(counts.at(k)).unwrap_or(0).min(room) * size;
                (k * bytes + used, bytes - used)
            })
        })
    }

    /// Copies as [`Memory::copy_out`] does, for a memory without pieces.
    ///
    /// # Safety
    /// As for [`Memory::copy_out`].
    unsafe fn copy_whole_out(&self, library: &Library, to: *mut u8, comm: Comm) -> Outcome {
        if self.bytes == 0 {
            return Ok(());
        }
        if self.plain {
            let from = std::ptr::with_exposed_provenance::<u8>(self.address);
            // SAFETY: as the caller guarantees.
            unsafe { std::ptr::copy_nonoverlapping(from, to, self.bytes) };
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { library.pack(self.address, self.count, self.datatype, to, self.bytes, comm) }
    }

    /// Copies the bytes at `from`, which have no gaps, to the program's elements.
    ///
    /// # Errors
    /// Returns errors of the library.
    ///
    /// # Safety
    /// Both memories must hold the elements.
    pub unsafe fn copy_in(&self, library: &Library, comm: Comm, from: *const u8) -> Outcome {
        let Some(pieces) = self.pieces else {
            // SAFETY: as the caller guarantees.
            return unsafe { self.copy_whole_in(library, comm, from) };
        };
        for (before, part) in self.parts(pieces) {
            // SAFETY: as the caller guarantees.
            unsafe { part.copy_whole_in(library, comm, from.wrapping_add(before))? };
        }
        Ok(())
    }

    /// Copies as [`Memory::copy_in`] does, for a memory without pieces.
    ///
    /// # Safety
    /// As for [`Memory::copy_in`].
    unsafe fn copy_whole_in(&self, library: &Library, comm: Comm, from: *const u8) -> Outcome {
        if self.bytes == 0 {
            return Ok(());
        }
        if self.plain {
            let to = std::ptr::with_exposed_provenance_mut::<u8>(self.address);
            // SAFETY: as the caller guarantees.
            unsafe { std::ptr::copy_nonoverlapping(from, to, self.bytes) };
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { library.unpack(from, self.bytes, self.address, self.count, self.datatype, comm) }
    }
}
