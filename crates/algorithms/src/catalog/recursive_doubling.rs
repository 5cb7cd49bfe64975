//! Recursive doubling: in stage k every rank exchanges what it has with the rank 2^k away.
//!
//! Where P is no power of two, the first 2r ranks collapse in pairs to r (P = 2^m + r), and expand at the end.
//! Every rank adds the same operands in the same order, so all ranks end with the same bits.
//! Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005; MPICH.

use unisono_base::NodeId;
use unisono_collective::{Collective, Kind};
use unisono_schedule::{Builder, Operand};

use crate::{AlgorithmError, Case, Params, ranks::RankAlgorithm};

pub struct RecursiveDoubling;

impl RankAlgorithm for RecursiveDoubling {
    fn name(&self) -> &'static str {
        "recursive-doubling"
    }

    fn summary(&self) -> &'static str {
        "exchanges with the rank 1, 2, 4, ... away; best for short vectors where a message costs the same to any number"
    }

    fn reference(&self) -> &'static str {
        "Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH, 2005"
    }

    fn collectives(&self) -> &'static [Kind] {
        &[Kind::Allreduce]
    }

    fn keeps_order(&self, _: &Collective) -> bool {
        true
    }

    fn emit(&self, b: &mut Builder, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let (ranks, len) = (c.ranks, c.elements);
        let whole = 1 << ranks.ilog2();
        let rest = ranks - whole;
        // Virtual rank v is real rank: the odd one of each collapsed pair, then all others.
        let real = |v: u32| NodeId(if v < rest { 2 * v + 1 } else { v + rest });
        b.reserve(ranks as usize * (whole.ilog2() as usize + 2), ranks as usize * (whole.ilog2() as usize + 1));
        b.phase("exchange");
        let mut have = vec![Operand::In(0); whole as usize];
        for v in 0..rest {
            let (even, odd) = (NodeId(2 * v), NodeId(2 * v + 1));
            let up = b.stream(even, &[odd]);
            b.combine(even, 0, len, &[Operand::In(0)], &[Operand::Stream(up)]);
            b.combine(odd, 0, len, &[Operand::Stream(up), Operand::In(0)], &[Operand::Out(0)]);
            have[v as usize] = Operand::Out(0);
        }
        for k in 0..whole.ilog2() {
            let to: Vec<_> = (0..whole).map(|v| b.stream(real(v), &[real(v ^ 1 << k)])).collect();
            for v in 0..whole {
                let (mine, theirs) = (have[v as usize], Operand::Stream(to[(v ^ 1 << k) as usize]));
                b.combine(real(v), 0, len, &[mine], &[Operand::Stream(to[v as usize])]);
                let ordered = if v >> k & 1 == 0 { [mine, theirs] } else { [theirs, mine] };
                b.combine(real(v), 0, len, &ordered, &[Operand::Out(0)]);
            }
            have.fill(Operand::Out(0));
        }
        for v in 0..rest {
            let (even, odd) = (NodeId(2 * v), NodeId(2 * v + 1));
            let down = b.stream(odd, &[even]);
            b.combine(odd, 0, len, &[Operand::Out(0)], &[Operand::Stream(down)]);
            b.combine(even, 0, len, &[Operand::Stream(down)], &[Operand::Out(0)]);
        }
        if ranks == 1 {
            b.combine(NodeId(0), 0, len, &[Operand::In(0)], &[Operand::Out(0)]);
        }
        Ok(())
    }
}
