//! Linear: every rank sends directly to the ranks that need its data (alltoall, gather, reduce-scatter, scatter), or
//! rank after rank (scan).
//!
//! The busiest rank takes T = alpha + (P-1) n beta if messages overlap; for a scan (P-1)(alpha + n beta + n gamma). A
//! rank sends to the ranks after it first, so that not all ranks send to the same rank at once. In a reduce-scatter a
//! rank adds the blocks in the order of ranks, which costs (P-1) n gamma more.
//! Source: "basic linear" of Open MPI's coll_base_{alltoall,gather,scatter,scan}.c.

use unisono_base::{NodeId, Span};
use unisono_collective::{Collective, Kind};
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Formula, Info, Params,
    ranks::{RankAlgorithm, pipelined},
};

pub struct Linear;

/// The most ranks of a reduce-scatter that a plan considers: P^2 messages are fastest among few ranks only.
const MOST_REDUCED: u32 = 32;

/// Copies the root's own block, and sends each other block between the root and its rank, beginning with the rank after
/// the root.
fn rooted(b: &mut Builder, c: &Collective) {
    let (root, len, gathers) = (NodeId(c.root), c.elements, c.kind == Kind::Gather);
    let block = c.root * len;
    let own = if gathers { (Operand::In(0), Operand::Out(block)) } else { (Operand::In(block), Operand::Out(0)) };
    b.combine(root, 0, len, &[own.0], &[own.1]);
    for rank in (c.root + 1..c.ranks).chain(0..c.root) {
        let (node, block) = (NodeId(rank), rank * len);
        if gathers {
            let s = Operand::Stream(b.stream(node, &[root]));
            b.combine(node, 0, len, &[Operand::In(0)], &[s]);
            b.combine(root, 0, len, &[s], &[Operand::Out(block)]);
        } else {
            let s = Operand::Stream(b.stream(root, &[node]));
            b.combine(root, 0, len, &[Operand::In(block)], &[s]);
            b.combine(node, 0, len, &[s], &[Operand::Out(0)]);
        }
    }
}

/// Sends to each rank its block of every input. A rank collects the blocks, or adds them in a reduce-scatter.
fn exchange(b: &mut Builder, c: &Collective) {
    let (p, len) = (c.ranks, c.elements);
    // Stream r (P-1) + k-1 goes from rank r to rank r + k.
    let ways = (0..p).flat_map(|r| (1..p).map(move |k| (NodeId(r), NodeId((r + k) % p))));
    let streams: Vec<Operand> = ways.map(|(from, to)| Operand::Stream(b.stream(from, &[to]))).collect();
    let stream = |r: u32, k: u32| streams[(r * (p - 1) + k - 1) as usize];
    for r in 0..p {
        for k in 1..p {
            b.combine(NodeId(r), 0, len, &[Operand::In((r + k) % p * len)], &[stream(r, k)]);
        }
        let own = Operand::In(r * len);
        if c.kind.reduces() {
            let of = |from: u32| if from == r { own } else { stream(from, (r + p - from) % p) };
            let mut sum = of(0);
            for from in 1..p {
                b.combine(NodeId(r), 0, len, &[sum, of(from)], &[Operand::Out(0)]);
                sum = Operand::Out(0);
            }
            continue;
        }
        b.combine(NodeId(r), 0, len, &[own], &[Operand::Out(r * len)]);
        for k in 1..p {
            let from = (r + p - k) % p;
            b.combine(NodeId(r), 0, len, &[stream(from, k)], &[Operand::Out(from * len)]);
        }
    }
}

impl RankAlgorithm for Linear {
    const INFO: Info = Info {
        name: "linear",
        summary: "straight to every rank that needs it, or rank after rank for a scan; best for few ranks",
        reference: "Open MPI, coll_base: basic linear",
        collectives: &[Kind::Alltoall, Kind::Gather, Kind::ReduceScatter, Kind::Scan, Kind::Scatter],
        formulas: &[
            Formula::new("hockney", &[Kind::Alltoall, Kind::Gather, Kind::Scatter], "(P-1) (alpha + n beta)"),
            Formula::new("hockney", &[Kind::Scan], "(P-1) (alpha + n beta + n gamma)"),
        ],
        ..Info::AMONG_RANKS
    };
    const KEEPS_ORDER: bool = true;

    fn instructions(&self, case: &Case, _: &Params) -> u64 {
        let ranks = u64::from(case.collective.ranks);
        let is_exchange = matches!(case.collective.kind, Kind::Alltoall | Kind::ReduceScatter);
        if is_exchange { 2 * ranks * ranks } else { 2 * ranks }
    }

    fn emit(&self, b: &mut Builder, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        let c = &case.collective;
        match c.kind {
            Kind::Scan => pipelined::scan(b, c, std::iter::once(Span::new(0, c.elements))),
            Kind::Alltoall | Kind::ReduceScatter => exchange(b, c),
            _ => rooted(b, c),
        }
        Ok(())
    }

    fn rounds(&self, case: &Case, _: &Params) -> Option<Vec<Round>> {
        let c = &case.collective;
        let bytes = case.bytes(c.elements);
        match c.kind {
            Kind::ReduceScatter => None,
            Kind::Alltoall => Some(vec![Round::new(c.ranks - 1, bytes)]),
            Kind::Scan => Some(vec![Round::new(1, bytes).reducing(bytes).times(c.ranks - 1)]),
            // The root sends or receives all messages in sequence, and the last message has its full latency.
            Kind::Gather => Some(vec![Round::pipelined(0, c.ranks - 2, bytes), Round::new(1, bytes)]),
            _ => Some(vec![Round::pipelined(c.ranks - 2, 0, bytes), Round::new(1, bytes)]),
        }
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let c = &case.collective;
        if c.kind == Kind::ReduceScatter && c.ranks > MOST_REDUCED { Vec::new() } else { vec![Params::new()] }
    }
}
