//! Neighbor exchange: an allgather in P/2 rounds among an even number of ranks, each of which exchanges messages with
//! its two neighbors only.
//!
//! Pairs exchange their blocks. Then every rank exchanges two blocks in each round, alternately with its two neighbors:
//! it sends first the blocks of its pair, then those that it received in the round before. T = P/2 alpha + (P-1) n beta
//! for blocks of n. Source: Chen, Zhang, Zhang, Yuan, "Performance evaluation of allgather algorithms on terascale
//! Linux cluster with fast Ethernet", HPC Asia 2005; Open MPI, coll_base_allgather.c.

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{AlgorithmError, Case, Formula, Info, Params, formula::EVEN, ranks::RankAlgorithm};

pub struct Neighbor;

impl RankAlgorithm for Neighbor {
    const INFO: Info = Info {
        name: "neighbor",
        summary: "exchanges two blocks a round with one neighbor and the other by turns, among an even number of ranks",
        reference: "Chen et al.: Performance evaluation of allgather algorithms on terascale Linux cluster with fast Ethernet, 2005",
        collectives: &[Kind::Allgather],
        formulas: &[Formula::new("hockney", &[Kind::Allgather], "P/2 alpha + (P-1) n beta").when(EVEN)],
        ..Info::AMONG_RANKS
    };

    fn check(&self, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        let ranks = case.collective.ranks;
        if ranks.is_multiple_of(2) || ranks == 1 {
            return Ok(());
        }
        let reason = format!("its ranks go in pairs, and {ranks} is odd");
        Err(AlgorithmError::Unsupported { algorithm: Self::INFO.name, reason })
    }

    fn instructions(&self, case: &Case, _: &Params) -> u64 {
        u64::from(case.collective.ranks) * (u64::from(case.collective.ranks) / 2 + 3)
    }

    fn emit(&self, b: &mut Builder, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let (p, len, rounds) = (c.ranks, c.elements, c.ranks / 2);
        // In even rounds an even rank exchanges with the rank after it, in odd rounds with the rank before it; odd
        // ranks do the reverse.
        let peer = |r: u32, round: u32| if (r + round).is_multiple_of(2) { (r + 1) % p } else { (r + p - 1) % p };
        let streams: Vec<Operand> = (0..2)
            .flat_map(|round| (0..p).map(move |r| (r, round)))
            .map(|(r, round)| Operand::Stream(b.stream(NodeId(r), &[NodeId(peer(r, round))])))
            .collect();
        let stream = |r: u32, round: u32| streams[(round % 2 * p + r) as usize];
        // The pair whose blocks rank r receives in a round: its own, then alternately the next pair on each side.
        let pair = |r: u32, round: u32| {
            let away = round.div_ceil(2) * 2;
            let ahead = peer(r, round) == (r + 1) % p;
            let own = r & !1;
            if ahead { (own + away) % p } else { (own + p - away) % p }
        };
        for r in 0..p {
            let node = NodeId(r);
            let (own, other) = (Operand::Out(r * len), peer(r, 0));
            b.combine(node, 0, len, &[Operand::In(0)], &[own, stream(r, 0)]);
            b.combine(node, 0, len, &[stream(other, 0)], &[Operand::Out(other * len)]);
            if rounds > 1 {
                b.combine(node, 0, 2 * len, &[Operand::Out((r & !1) * len)], &[stream(r, 1)]);
            }
            for round in 1..rounds {
                let sinks = [Operand::Out(pair(r, round) * len), stream(r, round + 1)];
                let sinks = if round + 1 < rounds { &sinks } else { &sinks[..1] };
                b.combine(node, 0, 2 * len, &[stream(peer(r, round), round)], sinks);
            }
        }
        Ok(())
    }

    fn rounds(&self, case: &Case, _: &Params) -> Option<Vec<Round>> {
        let bytes = case.bytes(case.collective.elements);
        let round = |bytes: u64, repeat: u32| Round::new(1, bytes).times(repeat);
        Some(vec![round(bytes, 1), round(2 * bytes, case.collective.ranks / 2 - 1)])
    }
}
