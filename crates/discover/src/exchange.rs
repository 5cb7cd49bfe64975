//! What a read needs from other ranks, in terms of sides: the pieces of what is there, and operations that bring it.

use unisono_base::{interrupt::poll, limits::spend};

use crate::{
    pattern::Pattern,
    role::RoleId,
    side::{Ranks, SideId, Sides},
    space::Region,
};

/// A group of forwards that one exchange serves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Group {
    /// A group of the read that is decided, by its place.
    New(usize),
    /// The group of an operation that ran ahead, by its place among those that the read meets.
    Earlier(usize),
}

/// Points of a buffer with one writer and one history.
#[derive(Clone, PartialEq, Debug)]
pub struct Piece {
    pub region: Region,
    /// The task that wrote it, as its place among the writers that a read meets, in ascending order.
    pub producer: usize,
    pub owner: RoleId,
    pub owner_side: SideId,
    /// Every rank of the owner holds a partial result of all its part, and none the result.
    pub partial: bool,
    /// Sides whose ranks hold a copy as well.
    pub holders: Vec<SideId>,
    /// Rules of the paper: a forward task is the last writer.
    pub forwarded: bool,
    /// An operation that ran ahead for a later reader of this side.
    pub promised: Option<(SideId, Pattern, Group)>,
}

impl Piece {
    /// Whether the other differs in nothing but place.
    pub fn is_like(&self, other: &Piece) -> bool {
        let key = |p: &Piece| (p.producer, p.owner, p.owner_side, p.partial, p.forwarded, p.promised);
        key(self) == key(other) && self.holders == other.holders
    }
}

/// One source of what an operation moves.
#[derive(Clone, PartialEq, Debug)]
pub struct OwnedRegion {
    pub region: Region,
    pub owner: SideId,
    pub holders: Vec<SideId>,
}

/// A collective among some ranks: each receives what its side of `reader` covers of the parts and what it does not
/// hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Operation {
    pub pattern: Pattern,
    pub reader: SideId,
    pub parts: Vec<OwnedRegion>,
    pub participants: Ranks,
    /// Of gather, broadcast, scatter and reduce.
    pub root: Option<u32>,
}

/// MPI counts bytes with 32 bits.
pub const MOST_COUNTED: u64 = 1 << 30;

/// Steps of a comparison of two ranks, and the name of such work in errors.
pub const STEPS: u64 = 128;
pub const PAIRS: &str = "the list of messages between all pairs of nodes";

/// Counts a comparison of two ranks, of which there may be as many as pairs.
fn step() {
    poll();
    spend(PAIRS, STEPS);
}

/// What `rank` must receive of a part to hold all that its side of `reader` covers.
pub fn need(sides: &Sides, rank: u32, reader: SideId, part: &OwnedRegion) -> Region {
    step();
    let mut rest = sides[reader].at(rank).intersect(&part.region);
    for &holder in std::iter::once(&part.owner).chain(&part.holders) {
        if rest.is_empty() {
            break;
        }
        rest = rest.minus(&sides[holder].at(rank));
    }
    rest
}

/// Who sends how much of `need` to `rank`.
pub fn sources(sides: &Sides, rank: u32, owner: SideId, need: &Region) -> Vec<(u32, Region)> {
    let owner = &sides[owner];
    let from = owner.touching(need);
    from.iter()
        .filter(|&k| k != rank)
        .inspect(|_| step())
        .map(|k| (k, owner.at(k).intersect(need)))
        .filter(|(_, r)| !r.is_empty())
        .collect()
}

/// To whom `rank` sends what of a part.
pub fn targets(sides: &Sides, rank: u32, reader: SideId, part: &OwnedRegion) -> Vec<(u32, Region)> {
    let mine = sides[part.owner].at(rank).intersect(&part.region);
    if mine.is_empty() || reader == part.owner || part.holders.contains(&reader) {
        return Vec::new();
    }
    let to = sides[reader].touching(&mine);
    to.iter()
        .filter(|&k| k != rank)
        .map(|k| (k, need(sides, k, reader, part).intersect(&mine)))
        .filter(|(_, r)| !r.is_empty())
        .collect()
}

/// From whom `rank` receives what of a part.
pub fn received(sides: &Sides, rank: u32, reader: SideId, part: &OwnedRegion) -> Vec<(u32, Region)> {
    sources(sides, rank, part.owner, &need(sides, rank, reader, part))
}

/// Adds regions for the same rank; ascending by rank.
pub fn by_rank(rows: impl IntoIterator<Item = (u32, Region)>) -> Vec<(u32, Region)> {
    let mut rows: Vec<(u32, Region)> = rows.into_iter().collect();
    rows.sort_by_key(|row| row.0);
    let mut out: Vec<(u32, Region)> = Vec::with_capacity(rows.len());
    for (rank, region) in rows {
        match out.last_mut() {
            Some(last) if last.0 == rank => last.1 = last.1.union(&region),
            _ => out.push((rank, region)),
        }
    }
    out
}

impl Operation {
    /// What a rank gives: its own part, or its partial result.
    pub fn given(&self, sides: &Sides, rank: u32) -> Region {
        if !self.participants.has(rank) {
            return Region::empty();
        }
        let own = self.parts.iter().map(|part| sides[part.owner].at(rank).intersect(&part.region));
        own.fold(Region::empty(), |all, r| all.union(&r))
    }

    /// What a rank has new afterwards.
    pub fn received(&self, sides: &Sides, rank: u32) -> Region {
        let all = Region::empty();
        if !self.participants.has(rank) {
            return all;
        }
        self.parts.iter().fold(all, |all, part| {
            all.union(&match self.pattern {
                Pattern::Allreduce => part.region.clone(),
                Pattern::Reduce | Pattern::ReduceScatter => sides[self.reader].at(rank).intersect(&part.region),
                _ => need(sides, rank, self.reader, part),
            })
        })
    }

    /// To whom a rank sends what, itself left out. Of a reduction: whose result its partial result enters.
    pub fn sends(&self, sides: &Sides, rank: u32) -> Vec<(u32, Region)> {
        if self.pattern.reduces() {
            let given = self.given(sides, rank);
            let others = self.participants.iter().filter(|&k| k != rank);
            let rows = others.map(|k| (k, self.received(sides, k).intersect(&given)));
            return rows.filter(|(_, r)| !r.is_empty()).collect();
        }
        by_rank(self.parts.iter().flat_map(|part| targets(sides, rank, self.reader, part)))
    }

    /// From whom a rank receives what, itself left out.
    pub fn receives(&self, sides: &Sides, rank: u32) -> Vec<(u32, Region)> {
        if self.pattern.reduces() {
            let received = self.received(sides, rank);
            let others = self.participants.iter().filter(|&k| k != rank);
            let rows = others.map(|k| (k, self.given(sides, k).intersect(&received)));
            return rows.filter(|(_, r)| !r.is_empty()).collect();
        }
        by_rank(self.parts.iter().flat_map(|part| received(sides, rank, self.reader, part)))
    }

    /// Elements that ranks receive from others. A reduction counts as the best possible one: each partial result moves
    /// once, but for one that stays where the result is to be, and an allreduce's result once more to all but one.
    pub fn elements(&self, sides: &Sides) -> u64 {
        if self.pattern.reduces() {
            let moved = |part: &OwnedRegion| {
                let give = |k: u32| sides[part.owner].at(k).intersect(&part.region);
                let given: u64 = self.participants.iter().map(|k| give(k).volume()).sum();
                if self.pattern == Pattern::Allreduce {
                    let others = u64::from(self.participants.len()).saturating_sub(1);
                    return given + part.region.volume() * others - part.region.volume();
                }
                let own = |k: u32| give(k).intersect(&sides[self.reader].at(k)).volume();
                given - self.participants.iter().map(own).sum::<u64>()
            };
            return self.parts.iter().map(moved).sum();
        }
        let of = |rank: u32| self.parts.iter().map(move |part| need(sides, rank, self.reader, part).volume());
        self.participants.iter().flat_map(of).sum()
    }

    /// Whether messages between pairs serve the operation whatever its elements are: where a library would have to
    /// count more than [`MOST_COUNTED`] bytes, and where so few ranks contribute to a sum that a library's reduction,
    /// to which all contribute everything, would move more. `unisono.tasks.routes` decides by the same rule.
    pub fn by_messages(&self, sides: &Sides, element_bytes: u64) -> bool {
        let received = |rank| self.received(sides, rank).volume();
        let (moved, others) = (self.elements(sides), u64::from(self.participants.len()).saturating_sub(1));
        let given = || self.participants.iter().map(|rank| self.given(sides, rank).volume()).sum();
        let root = self.root.or(self.participants.first()).unwrap_or(0);
        let counted = match self.pattern {
            Pattern::Gather | Pattern::Allgather => given(),
            Pattern::Broadcast => self.given(sides, root).volume().min(moved),
            Pattern::Scatter | Pattern::Alltoall | Pattern::Halo => moved,
            Pattern::Reduce | Pattern::Allreduce => received(root),
            Pattern::ReduceScatter => self.participants.iter().map(received).sum(),
        };
        let sparse = match self.pattern {
            // All contributions but one move for each element, and each result to the others. Pairs would move every
            // contribution to the others, a library's best algorithm two elements to each for each element.
            Pattern::Allreduce => moved.saturating_sub(others.saturating_sub(1) * counted) < 2 * counted,
            _ => self.pattern.reduces() && moved < others * counted,
        };
        sparse || counted.saturating_mul(element_bytes) > MOST_COUNTED
    }

    /// How many elements each participant sends to each other one, where all send alike. The answer is the same on all
    /// ranks; ranks are walked, each with those that it sends to.
    pub fn even(&self, sides: &Sides) -> Option<u64> {
        let others = self.participants.len().saturating_sub(1) as usize;
        let mut size = None;
        for rank in self.participants.iter() {
            let sends = self.sends(sides, rank);
            if sends.len() != others {
                return None;
            }
            for (_, region) in sends {
                if *size.get_or_insert_with(|| region.volume()) != region.volume() {
                    return None;
                }
            }
        }
        size
    }
}
