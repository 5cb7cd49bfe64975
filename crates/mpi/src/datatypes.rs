//! The program's datatypes: their sizes, and copies of their elements without gaps.

use std::ffi::c_int;

use crate::library::{Comm, Datatype, Library, Outcome, check, int};

impl Library {
    /// Returns the bytes from the start of one element to the start of the next one, modulo 2^64.
    pub fn extent(&self, datatype: Datatype) -> Outcome<usize> {
        if let Some(element) = self.constants.element(datatype) {
            return Ok(element.bytes);
        }
        let (_, extent) = self.bounds_of(datatype)?;
        // A negative extent wraps around; a wrapping sum with an address then moves backwards in memory.
        Ok(extent.cast_unsigned())
    }

    /// Returns whether the library packs 0 elements of a datatype. A library may refuse a datatype that was never
    /// committed. `private` must be a communicator on which errors are returned.
    pub fn takes_type(&self, datatype: Datatype, private: Comm) -> bool {
        let (mut word, mut at) = (0u64, 0);
        let word = &raw mut word as usize;
        // SAFETY: no element is read, and only the position is written.
        unsafe { (self.functions.Pack)(word, 0, datatype, word, 8, &raw mut at, private) == 0 }
    }

    /// Copies elements to contiguous bytes, without their gaps.
    ///
    /// # Safety
    /// `from` must hold `count` elements, and `to` must have room for their bytes.
    pub unsafe fn pack(
        &self,
        from: usize,
        count: usize,
        datatype: Datatype,
        to: *mut u8,
        bytes: usize,
        comm: Comm,
    ) -> Outcome {
        let (mut at, count, bytes) = (0, int(count)?, int(bytes)?);
        // SAFETY: as the caller guarantees.
        check(unsafe { (self.functions.Pack)(from, count, datatype, to as usize, bytes, &raw mut at, comm) })
    }

    /// Copies contiguous bytes to elements, which may have gaps.
    ///
    /// # Safety
    /// `to` must have room for `count` elements, and `from` must hold their bytes.
    pub unsafe fn unpack(
        &self,
        from: *const u8,
        bytes: usize,
        to: usize,
        count: usize,
        datatype: Datatype,
        comm: Comm,
    ) -> Outcome {
        let (mut at, count, bytes) = (0, int(count)?, int(bytes)?);
        // SAFETY: as the caller guarantees.
        check(unsafe { (self.functions.Unpack)(from as usize, bytes, &raw mut at, to, count, datatype, comm) })
    }

    /// Returns the bytes of an element, and whether the datatype is predefined and without gaps. The bytes are
    /// `usize::MAX` if their number exceeds an `int`.
    #[inline]
    pub fn layout(&self, datatype: Datatype) -> Outcome<(usize, bool)> {
        match self.constants.element(datatype) {
            Some(element) => Ok((element.bytes, true)),
            None => self.layout_asked(datatype),
        }
    }

    /// Returns the size of an element in bytes, and whether consecutive elements cover memory without gaps. All ranks
    /// of the call must use this datatype. In contrast to [`Library::layout`], a derived datatype may be reported as
    /// free of gaps. A datatype of 0 bytes is reported as having gaps.
    pub fn layout_of_all(&self, datatype: Datatype) -> Outcome<(usize, bool)> {
        let (size, plain) = self.layout(datatype)?;
        if plain {
            return Ok((size, true));
        }
        let (lower, extent) = self.bounds_of(datatype)?;
        let (mut true_lower, mut true_extent) = (0, 0);
        // SAFETY: two addresses are written.
        check(unsafe { (self.functions.Type_get_true_extent)(datatype, &raw mut true_lower, &raw mut true_extent) })?;
        let dense = lower == 0 && true_lower == 0 && usize::try_from(extent) == Ok(size) && true_extent == extent;
        Ok((size, dense && size > 0))
    }

    #[cold]
    fn layout_asked(&self, datatype: Datatype) -> Outcome<(usize, bool)> {
        let mut size = 0;
        // SAFETY: one integer is written.
        check(unsafe { (self.functions.Type_size)(datatype, &raw mut size) })?;
        // A negative size is MPI_UNDEFINED: the element has more bytes than an `int` holds. No plan serves such a call.
        let Ok(size) = usize::try_from(size) else { return Ok((usize::MAX, false)) };
        let (lower, extent) = self.bounds_of(datatype)?;
        let named = self.combiner(datatype)? == self.constants.combiner_named;
        Ok((size, named && lower == 0 && usize::try_from(extent) == Ok(size)))
    }

    /// Returns the combiner that made a datatype. MPICH refuses `MPI_Type_get_envelope` for datatypes whose constructor
    /// has large counts, so the function with large counts is called where the library has it.
    fn combiner(&self, datatype: Datatype) -> Outcome<c_int> {
        let mut combiner = 0;
        let done = if let Some(envelope) = self.functions.Type_get_envelope_c {
            let (mut a, mut b, mut c, mut d) = (0, 0, 0, 0);
            // SAFETY: five numbers are written, each to its own place; an `MPI_Count` has 64 bits.
            unsafe { envelope(datatype, &raw mut a, &raw mut b, &raw mut c, &raw mut d, &raw mut combiner) }
        } else {
            let (mut a, mut b, mut c) = (0, 0, 0);
            // SAFETY: four integers are written, each to its own place.
            unsafe {
                (self.functions.Type_get_envelope)(datatype, &raw mut a, &raw mut b, &raw mut c, &raw mut combiner)
            }
        };
        check(done).map(|()| combiner)
    }

    fn bounds_of(&self, datatype: Datatype) -> Outcome<(isize, isize)> {
        let (mut lower, mut extent) = (0, 0);
        // SAFETY: two addresses are written.
        check(unsafe { (self.functions.Type_get_extent)(datatype, &raw mut lower, &raw mut extent) })?;
        Ok((lower, extent))
    }
}
