//! Elimination for long vectors: a reduce-scatter in which groups of ranks merge, and an allgather in reverse order.
//!
//! A group of 2^k ranks stores the sum of all its ranks once: each rank has a piece of n / 2^k elements. When two
//! groups meet, ranks with the same piece exchange halves of the piece, and each keeps the sum of one half. Three
//! groups make one group of twice the size (3-2), by ranks x, y and z with the same piece: x and y exchange halves;
//! then x sends its sum of the lower half to z and leaves, and z sends its upper half to y. In the allgather z sends
//! the lower half to x, and y the upper half to z; then x and y exchange.
//!
//! If the number of groups is odd, the last three meet. This takes one more round. If the next number is odd too, the
//! merged group is z of the next three groups, and z may start a round later. So the rounds are those of halving, with
//! the round of the first odd level twice: T = 2 (floor(log2 P) + 1) alpha + (2 (1 - 2^-m) + 2^-k) n beta plus the
//! reductions, for m = floor(log2 P) and P = odd 2^k. For P that is not a power of two, a fold adds 2 n beta, and this
//! algorithm 2^-k n beta.

use unisono_base::NodeId;
use unisono_collective::Collective;
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{Case, ranks::Blocks};

/// A meeting: ranks of different groups that have the same piece, and the halves of this piece.
pub struct Meeting {
    pub x: NodeId,
    y: NodeId,
    pub z: Option<NodeId>,
    lower: Piece,
    upper: Piece,
}

/// A piece: consecutive elements of the vector.
#[derive(Clone, Copy)]
struct Piece {
    start: u32,
    len: u32,
}

impl Piece {
    fn result(self) -> Operand {
        Operand::Out(self.start)
    }
}

/// Returns all meetings, in an order in which they may run.
pub fn meetings(c: &Collective) -> Vec<Meeting> {
    let whole: u32 = 1 << c.ranks.ilog2();
    let blocks = Blocks::new(c.elements, whole);
    let mut groups: Vec<Vec<NodeId>> = (0..c.ranks).map(|r| vec![NodeId(r)]).collect();
    let mut all = Vec::new();
    // The blocks of each rank of a group. All groups have the blocks in the same order.
    let mut held: Vec<(u32, u32)> = vec![(0, whole)];
    while groups.len() > 1 {
        let pairs = groups.len() - if groups.len().is_multiple_of(2) { 0 } else { 3 };
        let split: Vec<[(u32, u32); 2]> =
            held.iter().map(|&(from, to)| [(from, from.midpoint(to)), (from.midpoint(to), to)]).collect();
        let piece = |(from, to): (u32, u32)| {
            let span = blocks.span(from, to);
            Piece { start: span.start, len: span.len }
        };
        let mut meet = |x: &[NodeId], y: &[NodeId], z: Option<&[NodeId]>| {
            for (at, &[lower, upper]) in split.iter().enumerate() {
                let z = z.map(|z| z[at]);
                all.push(Meeting { x: x[at], y: y[at], z, lower: piece(lower), upper: piece(upper) });
            }
        };
        let mut merged = Vec::with_capacity(groups.len() / 2);
        for pair in groups[..pairs].chunks(2) {
            meet(&pair[0], &pair[1], None);
            merged.push(pair.concat());
        }
        if let [x, y, z] = &groups[pairs..] {
            meet(x, y, Some(z));
            merged.push([z.as_slice(), y].concat());
        }
        groups = merged;
        held = split.iter().map(|s| s[0]).chain(split.iter().map(|s| s[1])).collect();
    }
    all
}

pub fn emit(b: &mut Builder, c: Collective) {
    let all = meetings(&c);
    // A rank's operand is its input until its first meeting.
    let mut has_met = vec![false; c.ranks as usize];
    b.phase("reduce-scatter");
    for m in &all {
        reduce(b, m, &mut has_met);
    }
    b.phase("allgather");
    for m in all.iter().rev() {
        gather(b, m);
    }
}

/// Sends the elements of `piece` from the operand `at`. Returns the operand of the stream.
fn send(b: &mut Builder, from: NodeId, to: NodeId, piece: Piece, at: Operand) -> Operand {
    let stream = Operand::Stream(b.stream(from, &[to]));
    b.combine(from, 0, piece.len, &[at], &[stream]);
    stream
}

fn reduce(b: &mut Builder, m: &Meeting, has_met: &mut [bool]) {
    let Meeting { x, y, lower, upper, .. } = *m;
    let own = |node: NodeId, piece: Piece| {
        if has_met[node.index()] { piece.result() } else { Operand::In(piece.start) }
    };
    let above = send(b, x, y, upper, own(x, upper));
    let below = send(b, y, x, lower, own(y, lower));
    let sum_at = if let Some(z) = m.z { Operand::Stream(b.stream(x, &[z])) } else { lower.result() };
    b.combine(x, 0, lower.len, &[own(x, lower), below], &[sum_at]);
    b.combine(y, 0, upper.len, &[above, own(y, upper)], &[upper.result()]);
    if let Some(z) = m.z {
        let last = send(b, z, y, upper, own(z, upper));
        b.combine(y, 0, upper.len, &[upper.result(), last], &[upper.result()]);
        b.combine(z, 0, lower.len, &[sum_at, own(z, lower)], &[lower.result()]);
        has_met[z.index()] = true;
    }
    has_met[x.index()] = true;
    has_met[y.index()] = true;
}

fn gather(b: &mut Builder, m: &Meeting) {
    let Meeting { x, y, lower, upper, .. } = *m;
    if let Some(z) = m.z {
        let up = send(b, y, z, upper, upper.result());
        let low = send(b, z, x, lower, lower.result());
        b.combine(z, 0, upper.len, &[up], &[upper.result()]);
        b.combine(x, 0, lower.len, &[low], &[lower.result()]);
    }
    let below = send(b, x, y, lower, lower.result());
    let above = send(b, y, x, upper, upper.result());
    b.combine(y, 0, lower.len, &[below], &[lower.result()]);
    b.combine(x, 0, upper.len, &[above], &[upper.result()]);
}

/// Returns the rounds of the slowest rank.
pub fn rounds(case: &Case) -> Vec<Round> {
    let c = case.collective;
    let (levels, odd) = (c.ranks.ilog2(), c.ranks.trailing_zeros());
    let blocks = Blocks::new(c.elements, 1 << levels);
    let bytes = |level: u32| case.bytes(blocks.span(0, 1 << (levels - 1 - level)).len);
    let twice = |level: u32| if level == odd { 2 } else { 1 };
    let there = (0..levels).map(|k| Round::new(1, bytes(k)).reducing(bytes(k)).times(twice(k)));
    let back = (0..levels).rev().map(|k| Round::new(1, bytes(k)).times(twice(k)));
    there.chain(back).collect()
}
