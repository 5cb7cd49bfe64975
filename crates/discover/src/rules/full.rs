//! Rules beyond those of "Automatic Discovery of Collective Communication Patterns" (Knorr and others, 2024): decisions
//! depend on the ranks that have data, not on a chain of forward tasks.
//!
//! * The points that every rank must receive are known: those that it reads, without those that it wrote or received
//!   before. An operation delivers exactly these points, among the ranks that have or read them. An operation therefore
//!   never moves more data than point-to-point messages would, and a forward without communication does not hide a
//!   writer from later readers.
//! * All producers of one read are considered together: if their data form one pattern, they share one operation.
//! * The exchange of the region that all readers have in common is chosen separately from that of the rest.
//! * If a later task within the window will have all ranks read the same contents, its operation is issued for the
//!   first reader that needs any of them (the look-ahead that section 5.1 of the paper proposes).
//! * If some ranks already have copies, so that ranks lack different data, an all-gather becomes an all-to-all, and a
//!   broadcast becomes a scatter of exactly the missing data.

use super::{Decision, Listing, Read, Tables, hold, reduction, within};
use crate::{
    exchange::{Group, Operation, OwnedRegion, Piece, need},
    pattern::Pattern,
    role::RoleId,
    side::{Affine, Form, Ranks, Rule, Side, SideId, Sides, Term},
    space::Region,
};

/// A piece that may need an exchange, clipped to the region that a task reads.
#[derive(Clone)]
struct Wanted {
    producer: usize,
    part: OwnedRegion,
}

/// A part of a piece, and the group of the operation or halo that delivers it.
struct Cell {
    producer: usize,
    part: OwnedRegion,
    group: Option<usize>,
}

pub fn decide(tables: &mut Tables<'_>, read: &Read, pieces: &mut Vec<Piece>) -> Decision {
    let mut decision = Decision::default();
    let kept = promises(tables, read, pieces);
    if read.nodes > 1
        && let Some(later) = read.later
        && needs_anything(tables, read, pieces)
        && let Some(ahead) = ahead(tables, read, later, pieces)
    {
        decision = ahead;
    } else {
        reduction::combine(tables, read, read.reader, pieces, &mut decision);
        let reader = tables.side(read.reader);
        let wanted = open(tables, read.reader, pieces);
        let (cells, mut operations) = classify(tables.sides, read, reader, wanted);
        let before = decision.groups.len();
        decision.groups.append(&mut operations);
        for cell in &cells {
            if let Some(Some(_)) = cell.group.map(|g| &decision.groups[before + g]) {
                within(pieces, &cell.part.region, |p| !p.partial && p.producer == cell.producer, |p| hold(p, reader));
            }
        }
        list(tables.sides, reader, cells, before, &mut decision);
    }
    decision.listed.extend(kept);
    decision.listed.sort_by_key(|listed| listed.producer);
    decision
}

/// Returns the forwards of this read that an earlier operation has already implemented, and marks them as used in
/// `pieces`.
fn promises(tables: &Tables<'_>, read: &Read, pieces: &mut [Piece]) -> Vec<Listing> {
    let reader = tables.side(read.reader);
    let mut kept: Vec<Listing> = Vec::new();
    for piece in pieces.iter_mut() {
        let Some((side, pattern, group)) = piece.promised else { continue };
        if side != reader {
            continue;
        }
        piece.promised = None;
        let (region, group) = (piece.region.intersect(&read.wanted), Some(group));
        match kept.iter_mut().find(|l| l.producer == piece.producer && l.group == group) {
            Some(listing) => listing.region = listing.region.union(&region),
            None => kept.push(Listing { producer: piece.producer, region, pattern: Some(pattern), group }),
        }
    }
    kept
}

/// Returns the pieces of which a reader may lack at least a part, clipped to the region that the reader reads.
fn open(tables: &Tables<'_>, reader: RoleId, pieces: &[Piece]) -> Vec<Wanted> {
    let role = &tables.roles[reader];
    let mut out: Vec<Wanted> = Vec::new();
    for piece in pieces {
        let region = piece.region.intersect(&role.image);
        let there = piece.owner_side == role.side && tables.roles[piece.owner].geometry.is_none();
        if piece.partial || region.is_empty() || there || piece.holders.contains(&role.side) {
            continue;
        }
        if tables.roles[piece.owner].communication_free(role, &region) {
            continue;
        }
        let part = OwnedRegion { region, owner: piece.owner_side, holders: piece.holders.clone() };
        match out
            .iter_mut()
            .find(|w| w.producer == piece.producer && w.part.owner == part.owner && w.part.holders == part.holders)
        {
            Some(same) => same.part.region = same.part.region.union(&part.region),
            None => out.push(Wanted { producer: piece.producer, part }),
        }
    }
    out.sort_by(|a, b| (a.producer, &a.part.region).cmp(&(b.producer, &b.part.region)));
    out
}

fn needs_anything(tables: &Tables<'_>, read: &Read, pieces: &[Piece]) -> bool {
    let mine = |p: &Piece| p.partial && p.region.overlaps(&read.wanted);
    pieces.iter().any(mine) || {
        let side = tables.side(read.reader);
        open(tables, read.reader, pieces).iter().any(|w| someone_needs(tables.sides, side, &w.part))
    }
}

/// Returns the decision that delivers the data of a later reader before the current task. Two conditions must hold: the
/// data is delivered only by all-gathers, broadcasts and allreduces, and these also deliver all data of the current
/// reader. Otherwise returns `None` and leaves `pieces` unchanged.
fn ahead(tables: &mut Tables<'_>, read: &Read, later: RoleId, pieces: &mut Vec<Piece>) -> Option<Decision> {
    let reader = tables.side(later);
    if !tables.roles[later].image.contains(&read.wanted) {
        return None;
    }
    let mut decision = Decision::default();
    let mut after = pieces.clone();
    reduction::combine(tables, read, later, &mut after, &mut decision);
    let wanted = open(tables, later, &after);
    let (cells, mut operations) = classify(tables.sides, read, reader, wanted);
    let before = decision.groups.len();
    decision.groups.append(&mut operations);
    let serves = |p: Pattern| matches!(p, Pattern::Allgather | Pattern::Broadcast | Pattern::Allreduce);
    let all = decision.groups.iter().all(|g| g.as_ref().is_some_and(|operation| serves(operation.pattern)));
    if !all || decision.groups.is_empty() || cells.iter().any(|cell| cell.group.is_none()) {
        return None;
    }
    for (k, group) in decision.groups.iter().enumerate() {
        let Some(operation) = group else { continue };
        for part in &operation.parts {
            let producers: Vec<usize> = match operation.pattern {
                Pattern::Allreduce => pieces.iter().filter(|p| p.partial).map(|p| p.producer).collect(),
                _ => cells.iter().filter(|c| c.group == k.checked_sub(before)).map(|c| c.producer).collect(),
            };
            within(
                &mut after,
                &part.region,
                |p| producers.contains(&p.producer),
                |piece| {
                    hold(piece, reader);
                    piece.promised = Some((reader, operation.pattern, Group::New(k)));
                },
            );
        }
    }
    for cell in cells {
        let region = cell.part.region.intersect(&read.wanted);
        let Some(group) = cell.group.filter(|_| !region.is_empty()) else { continue };
        let pattern = decision.groups[before + group].as_ref().map(|operation| operation.pattern);
        join(
            &mut decision.listed,
            Listing { producer: cell.producer, region, pattern, group: Some(Group::New(before + group)) },
        );
    }
    *pieces = after;
    Some(decision)
}

/// Adds a forward, or adds its region to the forward of the same producer and group.
fn join(listed: &mut Vec<Listing>, new: Listing) {
    match listed.iter_mut().find(|l| l.producer == new.producer && l.group == new.group) {
        Some(same) => same.region = same.region.union(&new.region),
        None => listed.push(new),
    }
}

/// Lists one forward for each producer and group. A cell without a group is omitted if no rank needs it and one of two
/// conditions holds: another cell of its producer has a group; or ranks would need the cell if no copies existed.
fn list(sides: &Sides, reader: SideId, cells: Vec<Cell>, before: usize, decision: &mut Decision) {
    let served: Vec<usize> = cells.iter().filter(|c| c.group.is_some()).map(|c| c.producer).collect();
    for cell in cells {
        let idle = || {
            let alone = !served.contains(&cell.producer);
            let bare = OwnedRegion { holders: Vec::new(), ..cell.part.clone() };
            let held = !cell.part.holders.is_empty() && someone_needs(sides, reader, &bare);
            (!alone || held) && !someone_needs(sides, reader, &cell.part)
        };
        if cell.group.is_none() && idle() {
            continue;
        }
        let group = cell.group.map(|g| before + g);
        let pattern = group.map(|g| decision.groups[g].as_ref().map_or(Pattern::Halo, |operation| operation.pattern));
        let region = cell.part.region;
        join(&mut decision.listed, Listing { producer: cell.producer, region, pattern, group: group.map(Group::New) });
    }
}

/// Returns whether any rank lacks a point of a part. If both sides have one term with the same axes and no other side
/// has copies, a comparison of their rules may show that no rank lacks a point.
pub fn someone_needs(sides: &Sides, reader: SideId, part: &OwnedRegion) -> bool {
    if reader == part.owner || part.holders.contains(&reader) {
        return false;
    }
    if let Some((owner, to)) = alike(sides, part.owner, reader, &part.region)
        && part.holders.is_empty()
    {
        // With the same ranks and axes, no rank needs anything if the reader's intervals are within the owner's.
        let covered = (0..3).all(|d| match (owner.rules[d], to.rules[d]) {
            (Rule::Const { low, high }, Rule::Const { low: l, high: h }) => {
                let (from, until) = extent(&part.region, d);
                low <= l.max(from) && h.min(until) <= high
            }
            (Rule::Follow { axis: a, low, high }, Rule::Follow { axis: b, low: l, high: h }) => {
                a == b && low <= l && h <= high
            }
            (Rule::Const { low, high }, Rule::Follow { .. }) => {
                let (from, until) = extent(&part.region, d);
                low <= from && until <= high
            }
            _ => false,
        });
        if covered {
            return false;
        }
    }
    probes(sides, reader, part).into_iter().any(|rank| !need(sides, rank, reader, part).is_empty())
}

/// The number of readers above which only representatives are tested.
const ASKED: u32 = 32;

/// Returns the readers of a part. If there are many readers, returns representatives that suffice to compare needs.
pub fn probes(sides: &Sides, reader: SideId, part: &OwnedRegion) -> Vec<u32> {
    let readers = sides[reader].touching(&part.region);
    if readers.len() > ASKED
        && part.holders.is_empty()
        && let Some(turns) = sides[reader].turns(&sides[part.owner], &part.region)
    {
        return turns.into_iter().filter(|&rank| readers.has(rank)).collect();
    }
    readers.iter().collect()
}

fn extent(region: &Region, d: usize) -> (i64, i64) {
    let boxes = region.boxes();
    (boxes.iter().map(|b| b.min[d]).min().unwrap_or(0), boxes.iter().map(|b| b.max[d]).max().unwrap_or(0))
}

fn owners<'a>(sides: &Sides, parts: impl IntoIterator<Item = &'a OwnedRegion>) -> Ranks {
    parts.into_iter().fold(Ranks::default(), |all, part| all.union(&sides[part.owner].touching(&part.region)))
}

/// Groups the wanted parts into operations.
fn classify(sides: &Sides, read: &Read, reader: SideId, wanted: Vec<Wanted>) -> (Vec<Cell>, Vec<Option<Operation>>) {
    let mut groups: Vec<Option<Operation>> = Vec::new();
    let cell = |w: Wanted, group: Option<usize>| Cell { producer: w.producer, part: w.part, group };
    let readers = wanted.iter().fold(Ranks::default(), |all, w| all.union(&sides[reader].touching(&w.part.region)));
    if read.nodes == 1 || readers.is_empty() {
        return (wanted.into_iter().map(|w| cell(w, None)).collect(), groups);
    }
    if let (1, Some(root)) = (readers.len(), readers.first()) {
        let parts: Vec<OwnedRegion> = wanted.iter().map(|w| w.part.clone()).collect();
        let operation = gather(sides, reader, root, parts);
        let group = operation.is_some().then_some(0);
        groups.extend(operation.map(Some));
        return (wanted.into_iter().map(|w| cell(w, group)).collect(), groups);
    }
    let (ranks, common) = sides[reader].common();
    let clipped = |w: &Wanted, inside: bool| {
        let region = if inside { w.part.region.intersect(&common) } else { w.part.region.minus(&common) };
        Wanted { producer: w.producer, part: OwnedRegion { region, ..w.part.clone() } }
    };
    let alike = wanted.iter().map(|w| clipped(w, true)).filter(|w| !w.part.region.is_empty());
    // Parts that all readers already have are set aside, because they do not make the needs of the readers unequal.
    let is_open = |w: &Wanted| w.part.holders.is_empty() || someone_needs(sides, reader, &w.part);
    let (alike, settled): (Vec<Wanted>, Vec<Wanted>) = alike.partition(is_open);
    let rest: Vec<Wanted> = wanted.iter().map(|w| clipped(w, false)).filter(|w| !w.part.region.is_empty()).collect();
    let mut cells: Vec<Cell> = settled.into_iter().map(|w| cell(w, None)).collect();
    if !alike.is_empty() {
        let parts: Vec<OwnedRegion> = alike.iter().map(|w| w.part.clone()).collect();
        let operation = to_all(sides, reader, Ranks::below(ranks), parts);
        let group = operation.is_some().then_some(groups.len());
        groups.extend(operation.map(Some));
        cells.extend(alike.into_iter().map(|w| cell(w, group)));
    }
    each_its_own(sides, reader, rest, &mut cells, &mut groups);
    (cells, groups)
}

/// Returns a gather by which `root` reads parts of several owners; `None` if `root` lacks nothing, or a single rank has
/// data.
fn gather(sides: &Sides, reader: SideId, root: u32, parts: Vec<OwnedRegion>) -> Option<Operation> {
    let mut from = Ranks::default();
    let mut missing = false;
    for part in &parts {
        let need = need(sides, root, reader, part);
        missing |= !need.is_empty();
        from = from.union(&sides[part.owner].touching(&need));
        // If the root has a part itself, it participates too: with two ranks, its part is half of the gathered data.
        if sides[part.owner].at(root).overlaps(&part.region) {
            from = from.union(&Ranks::one(root));
        }
    }
    let participants = from.union(&Ranks::one(root));
    let gathers = missing && from.len() > 1;
    gathers.then_some(Operation { pattern: Pattern::Gather, reader, parts, participants, root: Some(root) })
}

/// Returns an operation for several ranks that read the same points. Returns `None` if no rank lacks a point, or if one
/// rank has all the data and only one other rank lacks some of it.
fn to_all(sides: &Sides, reader: SideId, readers: Ranks, parts: Vec<OwnedRegion>) -> Option<Operation> {
    let from = owners(sides, &parts);
    let participants = from.union(&readers);
    let made =
        |pattern, root| Operation { pattern, reader, parts: parts.clone(), participants: participants.clone(), root };
    let root = from.first().filter(|_| from.len() == 1);
    if parts.iter().all(|part| part.holders.is_empty()) {
        return match root {
            Some(_) => Some(made(Pattern::Broadcast, root)),
            // An all-gather would send data to a rank that only sends and does not read them.
            None if from.within(&readers) => Some(made(Pattern::Allgather, None)),
            None => Some(made(Pattern::Alltoall, None)),
        };
    }
    let lacks = |rank: &u32| parts.iter().any(|part| !need(sides, *rank, reader, part).is_empty());
    let lacking: Vec<u32> = readers.iter().filter(lacks).collect();
    match (&lacking[..], root) {
        ([], _) => None,
        ([one], Some(_)) if !from.has(*one) => None,
        ([one], None) => gather(sides, reader, *one, parts),
        (_, Some(_)) => Some(made(Pattern::Scatter, root)),
        (_, None) => Some(made(Pattern::Alltoall, None)),
    }
}

/// Adds operations for ranks that read different parts.
fn each_its_own(
    sides: &Sides,
    reader: SideId,
    wanted: Vec<Wanted>,
    cells: &mut Vec<Cell>,
    groups: &mut Vec<Option<Operation>>,
) {
    let operation = |pattern, parts: Vec<OwnedRegion>, root| {
        let readers = parts.iter().fold(Ranks::default(), |all, p| all.union(&sides[reader].touching(&p.region)));
        let participants = owners(sides, &parts).union(&readers);
        Operation { pattern, reader, parts, participants, root }
    };
    let from = owners(sides, wanted.iter().map(|w| &w.part));
    let only = from.first().filter(|_| from.len() == 1);
    let pattern_of = |w: &Wanted| {
        let readers = sides[reader].touching(&w.part.region);
        let from = sides[w.part.owner].touching(&w.part.region);
        if only.is_some() {
            (readers.len() > 1 && someone_needs(sides, reader, &w.part)).then_some(Pattern::Scatter)
        } else if from.len() > 1 && readers.len() > 1 && is_dense(sides, w.part.owner, reader, &w.part.region) {
            Some(Pattern::Alltoall)
        } else {
            is_halo(sides, reader, &w.part).then_some(Pattern::Halo)
        }
    };
    let patterns: Vec<Option<Pattern>> = wanted.iter().map(pattern_of).collect();
    let mut places: Vec<(Pattern, usize)> = Vec::new();
    for pattern in [Pattern::Scatter, Pattern::Alltoall, Pattern::Halo] {
        let same = wanted.iter().zip(&patterns).filter(|(_, p)| **p == Some(pattern));
        let parts: Vec<OwnedRegion> = same.map(|(w, _)| w.part.clone()).collect();
        if !parts.is_empty() {
            places.push((pattern, groups.len()));
            groups.push((pattern != Pattern::Halo).then(|| operation(pattern, parts, only)));
        }
    }
    for (w, pattern) in wanted.into_iter().zip(patterns) {
        let group = places.iter().find(|(p, _)| Some(*p) == pattern).map(|(_, group)| *group);
        cells.push(Cell { producer: w.producer, part: w.part, group });
    }
}

/// Returns the only term of a side that touches a region; `None` if none or several do, or the side is a table.
fn single<'a>(side: &'a Side, region: &Region) -> Option<(&'a Affine, &'a Term)> {
    let Form::Affine(affine) = &side.form else { return None };
    let touches = |term: &&Term| {
        let alone = Side { buffer: side.buffer, form: Form::Affine(Affine { axes: affine.axes, terms: vec![**term] }) };
        !alone.touching(region).is_empty()
    };
    let mut terms = affine.terms.iter().filter(touches);
    let first = terms.next()?;
    terms.next().is_none().then_some((affine, first))
}

/// Returns the only terms of owner and reader that touch a region ([`single`]), if both sides have the same axes.
fn alike<'a>(sides: &'a Sides, owner: SideId, reader: SideId, region: &Region) -> Option<(&'a Term, &'a Term)> {
    let (from, owner) = single(&sides[owner], region)?;
    let (to, reader) = single(&sides[reader], region)?;
    (from.axes == to.axes).then_some((owner, reader))
}

/// Returns whether each owner has data for each reader. This holds if no dimension follows an axis in both sides.
/// Returns false unless `region` is one box that a single affine term of each side touches.
fn is_dense(sides: &Sides, owner: SideId, reader: SideId, region: &Region) -> bool {
    let (Some((_, owner)), Some((_, reader))) = (single(&sides[owner], region), single(&sides[reader], region)) else {
        return false;
    };
    region.boxes().len() == 1
        && owner.follows().next().is_some()
        && reader.follows().next().is_some()
        && owner.follows().all(|(d, ..)| reader.follows().all(|(e, ..)| d != e))
}

/// Returns whether some rank needs data and every rank needs data from its neighbors in the grid only.
pub fn is_halo(sides: &Sides, reader: SideId, part: &OwnedRegion) -> bool {
    if let Some((owner, to)) = alike(sides, part.owner, reader, &part.region)
        && let Form::Affine(affine) = &sides[reader].form
    {
        let near = to.follows().all(|(d, axis, low, high)| {
            owner.follows().any(|(e, by, from, until)| {
                // A mapper that extends past a part by no more than the length of the shortest part reaches only into
                // neighbors' parts.
                let shortest = affine.axes[axis].shortest();
                e == d && by == axis && until - low <= shortest && high - from <= shortest
            })
        });
        let aligned = owner.follows().count() == to.follows().count();
        if near && aligned {
            return someone_needs(sides, reader, part);
        }
    }
    let columns = |side: SideId| match &sides[side].form {
        Form::Affine(affine) => affine.axes[1].parts,
        Form::Table(_) => 1,
    };
    if columns(reader) != columns(part.owner) {
        return false;
    }
    let columns = columns(reader);
    let next = |a: u32, b: u32| (a / columns).abs_diff(b / columns) <= 1 && (a % columns).abs_diff(b % columns) <= 1;
    let mut any = false;
    for rank in probes(sides, reader, part) {
        let need = need(sides, rank, reader, part);
        let from = sides[part.owner].touching(&need);
        // A rank has at most eight neighbors, and may itself be a source.
        if from.len() > 9 || !from.iter().all(|k| next(rank, k)) {
            return false;
        }
        any |= !need.is_empty();
    }
    any
}
