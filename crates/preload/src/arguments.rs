//! The arguments of a collective call, and its description by properties that are equal on all ranks.

use unisono_collective::Kind;
use unisono_mpi::{Call, Comm, Datatype, Home, Library, OpHandle, Outcome, Reduction};

use crate::{
    memory::{Memory, Places, Vector},
    passed_on::Place,
    settings::settings,
};

/// The arguments of a call, by their names in MPI. An argument that the collective does not have is 0. The buffer of a
/// broadcast is `recv`.
#[derive(Clone, Copy, Debug)]
pub struct Arguments {
    pub kind: Kind,
    pub send: usize,
    pub send_count: i64,
    pub send_type: Datatype,
    pub recv: usize,
    pub recv_count: i64,
    pub recv_type: Datatype,
    pub op: OpHandle,
    pub root: i32,
    pub comm: Comm,
    pub vector: Option<Vector>,
    /// The counter, in the report, of calls of this function that the library makes; None for functions without such a
    /// counter.
    pub place: Option<Place>,
}

/// A collective with the properties that are equal on all ranks, and this rank's memory.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    pub call: Call,
    /// The memory of this rank's input; None if this rank has no input. `output` is None if this rank has no output.
    pub input: Option<Memory>,
    pub output: Option<Memory>,
    /// True if the program passed `MPI_IN_PLACE` for its input, which is then in the output's memory.
    pub in_place: bool,
    /// True if the result is copied to the program's memory after the call.
    pub unpacks: bool,
    /// True if the program's input and output overlap, which MPI forbids. May be false if one of them has gaps.
    pub overlaps: bool,
}

/// A fraction: plans serve unequal counts if their sum is at least this fraction of the largest count times the number
/// of ranks.
const FULL: (i128, i128) = (8, 9);

impl Arguments {
    pub const fn new(kind: Kind, comm: Comm) -> Self {
        Self {
            kind,
            send: 0,
            send_count: 0,
            send_type: 0,
            recv: 0,
            recv_count: 0,
            recv_type: 0,
            op: 0,
            root: 0,
            comm,
            vector: None,
            place: None,
        }
    }

    /// Describes the call. Returns None in two cases: a plan serves the call on no rank; or the call is wrong, and the
    /// library reports its error. Datatypes are tested on the communicator `private`, if it is given.
    ///
    /// # Errors
    /// Returns errors of the library.
    pub fn describe(
        &self,
        library: &Library,
        private: Option<Comm>,
        ranks: u32,
        rank: u32,
    ) -> Outcome<Option<Described>> {
        let Some(vector) = self.vector else { return self.describe_even(library, private, ranks, rank) };
        let Some((count, is_even)) = self.count_of_all(library, vector, ranks)? else { return Ok(None) };
        let mut even = Self { recv_count: count, ..*self };
        if self.kind == Kind::ReduceScatter {
            even.send_count = count;
        }
        if !is_even {
            return even.describe_unlike(library, private, ranks, rank, vector);
        }
        let Some(displs) = vector.displs.filter(|_| self.recv != library.constants.in_place) else {
            return even.describe_even(library, private, ranks, rank);
        };
        let extent = library.extent(library.constants.handle(self.recv_type))?;
        let places = Places { displs, extent };
        if places.are_one_after_the_other(count, ranks) {
            even.recv = places.address(self.recv, 0);
            return even.describe_even(library, private, ranks, rank);
        }
        let described = even.describe_even(library, private, ranks, rank)?;
        Ok(described.map(|mut described| {
            let own = places.address(self.recv, rank as usize);
            described.input = described.input.map(|m| if described.in_place { m.at(own) } else { m });
            described.output = described.output.map(|m| m.in_pieces(self.recv, places, ranks as usize));
            described.unpacks = described.output.is_some_and(|output| output.bytes > 0);
            described.overlaps = false;
            described
        }))
    }

    /// Returns the largest count of all ranks, and true if all counts are equal. For elements of 0 bytes, returns the
    /// first count and true. The result is the same on all ranks. Returns None if the counts differ by more than
    /// [`FULL`] permits, if a count is negative, or if the list or the datatype is null.
    fn count_of_all(&self, library: &Library, vector: Vector, ranks: u32) -> Outcome<Option<(i64, bool)>> {
        let datatype = library.constants.handle(self.recv_type);
        if vector.counts.is_null() || datatype == library.constants.type_null {
            return Ok(None);
        }
        let (size, _) = library.layout(datatype)?;
        let first = vector.counts.at(0);
        if size == 0 || (1..ranks as usize).all(|k| vector.counts.at(k) == first) {
            return Ok(Some((first, true)));
        }
        let counts = || (0..ranks as usize).map(|k| vector.counts.at(k));
        let (most, least) = (counts().max().unwrap_or(0), counts().min().unwrap_or(0));
        let sum: i128 = counts().map(i128::from).sum();
        let fits = least >= 0 && i128::from(most) * i128::from(ranks) * FULL.0 <= sum * FULL.1;
        Ok(fits.then_some((most, false)))
    }

    /// Describes a call with unequal counts as a call in which each rank has the largest count.
    fn describe_unlike(
        &self,
        library: &Library,
        private: Option<Comm>,
        ranks: u32,
        rank: u32,
        vector: Vector,
    ) -> Outcome<Option<Described>> {
        let (c, me) = (&library.constants, rank as usize);
        let in_place = self.send == c.in_place;
        let Some(mut described) = self.describe_even(library, private, ranks, rank)? else { return Ok(None) };
        let datatype = c.handle(self.recv_type);
        let ((size, _), extent) = (library.layout(datatype)?, library.extent(datatype)?);
        let (Some(output), Ok(most)) = (described.output, usize::try_from(self.recv_count)) else { return Ok(None) };
        let Some(room) = most.checked_mul(size) else { return Ok(None) };
        let all = (vector.counts, ranks as usize);
        let own = (vector.counts.from(me), 1);
        described.overlaps = !in_place && self.send == self.recv;
        described.unpacks = true;
        if self.kind == Kind::ReduceScatter {
            let Some(input) = described.input.filter(|_| described.call.reduction.is_some_and(|r| r.op.is_some()))
            else {
                return Ok(None);
            };
            let first = if in_place { self.recv } else { self.send };
            described.input = Some(input.of_counts(first, all, Err(extent)));
            described.output = Some(output.of_counts(self.recv, own, Err(extent)));
            return Ok(Some(described));
        }
        let (Some(displs), Some(input)) = (vector.displs, described.input) else { return Ok(None) };
        let places = Places { displs, extent };
        let given = usize::try_from(vector.counts.at(me)).unwrap_or(0).checked_mul(size);
        described.call.elements = room;
        described.input = if in_place {
            let piece = Memory::new(0, (most, datatype), room, output.plain);
            Some(piece.of_counts(places.address(self.recv, me), own, Err(extent)))
        } else {
            // If a length differs from this rank's count, the call is wrong, and the library reports it.
            Some(input.in_room(room)).filter(|_| given == Some(input.bytes))
        };
        described.output = Some(output.of_counts(self.recv, all, Ok(places)));
        Ok(described.input.is_some().then_some(described))
    }

    fn describe_even(
        &self,
        library: &Library,
        private: Option<Comm>,
        ranks: u32,
        rank: u32,
    ) -> Outcome<Option<Described>> {
        let safe_ops = settings().safe_ops;
        let c = &library.constants;
        let Ok(root) = u32::try_from(self.root) else { return Ok(None) };
        if root >= ranks {
            return Ok(None);
        }
        let (peers, me) = (ranks as usize, rank as usize);
        let reduces = matches!(self.kind, Kind::Allreduce | Kind::Reduce | Kind::ReduceScatter | Kind::Scan);
        let reduction = if reduces {
            let (datatype, op_handle) = (c.handle(self.recv_type), c.handle(self.op));
            let (op, element) = (c.op(op_handle), c.element(datatype));
            let commutes = match op {
                // If the operator is not defined for the type, the call is wrong, and the library reports it. All ranks
                // use the same type, so they all return here.
                Some(op) if element.is_none_or(|element| !element.number.takes(op)) => return Ok(None),
                Some(_) => true,
                None if safe_ops && c.is_users(op_handle) => library.commutes(op_handle)?,
                None => return Ok(None),
            };
            Some(Reduction { op, commutes, op_handle, datatype, element })
        } else {
            None
        };
        let in_place = self.send == c.in_place;
        let is_root = rank == root;
        let has_output = match self.kind {
            Kind::Barrier => false,
            Kind::Gather | Kind::Reduce => is_root,
            // In place, the root's piece is not copied.
            Kind::Scatter => !is_root || self.recv != c.in_place,
            _ => true,
        };
        // A rank with a result must pass its address, and not MPI_IN_PLACE. In a reduce or gather only the root can be
        // in place.
        if (has_output && self.recv == c.in_place) || (in_place && !has_output) {
            return Ok(None);
        }
        let users = reduction.is_some_and(|r| r.op.is_none());
        let memory = |address: usize, count: i64, pieces: usize, datatype: Datatype| -> Outcome<Option<Memory>> {
            let datatype = c.handle(datatype);
            let (size, plain) = match c.element(datatype) {
                Some(element) => (element.bytes, true),
                None if datatype == c.type_null => return Ok(None),
                None if private.is_some_and(|private| !library.takes_type(datatype, private)) => return Ok(None),
                // In a reduction, all ranks use the same datatype. In other collectives, ranks may use different
                // datatypes for the same bytes.
                None if users => library.layout_of_all(datatype)?,
                None => library.layout(datatype)?,
            };
            let count = usize::try_from(count).ok().and_then(|n| n.checked_mul(pieces));
            let bytes = count.and_then(|n| n.checked_mul(size));
            let memory = count.zip(bytes).map(|(count, bytes)| Memory::new(address, (count, datatype), bytes, plain));
            // A null address is an error, which the library reports, unless the datatype contains absolute addresses
            // (MPI_BOTTOM).
            Ok(memory.filter(|m| m.address != 0 || !m.plain || m.bytes == 0))
        };
        let (pieces_in, pieces_out) = match self.kind {
            Kind::Allgather | Kind::Gather => (1, peers),
            Kind::Alltoall => (peers, peers),
            Kind::ReduceScatter | Kind::Scatter => (peers, 1),
            _ => (1, 1),
        };
        let (input, output) = match self.kind {
            Kind::Barrier => (None, None),
            Kind::Broadcast => {
                let Some(all) = memory(self.recv, self.recv_count, 1, self.recv_type)? else { return Ok(None) };
                if is_root { (Some(all), None) } else { (None, Some(all)) }
            }
            Kind::Scatter if !is_root => {
                let Some(piece) = memory(self.recv, self.recv_count, 1, self.recv_type)? else { return Ok(None) };
                (None, Some(piece))
            }
            // Only the root contributes data.
            Kind::Scatter if in_place => return Ok(None),
            _ => {
                let input = if in_place {
                    // The input has the address of the result; in a gather or allgather, it is this rank's piece of the
                    // result.
                    let piece = if matches!(self.kind, Kind::Allgather | Kind::Gather) { me } else { 0 };
                    let count = usize::try_from(self.recv_count).ok().and_then(|count| count.checked_mul(piece));
                    let Some(offset) = count.filter(|_| c.handle(self.recv_type) != c.type_null) else {
                        return Ok(None);
                    };
                    let extent = if offset == 0 { 0 } else { library.extent(c.handle(self.recv_type))? };
                    let address = self.recv.wrapping_add(offset.wrapping_mul(extent));
                    memory(address, self.recv_count, pieces_in, self.recv_type)?
                } else {
                    memory(self.send, self.send_count, pieces_in, self.send_type)?
                };
                let Some(input) = input else { return Ok(None) };
                let output =
                    if has_output { memory(self.recv, self.recv_count, pieces_out, self.recv_type)? } else { None };
                if has_output && output.is_none() {
                    return Ok(None);
                }
                (Some(input), output)
            }
        };
        let (elements, element_bytes) = match (self.kind, reduction, input.or(output)) {
            (Kind::Barrier, ..) | (_, _, None) => (1, 1),
            (_, Some(_), Some(memory)) => {
                // The call is wrong, because a predefined operator does not accept this datatype; the library reports
                // the error.
                if !memory.plain {
                    return Ok(None);
                }
                let count = memory.count / if input.is_some() { pieces_in } else { pieces_out };
                (count, memory.bytes.checked_div(memory.count).unwrap_or(1))
            }
            (_, None, Some(memory)) => (memory.bytes / if input.is_some() { pieces_in } else { pieces_out }, 1),
        };
        let (input_address, output_address) = (std::ptr::null(), std::ptr::null_mut());
        let call = Call {
            kind: self.kind,
            root,
            elements,
            element_bytes,
            reduction,
            input: input_address,
            output: output_address,
            in_place: false,
        };
        let in_place = in_place && input.is_some();
        let overlaps = !in_place && input.zip(output).is_some_and(|(input, output)| input.meets(&output));
        let unpacks = output.is_some_and(|output| !output.plain && output.bytes > 0);
        Ok(Some(Described { call, input, output, in_place, unpacks, overlaps }))
    }
}

impl Arguments {
    /// Returns whether input and output have the same address and the library reports an error for such calls.
    pub fn is_refused_alias(&self, home: &Home, described: &Described) -> bool {
        described.overlaps && self.send == self.recv && home.refuses_alias(self.kind, self.vector.is_some())
    }

    /// Returns whether no plan serves the call because of this rank's arguments. Such arguments are wrong, or name a
    /// datatype that no plan reduces, such as `MPI_OFFSET`. Returns false if this cannot be decided, and for reductions
    /// by operators that are not in [`unisono_mpi::Op`].
    pub fn is_wrong(&self, library: &Library, home: &Home, ranks: u32, rank: u32) -> bool {
        let c = &library.constants;
        let reduces = matches!(self.kind, Kind::Allreduce | Kind::Reduce | Kind::ReduceScatter | Kind::Scan);
        if reduces && c.op(c.handle(self.op)).is_none() {
            return false;
        }
        match self.describe(library, Some(home.comm()), ranks, rank) {
            Ok(Some(described)) => self.is_refused_alias(home, &described),
            // No plan serves a datatype of more bytes than an `int` holds, but the call may be correct.
            Ok(None) => !self.is_huge(library, rank),
            Err(_) => false,
        }
    }

    /// Returns whether a datatype that this rank uses has more bytes than an `int` holds, or cannot be inspected.
    fn is_huge(&self, library: &Library, rank: u32) -> bool {
        let c = &library.constants;
        let is_root = u32::try_from(self.root) == Ok(rank);
        let (sends, receives) = match self.kind {
            Kind::Barrier => (false, false),
            Kind::Gather => (self.send != c.in_place, is_root),
            Kind::Scatter => (is_root, self.recv != c.in_place),
            Kind::Allgather | Kind::Alltoall => (self.send != c.in_place, true),
            _ => (false, true),
        };
        let huge = |datatype: Datatype| {
            let datatype = c.handle(datatype);
            datatype != c.type_null && library.layout(datatype).map_or(true, |(size, _)| size == usize::MAX)
        };
        (sends && huge(self.send_type)) || (receives && huge(self.recv_type))
    }

    /// Estimates the bytes of a call that cannot be described, for the report; 0 if unknown.
    pub fn bytes_guess(&self, library: &Library) -> u64 {
        // In these collectives, only some ranks have a significant count and datatype, so the size is unknown.
        let rooted = matches!(self.kind, Kind::Barrier | Kind::Gather | Kind::Scatter);
        let datatype = library.constants.handle(self.recv_type);
        // The size of a null datatype is not requested, because the library would call the program's error handler. The
        // call itself does so later.
        let none = rooted || datatype == library.constants.type_null;
        let size = if none { 0 } else { library.layout(datatype).map_or(0, |(size, _)| size as u64) };
        if none { 0 } else { size.saturating_mul(u64::try_from(self.recv_count).unwrap_or(0)) }
    }
}
