//! Pipelined broadcasts and reduces, which send segments along a tree. Algorithms differ by the tree and its rounds.

use unisono_base::{NodeId, Span};
use unisono_collective::{Collective, Kind};
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use super::{
    RankAlgorithm, segments,
    tree::{Tree, broadcast, reduce, top},
};
use crate::{AlgorithmError, Case, Info, Param, Params};

/// The default bytes of a segment.
const DEFAULT: Option<u32> = Some(8 << 10);

/// A tree along which ranks send segment after segment.
///
/// If the operator of a reduce does not commute, rank 0 is the top of the tree and sends the result to the root.
pub trait PipelinedTree: Sync {
    /// Returns the facts of the algorithm, which extend [`INFO`].
    const INFO: Info;

    /// # Errors
    /// Returns an error if a parameter of the tree is wrong, or if the tree cannot keep the order of the operands.
    fn check(&self, _case: &Case, _params: &Params) -> Result<(), AlgorithmError> {
        Ok(())
    }

    /// Returns the tree with rank `top` at its top, for parameters that [`Self::check`] accepts.
    fn tree(&self, ranks: u32, top: u32, params: &Params) -> Tree;

    /// Returns an upper bound of the instructions of all `ranks` ranks together for one segment.
    fn instructions(&self, ranks: u64) -> u64;

    /// Returns the rounds of a first segment of `bytes` bytes and of `more` further segments. If `home` is true, the
    /// top also sends the result to the root. `None` without a closed form.
    fn rounds(&self, case: &Case, params: &Params, bytes: u64, more: u32, home: bool) -> Option<Vec<Round>>;
}

/// The parameter of all pipelined trees.
pub const SEGMENT: Param = Param { name: segments::NAME, values: "bytes of a segment, from 1 (default: 8192)" };

/// The facts that all pipelined trees share.
pub const INFO: Info = Info { collectives: &[Kind::Broadcast, Kind::Reduce], params: &[SEGMENT], ..Info::AMONG_RANKS };

/// A pipelined tree as a [`RankAlgorithm`].
pub struct Pipelined<T>(pub T);

impl<T: PipelinedTree> RankAlgorithm for Pipelined<T> {
    const INFO: Info = T::INFO;
    const KEEPS_ORDER: bool = true;

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        segments::segments(T::INFO.name, DEFAULT, case, params).map(|_| ())?;
        self.0.check(case, params)
    }

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let segments = segments::count(T::INFO.name, DEFAULT, case, params);
        self.0.instructions(case.collective.ranks.into()) * segments
    }

    /// Returns the number of segments. Each segment is a message from the top of the tree to a child, or to the top
    /// from a child.
    fn sends(&self, case: &Case, params: &Params) -> u64 {
        segments::count(T::INFO.name, DEFAULT, case, params)
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = &case.collective;
        let segments = segments::segments(T::INFO.name, DEFAULT, case, params)?;
        match c.kind {
            Kind::Reduce => reduce(b, c, &self.0.tree(c.ranks, top(c), params), segments, Operand::Out),
            // Among pipelined trees, only the chain implements scans.
            Kind::Scan => scan(b, c, segments),
            _ => broadcast(b, &self.0.tree(c.ranks, c.root, params), segments),
        }
        Ok(())
    }

    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        let c = &case.collective;
        let (first, more) = segments::first_and_more(T::INFO.name, DEFAULT, case, params).ok()?;
        self.0.rounds(case, params, case.bytes(first), more, c.kind == Kind::Reduce && top(c) != c.root)
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        segments::candidates(DEFAULT, case)
    }

    fn recut(&self, case: &Case, params: &Params) -> [Option<Params>; 2] {
        segments::recut(T::INFO.name, DEFAULT, case, params)
    }
}

/// Emits a scan in which each rank adds its vector to the sum that comes from the rank before it, in segments.
pub fn scan(b: &mut Builder, c: &Collective, segments: impl Iterator<Item = Span> + Clone) {
    let mut from = None;
    for r in 0..c.ranks {
        let next = (r + 1 < c.ranks).then(|| Operand::Stream(b.stream(NodeId(r), &[NodeId(r + 1)])));
        for Span { start, len } in segments.clone() {
            let sources: Vec<Operand> = from.into_iter().chain([Operand::In(start)]).collect();
            let sinks: Vec<Operand> = [Operand::Out(start)].into_iter().chain(next).collect();
            b.combine(NodeId(r), 0, len, &sources, &sinks);
        }
        from = next;
    }
}
