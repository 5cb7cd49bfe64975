//! The plan of one read of one buffer: the decisions for all ranks, and the actions of one rank.
//!
//! A plan depends only on the fields of its key (`discovery/reading.rs`), never on task numbers, so a loop plans each
//! of its reads once.

use std::sync::Arc;

use unisono_base::{
    limits::{spend, take},
    narrow,
};

use crate::{
    direct::pairs,
    exchange::{Group, Operation, OwnedRegion, PAIRS, Piece, STEPS, by_rank, received, targets},
    pattern::Pattern,
    rules::{Listing, Read, Rules, Tables, decide, hold},
    side::{Ranks, SideId, Sides},
    space::Region,
};

/// The traffic of reads, summed over all ranks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// The number of pushes: one for each communicating pair of ranks and read.
    pub pushes: u64,
    pub pushed_elements: u64,
    pub collectives: u64,
    pub collective_elements: u64,
}

/// One rank's part in an operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Share {
    pub group: usize,
    pub operation: Arc<Operation>,
    pub given: Arc<Region>,
    pub received: Arc<Region>,
}

/// The messages of one read, for all ranks.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pushed {
    pub reader: SideId,
    pub parts: Vec<OwnedRegion>,
    pub readers: Ranks,
    /// True if each rank exchanges data only with its neighbors in the grid.
    pub halo: bool,
}

impl Pushed {
    /// Returns one message `(from, to, elements)` for each communicating pair of ranks, in ascending order.
    pub fn messages(&self, sides: &Sides) -> Vec<(u32, u32, u64)> {
        let mut rows = Vec::new();
        for to in self.readers.iter() {
            let from = by_rank(self.parts.iter().flat_map(|part| received(sides, to, self.reader, part)));
            take("the list of messages", 32 * (rows.len() + from.len()) as u128);
            rows.extend(from.into_iter().map(|(from, region)| (from, to, region.volume())));
        }
        rows.sort_unstable();
        rows
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReadPlan {
    /// Forwards in the order of issue; equal on all ranks.
    pub listed: Vec<(Listing, Arc<Region>)>,
    pub groups: usize,
    pub operations: Vec<Arc<Operation>>,
    pub shares: Vec<Share>,
    pub pushes: Vec<(u32, Arc<Region>)>,
    pub awaits: Arc<[(u32, Arc<Region>)]>,
    /// The union of all regions that the rank receives by pushes.
    pub awaited: Arc<Region>,
    /// The pushed messages of all ranks.
    pub pushed: Pushed,
    /// The contents after the read; empty if nothing changes.
    pub after: Vec<Piece>,
    pub traffic: Traffic,
}

/// Plans a read, with the actions of `rank` if it is given. If `count` is set, it also counts the traffic of all ranks.
pub fn plan(
    rules: Rules,
    tables: &mut Tables<'_>,
    read: &Read,
    before: Vec<Piece>,
    rank: Option<u32>,
    count: bool,
) -> ReadPlan {
    let mut pieces = before.clone();
    let decision = decide(rules, tables, read, &mut pieces);
    let reader = tables.roles[read.reader].side;
    let sides = &*tables.sides;
    let mut plan = ReadPlan { groups: decision.groups.len(), ..ReadPlan::default() };
    plan.listed = decision.listed.into_iter().map(|l| (l.clone(), Arc::new(l.region))).collect();
    let made: Vec<bool> = decision.groups.iter().map(Option::is_some).collect();
    for (group, operation) in decision.groups.into_iter().enumerate() {
        let Some(operation) = operation.map(Arc::new) else { continue };
        if let Some(rank) = rank.filter(|&k| operation.participants.has(k)) {
            let (given, received) = (operation.given(sides, rank), operation.received(sides, rank));
            let operation = operation.clone();
            plan.shares.push(Share { group, operation, given: Arc::new(given), received: Arc::new(received) });
        }
        if count {
            plan.traffic.collectives += 1;
            plan.traffic.collective_elements += operation.elements(sides);
        }
        plan.operations.push(operation);
    }
    let mut rest: Vec<OwnedRegion> = Vec::new();
    let mut uncovered = Vec::new();
    for piece in &mut pieces {
        let region = piece.region.intersect(&read.wanted);
        if region.is_empty() || piece.partial {
            continue;
        }
        if piece.owner_side != reader && !piece.holders.contains(&reader) {
            rest.push(OwnedRegion { region: region.clone(), owner: piece.owner_side, holders: piece.holders.clone() });
            if region != piece.region {
                uncovered.push(Piece { region: piece.region.minus(&region), ..piece.clone() });
                piece.region = region;
            }
            hold(piece, reader);
        }
    }
    pieces.append(&mut uncovered);
    if let Some(rank) = rank {
        let pushes = rest.iter().flat_map(|part| targets(sides, rank, reader, part));
        let awaits = rest.iter().flat_map(|part| received(sides, rank, reader, part));
        plan.pushes = by_rank(pushes).into_iter().map(|(k, r)| (k, Arc::new(r))).collect();
        let awaits = by_rank(awaits);
        plan.awaited = Arc::new(awaits.iter().fold(Region::empty(), |all, (_, r)| all.union(r)));
        plan.awaits = awaits.into_iter().map(|(k, r)| (k, Arc::new(r))).collect();
    }
    if count || !rest.is_empty() {
        let readers = sides[reader].touching(&read.wanted);
        if count {
            spend(PAIRS, pairs(sides, &readers, reader, &rest).saturating_mul(STEPS));
            for k in readers.iter() {
                let from = by_rank(rest.iter().flat_map(|part| received(sides, k, reader, part)));
                plan.traffic.pushes += from.len() as u64;
                plan.traffic.pushed_elements += from.iter().map(|(_, r)| r.volume()).sum::<u64>();
            }
        }
        let mut kinds = plan.listed.iter().filter(|(l, _)| !matches!(l.group, Some(Group::New(k)) if made[k]));
        let halo = kinds.clone().next().is_some() && kinds.all(|(l, _)| l.pattern == Some(Pattern::Halo));
        plan.pushed = Pushed { reader, parts: rest, readers, halo };
    }
    if pieces != before {
        plan.after = merged(pieces);
    }
    plan
}

/// Merges pieces that are equal except for their regions.
fn merged(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match out.iter_mut().find(|p| p.is_like(&piece)) {
            Some(same) => same.region = same.region.union(&piece.region),
            None => out.push(piece),
        }
    }
    out
}

/// Returns the number of a forward's group among all groups of the program. New groups are numbered from `next`, and
/// `earlier` has the numbers of earlier ones.
pub fn group_number(group: Option<Group>, next: u32, earlier: &[u32]) -> Option<u32> {
    group.map(|group| match group {
        Group::New(k) => next + narrow::<u32>(k),
        Group::Earlier(k) => earlier[k],
    })
}
