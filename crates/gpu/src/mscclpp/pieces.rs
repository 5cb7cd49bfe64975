//! The division of moves of packets into pieces whose grains have the same writers and readers.
//!
//! A packet is read element by element, each after the element from which it was computed. Two grains of one move can
//! follow different moves: a reader may read a part of a written span, or parts of several spans. The start and the end
//! of a move in packet memory are therefore cuts. A cut divides every move that crosses it. A move that is cut in one
//! operand is cut at the same distance from the start in its other operands, until no cut is new. Between two cuts, one
//! move writes all grains and the same moves read them: grain k of the reader follows grain k of the writer.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use unisono_base::limits;

use super::{
    program::{Act, Move, Program, Space, Span},
    run::At,
};

/// The name of this work in errors.
pub const WORK: &str = "the order of the plan's accesses";

/// The memory of a cut in bytes, for an entry in each of two sets.
const CUT: u128 = 64;

/// The grains at which each move of packets is cut. The key is the move's step, and its index among the effects of that
/// step.
pub struct Pieces(FxHashMap<(At, usize), BTreeSet<u32>>);

/// A span of packets: its start, its end, and the index of its move.
type Use = (u32, u32, usize);

fn packets(m: &Move) -> impl Iterator<Item = &Span> {
    m.reads.iter().chain(&m.writes).filter(|s| s.space == Space::Packets)
}

impl Pieces {
    /// Cuts the moves of a program into pieces.
    ///
    /// # Errors
    /// Returns an error if the cuts exceed the limit on memory.
    pub fn new(program: &Program) -> Result<Self, limits::OverLimit> {
        let mut moves: Vec<((At, usize), &Move, BTreeSet<u32>)> = Vec::new();
        for (b, block) in program.blocks.iter().enumerate() {
            for (s, step) in block.steps.iter().enumerate() {
                let acts = step.acts.iter().enumerate();
                moves.extend(acts.filter_map(|(n, act)| match act {
                    Act::Move(m) if m.has_packets() => Some((((b, s), n), m, BTreeSet::new())),
                    _ => None,
                }));
            }
        }
        // The spans of each GPU in ascending order of their starts, each with the greatest end of the spans up to it.
        let mut spans: BTreeMap<u32, Vec<(Use, u32)>> = BTreeMap::new();
        for (n, (_, m, _)) in moves.iter().enumerate() {
            packets(m).for_each(|s| spans.entry(s.gpu).or_default().push(((s.start, s.end(), n), 0)));
        }
        for list in spans.values_mut() {
            list.sort_unstable();
            let mut reach = 0;
            for (span, upto) in list {
                reach = reach.max(span.1);
                *upto = reach;
            }
        }
        let mut open: Vec<(u32, u32)> = Vec::new();
        open.extend(moves.iter().flat_map(|(_, m, _)| packets(m)).flat_map(|s| [(s.gpu, s.start), (s.gpu, s.end())]));
        let mut known: BTreeSet<(u32, u32)> = BTreeSet::new();
        while let Some((gpu, at)) = open.pop() {
            limits::spend(WORK, 8);
            if !known.insert((gpu, at)) {
                continue;
            }
            if known.len().is_power_of_two() {
                limits::check(WORK, known.len() as u128 * CUT, 0)?;
            }
            let list = spans.get(&gpu).map_or(&[][..], Vec::as_slice);
            let before = list.partition_point(|((start, ..), _)| *start < at);
            for &((start, end, n), _) in list[..before].iter().rev().take_while(|(_, reach)| *reach > at) {
                limits::spend(WORK, 4);
                let (_, m, cuts) = &mut moves[n];
                if end > at && cuts.insert(at - start) {
                    open.extend(packets(m).map(|s| (s.gpu, s.start + (at - start))));
                }
            }
        }
        Ok(Self(moves.into_iter().map(|(place, _, cuts)| (place, cuts)).collect()))
    }

    /// Returns the first grain and the length of each piece of a move.
    pub fn of(&self, place: (At, usize), m: &Move) -> impl Iterator<Item = (u32, u32)> {
        let cuts = self.0.get(&place).into_iter().flatten().copied();
        let ends = cuts.clone().chain([m.len()]);
        std::iter::once(0).chain(cuts).zip(ends).map(|(from, to)| (from, to - from))
    }

    /// Returns the number of pieces of all moves of packets.
    pub fn count(&self) -> usize {
        self.0.values().map(|cuts| cuts.len() + 1).sum()
    }
}
