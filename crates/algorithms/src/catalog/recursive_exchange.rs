//! Recursive exchange: an allgather in which groups of k ranks exchange their blocks, at distances 1, k, k^2, ...
//!
//! The number of ranks that exchange is p = k^n, the largest power of k up to P. The first ranks form sets of k
//! consecutive ranks: all except the last rank of a set are *set apart*, send their blocks to the last rank before the
//! exchanges, and get the whole vector at the end. Fewer than k - 1 further ranks may be set apart; they send to the
//! first rank after them that is not. A rank that exchanges represents an interval of ranks, so all blocks travel as
//! intervals of the vector.
//!
//! Doubling: n stages at distances 1, k, ...; in a stage a rank sends all its blocks to the k - 1 other ranks of its
//! group. T = sum over stages s of alpha_p + (k - 1)(alpha_r + k^s m beta) for blocks of m if P is a power of k.
//! Halving: ranks first swap their blocks by reversed digits in base k, and then exchange at distances p/k, ..., k, 1,
//! so the long messages go to near ranks.
//!
//! Source: MPICH, `MPIR_Allgather_intra_recexch`; Sack, Gropp, "Faster topology-aware collective algorithms through
//! non-minimal communication", 2012 (distance halving).

use std::iter;

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Info, Message, Param, Params,
    ranks::{RankAlgorithm, radix},
};

pub struct RecursiveExchange;

const ORDERS: [&str; 2] = ["doubling", "halving"];
const MOST_RADIX: u32 = 1 << 16;

/// The division of the ranks into virtual ranks, which exchange, and ranks that are set apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sets {
    pub radix: u32,
    /// n, the number of stages.
    stages: u32,
    /// p = k^n, the number of virtual ranks.
    pub virtual_ranks: u32,
    /// P - p, the number of ranks that are set apart.
    apart: u32,
    /// The number of sets whose first k - 1 ranks are set apart.
    full: u32,
}

impl Sets {
    /// Divides `ranks` ranks, at least two.
    pub fn new(ranks: u32, radix: u32) -> Self {
        let radix = radix.clamp(2, ranks);
        let stages = ranks.ilog(radix);
        let virtual_ranks = radix.pow(stages);
        let apart = ranks - virtual_ranks;
        Self { radix, stages, virtual_ranks, apart, full: apart / (radix - 1) }
    }

    /// Returns the real rank of virtual rank `v`: the last rank of the interval that it represents.
    pub fn real(&self, v: u32) -> u32 {
        if v < self.full { v * self.radix + self.radix - 1 } else { v + self.apart }
    }

    /// Returns the first rank of the interval that virtual rank `v` represents; for v = p, the number of ranks.
    pub fn first(&self, v: u32) -> u32 {
        if v <= self.full { v * self.radix } else { v + self.apart }
    }

    /// Returns the virtual ranks whose blocks virtual rank `v` has before the exchange at distance k^stage, if
    /// distances double.
    fn group(&self, v: u32, stage: u32) -> std::ops::Range<u32> {
        let size = self.radix.pow(stage);
        let start = v / size * size;
        start..start + size
    }

    /// Returns the other virtual ranks of the exchange at distance k^stage, ascending from `v` and then from the first
    /// rank of the group, so that the first messages of all ranks go to different ranks.
    fn peers(&self, v: u32, stage: u32) -> impl Iterator<Item = u32> + use<> {
        let (radix, distance) = (self.radix, self.radix.pow(stage));
        let own = v / distance % radix;
        let zero = v - own * distance;
        (1..radix).map(move |step| zero + (own + step) % radix * distance)
    }

    /// Returns the virtual rank with the digits of `v` in reverse order.
    pub fn reversed(&self, v: u32) -> u32 {
        (0..self.stages).fold((v, 0), |(rest, found), _| (rest / self.radix, found * self.radix + rest % self.radix)).1
    }
}

/// The builder of the schedule, with the division of the ranks.
struct Exchange<'a> {
    b: &'a mut Builder,
    sets: Sets,
    /// Elements of a block.
    len: u32,
}

impl Exchange<'_> {
    /// For the blocks that the virtual ranks `of` represent, returns their operand in the output and their number of
    /// elements.
    fn blocks(&self, of: &std::ops::Range<u32>) -> (Operand, u32) {
        let (start, end) = (self.sets.first(of.start), self.sets.first(of.end));
        (Operand::Out(start * self.len), (end - start) * self.len)
    }

    fn node(&self, v: u32) -> NodeId {
        NodeId(self.sets.real(v))
    }

    /// Receives the blocks of the ranks that are set apart, and copies each rank's own block to the output.
    fn collect(&mut self) {
        for v in 0..self.sets.virtual_ranks {
            let (node, last) = (self.node(v), self.sets.real(v));
            for apart in self.sets.first(v)..last {
                let up = Operand::Stream(self.b.stream(NodeId(apart), &[node]));
                self.b.combine(NodeId(apart), 0, self.len, &[Operand::In(0)], &[up]);
                self.b.combine(node, 0, self.len, &[up], &[Operand::Out(apart * self.len)]);
            }
            self.b.combine(node, 0, self.len, &[Operand::In(0)], &[Operand::Out(last * self.len)]);
        }
    }

    /// Sends, from every virtual rank `v`, the blocks of the virtual ranks `held(v)` to each of `peers(v)`.
    fn stage(&mut self, held: impl Fn(u32) -> std::ops::Range<u32>, peers: impl Fn(u32) -> Vec<u32>) {
        let mut arrivals: Vec<(u32, u32, Operand)> = Vec::new();
        for v in 0..self.sets.virtual_ranks {
            let node = self.node(v);
            let sinks: Vec<Operand> =
                peers(v).iter().map(|&peer| Operand::Stream(self.b.stream(node, &[self.node(peer)]))).collect();
            if sinks.is_empty() {
                continue;
            }
            let (place, len) = self.blocks(&held(v));
            self.b.combine(node, 0, len, &[place], &sinks);
            arrivals.extend(peers(v).iter().zip(sinks).map(|(&peer, stream)| (peer, v, stream)));
        }
        arrivals.sort_unstable_by_key(|&(to, from, _)| (to, from));
        for (to, from, stream) in arrivals {
            let (place, len) = self.blocks(&held(from));
            self.b.combine(self.node(to), 0, len, &[stream], &[place]);
        }
    }

    /// Sends the whole vector, `all` elements, to the ranks that are set apart.
    fn expand(&mut self, all: u32) {
        for v in 0..self.sets.virtual_ranks {
            let (node, apart) = (self.node(v), self.sets.first(v)..self.sets.real(v));
            let sinks: Vec<Operand> =
                apart.clone().map(|rank| Operand::Stream(self.b.stream(node, &[NodeId(rank)]))).collect();
            if !sinks.is_empty() {
                self.b.combine(node, 0, all, &[Operand::Out(0)], &sinks);
            }
            for (rank, stream) in apart.zip(sinks) {
                self.b.combine(NodeId(rank), 0, all, &[stream], &[Operand::Out(0)]);
            }
        }
    }
}

/// Returns the radix, and true if distances are halved.
fn given(params: &Params) -> Result<(u32, bool), AlgorithmError> {
    let radix = params.number(RecursiveExchange::INFO.name, "radix", 2..=MOST_RADIX)?.unwrap_or(2);
    Ok((radix, params.choice(RecursiveExchange::INFO.name, "order", &ORDERS)? == "halving"))
}

impl RankAlgorithm for RecursiveExchange {
    const INFO: Info = Info {
        name: "recursive-exchange",
        summary: "exchanges among groups of k ranks at distances 1, k, k^2, ...; best for short blocks where messages overlap",
        reference: "MPICH, allgather_intra_recexch; Sack, Gropp: Faster topology-aware collective algorithms through non-minimal communication, 2012",
        collectives: &[Kind::Allgather],
        params: &[
            Param { name: "radix", values: "ranks of a group (default: 2)" },
            Param { name: "order", values: "doubling, halving of distances (default: doubling)" },
        ],
        ..Info::AMONG_RANKS
    };

    fn check(&self, _: &Case, params: &Params) -> Result<(), AlgorithmError> {
        given(params).map(|_| ())
    }

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let ranks = case.collective.ranks;
        let sets = Sets::new(ranks.max(2), given(params).map_or(2, |(radix, _)| radix));
        u64::from(ranks) * (u64::from(sets.stages) * u64::from(sets.radix) + 8)
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let (radix, halves) = given(params)?;
        let c = &case.collective;
        let sets = Sets::new(c.ranks, radix);
        let mut exchange = Exchange { b, sets, len: c.elements };
        exchange.collect();
        if halves {
            exchange
                .stage(|v| v..v + 1, |v| Some(sets.reversed(v)).filter(|&partner| partner != v).into_iter().collect());
        }
        for done in 0..sets.stages {
            if halves {
                let held = |v: u32| sets.group(sets.reversed(v), done);
                exchange.stage(held, |v| sets.peers(v, sets.stages - 1 - done).collect());
            } else {
                exchange.stage(|v| sets.group(v, done), |v| sets.peers(v, done).collect());
            }
        }
        exchange.expand(c.elements * c.ranks);
        Ok(())
    }

    /// Returns rounds for powers of the radix and doubling distances; otherwise `None`, because ranks send different
    /// amounts.
    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        let (radix, halves) = given(params).ok()?;
        let c = &case.collective;
        let sets = Sets::new(c.ranks, radix);
        let block = case.bytes(c.elements);
        let stage = |s: u32| Round::new(sets.radix - 1, block * u64::from(sets.radix.pow(s)));
        (sets.apart == 0 && !halves).then(|| (0..sets.stages).map(stage).collect())
    }

    /// Returns the fastest radices; none on networks, where the algorithm has no closed form.
    fn candidates(&self, case: &Case) -> Vec<Params> {
        if case.ranks().extents.is_some() {
            return Vec::new();
        }
        let radices = radix::fastest(case.collective.ranks, MOST_RADIX, |radix| exchange_ns(case, radix));
        radices.into_iter().map(|radix| Params::new().with("radix", radix)).collect()
    }
}

/// Returns the approximate time in ns of distance doubling: the longest of three paths. A rank that first receives from
/// ranks set apart begins late. It waits for others only in the stages in which another rank of its group is late too.
fn exchange_ns(case: &Case, radix: u32) -> f64 {
    let c = &case.collective;
    let sets = Sets::new(c.ranks, radix);
    let (others, apart) = (sets.radix - 1, sets.apart.min(sets.radix - 1));
    let late = sets.apart.div_ceil(others);
    let message = |blocks: u32| case.message(u64::from(blocks) * case.bytes(c.elements));
    let collect = (apart, Message { send_cpu: 0.0, send_nic: 0.0, ..message(1) });
    let whole = message(c.ranks);
    let flight = whole.flight + whole.receive_cpu;
    let expand = (apart, Message { flight, receive_cpu: 0.0, receive_nic: 0.0, ..whole });
    let ns = |blocks: &dyn Fn(u32) -> u32, waits: &dyn Fn(u32) -> bool, last: Option<(u32, Message)>| {
        let stages = (0..sets.stages).map(|stage| sets.radix.pow(stage)).map(|group| {
            let m = message(blocks(group));
            (others, if waits(group) { m } else { Message { flight: 0.0, ..m } })
        });
        Message::rounds_ns(iter::once(collect).chain(stages).chain(last), false)
    };
    let first = |group| sets.first(group);
    let serving = ns(&first, &|group| late > group, Some(expand));
    serving.max(ns(&first, &|_| true, None)).max(ns(&|group| group, &|_| true, None))
}
