//! All-gathers, gathers and broadcasts: the same parts for every receiver, from all participants or from one.

use std::ffi::c_int;

use unisono_collective::Kind;
use unisono_discover::Region;
use unisono_mpi::Function;

use super::{
    Chosen, Tried,
    about::{About, packed_parts, shared_parts, volume},
    library_call::{LibraryCall, Packing, Part, counted},
    world_call::WorldCall,
};
use crate::{error::RunError, memory::parts_of};

/// Returns the offset of a region in the array in bytes; `None` if the region is empty or not contiguous.
fn interval(about: &About<'_>, region: &Region) -> Result<Option<usize>, RunError> {
    Ok(parts_of(&about.layout, region.boxes())?.in_place().map(|(first, _)| first))
}

/// The parts of all participants, which a gather collects on all of them or on one.
struct Parts {
    regions: Vec<Region>,
    /// The number of elements of each part.
    counts: Vec<usize>,
    /// The offset of each part, and the end, in packed elements.
    starts: Vec<usize>,
    mine: Region,
    wanted: Vec<(u32, Region)>,
    /// The offset of each part in the array in bytes; `None` if parts are packed.
    places: Option<Vec<usize>>,
}

impl Parts {
    fn new(about: &About<'_>) -> Result<Self, RunError> {
        let regions: Vec<Region> = about.participants.iter().map(|&k| about.given(k)).collect();
        let counts: Vec<usize> = regions.iter().map(|region| volume(region.boxes())).collect();
        let mut starts = vec![0];
        starts.extend(counts.iter().scan(0, |at, count| {
            *at += count;
            Some(*at)
        }));
        let (wanted, mine) = (about.receives(), about.given(about.rank));
        // Parts may be received into the array itself if each part is contiguous and all its elements are wanted; a
        // kernel may write unwanted elements at the same time. This rank's own part is also in the array, which the
        // message layer may access during the call. The function is therefore used only for arrays that nothing else
        // accesses.
        let is_wanted = |(k, region): (&u32, &Region)| {
            let found = wanted.iter().find(|row| row.0 == *k).map_or(&[][..], |row| row.1.boxes());
            *k == about.rank || found == region.boxes()
        };
        let mut places = Vec::new();
        if about.participants.iter().zip(&regions).all(is_wanted) {
            for region in &regions {
                let found = interval(about, region)?.or(region.is_empty().then_some(0));
                places.extend(found);
            }
        }
        let places = Some(places).filter(|places| places.len() == regions.len());
        Ok(Self { regions, counts, starts, mine, wanted, places })
    }

    fn all(&self) -> usize {
        self.starts[self.counts.len()]
    }

    /// Returns the wanted elements of all participants' parts, which are packed in the order of participants.
    fn got(&self, about: &About<'_>) -> Vec<Part> {
        let rows = about.participants.iter().zip(&self.regions).zip(&self.starts);
        let of = |((k, region), start): ((&u32, &Region), &usize)| {
            let wanted = self.wanted.iter().find(|row| row.0 == *k)?;
            Some(shared_parts(wanted.1.boxes(), region.boxes(), *start))
        };
        rows.filter_map(of).flatten().collect()
    }

    fn given(&self, about: &About<'_>) -> Result<Packing, RunError> {
        let given = about.one(packed_parts(self.mine.boxes(), 0), volume(self.mine.boxes()))?;
        Ok(Packing { given, ..Packing::default() })
    }
}

/// Returns an all-gather of all ranks, if their parts have equal sizes and MPI can count the bytes.
pub fn world_allgather(about: &About<'_>) -> Tried {
    let parts = Parts::new(about)?;
    let equal = parts.counts.iter().all(|count| *count == parts.counts[0]) && about.operation.root.is_none();
    if !about.everyone() || !equal || !about.fits(parts.all()) {
        return Ok(None);
    }
    let count = about.bytes(parts.counts[0]);
    let in_row = |places: &Vec<usize>| {
        let follows = |(at, start): (&usize, &usize)| *at == places[0] + about.bytes(*start);
        places.iter().zip(&parts.starts).all(follows).then(|| (places[0], Vec::<c_int>::new()))
    };
    let packing = Packing {
        got: about.packed(parts.got(about), parts.all(), &[count], &[])?,
        in_place: parts.places.as_ref().and_then(in_row),
        ..parts.given(about)?
    };
    let library = about.call(Function::Allgather, about.rank, packing.clone());
    let (kind, layout) = (Kind::Allgather, about.layout);
    let world = Some(WorldCall { kind, count, combines: false, root: 0, layout, packing });
    Ok(Some(Chosen { world, library }))
}

/// Returns a gather of parts of any size, to all or to one, if MPI can count the parts.
pub fn gather(about: &About<'_>) -> Tried {
    let (parts, root) = (Parts::new(about)?, about.operation.root);
    if !about.fits(parts.all()) {
        return Ok(None);
    }
    let mut packing = parts.given(about)?;
    if root.is_none_or(|root| root == about.rank) {
        let bytes = |elements: &[usize]| elements.iter().map(|&n| about.bytes(n)).collect::<Vec<_>>();
        let (counts, starts) = (bytes(&parts.counts), bytes(&parts.starts[..parts.counts.len()]));
        packing.got = about.packed(parts.got(about), parts.all(), &counts, &starts)?;
        packing.in_place = parts.places.as_ref().filter(|_| parts.all() > 0).and_then(|at| in_place(at, &counts));
    }
    let function = if root.is_none() { Function::Allgatherv } else { Function::Gatherv };
    Ok(Some(about.call(function, root.unwrap_or(about.rank), packing).into()))
}

/// Returns the first offset of all parts in the array, and their offsets from it, in bytes; `None` if all parts are
/// empty, or the offsets exceed MPI's integers.
fn in_place(places: &[usize], counts: &[usize]) -> Option<(usize, Vec<c_int>)> {
    let used = || places.iter().zip(counts).filter(|(_, count)| **count > 0);
    let (base, end) = (used().map(|row| *row.0).min()?, used().map(|(at, count)| at + count).max()?);
    c_int::try_from(end - base).ok()?;
    let offsets: Vec<usize> = places.iter().zip(counts).map(|(at, &n)| if n > 0 { at - base } else { 0 }).collect();
    Some((base, counted(&offsets).ok()?))
}

/// Returns the library's broadcast, with the root and the number of elements; `None` without a root, or if MPI cannot
/// count the bytes.
fn of_root(about: &About<'_>) -> Result<Option<(u32, usize, LibraryCall)>, RunError> {
    let Some(root) = about.operation.root else { return Ok(None) };
    let (region, wanted, is_root) = (about.given(root), about.received(about.rank), about.rank == root);
    let size = volume(region.boxes());
    if !about.fits(size) {
        return Ok(None);
    }
    // No task writes the root's region before the exchange is complete.
    let at = if is_root || wanted == region { interval(about, &region)? } else { None };
    let mut packing = Packing { shared: true, at, ..Packing::default() };
    let unpacked = is_root || at.is_some();
    let parts = if unpacked { Vec::new() } else { shared_parts(wanted.boxes(), region.boxes(), 0) };
    packing.got = about.one(parts, size)?;
    if is_root && at.is_none() {
        packing.given = about.one(packed_parts(region.boxes(), 0), size)?;
    }
    Ok(Some((root, size, about.call(Function::Broadcast, root, packing))))
}

/// Returns the broadcast of [`of_root`], if there is one and all ranks participate.
pub fn world_broadcast(about: &About<'_>) -> Tried {
    let found = if about.everyone() { of_root(about)? } else { None };
    Ok(found.map(|(root, size, library)| {
        let (kind, count, packing) = (Kind::Broadcast, about.bytes(size), library.packing.clone());
        let world = Some(WorldCall { kind, count, combines: false, root, layout: about.layout, packing });
        Chosen { world, library }
    }))
}

/// Returns the broadcast of [`of_root`], to any participants, if there is one.
pub fn broadcast(about: &About<'_>) -> Tried {
    Ok(of_root(about)?.map(|(.., library)| library.into()))
}
