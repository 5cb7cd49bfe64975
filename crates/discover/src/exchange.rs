//! The data that a read needs from other ranks, described by `Side`s: the pieces of the present contents, and the
//! operations that move the pieces.

use unisono_base::{interrupt::poll, limits::spend};

use crate::{
    pattern::Pattern,
    role::RoleId,
    side::{Ranks, SideId, Sides},
    space::Region,
};

/// The group of forwards that one operation implements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Group {
    /// An index among the groups of the current read.
    New(usize),
    /// An index among the groups of earlier look-ahead operations whose contents the read uses.
    Earlier(usize),
}

/// A set of points of a buffer with the same writer, the same sides that have copies, and the same earlier look-ahead
/// operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Piece {
    pub region: Region,
    /// The task that wrote the piece, as its index among the writers of a read's contents, in ascending order.
    pub producer: usize,
    pub owner: RoleId,
    pub owner_side: SideId,
    /// True if every rank of `owner_side` has a partial result of its own region, and no rank has the combined result.
    pub partial: bool,
    /// Other sides whose ranks have copies.
    pub holders: Vec<SideId>,
    /// True if the latest writer is a forward task. Only [`crate::Rules::Paper`] uses this value.
    pub forwarded: bool,
    /// The look-ahead operation that has already delivered this piece to later readers. The side is that of these
    /// readers.
    pub promised: Option<(SideId, Pattern, Group)>,
}

impl Piece {
    /// Returns whether the two pieces are equal except for their regions.
    pub fn is_like(&self, other: &Piece) -> bool {
        let key = |p: &Piece| (p.producer, p.owner, p.owner_side, p.partial, p.forwarded, p.promised);
        key(self) == key(other) && self.holders == other.holders
    }
}

/// A region that an operation moves, the side of the ranks that wrote it, and the sides of the ranks with copies.
#[derive(Clone, PartialEq, Debug)]
pub struct OwnedRegion {
    pub region: Region,
    pub owner: SideId,
    pub holders: Vec<SideId>,
}

/// A collective among some ranks. If the collective does not reduce, each rank receives those points of the parts that
/// are in its region of `reader` and of which it has no copy. [`Operation::received`] has the rule for reductions.
#[derive(Clone, PartialEq, Debug)]
pub struct Operation {
    pub pattern: Pattern,
    pub reader: SideId,
    pub parts: Vec<OwnedRegion>,
    pub participants: Ranks,
    /// The root of a gather, broadcast, scatter or reduce.
    pub root: Option<u32>,
}

/// The maximum number of bytes of one call of MPI, whose counts have 32 bits.
pub const MOST_COUNTED: u64 = 1 << 30;

/// The number of computation steps that are counted for the comparison of two ranks ([`spend`]).
pub const STEPS: u64 = 128;
/// The name of the work that compares pairs of ranks, for errors.
pub const PAIRS: &str = "the list of messages between all pairs of nodes";

/// Counts the comparison of two ranks as work, because there may be as many comparisons as pairs of ranks.
fn step() {
    poll();
    spend(PAIRS, STEPS);
}

/// Returns the points of a part that `rank` must receive: the points that `rank` reads as `reader` and has no copy of.
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

/// Returns the ranks that send parts of `need` to `rank`, each with the region that it sends.
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

/// Returns the ranks to which `rank` sends data of a part, each with the region that it receives.
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

/// Returns the ranks from which `rank` receives data of a part, each with the region that it sends.
pub fn received(sides: &Sides, rank: u32, reader: SideId, part: &OwnedRegion) -> Vec<(u32, Region)> {
    sources(sides, rank, part.owner, &need(sides, rank, reader, part))
}

/// Merges the regions of each rank, and sorts the result by rank.
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
    /// Returns the region that a rank contributes: its own part, or the region of its partial result.
    pub fn given(&self, sides: &Sides, rank: u32) -> Region {
        if !self.participants.has(rank) {
            return Region::empty();
        }
        let own = self.parts.iter().map(|part| sides[part.owner].at(rank).intersect(&part.region));
        own.fold(Region::empty(), |all, r| all.union(&r))
    }

    /// Returns the region that a rank has received after the operation; in a reduction, its region of the combined
    /// result.
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

    /// Returns the other ranks to which a rank sends data. In a reduction these are the ranks whose results include its
    /// partial result.
    pub fn sends(&self, sides: &Sides, rank: u32) -> Vec<(u32, Region)> {
        if self.pattern.reduces() {
            let given = self.given(sides, rank);
            let others = self.participants.iter().filter(|&k| k != rank);
            let rows = others.map(|k| (k, self.received(sides, k).intersect(&given)));
            return rows.filter(|(_, r)| !r.is_empty()).collect();
        }
        by_rank(self.parts.iter().flat_map(|part| targets(sides, rank, self.reader, part)))
    }

    /// Returns the other ranks from which a rank receives data.
    pub fn receives(&self, sides: &Sides, rank: u32) -> Vec<(u32, Region)> {
        if self.pattern.reduces() {
            let received = self.received(sides, rank);
            let others = self.participants.iter().filter(|&k| k != rank);
            let rows = others.map(|k| (k, self.given(sides, k).intersect(&received)));
            return rows.filter(|(_, r)| !r.is_empty()).collect();
        }
        by_rank(self.parts.iter().flat_map(|part| received(sides, rank, self.reader, part)))
    }

    /// Returns the number of elements that all ranks together receive from other ranks. A reduction is counted with the
    /// minimum number of elements: each partial result moves once, except for one partial result on the rank of the
    /// result. For an allreduce, the result then moves to all other ranks.
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

    /// Returns whether messages between pairs of ranks execute the operation for any element type. They do in two
    /// cases: a library would have to count more than [`MOST_COUNTED`] bytes; or so few ranks contribute to each sum
    /// that a library's reduction would move more data, because there all ranks contribute the whole vector.
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
            // `moved` counts all contributions except one for each element, and counts the result once for each other
            // rank. Messages between pairs move every contribution to all other ranks; a library's best algorithm moves
            // two elements per element and rank.
            Pattern::Allreduce => moved.saturating_sub(others.saturating_sub(1) * counted) < 2 * counted,
            _ => self.pattern.reduces() && moved < others * counted,
        };
        sparse || counted.saturating_mul(element_bytes) > MOST_COUNTED
    }

    /// Returns the number of elements that each participant sends to each other participant; `None` if the number is 0
    /// or differs between pairs. The result is the same on all ranks. The cost grows with the number of pairs.
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
