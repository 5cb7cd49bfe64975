//! Exchanges between ranks that differ in one bit: the blocks of a rank halve in a reduce-scatter, and double in a
//! gather.
//!
//! Virtual rank v has a range of blocks. In a stage of halving it exchanges with virtual rank v ^ 2^bit; the rank
//! without the bit keeps the lower half. If stages go from the lowest bit to the highest, partial sums are of intervals
//! of ranks, so operands keep their order, and the blocks end in bit-reversed order. If stages go from the highest bit
//! to the lowest, block v ends on rank v. Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective
//! Communication Operations in MPICH", 2005, section 5.1.

use std::ops::Range;

use unisono_base::{NodeId, narrow};
use unisono_collective::Collective;
use unisono_lower::{Exchange, Flow};
use unisono_schedule::{Builder, Operand};

use crate::Case;

/// The ranks by virtual rank, the bits of the stages in order, and the first element of each block.
pub struct Halving<'a, F> {
    pub nodes: &'a [NodeId],
    pub bits: Vec<u32>,
    pub start: F,
}

/// The most instructions of a schedule that is built to be timed. A larger schedule is timed by its exchanges.
/// Exchanges ignore that some ranks may begin a stage early.
pub const MOST_BUILT: u64 = 1 << 18;

/// Returns the exchanges of a reduce-scatter of equal blocks, from the lowest bit to the highest; `None` if the number
/// of ranks is not a power of two.
pub fn halves(case: &Case) -> Option<Vec<Exchange>> {
    let Collective { ranks, elements, .. } = case.collective;
    let block = case.bytes(elements.div_ceil(ranks));
    let half = |bit: u32| {
        let bytes = block * u64::from(ranks >> (bit + 1));
        Exchange { flows: vec![Flow::new(bytes, 1, move |rank| rank ^ 1 << bit)], reduced: bytes }
    };
    ranks.is_power_of_two().then(|| (0..ranks.ilog2()).map(half).collect())
}

/// The range of blocks that each virtual rank has.
pub type Blocks = Vec<Range<u32>>;

impl<F: Fn(u32) -> u32> Halving<'_, F> {
    /// Returns the first element and the number of elements of a range of blocks.
    fn span(&self, blocks: &Range<u32>) -> (u32, u32) {
        let start = (self.start)(blocks.start);
        (start, (self.start)(blocks.end) - start)
    }

    fn streams(&self, b: &mut Builder, bit: u32) -> Vec<Operand> {
        let peer = |v: usize| self.nodes[v ^ 1 << bit];
        (0..self.nodes.len()).map(|v| Operand::Stream(b.stream(self.nodes[v], &[peer(v)]))).collect()
    }

    /// Emits a reduce-scatter to one block per rank, and returns these blocks. For element e on virtual rank v in a
    /// stage, `have(v, stage, e)` is the source and `keep(v, stage, e)` the destination.
    pub fn reduce_scatter(
        &self,
        b: &mut Builder,
        have: impl Fn(u32, usize, u32) -> Operand,
        keep: impl Fn(u32, usize, u32) -> Operand,
    ) -> Blocks {
        let mut held = vec![0..narrow::<u32>(self.nodes.len()); self.nodes.len()];
        for (stage, &bit) in self.bits.iter().enumerate() {
            let streams = self.streams(b, bit);
            for v in 0..self.nodes.len() {
                let (virt, upper) = (narrow::<u32>(v), v >> bit & 1 == 1);
                let middle = (held[v].start + held[v].end) / 2;
                let halves = [held[v].start..middle, middle..held[v].end];
                let [kept, given] = if upper { [&halves[1], &halves[0]] } else { [&halves[0], &halves[1]] };
                let (start, len) = self.span(given);
                b.combine(self.nodes[v], 0, len, &[have(virt, stage, start)], &[streams[v]]);
                let (start, len) = self.span(kept);
                let (mine, theirs) = (have(virt, stage, start), streams[v ^ 1 << bit]);
                let ordered = if upper { [theirs, mine] } else { [mine, theirs] };
                b.combine(self.nodes[v], 0, len, &ordered, &[keep(virt, stage, start)]);
                held[v] = kept.clone();
            }
        }
        held
    }

    /// Emits a scatter of the input of virtual rank 0 to the outputs of the other virtual ranks, one block per rank,
    /// and returns these blocks.
    pub fn scatter(&self, b: &mut Builder) -> Blocks {
        let mut held = vec![0..0; self.nodes.len()];
        held[0] = 0..narrow(self.nodes.len());
        let mut done = 0;
        for &bit in &self.bits {
            for v in (0..self.nodes.len()).filter(|v| v & !done == 0) {
                let peer = v | 1 << bit;
                let middle = (held[v].start + held[v].end) / 2;
                held[peer] = middle..held[v].end;
                held[v].end = middle;
                let (start, len) = self.span(&held[peer]);
                let stream = Operand::Stream(b.stream(self.nodes[v], &[self.nodes[peer]]));
                let from = if v == 0 { Operand::In(start) } else { Operand::Out(start) };
                b.combine(self.nodes[v], 0, len, &[from], &[stream]);
                b.combine(self.nodes[peer], 0, len, &[stream], &[Operand::Out(start)]);
            }
            done |= 1 << bit;
        }
        held
    }

    /// Emits an allgather into the outputs. If the own blocks of virtual rank v are not in its output yet, they are
    /// copied from the operand `own(v)`. Virtual rank `knows` has all blocks in its input, and no output.
    pub fn allgather(
        &self,
        b: &mut Builder,
        held: &mut Blocks,
        own: impl Fn(u32) -> Option<Operand>,
        knows: Option<usize>,
    ) {
        for (stage, &bit) in self.bits.iter().enumerate() {
            let streams = self.streams(b, bit);
            let before = held.clone();
            for v in 0..self.nodes.len() {
                let (node, peer) = (self.nodes[v], v ^ 1 << bit);
                let (start, len) = self.span(&before[v]);
                let first = own(narrow::<u32>(v)).filter(|_| stage == 0);
                if Some(peer) != knows {
                    let place = if Some(v) == knows { Operand::In(start) } else { Operand::Out(start) };
                    match first {
                        Some(first) => b.combine(node, 0, len, &[first], &[place, streams[v]]),
                        None => b.combine(node, 0, len, &[place], &[streams[v]]),
                    };
                }
                if Some(v) != knows {
                    let (start, len) = self.span(&before[peer]);
                    b.combine(node, 0, len, &[streams[peer]], &[Operand::Out(start)]);
                }
                held[v] = before[v].start.min(before[peer].start)..before[v].end.max(before[peer].end);
            }
        }
    }

    /// Emits a gather to virtual rank `root`, in the stages of [`Halving::allgather`]. `place(v, e)` is the operand
    /// with element e on virtual rank v.
    pub fn gather(&self, b: &mut Builder, held: &mut Blocks, root: usize, place: impl Fn(u32, u32) -> Operand) {
        for (stage, &bit) in self.bits.iter().enumerate() {
            // A rank takes part only if it equals the root in all bits of earlier stages.
            let done: usize = self.bits[..stage].iter().map(|bit| 1 << bit).sum();
            let before = held.clone();
            for v in (0..self.nodes.len()).filter(|v| (v ^ root) & done == 0 && (v ^ root) >> bit & 1 == 0) {
                let peer = v ^ 1 << bit;
                let stream = Operand::Stream(b.stream(self.nodes[peer], &[self.nodes[v]]));
                let (start, len) = self.span(&before[peer]);
                b.combine(self.nodes[peer], 0, len, &[place(narrow::<u32>(peer), start)], &[stream]);
                b.combine(self.nodes[v], 0, len, &[stream], &[place(narrow::<u32>(v), start)]);
                held[v] = before[v].start.min(before[peer].start)..before[v].end.max(before[peer].end);
            }
        }
    }
}
