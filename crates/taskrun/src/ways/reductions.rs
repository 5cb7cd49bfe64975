//! Reductions to one rank, to all ranks, or of each part to one rank.

use unisono_collective::Kind;
use unisono_discover::{Box3, Pattern, Region};
use unisono_mpi::Function;

use super::{
    Chosen, Tried,
    about::{About, MpiReduction, packed_parts, shared_parts, volume},
    library_call::{LibraryCall, Packing},
    world_call::WorldCall,
};
use crate::error::RunError;

/// Packed partial results. An element to which the rank does not contribute has the value of the neutral element.
struct Partial<'a> {
    boxes: Vec<Box3>,
    size: usize,
    mpi: &'a MpiReduction,
}

impl<'a> Partial<'a> {
    /// Returns the partial results of `boxes`; `None` if MPI lacks the operator for the elements, MPI cannot count the
    /// elements, or messages between pairs of ranks move fewer bytes.
    fn new(about: &About<'a>, boxes: Vec<Box3>) -> Option<Self> {
        let (size, mpi) = (volume(&boxes), about.reducing?.mpi.as_ref()?);
        let bytes = about.layout.element_bytes as u64;
        let serves = about.fits(size) && !about.operation.by_messages(about.sides, bytes);
        serves.then_some(Self { boxes, size, mpi })
    }

    /// Returns a call of the library on the packed partial results; `counts` are the sizes of ranks' parts in elements.
    fn call(
        &self,
        about: &About<'_>,
        function: Function,
        root: u32,
        counts: &[usize],
    ) -> Result<LibraryCall, RunError> {
        let mine = about.given(about.rank);
        let whole = self.boxes == mine.boxes();
        let parts = if whole { packed_parts(&self.boxes, 0) } else { shared_parts(mine.boxes(), &self.boxes, 0) };
        let given = about.packed(parts, self.size, counts, &[])?;
        let neutral = if whole { Vec::new() } else { self.mpi.neutral.clone() };
        let mut call = about.call(function, root, Packing { given, neutral, ..Packing::default() });
        call.arguments.reduction = Some((self.mpi.datatype, self.mpi.op));
        Ok(call)
    }

    /// Returns a reduction to all ranks or to one, in the memory of the partial results.
    fn to_all_or_one(&self, about: &About<'_>) -> Result<LibraryCall, RunError> {
        let all = about.operation.pattern == Pattern::Allreduce;
        let function = if all { Function::Allreduce } else { Function::Reduce };
        let root = about.operation.root.or(about.participants.first().copied()).unwrap_or_default();
        let mut call = self.call(about, function, root, &[self.size])?;
        if all || about.rank == root {
            call.packing.got = about.packed(packed_parts(&self.boxes, 0), self.size, &[self.size], &[])?;
            call.packing.shared = true;
        }
        Ok(call)
    }
}

/// Returns the partial results in the region of the result, which one rank or all ranks get; `None` in the cases of
/// [`Partial::new`].
fn partial<'a>(about: &About<'a>) -> Option<Partial<'a>> {
    let root = about.operation.root.filter(|_| about.operation.pattern == Pattern::Reduce);
    Partial::new(about, about.received(root.unwrap_or(about.rank)).boxes().to_vec())
}

/// Returns a reduction of all ranks' results, to all or to one, if all ranks participate. An allreduce must also be
/// exact, because some schedules add in a different order for each rank.
pub fn world_reduction(about: &About<'_>) -> Tried {
    let kind = if about.operation.pattern == Pattern::Allreduce { Kind::Allreduce } else { Kind::Reduce };
    let Some(partial) = partial(about).filter(|found| about.everyone() && (kind == Kind::Reduce || found.mpi.exact))
    else {
        return Ok(None);
    };
    let library = partial.to_all_or_one(about)?;
    let (count, root, packing) = (partial.size, about.operation.root.unwrap_or(0), library.packing.clone());
    let world = Some(WorldCall { kind, count, combines: true, root, layout: about.layout, packing });
    Ok(Some(Chosen { world, library }))
}

/// Returns the library's reduction among the participants, to all or to one of them, if [`partial`] has results.
pub fn reduction(about: &About<'_>) -> Tried {
    partial(about).map(|partial| partial.to_all_or_one(about).map(Chosen::from)).transpose()
}

/// Returns a reduce-scatter by the library, and each receiver's number of elements. Returns `None` in the cases of
/// [`Partial::new`] and, if `equal` is true, also if the numbers differ.
fn shares(about: &About<'_>, equal: bool) -> Result<Option<(Vec<usize>, LibraryCall)>, RunError> {
    let regions: Vec<Region> = about.participants.iter().map(|&k| about.received(k)).collect();
    let counts: Vec<usize> = regions.iter().map(|region| volume(region.boxes())).collect();
    let boxes = regions.iter().flat_map(|region| region.boxes()).copied().collect();
    if equal && counts.iter().any(|count| *count != counts[0]) {
        return Ok(None);
    }
    let Some(partial) = Partial::new(about, boxes) else { return Ok(None) };
    let wanted = about.received(about.rank);
    let count = volume(wanted.boxes());
    let (function, rows) = match equal {
        true => (Function::ReduceScatterBlock, &counts[..1]),
        false => (Function::ReduceScatter, &counts[..]),
    };
    let mut call = partial.call(about, function, about.rank, rows)?;
    call.packing.got = about.packed(packed_parts(wanted.boxes(), 0), count, &[count], &[])?;
    Ok(Some((counts, call)))
}

/// Returns a reduce-scatter of all ranks, if [`shares`] has one of equal parts.
pub fn world_reduce_scatter(about: &About<'_>) -> Tried {
    let found = if about.everyone() { shares(about, true)? } else { None };
    Ok(found.map(|(counts, library)| {
        let (kind, count, packing) = (Kind::ReduceScatter, counts[0], library.packing.clone());
        let world = Some(WorldCall { kind, count, combines: true, root: 0, layout: about.layout, packing });
        Chosen { world, library }
    }))
}

/// Returns a reduce-scatter of parts of any size to any participants, if [`shares`] has one.
pub fn reduce_scatter(about: &About<'_>) -> Tried {
    Ok(shares(about, false)?.map(|(_, library)| library.into()))
}
