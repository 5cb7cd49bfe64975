//! Recursive doubling: in stage k every rank exchanges its partial result with the rank 2^k away.
//!
//! If P = 2^m + r is not a power of two, the first 2r ranks first reduce in pairs to r ranks, and the other rank of
//! each pair gets the result at the end. Every rank adds the same operands in the same order, so all ranks end with the
//! same bits. In a scan, a rank sends only to the rank 2^k after it, for any P: ceil(log2 P)(alpha + n beta + n gamma).
//! Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005; MPICH.
//! Scan: Kogge, Stone, "A parallel algorithm for the efficient solution of a general class of recurrence equations",
//! 1973.

use unisono_base::NodeId;
use unisono_collective::{Collective, Kind};
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Formula, Info, Params,
    formula::POWER_OF_TWO,
    ranks::{Fold, RankAlgorithm, halving::Halving},
};

pub struct RecursiveDoubling;

fn allreduce(b: &mut Builder, c: &Collective) {
    let (ranks, len) = (c.ranks, c.elements);
    let whole = 1 << ranks.ilog2();
    let rest = ranks - whole;
    // Converts a virtual rank to a real rank: the virtual ranks are the odd rank of each pair, then all other ranks.
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
}

fn allgather(b: &mut Builder, c: &Collective) {
    let (fold, len) = (Fold::new(c.ranks), c.elements);
    let nodes = fold.nodes();
    for v in 0..fold.pairs {
        let (even, odd) = (NodeId(2 * v), NodeId(2 * v + 1));
        let up = Operand::Stream(b.stream(even, &[odd]));
        b.combine(even, 0, len, &[Operand::In(0)], &[up]);
        b.combine(odd, 0, len, &[up], &[Operand::Out(even.0 * len)]);
        b.combine(odd, 0, len, &[Operand::In(0)], &[Operand::Out(odd.0 * len)]);
    }
    let mut held: Vec<_> = (0..fold.whole).map(|v| v..v + 1).collect();
    let doubling = Halving { nodes: &nodes, bits: (0..fold.stages()).collect(), start: |v| fold.first(v) * len };
    doubling.allgather(b, &mut held, |v| (v >= fold.pairs).then_some(Operand::In(0)), None);
    for v in 0..fold.pairs {
        let (even, odd) = (NodeId(2 * v), NodeId(2 * v + 1));
        let down = Operand::Stream(b.stream(odd, &[even]));
        b.combine(odd, 0, len * c.ranks, &[Operand::Out(0)], &[down]);
        b.combine(even, 0, len * c.ranks, &[down], &[Operand::Out(0)]);
    }
}

fn scan(b: &mut Builder, c: &Collective) {
    let (p, len) = (c.ranks, c.elements);
    let stages = p.next_power_of_two().ilog2();
    // Stream [k][r] goes from rank r to rank r + 2^k.
    let streams: Vec<Vec<Operand>> = (0..stages)
        .map(|k| (0..p - (1 << k)).map(|r| Operand::Stream(b.stream(NodeId(r), &[NodeId(r + (1 << k))]))).collect())
        .collect();
    for r in 0..p {
        // Rank r receives in every stage k with 2^k <= r. Its result is then final, so it sends the result at once to
        // all ranks of the later stages.
        let hears = (r + 1).next_power_of_two().ilog2();
        let send = |k: u32| streams[k as usize].get(r as usize).copied();
        let mut have = Operand::In(0);
        for k in 0..=hears {
            let sends = if k < hears { k..k + 1 } else { k..stages };
            let kept = (k > 0 || hears == 0).then_some(Operand::Out(0));
            let sinks: Vec<Operand> = kept.into_iter().chain(sends.filter_map(send)).collect();
            if k == 0 {
                if !sinks.is_empty() {
                    b.combine(NodeId(r), 0, len, &[have], &sinks);
                }
                continue;
            }
            let from = streams[k as usize - 1][(r - (1 << (k - 1))) as usize];
            b.combine(NodeId(r), 0, len, &[from, have], &sinks);
            have = Operand::Out(0);
        }
    }
}

impl RankAlgorithm for RecursiveDoubling {
    const INFO: Info = Info {
        name: "recursive-doubling",
        summary: "exchanges with the rank 1, 2, 4, ... away; best for short vectors where a message costs the same to any number",
        reference: "Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH, 2005",
        collectives: &[Kind::Allgather, Kind::Allreduce, Kind::Scan],
        formulas: &[
            Formula::new("hockney", &[Kind::Allreduce], "log2(P) (alpha + n beta + n gamma)").when(POWER_OF_TWO),
            Formula::new("hockney", &[Kind::Allgather], "log2(P) alpha + (P-1) n beta").when(POWER_OF_TWO),
        ],
        ..Info::AMONG_RANKS
    };
    const KEEPS_ORDER: bool = true;

    fn emit(&self, b: &mut Builder, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        let c = &case.collective;
        match c.kind {
            Kind::Allgather => allgather(b, c),
            Kind::Scan => scan(b, c),
            _ => allreduce(b, c),
        }
        Ok(())
    }

    fn rounds(&self, case: &Case, _: &Params) -> Option<Vec<Round>> {
        let c = &case.collective;
        let bytes = case.bytes(c.elements);
        let stages = c.ranks.next_power_of_two().ilog2();
        let (sum, doubling) = (Round::new(1, bytes).reducing(bytes), |k: u32| Round::new(1, bytes << k));
        match c.kind {
            Kind::Scan => Some(vec![sum.times(stages)]),
            Kind::Allgather => c.ranks.is_power_of_two().then(|| (0..stages).map(doubling).collect()),
            _ => {
                let fold = Fold::new(c.ranks);
                Some(fold.rounds(sum, [sum.times(fold.stages())], [Round::new(1, bytes)]))
            }
        }
    }
}
