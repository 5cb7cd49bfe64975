//! The program's memory in a call, and its copies without gaps.

use std::borrow::Cow;

use unisono_mpi::{Comm, Datatype, Library, Outcome};

/// Numbers of all ranks in the program's memory: `int`, or `MPI_Count` and `MPI_Aint`.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    pub address: usize,
    pub wide: bool,
}

impl Numbers {
    /// The numbers from a rank on.
    pub fn from(self, rank: usize) -> Self {
        let bytes = if self.wide { size_of::<i64>() } else { size_of::<i32>() };
        Self { address: self.address.wrapping_add(rank * bytes), ..self }
    }

    pub fn is_null(self) -> bool {
        self.address == 0
    }

    /// The number of a rank of the communicator.
    pub fn at(self, rank: usize) -> i64 {
        let bytes = if self.wide { size_of::<i64>() } else { size_of::<i32>() };
        let at = std::ptr::with_exposed_provenance::<u8>(self.address.wrapping_add(rank * bytes));
        if self.wide {
            // SAFETY: the program gives an array with a number of every rank, as in a call of MPI.
            unsafe { at.cast::<i64>().read_unaligned() }
        } else {
            // SAFETY: as above.
            i64::from(unsafe { at.cast::<i32>().read_unaligned() })
        }
    }
}

/// What a call with a count for every rank has in place of one count.
#[derive(Clone, Copy, Debug)]
pub struct Vector {
    pub counts: Numbers,
    /// Where the pieces of the ranks begin, in elements.
    pub displs: Option<Numbers>,
}

/// Where the pieces of the ranks lie.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    pub displs: Numbers,
    /// Bytes from one element to the next.
    pub extent: usize,
}

impl Places {
    pub fn address(&self, first: usize, rank: usize) -> usize {
        // A negative number goes backwards, as sums of addresses that wrap do.
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
    /// Bytes without gaps.
    pub bytes: usize,
    /// Whether it lies in memory as it is sent.
    pub plain: bool,
    pieces: Option<Pieces>,
}

/// The pieces of memory that do not lie one after the other, or have unlike lengths.
#[derive(Clone, Copy, Debug)]
struct Pieces {
    place: Place,
    number: usize,
    /// Whether a piece lies in memory as it is sent.
    plain: bool,
    /// Elements of the first pieces, where they are fewer than there is room for.
    counts: Option<Numbers>,
    /// Bytes of the only piece, where they are fewer than there is room for.
    given: Option<usize>,
}

/// Where a piece begins.
#[derive(Clone, Copy, Debug)]
enum Place {
    Given(Places),
    /// One after the other, with so many bytes from one element to the next.
    Next(usize),
}

impl Memory {
    pub fn new(address: usize, (count, datatype): (usize, Datatype), bytes: usize, plain: bool) -> Self {
        Self { address, count, datatype, bytes, plain, pieces: None }
    }

    /// As many elements at another address.
    pub fn at(self, address: usize) -> Self {
        Self { address, ..self }
    }

    /// The same elements by another handle of their datatype.
    pub fn of_type(self, datatype: Datatype) -> Self {
        Self { datatype, ..self }
    }

    /// The same elements as so many pieces of equal length, whose places count from `first`.
    pub fn in_pieces(self, first: usize, places: Places, number: usize) -> Self {
        let pieces = Some(Pieces { place: Place::Given(places), number, plain: self.plain, counts: None, given: None });
        Self { address: first, plain: false, pieces, ..self }
    }

    /// The same room for pieces of unlike lengths, which begin at their places, or one after the other, with so many
    /// bytes from one element to the next.
    pub fn of_counts(self, first: usize, (counts, number): (Numbers, usize), places: Result<Places, usize>) -> Self {
        let place = places.map_or_else(Place::Next, Place::Given);
        let pieces = Some(Pieces { place, number, plain: self.plain, counts: Some(counts), given: None });
        Self { address: first, plain: false, pieces, ..self }
    }

    /// The same elements in a copy with room for more bytes, of which the last mean nothing.
    pub fn in_room(self, bytes: usize) -> Self {
        let (place, given) = (Place::Next(0), Some(self.bytes));
        let pieces = Some(Pieces { place, number: 1, plain: self.plain, counts: None, given });
        Self { bytes, plain: false, pieces, ..self }
    }

    /// Bytes that are the program's, of those of a copy: without what fills room for longer pieces.
    pub fn trimmed<'a>(&self, copy: &'a [u8]) -> Cow<'a, [u8]> {
        match self.pieces.filter(|pieces| pieces.counts.is_some()) {
            Some(pieces) => {
                self.parts(pieces).flat_map(|(before, part)| copy[before..before + part.bytes].to_vec()).collect()
            }
            None => Cow::Borrowed(copy),
        }
    }

    /// Whether two pieces of memory without gaps have bytes in common. Others are copied before a call and after it.
    pub fn meets(&self, other: &Self) -> bool {
        let (first, last) = (self.address.max(other.address), |m: &Self| m.address.wrapping_add(m.bytes));
        self.plain && other.plain && first < last(self).min(last(other))
    }

    /// Its pieces, each with the bytes before it, without those of no bytes.
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

    /// Copies what the program holds, without gaps.
    ///
    /// # Errors
    /// Those of the library.
    ///
    /// # Safety
    /// It holds so many elements, and `to` their bytes.
    pub unsafe fn copy_out(&self, library: &Library, to: *mut u8, comm: Comm) -> Outcome {
        let Some(pieces) = self.pieces else {
            // SAFETY: as the caller promises.
            return unsafe { self.copy_whole_out(library, to, comm) };
        };
        for (before, part) in self.parts(pieces) {
            // SAFETY: as the caller promises.
            unsafe { part.copy_whole_out(library, to.wrapping_add(before), comm)? };
        }
        for (before, bytes) in self.room_left(pieces) {
            // SAFETY: `to` has room for all pieces, of which these bytes are a part.
            unsafe { to.wrapping_add(before).write_bytes(0, bytes) };
        }
        Ok(())
    }

    /// The bytes of a copy that no element fills, each with the bytes before them. They are combined like the others,
    /// and zeros raise no floating-point exception, which a program may have asked to be ended by.
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

    /// As [`Memory::copy_out`], without pieces.
    ///
    /// # Safety
    /// As for [`Memory::copy_out`].
    unsafe fn copy_whole_out(&self, library: &Library, to: *mut u8, comm: Comm) -> Outcome {
        if self.bytes == 0 {
            return Ok(());
        }
        if self.plain {
            let from = std::ptr::with_exposed_provenance::<u8>(self.address);
            // SAFETY: as the caller promises.
            unsafe { std::ptr::copy_nonoverlapping(from, to, self.bytes) };
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { library.pack(self.address, self.count, self.datatype, to, self.bytes, comm) }
    }

    /// Puts bytes without gaps where the program has its elements.
    ///
    /// # Errors
    /// Those of the library.
    ///
    /// # Safety
    /// Both hold so many elements.
    pub unsafe fn copy_in(&self, library: &Library, comm: Comm, from: *const u8) -> Outcome {
        let Some(pieces) = self.pieces else {
            // SAFETY: as the caller promises.
            return unsafe { self.copy_whole_in(library, comm, from) };
        };
        for (before, part) in self.parts(pieces) {
            // SAFETY: as the caller promises.
            unsafe { part.copy_whole_in(library, comm, from.wrapping_add(before))? };
        }
        Ok(())
    }

    /// As [`Memory::copy_in`], without pieces.
    ///
    /// # Safety
    /// As for [`Memory::copy_in`].
    unsafe fn copy_whole_in(&self, library: &Library, comm: Comm, from: *const u8) -> Outcome {
        if self.bytes == 0 {
            return Ok(());
        }
        if self.plain {
            let to = std::ptr::with_exposed_provenance_mut::<u8>(self.address);
            // SAFETY: as the caller promises.
            unsafe { std::ptr::copy_nonoverlapping(from, to, self.bytes) };
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { library.unpack(from, self.bytes, self.address, self.count, self.datatype, comm) }
    }
}
