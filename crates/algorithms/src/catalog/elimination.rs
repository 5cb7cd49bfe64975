//! Elimination: recursive doubling for any number of ranks. While other ranks exchange, three ranks reduce to two, or
//! two to one.
//!
//! 3-2: x and y exchange; then x sends its sum to z, and z its operand to y. y and z continue with the sum of all
//! three, and x leaves. 2-1: x sends to y and leaves. Ranks that have left get the result at the end.
//! * `overlapping`: in each stage groups of ranks pair up; if their number is odd, the last three make a 3-2 step. Only
//!   the last group is late, and it is the z of the next three, so the algorithm takes one additional round in all.
//! * `non-overlapping`: first, groups of two, three (3-2) or four (2-1 twice, then an exchange) reduce the number of
//!   ranks to a power of two; then all exchange.
//!
//! * `halving`, for long vectors: the groups of `overlapping`, but each of the ranks that exchange keeps half of their
//!   elements, and the vector is gathered in reverse order; see [`halving`].
//!
//! `overlapping` and `non-overlapping` take T = (ceil(log2 P) + 1)(alpha + n beta + n gamma); log2 P rounds if P is a
//! power of two. Groups are intervals of ranks, so operands keep their order, and all ranks end with the same bits.
//! Source: Rabenseifner, Traeff, "More efficient reduction algorithms for non-power-of-two number of processors in
//! message-passing parallel systems", EuroPVM/MPI 2004 (its ring for three groups is not implemented); "Recursive
//! multiplying", section 6.4 and figure 23.

pub(crate) mod halving;

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{AlgorithmError, Case, Formula, Info, Param, Params, formula::POWER_OF_TWO, ranks::RankAlgorithm};

pub struct Elimination;

const HALVING: &str = "halving";
const PROTOCOLS: [&str; 3] = ["overlapping", "non-overlapping", HALVING];

fn protocol(params: &Params) -> Result<&'static str, AlgorithmError> {
    params.choice(Elimination::INFO.name, "protocol", &PROTOCOLS)
}

/// Emits the instructions, with the state of each rank.
struct Emitter<'a> {
    b: &'a mut Builder,
    len: u32,
    /// The operand with each rank's partial result.
    have: Vec<Operand>,
    out: Vec<NodeId>,
}

impl Emitter<'_> {
    fn send(&mut self, from: NodeId, to: NodeId) -> Operand {
        let s = Operand::Stream(self.b.stream(from, &[to]));
        self.b.combine(from, 0, self.len, &[self.have[from.index()]], &[s]);
        s
    }

    /// Adds `before` (the operand of lower ranks) and `after` (of higher ranks) to the partial result of `node`.
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
        // x sends its sum directly to z and does not store it.
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

/// Reduces the number of active ranks to a power of two, and returns groups of two ranks with equal sums, in order.
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

/// Merges groups in pairs, or the last three by 3-2 if their number is odd, until one group is left; returns its ranks,
/// which have the result.
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

/// Returns the rounds of the protocols that exchange whole vectors.
fn whole_vectors(case: &Case) -> Vec<Round> {
    let c = case.collective;
    let bytes = case.bytes(c.elements);
    let exchange = Round::new(1, bytes).reducing(bytes);
    if c.ranks.is_power_of_two() {
        return vec![exchange.times(c.ranks.ilog2())];
    }
    vec![exchange.times(c.ranks.ilog2() + 1), Round::new(1, bytes)]
}

/// Returns the time of rounds in ns, by the machine's times of messages ([`Case::ranks`]).
fn time(case: &Case, rounds: &[Round]) -> f64 {
    let prices = case.ranks();
    let one = |round: &Round| {
        let sent = prices.issue_ns + round.bytes as f64 * prices.ns_per_byte;
        prices.latency_ns + f64::from(round.messages) * sent + round.reduced as f64 * prices.reduce_ns_per_byte
    };
    rounds.iter().map(|round| f64::from(round.repeat) * one(round)).sum()
}

impl RankAlgorithm for Elimination {
    const INFO: Info = Info {
        name: "elimination",
        summary: "recursive doubling that takes ranks out three to two, or two to one, for numbers that are no power of two",
        reference: "Rabenseifner, Traeff: More efficient reduction algorithms for non-power-of-two number of processors, 2004",
        collectives: &[Kind::Allreduce],
        params: &[Param { name: "protocol", values: "overlapping, non-overlapping, halving (default: overlapping)" }],
        formulas: &[
            Formula::new("hockney", &[Kind::Allreduce], "log2(P) (alpha + n beta + n gamma)").when(POWER_OF_TWO)
        ],
        ..Info::AMONG_RANKS
    };
    const KEEPS_ORDER: bool = true;

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
        // More ranks stay than have left, so each rank that left gets the result from a different rank.
        let Emitter { b, mut out, .. } = e;
        out.sort_unstable();
        for (&from, to) in stay.iter().zip(out) {
            let down = Operand::Stream(b.stream(from, &[to]));
            b.combine(from, 0, c.elements, &[Operand::Out(0)], &[down]);
            b.combine(to, 0, c.elements, &[down], &[Operand::Out(0)]);
        }
        Ok(())
    }

    /// Returns the rounds of the slowest rank, which takes part in a 3-2 step and sends the result to a rank that has
    /// left.
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
