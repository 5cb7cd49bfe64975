//! N-way dissemination: in every round each rank sends to `ways` ranks after it and receives from as many before it, so
//! data reaches all ranks in ceil(log_{ways+1} P) rounds.
//!
//! In a barrier a rank that has heard of l ranks, itself included, receives next from the ranks at distances l, 2l, ...
//! before it; it may hear of a rank twice. An allreduce must add each operand once, for any P: the number l of operands
//! that a rank has besides its own grows with each digit d of P-1 in base ways+1, l -> (ways+1) l + d. In the round of
//! digit d, d of the senders include their own operand, and the other senders do not. If P is a power of ways+1, all
//! senders include it, which is the classic pattern. T = ceil(log_{ways+1} P)(alpha + ways n beta + ways n gamma). Each
//! rank adds in its own order, so results of ranks may differ in the last bits, unless there is one round. Source:
//! Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", 1988; Hoefler et al., "Fast barrier
//! synchronization for InfiniBand", 2006 (n ways); Bruck, Ho, "Efficient global combine operations in multi-port
//! message-passing systems", 1993 (any P).

use unisono_base::{NodeId, narrow};
use unisono_collective::{Collective, Kind};
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Formula, Info, Message, Param, Params,
    formula::POWER_OF_TWO,
    multiplying::{StagePrices, best_factored},
    ranks::{RankAlgorithm, radix},
};

pub struct Dissemination;

/// A message of each rank in a round, to the rank `ahead` ranks after it; `with_own` is true if it includes the
/// sender's operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ahead {
    ahead: u32,
    with_own: bool,
}

const MOST_WAYS: u32 = 1024;
/// The most messages of a round that a plan considers, over all ranks.
const MOST_MESSAGES: u64 = 1 << 14;

/// Returns true if a plan considers a barrier in one round.
pub(super) fn is_at_once(ranks: u32) -> bool {
    u64::from(ranks - 1) * u64::from(ranks) <= MOST_MESSAGES
}

fn ways(params: &Params) -> Result<u32, AlgorithmError> {
    Ok(params.number(Dissemination::INFO.name, "ways", 1..=MOST_WAYS)?.unwrap_or(1))
}

fn rounds(c: &Collective, ways: u32) -> Vec<Vec<Ahead>> {
    let mut all = Vec::new();
    if c.kind == Kind::Barrier {
        let mut heard = 1;
        while heard < u64::from(c.ranks) {
            let ahead = (1..=u64::from(ways)).map(|j| j * heard).take_while(|&ahead| ahead < u64::from(c.ranks));
            all.push(ahead.map(|ahead| Ahead { ahead: narrow::<u32>(ahead), with_own: true }).collect());
            heard *= u64::from(ways) + 1;
        }
        return all;
    }
    let (mut digits, mut rest) = (Vec::new(), c.ranks - 1);
    while rest > 0 {
        digits.push(rest % (ways + 1));
        rest /= ways + 1;
    }
    let mut length = 0;
    for digit in digits.into_iter().rev() {
        let with = (1..=digit).map(|j| Ahead { ahead: j * (length + 1), with_own: true });
        let before = length + digit * (length + 1);
        let without = (0..ways - digit).map(|j| Ahead { ahead: before + j * length, with_own: false });
        all.push(with.chain(without.filter(|_| length > 0)).collect());
        length = (ways + 1) * length + digit;
    }
    all
}

impl RankAlgorithm for Dissemination {
    const INFO: Info = Info {
        name: "dissemination",
        summary: "all ranks send to several ranks ahead each round; best where a rank has several messages under way at once",
        reference: "Hoefler et al.: Fast barrier synchronization for InfiniBand, 2006; Bruck, Ho: Efficient global combine operations, 1993",
        collectives: &[Kind::Allreduce, Kind::Barrier],
        params: &[Param { name: "ways", values: "messages of a rank in a round, from 1 to 1024 (default: 1)" }],
        formulas: &[
            Formula::new("hockney", &[Kind::Allreduce], "log2(P) (alpha + n beta + n gamma)").when(POWER_OF_TWO)
        ],
        ..Info::AMONG_RANKS
    };

    fn check(&self, _: &Case, params: &Params) -> Result<(), AlgorithmError> {
        ways(params).map(|_| ())
    }

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        // The count includes one stream for each message.
        let rounds = ways(params).map_or_else(|_| Vec::new(), |ways| rounds(&case.collective, ways));
        u64::from(case.collective.ranks) * rounds.iter().map(|round| round.len() as u64 + 2).sum::<u64>()
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let (p, len) = (c.ranks, c.elements);
        let rounds = rounds(&c, ways(params)?);
        // Either the partial result includes the rank's own operand from the start, or the operand is added to each
        // message and at the end.
        let includes = rounds.iter().flatten().all(|m| m.with_own);
        let streams: Vec<Vec<Vec<Operand>>> = rounds
            .iter()
            .map(|round| {
                let to = |b: &mut Builder, r: u32, m: &Ahead| b.stream(NodeId(r), &[NodeId((r + m.ahead) % p)]);
                round.iter().map(|m| (0..p).map(|r| Operand::Stream(to(b, r, m))).collect()).collect()
            })
            .collect();
        for r in 0..p {
            let sends = |round: usize, with_own: bool| {
                let chosen =
                    rounds.get(round).into_iter().flatten().enumerate().filter(move |(_, m)| m.with_own == with_own);
                chosen.map(|(n, _)| streams[round][n][r as usize]).collect::<Vec<_>>()
            };
            let scratch = if includes { 0 } else { b.scratch(NodeId(r), len) };
            let place = if includes { Operand::Out(0) } else { Operand::Tmp(scratch) };
            let mut have = includes.then_some(Operand::In(0));
            b.combine(NodeId(r), 0, len, &[Operand::In(0)], &sends(0, true));
            for (n, round) in rounds.iter().enumerate() {
                let last = n + 1 == rounds.len();
                if n > 0 && !includes {
                    let sinks = sends(n, true);
                    if !sinks.is_empty() {
                        b.combine(NodeId(r), 0, len, &[Operand::In(0), place], &sinks);
                    }
                }
                // Operands are in the order of ranks, so that a single round gives all ranks the same bits.
                let heard = round.iter().enumerate().map(|(m, message)| {
                    let from = (r + p - message.ahead) % p;
                    (from, streams[n][m][from as usize])
                });
                let mut sources: Vec<(u32, Operand)> = heard.chain(have.map(|have| (r, have))).collect();
                if last && !includes {
                    sources.push((r, Operand::In(0)));
                }
                sources.sort_by_key(|source| source.0);
                let sources: Vec<Operand> = sources.into_iter().map(|source| source.1).collect();
                let mut sinks = vec![if last { Operand::Out(0) } else { place }];
                sinks.extend(sends(n + 1, includes));
                b.combine(NodeId(r), 0, len, &sources, &sinks);
                have = Some(place);
            }
        }
        Ok(())
    }

    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        let bytes = case.bytes(case.collective.elements);
        let messages = rounds(&case.collective, ways(params).ok()?);
        let round = |round: &Vec<Ahead>| {
            let messages = narrow::<u32>(round.len());
            Round::new(messages, bytes).reducing(u64::from(messages) * bytes)
        };
        Some(messages.iter().map(round).collect())
    }

    fn gives_equal_bits(&self, case: &Case, params: &Params) -> bool {
        let c = &case.collective;
        c.kind == Kind::Barrier || ways(params).is_ok_and(|ways| rounds(c, ways).len() <= 1)
    }

    /// Returns candidates by the number of messages per round. For a barrier, they are the fewest messages with which
    /// each number of rounds suffices. For an allreduce, they are the fastest numbers by estimates, and a few small
    /// numbers, because the estimates ignore the levels and links of the machine.
    fn candidates(&self, case: &Case) -> Vec<Params> {
        let c = &case.collective;
        let ranks = u64::from(c.ranks);
        let most = MOST_WAYS.min(narrow(MOST_MESSAGES / ranks)).max(1);
        let mut worth: Vec<u32> = if c.kind == Kind::Barrier {
            let fewest = |rounds| (1..=most).find(|&ways| u64::from(ways + 1).saturating_pow(rounds) >= ranks);
            std::iter::once(1).chain((1..=32).rev().filter_map(fewest)).collect()
        } else {
            let message = case.message(case.bytes(c.elements));
            let round = |round: &Vec<_>| (narrow::<u32>(round.len()), message);
            let ns = |radix: u32| Message::rounds_ns(rounds(c, radix - 1).iter().map(round), true);
            // If the best schedule of `recursive-multiplying` has one round, it sends the same messages as a single
            // round here.
            let is_new = best_factored(c.ranks, &StagePrices::of(case)).stages.factors().len() > 1;
            let fastest = radix::fastest(c.ranks, most + 1, ns).into_iter().filter(|&radix| is_new || radix < c.ranks);
            let few = [1, 2, 3, 7].into_iter().filter(|&ways| ways == 1 || ways < c.ranks);
            fastest.map(|radix| radix - 1).chain(few).collect()
        };
        worth.sort_unstable();
        worth.dedup();
        worth.into_iter().map(|ways| Params::new().with("ways", ways)).collect()
    }
}
