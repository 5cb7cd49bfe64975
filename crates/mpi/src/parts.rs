//! Copies of parts of an array of up to three dimensions to packed memory and back.
//!
//! Packed memory holds the parts one after the other, each with its elements in the order of the array. Elements that
//! are contiguous in both memories are copied as one run.

/// A box of elements, from the first corner (included) to the second (excluded); a dimension that an array lacks is
/// `[0, 1)`.
pub type Corners = [[usize; 3]; 2];

/// The extents of an array in elements, and the bytes of an element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    pub shape: [usize; 3],
    pub element_bytes: usize,
}

impl Layout {
    /// Returns the bytes of the array; None if they overflow.
    pub fn bytes(&self) -> Option<usize> {
        volume(self.shape)?.checked_mul(self.element_bytes)
    }
}

/// A two-dimensional grid of equally long runs of contiguous bytes, evenly spaced along each dimension.
#[derive(Clone, Debug)]
pub struct Runs {
    /// The offset of the first byte in the array.
    array: usize,
    /// The offset of the first byte in packed memory.
    packed: usize,
    /// For each dimension of the grid: the number of runs, and the bytes between their starts in the array and in
    /// packed memory.
    outer: [(usize, usize, usize); 2],
    /// The bytes of a run.
    run: usize,
}

/// Copies between an array and packed memory.
#[derive(Clone, Default, Debug)]
pub struct Parts {
    pub rows: Vec<Runs>,
    /// The end of the bytes of the array that the copies touch, as an offset.
    array_end: usize,
    /// The end of the bytes of packed memory that the copies touch, as an offset.
    packed_end: usize,
}

impl Parts {
    /// Returns the copies of a region, whose boxes are packed one after the other; None if a box is not in the array,
    /// or a size overflows.
    pub fn of_region(layout: &Layout, boxes: impl Iterator<Item = Corners>) -> Option<Self> {
        let (mut parts, mut at) = (Self::default(), 0);
        for part in boxes {
            parts.add(layout, &part, at, &part)?;
            at += volume(extents(&part)?)?;
        }
        Some(parts)
    }

    /// Adds the copy of `part` of the box `packed`, which is at element `start` of packed memory. Returns None if the
    /// part is not in the box, the box is not in the array, or a size overflows.
    pub fn add(&mut self, layout: &Layout, part: &Corners, start: usize, packed: &Corners) -> Option<()> {
        let ([low, high], [first, last]) = (part, packed);
        let inside = (0..3).all(|d| first[d] <= low[d] && high[d] <= last[d] && last[d] <= layout.shape[d]);
        let (extent, room, bytes) = (extents(part)?, extents(packed)?, layout.element_bytes);
        let packed_end = start.checked_add(volume(room)?)?.checked_mul(bytes)?;
        if !inside || layout.bytes()? > isize::MAX.cast_unsigned() || packed_end > isize::MAX.cast_unsigned() {
            return None;
        }
        if volume(extent)? == 0 || bytes == 0 {
            return Some(());
        }
        let strides = |shape: [usize; 3]| [shape[1] * shape[2] * bytes, shape[2] * bytes, bytes];
        let (there, here) = (strides(layout.shape), strides(room));
        let offset = |at: &[usize; 3], from: &[usize; 3], strides: [usize; 3]| -> usize {
            (0..3).map(|d| (at[d] - from[d]) * strides[d]).sum()
        };
        let mut runs = Runs {
            array: offset(low, &[0; 3], there),
            packed: start * bytes + offset(low, first, here),
            outer: [(extent[0], there[0], here[0]), (extent[1], there[1], here[1])],
            run: extent[2] * bytes,
        };
        // Runs that are adjacent in both memories become one run.
        for at in [1, 0] {
            let (count, far, near) = runs.outer[at];
            let inner = at == 1 || runs.outer[1].0 == 1;
            if count == 1 || inner && far == runs.run && near == runs.run {
                runs.run *= count;
                runs.outer[at] = (1, 0, 0);
            }
        }
        let length = |strides: fn(&(usize, usize, usize)) -> usize| -> usize {
            runs.outer.iter().map(|row| (row.0 - 1) * strides(row)).sum::<usize>() + runs.run
        };
        self.array_end = self.array_end.max(runs.array + length(|row| row.1));
        self.packed_end = self.packed_end.max(runs.packed + length(|row| row.2));
        self.rows.push(runs);
        Some(())
    }

    /// Returns the size of packed memory that the copies need, in bytes.
    pub fn packed_bytes(&self) -> usize {
        self.packed_end
    }

    /// Returns the bytes of the array up to the last byte touched.
    pub fn array_bytes(&self) -> usize {
        self.array_end
    }

    /// If all parts together are one run that fills packed memory, returns its offset in the array and its number of
    /// bytes.
    pub fn in_place(&self) -> Option<(usize, usize)> {
        match &self.rows[..] {
            [one] if one.run == self.packed_end => Some((one.array, one.run)),
            _ => None,
        }
    }

    /// Copies the parts from an array to packed memory.
    ///
    /// # Safety
    /// The addresses must hold [`Self::array_bytes`] and [`Self::packed_bytes`] bytes, which do not overlap. Meanwhile
    /// nothing else may write to either memory, or read packed memory.
    pub unsafe fn pack(&self, array: *const u8, packed: *mut u8) {
        for row in &self.rows {
            // SAFETY: `add` included the bytes of the row in both ends, which the caller guarantees.
            unsafe { row.copy(array.wrapping_add(row.array), packed.wrapping_add(row.packed), |o| (o.1, o.2)) }
        }
    }

    /// Copies the parts from packed memory to an array.
    ///
    /// # Safety
    /// As for [`Self::pack`], with the array as the memory that is written.
    pub unsafe fn unpack(&self, array: *mut u8, packed: *const u8) {
        for row in &self.rows {
            // SAFETY: as above.
            unsafe { row.copy(packed.wrapping_add(row.packed), array.wrapping_add(row.array), |o| (o.2, o.1)) }
        }
    }
}

impl Runs {
    /// Copies all runs between two memories. `steps` selects the distances of a dimension in the source and in the
    /// target.
    ///
    /// # Safety
    /// Every run must be inside the memory of both addresses, which must not overlap.
    unsafe fn copy(&self, from: *const u8, to: *mut u8, steps: fn(&(usize, usize, usize)) -> (usize, usize)) {
        let [(planes, ..), (lines, ..)] = self.outer;
        let [(far, near), (from_step, to_step)] = self.outer.each_ref().map(steps);
        for plane in 0..planes {
            let (from, to) = (from.wrapping_add(plane * far), to.wrapping_add(plane * near));
            for line in 0..lines {
                let (from, to) = (from.wrapping_add(line * from_step), to.wrapping_add(line * to_step));
                match self.run {
                    // SAFETY: as the caller guarantees; a constant length compiles to one move.
                    8 => unsafe { std::ptr::copy_nonoverlapping(from, to, 8) },
                    // SAFETY: as above.
                    4 => unsafe { std::ptr::copy_nonoverlapping(from, to, 4) },
                    // SAFETY: as above.
                    run => unsafe { std::ptr::copy_nonoverlapping(from, to, run) },
                }
            }
        }
    }
}

pub fn extents([low, high]: &Corners) -> Option<[usize; 3]> {
    let mut extent = [0; 3];
    for d in 0..3 {
        extent[d] = high[d].checked_sub(low[d])?;
    }
    Some(extent)
}

pub fn volume(extent: [usize; 3]) -> Option<usize> {
    extent[0].checked_mul(extent[1])?.checked_mul(extent[2])
}
