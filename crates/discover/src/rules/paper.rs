//! Algorithm 1 and Table 2 of "Automatic Discovery of Collective Communication Patterns in Parallelized Task Graphs"
//! (Knorr, Salzmann, Thoman, Fahringer, 2024), as `papers/discovery/errata.md` defines them.
//!
//! A forward becomes the last writer of its region whether or not it communicates, so it hides its producer from later
//! readers. The inner loop of Algorithm 1 removes the points that an earlier dependent of p has read with
//! communication. This implementation does not need that loop. If an earlier task c read a point x of p and the edge
//! was not free of communication, c got a forward, which is now the last writer of x. If the edge was free of
//! communication for all points that c read of p, it is also free for each subset of these points, because equal
//! mappers on equal geometries touch the same parts of the subset. `discover/tests/all/paper.rs` implements the
//! algorithm with its inner loop, point by point.
//!
//! Partial results are not part of the paper and follow `reduction.rs`.

use super::{Decision, Listing, Read, Tables, hold, reduction, within};
use crate::{
    exchange::{Group, Operation, OwnedRegion, Piece},
    pattern::Pattern,
    role::{DimKind, Role},
    side::{Ranks, Side, SideId},
    space::Region,
};

pub fn decide(tables: &mut Tables<'_>, read: &Read, pieces: &mut Vec<Piece>) -> Decision {
    let mut decision = Decision::default();
    reduction::combine(tables, read, read.reader, pieces, &mut decision);
    for producer in 0..=pieces.iter().map(|p| p.producer).max().unwrap_or(0) {
        let open = |p: &Piece| p.producer == producer && !p.forwarded && tables.roles[p.owner].geometry.is_some();
        let Some(owner) = pieces.iter().find(|p| open(p)).map(|p| p.owner) else { continue };
        let mut region = Region::empty();
        for piece in pieces.iter().filter(|p| open(p)) {
            region = region.union(&piece.region.intersect(&read.wanted));
        }
        let (from, to) = (&tables.roles[owner], &tables.roles[read.reader]);
        if region.is_empty() || from.communication_free(to, &region) {
            continue;
        }
        let pattern = if read.nodes > 1 { table_2(from, to, &region) } else { None };
        let owner_side = from.side;
        let mut group = None;
        if let Some(pattern) = pattern {
            let receivers = receivers(tables, read, pattern, &region);
            let part = OwnedRegion { region: region.clone(), owner: owner_side, holders: Vec::new() };
            let root = matches!(pattern, Pattern::Gather | Pattern::Broadcast | Pattern::Scatter).then_some(0);
            let participants = Ranks::below(read.nodes);
            group = Some(Group::New(decision.groups.len()));
            decision.groups.push(Some(Operation { pattern, reader: receivers, parts: vec![part], participants, root }));
            let fits = |p: &Piece| p.producer == producer && !p.forwarded && p.owner == owner;
            within(pieces, &region, fits, |piece| hold(piece, receivers));
        }
        within(pieces, &region, |p| p.producer == producer && p.owner == owner, |piece| piece.forwarded = true);
        decision.listed.push(Listing { producer, region, pattern, group });
    }
    // Combinations were listed first, but operations are issued in the order of their producers.
    decision.listed.sort_by_key(|listed| listed.producer);
    renumber(&mut decision);
    decision
}

/// Numbers the groups in the order of the forwards.
fn renumber(decision: &mut Decision) {
    let mut order: Vec<usize> = Vec::with_capacity(decision.groups.len());
    for listed in &mut decision.listed {
        if let Some(Group::New(old)) = listed.group {
            let new = order.iter().position(|&k| k == old).unwrap_or_else(|| {
                order.push(old);
                order.len() - 1
            });
            listed.group = Some(Group::New(new));
        }
    }
    let mut groups: Vec<_> = std::mem::take(&mut decision.groups).into_iter().map(Some).collect();
    decision.groups = order.iter().filter_map(|&k| groups[k].take()).collect();
}

/// Returns the pattern of the first row of Table 2 that applies, by the numbers of chunks and the static traits of the
/// mappers; `None` if no row applies.
fn table_2(from: &Role, to: &Role, region: &Region) -> Option<Pattern> {
    let (many_write, many_read) = (from.chunks > 1, to.chunks > 1);
    let reads: Vec<usize> = (0..to.mappers.len()).filter(|&k| to.images[k].overlaps(region)).collect();
    let constants = reads.iter().filter(|&&k| to.traits[k].constant);
    let constant = Region::of(constants.flat_map(|&k| to.images[k].boxes().iter().copied())).contains(region);
    let disjoint = reads.iter().enumerate().all(|(n, &k)| {
        let part = to.images[k].intersect(region);
        to.traits[k].disjoint && reads[..n].iter().all(|&j| !to.images[j].overlaps(&part))
    });
    match (many_write, many_read) {
        (true, false) => Some(Pattern::Gather),
        (true, true) if constant => Some(Pattern::Allgather),
        (false, true) if constant => Some(Pattern::Broadcast),
        (false, true) if disjoint => Some(Pattern::Scatter),
        (true, true) if transposes(from, to, region, &reads) => Some(Pattern::Alltoall),
        _ => None,
    }
}

/// Returns whether row 5 of Table 2 applies. Its conditions are: the writer and the reader each have one mapper that
/// touches the region, and its image is the region; the reader's mapper is disjoint; both mappers are constant or split
/// in every dimension; some dimension is split only for the writer, and some dimension only for the reader.
fn transposes(from: &Role, to: &Role, region: &Region, reads: &[usize]) -> bool {
    let writes: Vec<usize> = (0..from.mappers.len()).filter(|&k| from.images[k].overlaps(region)).collect();
    let (&[w], &[r]) = (&writes[..], reads) else { return false };
    if from.images[w] != *region || to.images[r] != *region || !to.traits[r].disjoint {
        return false;
    }
    let pairs: Vec<_> = from.traits[w].dims.into_iter().zip(to.traits[r].dims).collect();
    let constant = |d: DimKind| d == DimKind::Constant;
    let split = |d: DimKind| matches!(d, DimKind::Split(_));
    pairs.iter().all(|&(w, r)| w != DimKind::Other && r != DimKind::Other)
        && pairs.iter().any(|&(w, r)| constant(w) && split(r))
        && pairs.iter().any(|&(w, r)| split(w) && constant(r))
}

/// Returns the side whose ranks have a copy after the operation.
fn receivers(tables: &mut Tables<'_>, read: &Read, pattern: Pattern, region: &Region) -> SideId {
    let ranks = match pattern {
        Pattern::Gather => 1,
        Pattern::Allgather | Pattern::Broadcast => read.nodes,
        _ => return tables.side(read.reader),
    };
    tables.sides.intern(Side::prefix(ranks, read.buffer, region.bounds()))
}
