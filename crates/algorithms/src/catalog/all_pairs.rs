//! All pairs: blocks of the vector go straight to the ranks that combine or pass them on, and from there to all others.
//!
//! In an allreduce every rank adds one of P blocks, in the order of ranks, and sends the sum to all. In a broadcast
//! every rank but the root receives one of P-1 blocks, and sends it to the others. T = 2 alpha + 2 (P-1)/P n beta +
//! (P-1)/P n gamma for an allreduce and 2 alpha + 2 n beta for a broadcast if messages overlap: a rank waits twice, not
//! in every round, so few ranks are best served. All ranks get the same bits.
//! Source: Cowan and others, "MSCCLang: Microsoft Collective Communication Language", ASPLOS 2023 (allpairs); Barnett
//! and others, "Interprocessor collective communication library", 1994 (scatter and allgather as a broadcast).

use unisono_base::{NodeId, narrow};
use unisono_collective::{Collective, Kind};
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Info, Params,
    ranks::{Blocks, RankAlgorithm},
};

pub struct AllPairs;

const INFO: Info = Info {
    name: "all-pairs",
    summary: "blocks go straight to one rank each, and from there straight to all; best for few ranks and middle sizes",
    reference: "Cowan and others: MSCCLang, ASPLOS 2023",
    collectives: &[Kind::Allreduce, Kind::Broadcast],
    sequences: &[
        (Kind::Allreduce, &[Kind::ReduceScatter, Kind::Allgather]),
        (Kind::Broadcast, &[Kind::Scatter, Kind::Allgather]),
    ],
    ..Info::AMONG_RANKS
};

/// The most ranks that a plan considers: there are P^2 messages, so among more ranks rounds are better.
const MOST_RANKS: u32 = 32;

/// Streams between all pairs of some ranks.
struct Pairs(Vec<Vec<Option<Operand>>>);

impl Pairs {
    fn new(b: &mut Builder, nodes: &[NodeId]) -> Self {
        let mut stream = |from: NodeId, to: NodeId| (from != to).then(|| Operand::Stream(b.stream(from, &[to])));
        Self(nodes.iter().map(|&from| nodes.iter().map(|&to| stream(from, to)).collect()).collect())
    }

    fn get(&self, from: u32, to: u32) -> Operand {
        self.0[from as usize][to as usize].expect("two ranks")
    }
}

/// Sends the block of a rank, which is in its output, to the others, and receives theirs. `at` is the rank's place
/// among `nodes`, each of which has the block of its place.
fn allgather(b: &mut Builder, nodes: &[NodeId], at: u32, blocks: Blocks, pairs: &Pairs) {
    let (node, count, own) = (nodes[at as usize], narrow(nodes.len()), blocks.block(at));
    b.phase("allgather");
    for k in (1..count).filter(|_| own.len > 0) {
        b.combine(node, 0, own.len, &[Operand::Out(own.start)], &[pairs.get(at, (at + k) % count)]);
    }
    for from in (1..count).map(|k| (at + count - k) % count) {
        let block = blocks.block(from);
        if block.len > 0 {
            b.combine(node, 0, block.len, &[pairs.get(from, at)], &[Operand::Out(block.start)]);
        }
    }
}

fn allreduce(b: &mut Builder, c: &Collective) {
    let (p, blocks) = (c.ranks, Blocks::new(c.elements, c.ranks));
    let nodes: Vec<NodeId> = (0..p).map(NodeId).collect();
    let [there, back] = [Pairs::new(b, &nodes), Pairs::new(b, &nodes)];
    for r in 0..p {
        let (node, own) = (NodeId(r), blocks.block(r));
        b.phase("reduce-scatter");
        for to in (1..p).map(|k| (r + k) % p) {
            let block = blocks.block(to);
            if block.len > 0 {
                b.combine(node, 0, block.len, &[Operand::In(block.start)], &[there.get(r, to)]);
            }
        }
        if own.len > 0 {
            let of = |from: u32| if from == r { Operand::In(own.start) } else { there.get(from, r) };
            let mut sum = of(0);
            for from in 1..p {
                b.combine(node, 0, own.len, &[sum, of(from)], &[Operand::Out(own.start)]);
                sum = Operand::Out(own.start);
            }
        }
        allgather(b, &nodes, r, blocks, &back);
    }
}

fn broadcast(b: &mut Builder, c: &Collective) {
    let (p, root) = (c.ranks, NodeId(c.root));
    let others: Vec<NodeId> = (c.root + 1..p).chain(0..c.root).map(NodeId).collect();
    let blocks = Blocks::new(c.elements, p - 1);
    let pairs = Pairs::new(b, &others);
    for (at, &node) in (0..).zip(&others) {
        let block = blocks.block(at);
        b.phase("scatter");
        if block.len > 0 {
            let down = Operand::Stream(b.stream(root, &[node]));
            b.combine(root, 0, block.len, &[Operand::In(block.start)], &[down]);
            b.combine(node, 0, block.len, &[down], &[Operand::Out(block.start)]);
        }
        allgather(b, &others, at, blocks, &pairs);
    }
}

impl RankAlgorithm for AllPairs {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn keeps_order(&self, _: &Collective) -> bool {
        true
    }

    fn instructions(&self, case: &Case, _: &Params) -> u64 {
        4 * u64::from(case.collective.ranks).pow(2)
    }

    fn emit(&self, b: &mut Builder, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        match case.collective.kind {
            Kind::Allreduce => allreduce(b, &case.collective),
            _ => broadcast(b, &case.collective),
        }
        Ok(())
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        if case.collective.ranks > MOST_RANKS { Vec::new() } else { vec![Params::new()] }
    }
}
