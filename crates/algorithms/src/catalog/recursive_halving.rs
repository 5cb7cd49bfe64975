//! Recursive halving: a reduce-scatter in which every rank exchanges half of its elements with the rank P/2, P/4, ...
//! away.
//!
//! T = log2 P alpha + (P-1) n (beta + gamma) for blocks of n if P is a power of two. Otherwise the first ranks fold in
//! pairs first, and get their blocks at the end. The first stage combines operands of ranks P/2 apart, so the operator
//! must commute. Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH",
//! 2005 (reduce-scatter).

use unisono_collective::Kind;
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Formula, Info, Params,
    formula::POWER_OF_TWO,
    ranks::{Fold, RankAlgorithm, halving::Halving},
};

pub struct RecursiveHalving;

impl RankAlgorithm for RecursiveHalving {
    const INFO: Info = Info {
        name: "recursive-halving",
        summary: "exchanges half of what is left with the rank P/2, P/4, ... away; best for short and middle blocks",
        reference: "Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH, 2005",
        collectives: &[Kind::ReduceScatter],
        formulas: &[Formula::new("hockney", &[Kind::ReduceScatter], "log2(P) alpha + (P-1) n (beta + gamma)")
            .when(POWER_OF_TWO)],
        ..Info::AMONG_RANKS
    };

    fn emit(&self, b: &mut Builder, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let (len, all) = (c.elements, c.elements * c.ranks);
        let fold = Fold::new(c.ranks);
        let nodes = fold.nodes();
        let start = |block: u32| fold.first(block) * len;
        // The elements of which a virtual rank stores sums: the whole vector after a fold, otherwise the half that the
        // rank keeps in the first stage.
        let middle = start(fold.whole / 2);
        let keeps = |v: u32| match v {
            _ if v < fold.pairs => (0, all),
            _ if v < fold.whole / 2 => (0, middle),
            _ => (middle, all - middle),
        };
        let last = fold.stages() as usize - 1;
        let mut scratch = Vec::new();
        for v in 0..fold.whole {
            let straight = last == 0 && v >= fold.pairs;
            scratch.push(if straight { 0 } else { b.scratch(fold.real(v), keeps(v).1) });
        }
        let tmp = |v: u32, e: u32| Operand::Tmp(scratch[v as usize] + e - keeps(v).0);
        fold.up(b, all, |v| tmp(v, 0));
        let have =
            |v: u32, stage: usize, e: u32| if stage == 0 && v >= fold.pairs { Operand::In(e) } else { tmp(v, e) };
        let keep = |v: u32, stage: usize, e: u32| {
            if stage == last && v >= fold.pairs { Operand::Out(0) } else { tmp(v, e) }
        };
        Halving { nodes: &nodes, bits: (0..fold.stages()).rev().collect(), start }.reduce_scatter(b, have, keep);
        for v in 0..fold.pairs {
            let (stays, goes) = fold.pair(v);
            let down = Operand::Stream(b.stream(stays, &[goes]));
            b.combine(stays, 0, len, &[tmp(v, goes.0 * len)], &[down]);
            b.combine(stays, 0, len, &[tmp(v, stays.0 * len)], &[Operand::Out(0)]);
            b.combine(goes, 0, len, &[down], &[Operand::Out(0)]);
        }
        Ok(())
    }

    fn rounds(&self, case: &Case, _: &Params) -> Option<Vec<Round>> {
        let c = case.collective;
        let (fold, block) = (Fold::new(c.ranks), case.bytes(c.elements));
        let of = |blocks: u32| Round::new(1, block * u64::from(blocks)).reducing(block * u64::from(blocks));
        // A virtual rank represents two blocks if it folded with another rank, otherwise one.
        let most = |virtual_ranks: u32| virtual_ranks + virtual_ranks.min(fold.pairs);
        let halving = (1..=fold.stages()).map(|k| of(most(fold.whole >> k)));
        Some(fold.rounds(of(c.ranks), halving, [Round::new(1, block)]))
    }
}
