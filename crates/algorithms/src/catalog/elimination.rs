//! Elimination: recursive doubling for any number of ranks in which three ranks become two, or two become one, beside
//! the exchanges of the others.
//!
//! 3-2: x and y exchange, then x sends what it has to z, and z its operand to y; y and z go on with the sum of all
//! three, x is out. 2-1: x sends to y and is out. Ranks that are out get the result at the end.
//! * `overlapping`: stage by stage, groups of ranks pair up; where their number is odd, the last three become two. The
//!   last group is the only one that runs late, and it is the z of the next three, so that one round is lost in all.
//! * `non-overlapping`: first groups of two, three (3-2) or four (2-1 twice, then an exchange) make the number of ranks
//!   a power of two, then all exchange.
//!
//! * `halving`, for long vectors: the groups of `overlapping`, but ranks that meet keep half of what they hold each,
//!   and the vector is gathered the same way back; see [`halving`].
//!
//! T = (ceil(log2 P) + 1)(alpha + n beta + n gamma) of the first two; log2 P rounds where P is a power of two. Groups
//! are intervals of ranks, so operands keep their order, and all ranks end with the same bits.
//! Source: Rabenseifner, Traeff, "More efficient reduction algorithms for non-power-of-two number of processors in
//! message-passing parallel systems", EuroPVM/MPI 2004 (the ring for three groups is not here); "Recursive
//! multiplying", section 6.4 and figure 23.

pub(crate) mod halving;

use unisono_base::NodeId;
use unisono_collective::{Collective, Kind};
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{AlgorithmError, Case, Formula, Info, Param, Params, formula::POWER_OF_TWO, ranks::RankAlgorithm};

pub struct Elimination;

const INFO: Info = Info {
    name: "elimination",
    summary: "recursive doubling that takes ranks out three to two, or two to one, for numbers that are no power of two",
    reference: "Rabenseifner, Traeff: More efficient reduction algorithms for non-power-of-two number of processors, 2004",
    collectives: &[Kind::Allreduce],
    params: &[Param { name: "protocol", values: "overlapping, non-overlapping, halving (default: overlapping)" }],
    formulas: &[Formula::new("hockney", &[Kind::Allreduce], "log2(P) (alpha + n beta + n gamma)").when(POWER_OF_TWO)],
    ..Info::AMONG_RANKS
};

const HALVING: &str = "halving";
const PROTOCOLS: [&str; 3] = ["overlapping", "non-overlapping", HALVING];

fn protocol(params: &Params) -> Result<&'static str, AlgorithmError> {
    params.choice(INFO.name, "protocol", &PROTOCOLS)
}

/// The instructions so far.
struct Emitter<'a> {
    b: &'a mut Builder,
    len: u32,
    /// Where each rank has its partial result.
    have: Vec<Operand>,
    out: Vec<NodeId>,
}

impl Emitter<'_> {
    fn send(&mut self, from: NodeId, to: NodeId) -> Operand {
        let s = Operand::Stream(self.b.stream(from, &[to]));
        self.b.combine(from, 0, self.len, &[self.have[from.index()]], &[s]);
        s
    }

    /// `node` keeps the sum of what is before its own and what it has, or the other way round.
    fn add(&mut self, node: NodeId, before: Option<Operand>, after: Option<Operand>) {
        let sources: Vec<Operand> = before.into_iter().chain([self.have[node.index()]]).chain(after).collect();
        self.have[node.index()] = Operand::Out(0);
        self.b.combine(node, 0, self.len, &sources, &[Operand::Out(0)]);
    }

    fn exchange(&mut self, x: NodeId, y: NodeId) {
        let (from_x, from_y) = (self.send(x, y), self.send(y, x));
        self.add(x, None, Some(from_y));
        self.add(y, Some(from_x), None);
    }

    fn three_two(&mut self, x: NodeId, y: NodeId, z: NodeId) {
        let (from_x, from_y, from_z) = (self.send(x, y), self.send(y, x), self.send(z, y));
        // x passes its sum on at once and keeps nothing.
        let sum = Operand::Stream(self.b.stream(x, &[z]));
        self.b.combine(x, 0, self.len, &[self.have[x.index()], from_y], &[sum]);
        self.out.push(x);
        self.add(y, Some(from_x), None);
        self.add(y, None, Some(from_z));
        self.add(z, Some(sum), None);
    }

    fn two_one(&mut self, x: NodeId, y: NodeId) {
        let from_x = self.send(x, y);
        self.out.push(x);
        self.add(y, Some(from_x), None);
    }
}

/// Groups of ranks that hold the same, in their order, after the ranks were made a power of two.
fn power_of_two(e: &mut Emitter<'_>, ranks: u32) -> Vec<Vec<NodeId>> {
    let whole = 1 << ranks.ilog2();
    let (groups, rest) = (whole / 2, ranks - whole);
    let fours = rest.saturating_sub(groups);
    let threes = rest - 2 * fours;
    let mut next = 0;
    let mut take = || {
        next += 1;
        NodeId(next - 1)
    };
    (0..groups)
        .map(|group| {
            if group < threes {
                let (x, y, z) = (take(), take(), take());
                e.three_two(x, y, z);
                return vec![y, z];
            }
            let mut pair = || {
                let first = take();
                if group >= threes + fours {
                    return (first, None);
                }
                (take(), Some(first))
            };
            let (x, y) = (pair(), pair());
            for (stays, goes) in [x, y] {
                if let Some(goes) = goes {
                    e.two_one(goes, stays);
                }
            }
            e.exchange(x.0, y.0);
            vec![x.0, y.0]
        })
        .collect()
}

/// Groups become half as many, until there is one.
fn merge(e: &mut Emitter<'_>, mut groups: Vec<Vec<NodeId>>) -> Vec<NodeId> {
    while groups.len() > 1 {
        let pairs = groups.len() - if groups.len().is_multiple_of(2) { 0 } else { 3 };
        let mut merged = Vec::with_capacity(groups.len() / 2);
        for pair in groups[..pairs].chunks(2) {
            pair[0].iter().zip(&pair[1]).for_each(|(&x, &y)| e.exchange(x, y));
            merged.push(pair.concat());
        }
        if let [x, y, z] = &groups[pairs..] {
            x.iter().zip(y).zip(z).for_each(|((&x, &y), &z)| e.three_two(x, y, z));
            merged.push([y.as_slice(), z].concat());
        }
        groups = merged;
    }
    groups.pop().unwrap_or_default()
}

/// The rounds of the protocols that exchange whole vectors.
fn whole_vectors(case: &Case) -> Vec<Round> {
    let c = case.collective;
    let bytes = case.bytes(c.elements);
    let exchange = Round::new(1, bytes).reducing(bytes);
    if c.ranks.is_power_of_two() {
        return vec![exchange.times(c.ranks.ilog2())];
    }
    vec![exchange.times(c.ranks.ilog2() + 1), Round::new(1, bytes)]
}

/// What rounds take at the prices of the machine's stages.
fn time(case: &Case, rounds: &[Round]) -> f64 {
    let prices = case.ranks();
    let one = |round: &Round| {
        let sent = prices.issue_ns + round.bytes as f64 * prices.ns_per_byte;
        prices.latency_ns + f64::from(round.messages) * sent + round.reduced as f64 * prices.reduce_ns_per_byte
    };
    rounds.iter().map(|round| f64::from(round.repeat) * one(round)).sum()
}

impl RankAlgorithm for Elimination {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn keeps_order(&self, _: &Collective) -> bool {
        true
    }

    fn check(&self, _: &Case, params: &Params) -> Result<(), AlgorithmError> {
        protocol(params).map(|_| ())
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        if protocol(params)? == HALVING {
            halving::emit(b, c);
            return Ok(());
        }
        b.phase("exchange");
        let mut e = Emitter { b, len: c.elements, have: vec![Operand::In(0); c.ranks as usize], out: Vec::new() };
        let groups = match protocol(params)? {
            "overlapping" => (0..c.ranks).map(|r| vec![NodeId(r)]).collect(),
            _ => power_of_two(&mut e, c.ranks),
        };
        let stay = merge(&mut e, groups);
        // Fewer are out than stay, so each of them hears from a rank of its own.
        let Emitter { b, mut out, .. } = e;
        out.sort_unstable();
        for (&from, to) in stay.iter().zip(out) {
            let down = Operand::Stream(b.stream(from, &[to]));
            b.combine(from, 0, c.elements, &[Operand::Out(0)], &[down]);
            b.combine(to, 0, c.elements, &[down], &[Operand::Out(0)]);
        }
        Ok(())
    }

    /// Of the slowest rank: one that meets three-to-two, and hands the result to a rank that is out.
    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        Some(if protocol(params).ok()? == HALVING { halving::rounds(case) } else { whole_vectors(case) })
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let worth = match case.collective.ranks {
            ranks if ranks.is_power_of_two() => &PROTOCOLS[..1],
            _ if time(case, &halving::rounds(case)) < time(case, &whole_vectors(case)) => &PROTOCOLS[..],
            _ => &PROTOCOLS[..2],
        };
        worth.iter().map(|p| Params::new().with("protocol", p)).collect()
    }
}
