//! Partial results, whose readers determine how they are combined.
//!
//! If one rank reads them, they are combined by a reduce. If several ranks read the same points, they are combined by
//! an allreduce; if the ranks read different parts, by a reduce-scatter. If the parts overlap and are not equal, the
//! lowest rank that reads a point gets the sum and pushes it to the other readers. Neither "Automatic Discovery of
//! Collective Communication Patterns" (Knorr and others, 2024) nor Celerity has this rule: Celerity pushes every
//! partial result to every reader.

use super::{Decision, Listing, Read, Tables, hold, within};
use crate::{
    exchange::{Group, Operation, OwnedRegion, Piece},
    pattern::Pattern,
    role::RoleId,
    side::{Ranks, Side, SideId},
    space::Region,
};

/// Decides only the combination of partial results; all other data remain point-to-point.
pub fn decide(tables: &mut Tables<'_>, read: &Read, pieces: &mut Vec<Piece>) -> Decision {
    let mut decision = Decision::default();
    combine(tables, read, read.reader, pieces, &mut decision);
    decision
}

/// Combines all partial results that `reader` reads, inside and outside of `read.wanted`. `reader` may be a later
/// reader than `read.reader`.
pub fn combine(tables: &mut Tables<'_>, read: &Read, reader: RoleId, pieces: &mut Vec<Piece>, decision: &mut Decision) {
    let side = tables.side(reader);
    let image = tables.roles[reader].image.clone();
    let mut partial: Vec<(usize, Region, SideId)> = pieces
        .iter()
        .filter(|p| p.partial)
        .map(|p| (p.producer, p.region.intersect(&image), p.owner_side))
        .filter(|(_, region, _)| !region.is_empty())
        .collect();
    partial.sort();
    for (producer, region, givers) in partial {
        let readers = tables.sides[side].touching(&region);
        let (same, common) = tables.sides[side].common();
        let both = if readers.len() > 1 { region.intersect(&common) } else { region.clone() };
        for (region, all) in [(both.clone(), true), (region.minus(&both), false)] {
            if region.is_empty() {
                continue;
            }
            let contributors = tables.sides[givers].touching(&region);
            let readers =
                if all && readers.len() > 1 { Ranks::below(same) } else { tables.sides[side].touching(&region) };
            let participants = contributors.union(&readers);
            let (pattern, root) = match readers.first() {
                Some(root) if readers.len() == 1 => (Pattern::Reduce, Some(root)),
                _ if all => (Pattern::Allreduce, None),
                _ => (Pattern::ReduceScatter, None),
            };
            let (owner, copies) = owner(tables, read, pattern, side, &participants, &region);
            // The operation delivers the result to its future owners or, for an allreduce, to all participants.
            let reader = copies.unwrap_or(owner);
            let part = OwnedRegion { region: region.clone(), owner: givers, holders: Vec::new() };
            let group = decision.groups.len();
            decision.groups.push(Some(Operation { pattern, reader, parts: vec![part], participants, root }));
            let listed = region.intersect(&read.wanted);
            if !listed.is_empty() {
                let group = Some(Group::New(group));
                decision.listed.push(Listing { producer, region: listed, pattern: Some(pattern), group });
            }
            let role = tables.roles.holding(owner, region.clone());
            within(
                pieces,
                &region,
                |p| p.partial && p.producer == producer,
                |piece| {
                    (piece.partial, piece.owner, piece.owner_side) = (false, role, owner);
                    piece.holders.clear();
                    if let Some(copies) = copies {
                        hold(piece, copies);
                    }
                },
            );
        }
    }
}

/// Returns the side that owns the result, and the side whose ranks have a copy, if any.
fn owner(
    tables: &mut Tables<'_>,
    read: &Read,
    pattern: Pattern,
    reader: SideId,
    participants: &Ranks,
    region: &Region,
) -> (SideId, Option<SideId>) {
    let first = participants.first().unwrap_or(0);
    match pattern {
        Pattern::Reduce => {
            let root = tables.sides[reader].touching(region).first().unwrap_or(first);
            (tables.sides.intern(Side::table(read.buffer, vec![(root, region.clone())])), None)
        }
        Pattern::Allreduce => {
            let owner = Side::table(read.buffer, vec![(first, region.clone())]);
            let everyone = if participants == &Ranks::below(participants.len()) {
                Side::prefix(participants.len(), read.buffer, region.bounds())
            } else {
                Side::table(read.buffer, participants.iter().map(|k| (k, region.clone())).collect())
            };
            (tables.sides.intern(owner), Some(tables.sides.intern(everyone)))
        }
        _ if tables.sides[reader].is_disjoint(region) => (reader, None),
        _ => {
            let mut rest = region.clone();
            let mut rows = Vec::new();
            for rank in tables.sides[reader].touching(region).iter() {
                let own = tables.sides[reader].at(rank).intersect(&rest);
                rest = rest.minus(&own);
                rows.push((rank, own));
            }
            (tables.sides.intern(Side::table(read.buffer, rows)), None)
        }
    }
}
