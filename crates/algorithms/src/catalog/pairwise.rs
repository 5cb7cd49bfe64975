//! Pairwise exchange: in round k every rank sends to the rank k after it and receives from the rank k before it.
//!
//! T = (P-1)(alpha + n beta [+ n gamma]) for blocks of n. Every block is sent directly to the rank that keeps it. In a
//! reduce-scatter a rank adds its own block first, then those of the ranks before it, so the operator must commute.
//! Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005.

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::{Exchange, Flow, Round};
use unisono_schedule::{Builder, Operand};

use crate::{AlgorithmError, Case, Formula, Info, Params, ranks::RankAlgorithm};

pub struct Pairwise;

impl RankAlgorithm for Pairwise {
    const INFO: Info = Info {
        name: "pairwise",
        summary: "P-1 rounds, in round k with the ranks k before and after; best for long blocks",
        reference: "Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH, 2005",
        collectives: &[Kind::Alltoall, Kind::ReduceScatter],
        formulas: &[
            Formula::new("hockney", &[Kind::Alltoall], "(P-1) (alpha + n beta)"),
            Formula::new("hockney", &[Kind::ReduceScatter], "(P-1) (alpha + n beta + n gamma)"),
        ],
        ..Info::AMONG_RANKS
    };

    fn instructions(&self, case: &Case, _: &Params) -> u64 {
        2 * u64::from(case.collective.ranks).pow(2)
    }

    fn emit(&self, b: &mut Builder, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let (p, len) = (c.ranks, c.elements);
        // Stream (k-1) P + r goes from rank r to rank r + k.
        let ways = (1..p).flat_map(|k| (0..p).map(move |r| (NodeId(r), NodeId((r + k) % p))));
        let streams: Vec<Operand> = ways.map(|(from, to)| Operand::Stream(b.stream(from, &[to]))).collect();
        for r in 0..p {
            let own = Operand::In(r * len);
            if c.kind == Kind::Alltoall {
                b.combine(NodeId(r), 0, len, &[own], &[Operand::Out(r * len)]);
            }
            for k in 1..p {
                let (to, from) = ((r + k) % p, (r + p - k) % p);
                let (sent, got) = (streams[((k - 1) * p + r) as usize], streams[((k - 1) * p + from) as usize]);
                b.combine(NodeId(r), 0, len, &[Operand::In(to * len)], &[sent]);
                if c.kind == Kind::Alltoall {
                    b.combine(NodeId(r), 0, len, &[got], &[Operand::Out(from * len)]);
                } else {
                    let sum = if k == 1 { own } else { Operand::Out(0) };
                    b.combine(NodeId(r), 0, len, &[sum, got], &[Operand::Out(0)]);
                }
            }
        }
        Ok(())
    }

    fn exchanges(&self, case: &Case, _: &Params) -> Option<Vec<Exchange>> {
        let c = case.collective;
        let bytes = case.bytes(c.elements);
        let reduced = if c.kind == Kind::ReduceScatter { bytes } else { 0 };
        let round = |k: u32| Exchange { flows: vec![Flow::new(bytes, 1, move |r| (r + k) % c.ranks)], reduced };
        Some((1..c.ranks).map(round).collect())
    }

    fn rounds(&self, case: &Case, _: &Params) -> Option<Vec<Round>> {
        let c = &case.collective;
        let bytes = case.bytes(c.elements);
        let reduced = if c.kind == Kind::ReduceScatter { bytes } else { 0 };
        Some(vec![Round::new(1, bytes).reducing(reduced).times(c.ranks - 1)])
    }
}
