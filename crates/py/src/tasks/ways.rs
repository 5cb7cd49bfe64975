//! Ways of collectives that need no Python: functions of the MPI library, and messages between pairs.

use std::{ffi::c_int, sync::Arc};

use pyo3::prelude::*;
use unisono_mpi::{Collective, Corners, Function, Layout, Outcome, Parts, Shares, int, library};

use super::{
    exchange::{Exchange, Unpacked},
    memory::{Held, Room, Rows, TaskMemory, layout},
};
use crate::{errors::input, mpi::mpi_error};

/// A box of Python: its first and its last corner.
type PyBox = (Vec<usize>, Vec<usize>);
/// A part, the first element of its enclosing box in packed memory, and that box.
type PyPart = (PyBox, usize, PyBox);
/// Parts, the bytes of packed memory, and the count and the place of each rank.
type PySide = (Vec<PyPart>, usize, Vec<u64>, Vec<u64>);

/// One side of a collective: parts of the array in packed memory.
struct Side {
    parts: Parts,
    bytes: usize,
    counts: Vec<c_int>,
    places: Vec<c_int>,
}

impl Side {
    fn new(layout: &Layout, (rows, bytes, counts, places): PySide) -> PyResult<Self> {
        let mut parts = Parts::default();
        for (part, start, packed) in rows {
            let added = parts.add(layout, &corners(&part)?, start, &corners(&packed)?);
            added.ok_or_else(|| input("a part is not in its box, or the box is not in the array"))?;
        }
        if parts.packed_bytes() > bytes {
            return Err(input(format!("packed memory has {bytes} bytes; the parts need {}", parts.packed_bytes())));
        }
        Ok(Self { parts, bytes, counts: counted(counts)?, places: counted(places)? })
    }

    fn shares(&self, address: *mut u8) -> Shares<'_> {
        Shares { address, counts: &self.counts, places: &self.places, in_place: false }
    }

    /// Returns the end of the last rank's part in elements of the call.
    fn end(&self) -> Option<usize> {
        let rows = self.counts.iter().enumerate().map(|(k, &count)| (self.places.get(k).copied().unwrap_or(0), count));
        rows.map(|(at, count)| usize::try_from(at).ok()?.checked_add(usize::try_from(count).ok()?))
            .try_fold(0, |end, row| Some(end.max(row?)))
    }
}

/// A collective of the MPI library on one array.
pub struct LibraryWay {
    collective: Collective,
    layout: Layout,
    given: Option<Side>,
    got: Option<Side>,
    /// The element that fills packed memory before the parts are packed.
    neutral: Vec<u8>,
    /// Input and result share memory.
    shared: bool,
    /// The first byte of the shared memory in the array, if it is there.
    at: Option<usize>,
    /// The first byte of the result in the array and the places from there, if nothing else reads the array.
    in_place: Option<(usize, Vec<c_int>)>,
}

impl LibraryWay {
    pub fn result(&self) -> Option<&Parts> {
        self.got.as_ref().map(|side| &side.parts)
    }

    fn pack(&self, array: &Held) -> Option<Room> {
        let side = self.given.as_ref()?;
        let mut room = Room::new(side.bytes);
        let to = room.address();
        if !self.neutral.is_empty() {
            for at in (0..side.bytes).step_by(self.neutral.len()) {
                let bytes = self.neutral.len().min(side.bytes - at);
                // SAFETY: the room has this number of bytes, and `at + bytes` is not larger.
                unsafe { std::ptr::copy_nonoverlapping(self.neutral.as_ptr(), to.wrapping_add(at), bytes) };
            }
        }
        // SAFETY: the parts were made for this layout and the room for the side's bytes, which are as many as the parts
        // need. Kernels that write the region wait for this exchange.
        unsafe { side.parts.pack(std::ptr::with_exposed_provenance(array.address), to) };
        Some(room)
    }

    /// Begins this rank's part.
    pub fn begin(self: &Arc<Self>, memory: &TaskMemory, array: Arc<Held>, in_place: bool) -> Outcome<Exchange> {
        let there = |at: usize| std::ptr::with_exposed_provenance_mut(array.address + at);
        let mut made = Exchange::on(array.clone());
        made.way = Some(self.clone());
        let none = Shares::NONE;
        let inside = Shares { in_place: true, ..self.given.as_ref().map_or(none, |side| side.shares(none.address)) };
        let result = self.got.as_ref();
        let (from, to) = if let Some(at) = self.at {
            (inside, result.map_or(none, |side| side.shares(there(at))))
        } else if let (true, Some((at, places)), Some(side)) = (in_place, &self.in_place, result) {
            (inside, Shares { places, ..side.shares(there(*at)) })
        } else if self.shared {
            let mut room = self.pack(&array).unwrap_or_else(|| Room::new(result.map_or(0, |side| side.bytes)));
            let to = result.or(self.given.as_ref()).map_or(none, |side| side.shares(room.address()));
            made.apart.push((Unpacked::Result, room));
            (inside, to)
        } else {
            let from = self.pack(&array).zip(self.given.as_ref()).map_or(none, |(mut room, side)| {
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
        // SAFETY: rooms have the bytes of their sides, and `new` compared those, and the places in the array, with the
        // counts and places. The exchange keeps the array, the rooms and this way with its counts until it is over.
        // Commands that touch the regions wait for it. If the result is in the array, all of it is wanted and nothing
        // else reads the array.
        made.begun.push(unsafe { memory.library.begin_collective(&self.collective, from, to) }?);
        Ok(made)
    }
}

/// A collective of the MPI library on one array of a program.
#[pyclass(frozen, module = "unisono")]
pub struct LibraryCollective(pub Arc<LibraryWay>);

#[pymethods]
impl LibraryCollective {
    /// Makes the collective. `datatype` 0 is that of bytes. `given` and `got` are `(parts, bytes, counts, places)` of
    /// packed memory; a part is `(box, start, enclosing box)`. With `shared` both are one memory, which begins at byte
    /// `at` of the array if given. `in_place` is the first byte of the result in the array, and the places from there.
    #[new]
    #[pyo3(signature = (
        function, comm, shape, element_bytes, *, root=0, datatype=0, op=0, given=None, got=None, neutral=None, shared=false,
        at=None, in_place=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "a call and its memory")]
    fn new(
        function: &str,
        comm: usize,
        shape: Vec<usize>,
        element_bytes: usize,
        root: u32,
        datatype: usize,
        op: usize,
        given: Option<PySide>,
        got: Option<PySide>,
        neutral: Option<Vec<u8>>,
        shared: bool,
        at: Option<usize>,
        in_place: Option<(usize, Vec<u64>)>,
    ) -> PyResult<Self> {
        let Some(library) = library() else { return Err(input("no MPI library is loaded in this process")) };
        let found = Function::ALL.iter().find(|row| row.0 == function);
        let &(_, function) = found.ok_or_else(|| input(format!("'{function}' is no function of a collective")))?;
        let (c, layout) = (&library.constants, layout(&shape, element_bytes)?);
        let (comm, unit) = (c.handle(comm), if datatype == 0 { 1 } else { element_bytes });
        let (ranks, rank) = (library.size(comm).map_err(mpi_error)?, library.rank(comm).map_err(mpi_error)?);
        let given = given.map(|side| Side::new(&layout, side)).transpose()?;
        let got = got.map(|side| Side::new(&layout, side)).transpose()?;
        let in_place = in_place.map(|(at, list)| Ok::<_, PyErr>((at, counted(list)?))).transpose()?;
        let datatype = if datatype == 0 { c.byte } else { c.handle(datatype) };
        let collective = Collective { function, comm, datatype, op: c.handle(op), root: int(root).map_err(mpi_error)? };
        let way =
            LibraryWay { collective, layout, given, got, neutral: neutral.unwrap_or_default(), shared, at, in_place };
        way.check(ranks as usize, root == rank, unit)?;
        Ok(Self(Arc::new(way)))
    }
}

impl LibraryWay {
    /// Compares the memory of both sides with the memory that the library will read and write.
    fn check(&self, ranks: usize, is_root: bool, unit: usize) -> PyResult<()> {
        let function = self.collective.function;
        let bytes = |side: &Side| side.end().and_then(|end| end.checked_mul(unit));
        let whole = self.layout.bytes().unwrap_or(0);
        let sides = [(&self.given, function.divides_input()), (&self.got, function.divides_result())];
        for (side, divides) in sides.into_iter().filter_map(|(side, divides)| Some((side.as_ref()?, divides))) {
            let rows = if divides { ranks } else { 1 };
            let lists = side.counts.len() == rows && (side.places.is_empty() || side.places.len() == rows);
            // If all parts are equal, the count is that of one part.
            let many = match function {
                Function::Allgather => self.got.as_ref().is_some_and(|got| std::ptr::eq(got, side)),
                Function::ReduceScatterBlock => self.given.as_ref().is_some_and(|given| std::ptr::eq(given, side)),
                _ => false,
            };
            let all = bytes(side).and_then(|part| part.checked_mul(if many { ranks } else { 1 }));
            if !lists || all.is_none_or(|all| all > side.bytes) {
                return Err(input("counts and places of a collective do not fit its packed memory"));
            }
        }
        let needs = |given: bool, got: bool| (!given || self.given.is_some()) && (!got || self.got.is_some());
        let complete = match function {
            Function::Allgather
            | Function::Allgatherv
            | Function::Alltoallv
            | Function::ReduceScatter
            | Function::ReduceScatterBlock => needs(true, true),
            Function::Allreduce => needs(true, true) && self.shared,
            Function::Broadcast => needs(false, true) && self.shared,
            Function::Gatherv => needs(true, is_root),
            Function::Reduce => needs(true, is_root) && self.shared == is_root,
            Function::Scatterv => needs(is_root, true),
        };
        let in_array =
            |at: usize, bytes: Option<usize>| bytes.and_then(|b| b.checked_add(at)).is_some_and(|end| end <= whole);
        let fixed = self.at.is_none_or(|at| self.shared && in_array(at, self.got.as_ref().and_then(bytes)));
        let placed = self.in_place.as_ref().is_none_or(|(at, places)| {
            let Some(got) = &self.got else { return false };
            let ends = got.counts.iter().zip(places).map(|(&count, &at)| i64::from(count) + i64::from(at));
            let end = match function {
                Function::Allgather => bytes(got).and_then(|part| part.checked_mul(ranks)),
                _ => ends.max().and_then(|end| usize::try_from(end).ok()).and_then(|end| end.checked_mul(unit)),
            };
            (function == Function::Allgather || places.len() == ranks) && in_array(*at, end)
        });
        if complete && fixed && placed {
            Ok(())
        } else {
            Err(input("a side of a collective is missing or not in its array"))
        }
    }
}

/// Messages between pairs that carry out a collective without a reduction.
#[pyclass(frozen, module = "unisono")]
pub struct PairMessages {
    pub sends: Rows,
    pub receives: Rows,
}

#[pymethods]
impl PairMessages {
    /// Makes messages from the regions of an array to send and to receive, by rank.
    #[new]
    fn new(
        shape: Vec<usize>,
        element_bytes: usize,
        sends: Vec<(u32, Vec<PyBox>)>,
        receives: Vec<(u32, Vec<PyBox>)>,
    ) -> PyResult<Self> {
        let layout = layout(&shape, element_bytes)?;
        let rows = |rows: Vec<(u32, Vec<PyBox>)>| -> PyResult<Rows> {
            let of = |boxes: Vec<PyBox>| {
                let corners = boxes.iter().map(corners).collect::<PyResult<Vec<_>>>()?;
                let parts = Parts::of_region(&layout, corners.into_iter());
                parts.map(Arc::new).ok_or_else(|| input("a region is not in its array"))
            };
            Ok(rows.into_iter().map(|(rank, boxes)| Ok((rank, of(boxes)?))).collect::<PyResult<Vec<_>>>()?.into())
        };
        Ok(Self { sends: rows(sends)?, receives: rows(receives)? })
    }
}

/// Converts numbers to MPI's integers.
fn counted(list: Vec<u64>) -> PyResult<Vec<c_int>> {
    let one =
        |n: u64| int(n).map_err(|_| input(format!("a count or a place is {n}; accepted are up to {}", c_int::MAX)));
    list.into_iter().map(one).collect()
}

/// Returns the corners of a box in three dimensions.
fn corners((low, high): &PyBox) -> PyResult<Corners> {
    let (mut first, mut last) = ([0; 3], [1; 3]);
    if low.len() != high.len() || low.len() > 3 {
        return Err(input("a box has two corners of up to 3 dimensions"));
    }
    first[..low.len()].copy_from_slice(low);
    last[..high.len()].copy_from_slice(high);
    Ok([first, last])
}
