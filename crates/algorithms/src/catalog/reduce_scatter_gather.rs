//! Reduce-scatter, then gather: Rabenseifner's reduce. The vector is halved and reduced at doubling distance; then its
//! blocks are gathered to the root in reverse order.
//!
//! T = 2 log2 P alpha + 2 (P-1)/P n beta + (P-1)/P n gamma if P is a power of two. Otherwise the first ranks fold in
//! pairs first; the root stays in its pair. Operands keep their order. Source: Thakur, Rabenseifner, Gropp,
//! "Optimization of Collective Communication Operations in MPICH", 2005, section 5.1.

use unisono_collective::{Collective, Kind};
use unisono_lower::{Exchange, Flow, Round};
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Formula, Info, Params,
    formula::POWER_THAT_DIVIDES,
    ranks::{
        Blocks, Fold, RankAlgorithm,
        halving::{Halving, MOST_BUILT, halves},
    },
};

pub struct ReduceScatterGather;

impl RankAlgorithm for ReduceScatterGather {
    const INFO: Info = Info {
        name: "reduce-scatter-gather",
        summary: "halves of the vector are exchanged and reduced, then gathered to the root; best for long vectors",
        reference: "Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH, 2005",
        collectives: &[Kind::Reduce],
        formulas: &[Formula::new("hockney", &[Kind::Reduce], "2 log2(P) alpha + 2 (P-1)/P n beta + (P-1)/P n gamma")
            .when(POWER_THAT_DIVIDES)],
        sequences: &[(Kind::Reduce, &[Kind::ReduceScatter, Kind::Gather])],
        ..Info::AMONG_RANKS
    };
    const KEEPS_ORDER: bool = true;

    fn emit(&self, b: &mut Builder, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let fold = Fold::with_root(c.ranks, c.root);
        let (nodes, blocks) = (fold.nodes(), Blocks::new(c.elements, fold.whole));
        let start = |block: u32| blocks.start(block);
        let root = nodes.iter().position(|n| n.0 == c.root).expect("the root does not fold away");
        // Partial results are in scratch memory, and in the output of the root.
        let scratch: Vec<u32> =
            (0..fold.whole).map(|v| if v as usize == root { 0 } else { b.scratch(fold.real(v), c.elements) }).collect();
        let place = |v: u32, e: u32| {
            if v as usize == root { Operand::Out(e) } else { Operand::Tmp(scratch[v as usize] + e) }
        };
        b.phase("reduce-scatter");
        fold.up(b, c.elements, |v| place(v, 0));
        let have = |v: u32, stage: usize, e: u32| {
            if stage == 0 && v >= fold.pairs { Operand::In(e) } else { place(v, e) }
        };
        let halving = Halving { nodes: &nodes, bits: (0..fold.stages()).collect(), start };
        let mut held = halving.reduce_scatter(b, have, |v, _, e| place(v, e));
        b.phase("gather");
        let back = Halving { nodes: &nodes, bits: (0..fold.stages()).rev().collect(), start };
        back.gather(b, &mut held, root, place);
        Ok(())
    }

    fn rounds(&self, case: &Case, _: &Params) -> Option<Vec<Round>> {
        let c = case.collective;
        let fold = Fold::new(c.ranks);
        let (blocks, (up, halving)) = (Blocks::new(c.elements, fold.whole), fold.halving(case));
        // Blocks without elements are not sent.
        let gathered = |k: u32| Round::new(1, case.bytes(blocks.span(fold.whole >> k, 2 * (fold.whole >> k)).len));
        let gathering = (1..=fold.stages()).rev().map(gathered).filter(|round| round.bytes > 0);
        Some(fold.rounds(up, halving.into_iter().chain(gathering), []))
    }

    /// Returns the exchanges if the schedule is too large to be built for its time ([`MOST_BUILT`]); `None` otherwise,
    /// or if P is not a power of two.
    fn exchanges(&self, case: &Case, params: &Params) -> Option<Vec<Exchange>> {
        if self.instructions(case, params) <= MOST_BUILT {
            return None;
        }
        let Collective { ranks, root, .. } = case.collective;
        let mut halves = halves(case)?;
        // In each step, the ranks that differ from the root in one bit send all their blocks towards the root. They do
        // not take part in later steps.
        let gathered: Vec<Exchange> = (0..ranks.ilog2())
            .zip(&halves)
            .map(|(bit, half)| {
                let to = move |rank: u32| if (rank ^ root) >> bit == 1 { rank ^ 1 << bit } else { rank };
                Exchange { flows: vec![Flow::new(half.flows[0].bytes, 1, to)], reduced: 0 }
            })
            .collect();
        halves.extend(gathered.into_iter().rev());
        Some(halves)
    }
}
