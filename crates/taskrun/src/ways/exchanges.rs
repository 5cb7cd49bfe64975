//! All-to-all exchanges and scatters: different data for each receiver.

use unisono_collective::Kind;
use unisono_discover::Region;
use unisono_mpi::Function;

use super::{
    Chosen, Tried,
    about::{About, packed_parts, volume},
    library_call::{Packed, Packing},
    world_call::WorldCall,
};
use crate::error::RunError;

/// The maximum number of ranks for which the elements of every pair of ranks are counted.
const MOST_RANKS: usize = 512;
/// The length of a block of zero bytes. Packed memory is filled with copies of the block before parts are packed, so
/// that unused memory, such as a rank's part for itself, is zero.
const ZEROS: usize = 1 << 12;

/// Returns packed memory with a part for each participant, in the order of the participants.
fn side(about: &About<'_>, regions: &[(u32, Region)]) -> Result<Option<Packed>, RunError> {
    let (mut parts, mut counts, mut places, mut at) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for rank in &about.participants {
        let region = regions.iter().find(|row| row.0 == *rank).map_or(&[][..], |row| row.1.boxes());
        parts.extend(packed_parts(region, at));
        counts.push(about.bytes(volume(region)));
        places.push(about.bytes(at));
        at += volume(region);
    }
    about.packed(parts, at, &counts, &places)
}

/// Returns an all-to-all of all ranks, if they are at most [`MOST_RANKS`], all pairs have parts of equal size, and MPI
/// can count the bytes.
pub fn world_alltoall(about: &About<'_>) -> Tried {
    let few = about.everyone() && about.participants.len() <= MOST_RANKS;
    let even = if few { about.operation.even(about.sides) } else { None };
    let Some(count) = even.and_then(|count| usize::try_from(count).ok()).filter(|_| about.fits(about.moved())) else {
        return Ok(None);
    };
    let padded = |regions: Vec<(u32, Region)>| {
        let parts = regions.iter().flat_map(|(k, region)| packed_parts(region.boxes(), *k as usize * count));
        about.one(parts.collect(), about.participants.len() * count)
    };
    let (given, got) = (padded(about.sends())?, padded(about.receives())?);
    let packing = Packing { given, got, neutral: vec![0; ZEROS], ..Packing::default() };
    let (kind, count, layout) = (Kind::Alltoall, about.bytes(count), about.layout);
    let world = Some(WorldCall { kind, count, combines: false, root: 0, layout, packing });
    Ok(alltoall(about)?.map(|chosen| Chosen { world, ..chosen }))
}

/// Returns an all-to-all with parts of any size, if MPI can count the bytes.
pub fn alltoall(about: &About<'_>) -> Tried {
    if !about.fits(about.moved()) {
        return Ok(None);
    }
    let (given, got) = (side(about, &about.sends())?, side(about, &about.receives())?);
    let packing = Packing { given, got, ..Packing::default() };
    Ok(Some(about.call(Function::Alltoallv, about.rank, packing).into()))
}

/// Returns a scatter from one participant to the others, if MPI can count the bytes.
pub fn scatter(about: &About<'_>) -> Tried {
    let Some(root) = about.operation.root.filter(|_| about.fits(about.moved())) else { return Ok(None) };
    let (parts, size) = about.receives().into_iter().fold((Vec::new(), 0), |(mut parts, at), (_, region)| {
        parts.extend(packed_parts(region.boxes(), at));
        (parts, at + volume(region.boxes()))
    });
    let given = if about.rank == root { side(about, &about.sends())? } else { None };
    let packing = Packing { given, got: about.one(parts, size)?, ..Packing::default() };
    Ok(Some(about.call(Function::Scatterv, root, packing).into()))
}
