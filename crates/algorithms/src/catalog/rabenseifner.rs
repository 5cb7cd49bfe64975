//! Rabenseifner: a reduce-scatter by halving the vector and doubling the distance, then an allgather in reverse order.
//!
//! T = 2 log2 P alpha + 2 (P-1)/P n beta + (P-1)/P n gamma if P is a power of two. Otherwise the first ranks fold in
//! pairs first, and get the result at the end. Partial sums are of intervals of ranks, so operands keep their order,
//! and every element is reduced in the order of recursive doubling, with the same bits. Source: Rabenseifner,
//! "Optimization of collective reduction operations", ICCS 2004; Thakur, Rabenseifner, Gropp, "Optimization of
//! Collective Communication Operations in MPICH", 2005, section 5.1.

use unisono_collective::Kind;
use unisono_lower::{Exchange, Round};
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Formula, Info, Params,
    formula::POWER_THAT_DIVIDES,
    ranks::{
        Blocks, Fold, RankAlgorithm,
        halving::{Halving, MOST_BUILT, halves},
    },
};

pub struct Rabenseifner;

impl RankAlgorithm for Rabenseifner {
    const INFO: Info = Info {
        name: "rabenseifner",
        summary: "halves of the vector are exchanged and reduced, then gathered the same way back; best for long vectors",
        reference: "Rabenseifner: Optimization of collective reduction operations, 2004",
        collectives: &[Kind::Allreduce],
        formulas: &[Formula::new(
            "hockney",
            &[Kind::Allreduce],
            "2 log2(P) alpha + 2 (P-1)/P n beta + (P-1)/P n gamma",
        )
        .when(POWER_THAT_DIVIDES)],
        sequences: &[(Kind::Allreduce, &[Kind::ReduceScatter, Kind::Allgather])],
        ..Info::AMONG_RANKS
    };
    const KEEPS_ORDER: bool = true;

    fn emit(&self, b: &mut Builder, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let fold = Fold::new(c.ranks);
        let (nodes, blocks) = (fold.nodes(), Blocks::new(c.elements, fold.whole));
        let start = |block: u32| blocks.start(block);
        b.phase("reduce-scatter");
        fold.up(b, c.elements, |_| Operand::Out(0));
        let have = |v: u32, stage: usize, e: u32| {
            if stage == 0 && v >= fold.pairs { Operand::In(e) } else { Operand::Out(e) }
        };
        let halving = Halving { nodes: &nodes, bits: (0..fold.stages()).collect(), start };
        let mut held = halving.reduce_scatter(b, have, |_, _, e| Operand::Out(e));
        b.phase("allgather");
        let doubling = Halving { nodes: &nodes, bits: (0..fold.stages()).rev().collect(), start };
        doubling.allgather(b, &mut held, |_| None, None);
        for v in 0..fold.pairs {
            let (stays, goes) = fold.pair(v);
            let down = Operand::Stream(b.stream(stays, &[goes]));
            b.combine(stays, 0, c.elements, &[Operand::Out(0)], &[down]);
            b.combine(goes, 0, c.elements, &[down], &[Operand::Out(0)]);
        }
        Ok(())
    }

    fn rounds(&self, case: &Case, _: &Params) -> Option<Vec<Round>> {
        let c = case.collective;
        let fold = Fold::new(c.ranks);
        let (up, halving) = fold.halving(case);
        let doubling: Vec<Round> = halving.iter().rev().map(|round| Round::new(1, round.bytes)).collect();
        Some(fold.rounds(up, halving.into_iter().chain(doubling), [Round::new(1, up.bytes)]))
    }

    /// Returns the exchanges if the schedule is too large to be built for its time ([`MOST_BUILT`]); `None` otherwise,
    /// or if P is not a power of two.
    fn exchanges(&self, case: &Case, params: &Params) -> Option<Vec<Exchange>> {
        if self.instructions(case, params) <= MOST_BUILT {
            return None;
        }
        let mut halves = halves(case)?;
        let doubling: Vec<Exchange> = halves.iter().rev().map(|half| Exchange { reduced: 0, ..half.clone() }).collect();
        halves.extend(doubling);
        Some(halves)
    }
}
