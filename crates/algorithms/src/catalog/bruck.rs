//! Bruck: ceil(log2 P) rounds for any number of ranks, with blocks that travel in several hops.
//!
//! Allgather: rank r has the blocks of ranks r, r+1, ... and in round k sends the first 2^k of them to rank r - 2^k.
//! Alltoall: for every bit k of i, the block for the rank at distance i moves by 2^k ranks in round k. Blocks with the
//! same destination are packed, so a round is one message.
//! T = ceil(log2 P) alpha + (P-1) n beta to allgather blocks of n; ceil(log2 P)(alpha + P/2 n beta) for an alltoall if
//! P is a power of two. With a *radix* k a rank exchanges with k - 1 ranks in each of ceil(logk P) rounds, at distances
//! j k^i for 0 < j < k: an allgather sends up to k^i blocks to each, and an alltoall those whose i-th digit in base k
//! is j.
//! Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport
//! message-passing systems", IEEE TPDS 1997.

use unisono_base::{NodeId, narrow};
use unisono_collective::{Collective, Kind};
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Formula, Info, Message, Param, Params,
    formula::POWER_OF_TWO,
    ranks::{RankAlgorithm, radix},
};

pub struct Bruck;

const RADIX: &str = "radix";
const BINARY: u32 = 2;
const MOST_RADIX: u32 = 1 << 16;
/// The most instructions of a candidate with a radix above 2. A plan simulates such a candidate if it has no closed
/// form.
const MOST_TRIED: u64 = 1 << 18;
/// [`MOST_TRIED`] on a network, because timetables take longer.
const MOST_TRIED_ON_LINKS: u64 = 1 << 14;

fn radix(params: &Params) -> Result<u32, AlgorithmError> {
    Ok(params.number(Bruck::INFO.name, RADIX, BINARY..=MOST_RADIX)?.unwrap_or(BINARY))
}

/// Returns the distances of each round, in ranks, ascending; the first is the least distance of the round.
fn rounds(ranks: u32, radix: u32) -> impl Iterator<Item = Vec<u32>> {
    let least = std::iter::successors(Some(1_u32), move |least| least.checked_mul(radix));
    let distances = move |least: u32| (least..ranks).step_by(least as usize).take(radix as usize - 1).collect();
    least.take_while(move |&least| least < ranks).map(distances)
}

/// The streams of one distance in a round.
struct Hop {
    /// The least distance of the round.
    least: u32,
    distance: u32,
    /// The stream from each rank.
    streams: Vec<Operand>,
}

/// Creates the streams of each round from each rank `r` to the ranks `to(r, distance)`.
fn hops(b: &mut Builder, ranks: u32, radix: u32, to: impl Fn(u32, u32) -> u32) -> Vec<Vec<Hop>> {
    let mut hop = |least: u32, distance: u32| {
        let stream = |r: u32| Operand::Stream(b.stream(NodeId(r), &[NodeId(to(r, distance))]));
        Hop { least, distance, streams: (0..ranks).map(stream).collect() }
    };
    rounds(ranks, radix).map(|round| round.iter().map(|&distance| hop(round[0], distance)).collect()).collect()
}

/// Returns the number of blocks in a message of an allgather to the rank at distance `distance`.
fn gathered(ranks: u32, least: u32, distance: u32) -> u32 {
    least.min(ranks - distance)
}

fn allgather(b: &mut Builder, c: &Collective, radix: u32) {
    let (p, len) = (c.ranks, c.elements);
    let rounds = hops(b, p, radix, |r, distance| (r + p - distance) % p);
    for r in 0..p {
        let node = NodeId(r);
        // Rank 0 receives the blocks in the order of its output. Other ranks receive into scratch memory and rotate the
        // blocks at the end.
        let base = if r == 0 { 0 } else { b.scratch(node, p * len) };
        let at = |block: u32| if r == 0 { Operand::Out(block * len) } else { Operand::Tmp(base + block * len) };
        b.combine(node, 0, len, &[Operand::In(0)], &[at(0)]);
        for round in &rounds {
            for Hop { least, distance, streams } in round {
                b.combine(node, 0, gathered(p, *least, *distance) * len, &[at(0)], &[streams[r as usize]]);
            }
            for Hop { least, distance, streams } in round {
                let from = streams[((r + distance) % p) as usize];
                b.combine(node, 0, gathered(p, *least, *distance) * len, &[from], &[at(*distance)]);
            }
        }
        if r > 0 {
            b.combine(node, 0, (p - r) * len, &[at(0)], &[Operand::Out(r * len)]);
            b.combine(node, 0, r * len, &[at(p - r)], &[Operand::Out(0)]);
        }
    }
}

/// Returns the blocks in a message of an alltoall to the rank at distance `distance`, as intervals `(first, count)`.
/// Block i is for the rank at distance i.
fn hopping(ranks: u32, radix: u32, least: u32, distance: u32) -> impl Iterator<Item = (u32, u32)> + Clone {
    let apart = u64::from(radix) * u64::from(least);
    (distance..ranks).step_by(narrow::<usize>(apart)).map(move |first| (first, least.min(ranks - first)))
}

/// Returns the number of blocks in a message of an alltoall to the rank at distance `distance`.
fn scattered(ranks: u32, radix: u32, least: u32, distance: u32) -> u32 {
    let (rest, apart) = (u64::from(ranks - distance), u64::from(radix) * u64::from(least));
    narrow::<u32>(rest / apart * u64::from(least) + u64::from(least).min(rest % apart))
}

fn alltoall(b: &mut Builder, c: &Collective, radix: u32) {
    let (p, len) = (c.ranks, c.elements);
    let rounds = hops(b, p, radix, |r, distance| (r + distance) % p);
    // In a round, no message has more blocks than the message to the least distance.
    let most = rounds.iter().map(|round| scattered(p, radix, round[0].least, round[0].distance)).max().unwrap_or(0);
    for r in 0..p {
        let node = NodeId(r);
        let (base, pack) = (b.scratch(node, p * len), b.scratch(node, most * len));
        let at = |i: u32| Operand::Tmp(base + i * len);
        b.combine(node, 0, (p - r) * len, &[Operand::In(r * len)], &[at(0)]);
        b.combine(node, 0, r * len, &[Operand::In(0)], &[at(p - r)]);
        for round in &rounds {
            for Hop { least, distance, streams } in round {
                let mut packed = 0;
                for (first, count) in hopping(p, radix, *least, *distance) {
                    b.combine(node, 0, count * len, &[at(first)], &[Operand::Tmp(pack + packed * len)]);
                    packed += count;
                }
                b.combine(node, 0, packed * len, &[Operand::Tmp(pack)], &[streams[r as usize]]);
            }
            for Hop { least, distance, streams } in round {
                for (first, count) in hopping(p, radix, *least, *distance) {
                    b.combine(node, 0, count * len, &[streams[((r + p - distance) % p) as usize]], &[at(first)]);
                }
            }
        }
        for i in 0..p {
            b.combine(node, 0, len, &[at(i)], &[Operand::Out((r + p - i) % p * len)]);
        }
    }
}

/// Returns, for each round, the number of blocks in each message of a rank.
fn messages(c: &Collective, radix: u32) -> impl Iterator<Item = Vec<u32>> {
    let (ranks, is_gathered) = (c.ranks, c.kind == Kind::Allgather);
    rounds(ranks, radix).map(move |round| {
        let blocks = |&distance: &u32| match is_gathered {
            true => gathered(ranks, round[0], distance),
            false => scattered(ranks, radix, round[0], distance),
        };
        round.iter().map(blocks).collect()
    })
}

/// Returns the approximate time in ns: all messages of a round are as long as its longest message.
fn bruck_ns(case: &Case, radix: u32) -> f64 {
    let c = &case.collective;
    let round = |blocks: Vec<u32>| {
        let message = case.message(u64::from(blocks[0]) * case.bytes(c.elements));
        (narrow::<u32>(blocks.len()), message)
    };
    Message::rounds_ns(messages(c, radix).map(round), false)
}

impl RankAlgorithm for Bruck {
    const INFO: Info = Info {
        name: "bruck",
        summary: "as few rounds as any number of ranks can do with; blocks travel in several hops; best for short blocks",
        reference: "Bruck et al.: Efficient algorithms for all-to-all communications in multiport message-passing systems, 1997",
        collectives: &[Kind::Allgather, Kind::Alltoall],
        params: &[Param { name: RADIX, values: "messages of a rank in a round, plus 1: 2 to 65536 (default: 2)" }],
        formulas: &[
            Formula::new("hockney", &[Kind::Allgather], "ceil(log2(P)) alpha + (P-1) n beta"),
            Formula::new("hockney", &[Kind::Alltoall], "log2(P) (alpha + P/2 n beta)").when(POWER_OF_TWO),
        ],
        ..Info::AMONG_RANKS
    };

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        radix(params)?;
        // The scratch memory needs room for all blocks and for packed messages.
        let c = &case.collective;
        let scratch = 2 * u64::from(c.ranks) * u64::from(c.elements);
        if c.kind == Kind::Alltoall && scratch > u64::from(u32::MAX) {
            let reason = format!("it would pack up to {scratch} elements on a rank; at most {} fit", u32::MAX);
            return Err(AlgorithmError::Unsupported { algorithm: Self::INFO.name, reason });
        }
        Ok(())
    }

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let c = &case.collective;
        let (ranks, radix) = (u64::from(c.ranks), radix(params).unwrap_or(BINARY));
        let sends: u64 = rounds(c.ranks, radix).map(|round| round.len() as u64).sum();
        ranks * if c.kind == Kind::Allgather { 2 * sends + 3 } else { 3 * ranks + 3 * sends + 2 }
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = &case.collective;
        if c.kind == Kind::Allgather {
            allgather(b, c, radix(params)?);
        } else {
            alltoall(b, c, radix(params)?);
        }
        Ok(())
    }

    /// Returns the rounds; `None` if a round has messages of different lengths.
    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        let c = &case.collective;
        let round = |blocks: Vec<u32>| {
            let round = Round::new(narrow::<u32>(blocks.len()), u64::from(blocks[0]) * case.bytes(c.elements));
            blocks.iter().all(|&each| each == blocks[0]).then_some(round)
        };
        messages(c, radix(params).ok()?).map(round).collect()
    }

    /// Returns radix 2 and the fastest radices. Omits cases that other algorithms cover: on machines without a network,
    /// `recursive-exchange` allgathers without rotating blocks if the number of ranks is a power of the radix, and
    /// `linear` sends all blocks of an alltoall in one round.
    fn candidates(&self, case: &Case) -> Vec<Params> {
        let (c, is_network) = (&case.collective, case.ranks().extents.is_some());
        let most = if is_network { MOST_TRIED_ON_LINKS } else { MOST_TRIED };
        let is_new = |&radix: &u32| match c.kind {
            Kind::Allgather => is_network || radix.pow(c.ranks.ilog(radix)) != c.ranks,
            _ => radix < c.ranks,
        };
        let radices = radix::fastest(c.ranks, MOST_RADIX, |radix| bruck_ns(case, radix));
        let others = radices.into_iter().filter(|&radix| radix > BINARY).filter(is_new);
        let named = others.map(|radix| Params::new().with(RADIX, radix));
        let tried = named.filter(|params| self.instructions(case, params) <= most);
        std::iter::once(Params::new()).chain(tried).collect()
    }
}
