//! Bruck: ceil(log2 P) rounds for any number of ranks, with blocks that travel in several hops.
//!
//! Allgather: rank r has the blocks of ranks r, r+1, ... and in round k sends the first 2^k of them to rank r - 2^k.
//! Alltoall: for every bit k of i, the block for the rank at distance i moves by 2^k ranks in round k. Blocks with the
//! same destination are packed, so a round is one message.
//! T = ceil(log2 P) alpha + (P-1) n beta to allgather blocks of n; ceil(log2 P)(alpha + P/2 n beta) for an alltoall if
//! P is a power of two.
//! Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport
//! message-passing systems", IEEE TPDS 1997.

use unisono_base::NodeId;
use unisono_collective::{Collective, Kind};
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{AlgorithmError, Case, Formula, Info, Params, formula::POWER_OF_TWO, ranks::RankAlgorithm};

pub struct Bruck;

/// Returns the distance of each round, in ranks.
fn distances(ranks: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).map(|k| 1 << k).take_while(move |&distance| distance < ranks)
}

/// Creates one stream from each rank `r` to the rank `to(r)`.
fn streams(b: &mut Builder, ranks: u32, to: impl Fn(u32) -> u32) -> Vec<Operand> {
    (0..ranks).map(|r| Operand::Stream(b.stream(NodeId(r), &[NodeId(to(r))]))).collect()
}

fn allgather(b: &mut Builder, c: &Collective) {
    let (p, len) = (c.ranks, c.elements);
    let rounds: Vec<_> = distances(p).map(|d| (d, streams(b, p, |r| (r + p - d) % p))).collect();
    for r in 0..p {
        let node = NodeId(r);
        // Rank 0 receives the blocks in the order of its output; other ranks rotate them at the end.
        let base = if r == 0 { 0 } else { b.scratch(node, p * len) };
        let at = |block: u32| if r == 0 { Operand::Out(block * len) } else { Operand::Tmp(base + block * len) };
        b.combine(node, 0, len, &[Operand::In(0)], &[at(0)]);
        for (distance, streams) in &rounds {
            let blocks = (*distance).min(p - distance);
            b.combine(node, 0, blocks * len, &[at(0)], &[streams[r as usize]]);
            b.combine(node, 0, blocks * len, &[streams[((r + distance) % p) as usize]], &[at(*distance)]);
        }
        if r > 0 {
            b.combine(node, 0, (p - r) * len, &[at(0)], &[Operand::Out(r * len)]);
            b.combine(node, 0, r * len, &[at(p - r)], &[Operand::Out(0)]);
        }
    }
}

/// Returns the blocks that move in the round of a distance of an alltoall, as intervals `(first, count)`; block i is
/// for the rank at distance i.
fn hopping(ranks: u32, distance: u32) -> impl Iterator<Item = (u32, u32)> + Clone {
    (distance..ranks).step_by(2 * distance as usize).map(move |first| (first, distance.min(ranks - first)))
}

/// Returns the number of blocks that move in the round of a distance of an alltoall.
fn hops(ranks: u32, distance: u32) -> u32 {
    hopping(ranks, distance).map(|(_, count)| count).sum()
}

fn alltoall(b: &mut Builder, c: &Collective) {
    let (p, len) = (c.ranks, c.elements);
    let rounds: Vec<_> = distances(p).map(|d| (d, streams(b, p, |r| (r + d) % p))).collect();
    let most = rounds.iter().map(|round| hops(p, round.0)).max().unwrap_or(0);
    for r in 0..p {
        let node = NodeId(r);
        let (base, pack) = (b.scratch(node, p * len), b.scratch(node, most * len));
        let at = |i: u32| Operand::Tmp(base + i * len);
        b.combine(node, 0, (p - r) * len, &[Operand::In(r * len)], &[at(0)]);
        b.combine(node, 0, r * len, &[Operand::In(0)], &[at(p - r)]);
        for (distance, streams) in &rounds {
            let mut packed = 0;
            for (first, count) in hopping(p, *distance) {
                b.combine(node, 0, count * len, &[at(first)], &[Operand::Tmp(pack + packed * len)]);
                packed += count;
            }
            b.combine(node, 0, packed * len, &[Operand::Tmp(pack)], &[streams[r as usize]]);
            for (first, count) in hopping(p, *distance) {
                b.combine(node, 0, count * len, &[streams[((r + p - distance) % p) as usize]], &[at(first)]);
            }
        }
        for i in 0..p {
            b.combine(node, 0, len, &[at(i)], &[Operand::Out((r + p - i) % p * len)]);
        }
    }
}

impl RankAlgorithm for Bruck {
    const INFO: Info = Info {
        name: "bruck",
        summary: "as few rounds as any number of ranks can do with; blocks travel in several hops; best for short blocks",
        reference: "Bruck et al.: Efficient algorithms for all-to-all communications in multiport message-passing systems, 1997",
        collectives: &[Kind::Allgather, Kind::Alltoall],
        formulas: &[
            Formula::new("hockney", &[Kind::Allgather], "ceil(log2(P)) alpha + (P-1) n beta"),
            Formula::new("hockney", &[Kind::Alltoall], "log2(P) (alpha + P/2 n beta)").when(POWER_OF_TWO),
        ],
        ..Info::AMONG_RANKS
    };

    fn check(&self, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        // The scratch memory needs room for all blocks and for packed messages.
        let c = &case.collective;
        let scratch = 2 * u64::from(c.ranks) * u64::from(c.elements);
        if c.kind == Kind::Alltoall && scratch > u64::from(u32::MAX) {
            let reason = format!("it would pack up to {scratch} elements on a rank; at most {} fit", u32::MAX);
            return Err(AlgorithmError::Unsupported { algorithm: Self::INFO.name, reason });
        }
        Ok(())
    }

    fn instructions(&self, case: &Case, _: &Params) -> u64 {
        let ranks = u64::from(case.collective.ranks);
        let rounds = u64::from(ranks.ilog2()) + 1;
        ranks * if case.collective.kind == Kind::Allgather { 2 * rounds + 3 } else { 3 * ranks + 3 * rounds + 2 }
    }

    fn emit(&self, b: &mut Builder, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        let c = &case.collective;
        if c.kind == Kind::Allgather {
            allgather(b, c);
        } else {
            alltoall(b, c);
        }
        Ok(())
    }

    fn rounds(&self, case: &Case, _: &Params) -> Option<Vec<Round>> {
        let c = &case.collective;
        let blocks = |d: u32| if c.kind == Kind::Allgather { d.min(c.ranks - d) } else { hops(c.ranks, d) };
        let bytes = case.bytes(c.elements);
        let round = |d: u32| Round::new(1, u64::from(blocks(d)) * bytes);
        Some(distances(c.ranks).map(round).collect())
    }
}
