//! All pairs: blocks of the vector go directly to the ranks that combine or forward them, and from there to all others.
//!
//! In an allreduce every rank adds one of P blocks, in the order of ranks, and sends the sum to all; in a reduce it
//! sends the sum to the root. In a broadcast every rank except the root receives one of P blocks, and sends it to the
//! other ranks; the root sends its own block to all. T = 2 alpha + 2 (P-1)/P n beta, and (P-1)/P n gamma for sums, if
//! messages overlap. This is best for few ranks, or on networks whose links carry all pairs equally well. All ranks get
//! the same bits.
//! Source: Cowan and others, "MSCCLang: Microsoft Collective Communication Language", ASPLOS 2023 (allpairs); Barnett
//! and others, "Interprocessor collective communication library", 1994 (scatter and allgather as a broadcast).

use unisono_base::{NodeId, narrow};
use unisono_collective::{Collective, Kind};
use unisono_lower::{Exchange, Flow};
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Info, Params,
    ranks::{Blocks, RankAlgorithm, shifts},
};

pub struct AllPairs;

/// The most ranks for which a plan builds the schedule of P^2 messages to time it. For more ranks, a plan considers the
/// algorithm only on networks, and times its exchanges. On other machines, algorithms in rounds are faster.
const MOST_RANKS: u32 = 32;

/// The largest stretch of a network ([`Fabric::stretch_of_pairs`]) on which a plan considers the algorithm for more
/// than [`MOST_RANKS`] ranks. With a larger stretch, links between the ranks take more than twice as long as the ranks'
/// own links, and algorithms that send to neighbours only are faster.
///
/// [`Fabric::stretch_of_pairs`]: unisono_synthesis::Fabric::stretch_of_pairs
const MOST_STRETCH: f64 = 2.0;

/// The streams between all pairs of ranks, except those to the root of a broadcast, which receives nothing.
struct Pairs {
    streams: Vec<Vec<Option<Operand>>>,
    root: Option<u32>,
}

impl Pairs {
    fn new(b: &mut Builder, ranks: u32, root: Option<u32>) -> Self {
        let mut stream = |from: u32, to: u32| {
            (from != to && root != Some(to)).then(|| Operand::Stream(b.stream(NodeId(from), &[NodeId(to)])))
        };
        Self { streams: (0..ranks).map(|from| (0..ranks).map(|to| stream(from, to)).collect()).collect(), root }
    }

    fn ranks(&self) -> u32 {
        narrow(self.streams.len())
    }

    fn get(&self, from: u32, to: u32) -> Operand {
        self.streams[from as usize][to as usize].expect("two ranks")
    }
}

/// Emits an allgather on one rank: sends the rank's block to all others, and receives their blocks. The block is in the
/// rank's output, or in the input of a broadcast's root.
fn allgather(b: &mut Builder, rank: u32, blocks: Blocks, pairs: &Pairs) {
    let (node, p, own, is_root) = (NodeId(rank), pairs.ranks(), blocks.block(rank), pairs.root == Some(rank));
    b.phase("allgather");
    let block = if is_root { Operand::In(own.start) } else { Operand::Out(own.start) };
    for to in shifts(p).map(|k| (rank + k) % p).filter(|&to| own.len > 0 && pairs.root != Some(to)) {
        b.combine(node, 0, own.len, &[block], &[pairs.get(rank, to)]);
    }
    for from in shifts(p).map(|k| (rank + p - k) % p).filter(|_| !is_root) {
        let block = blocks.block(from);
        if block.len > 0 {
            b.combine(node, 0, block.len, &[pairs.get(from, rank)], &[Operand::Out(block.start)]);
        }
    }
}

/// Emits a reduce-scatter on one rank: sends block k of its input to rank k, and adds block `rank` of all inputs in the
/// order of ranks. Partial sums go to `partial`, the result to `sum`.
fn reduce_scatter(b: &mut Builder, rank: u32, blocks: Blocks, pairs: &Pairs, [partial, sum]: [Operand; 2]) {
    let (node, own, p) = (NodeId(rank), blocks.block(rank), pairs.ranks());
    b.phase("reduce-scatter");
    for to in shifts(p).map(|k| (rank + k) % p) {
        let block = blocks.block(to);
        if block.len > 0 {
            b.combine(node, 0, block.len, &[Operand::In(block.start)], &[pairs.get(rank, to)]);
        }
    }
    if own.len > 0 {
        let of = |from: u32| if from == rank { Operand::In(own.start) } else { pairs.get(from, rank) };
        let mut added = of(0);
        for from in 1..p {
            let to = if from + 1 == p { sum } else { partial };
            b.combine(node, 0, own.len, &[added, of(from)], &[to]);
            added = to;
        }
    }
}

fn allreduce(b: &mut Builder, c: &Collective) {
    let (p, blocks) = (c.ranks, Blocks::new(c.elements, c.ranks));
    let [there, back] = [Pairs::new(b, p, None), Pairs::new(b, p, None)];
    for r in 0..p {
        reduce_scatter(b, r, blocks, &there, [Operand::Out(blocks.block(r).start); 2]);
        allgather(b, r, blocks, &back);
    }
}

fn reduce(b: &mut Builder, c: &Collective) {
    let (p, blocks) = (c.ranks, Blocks::new(c.elements, c.ranks));
    let there = Pairs::new(b, p, None);
    let mut sums = vec![None; p as usize];
    for r in (0..p).filter(|&r| r != c.root) {
        let sum = Operand::Stream(b.stream(NodeId(r), &[NodeId(c.root)]));
        // The block has the same offset in the scratch memory as in the vector, because in a `reduce-broadcast` the
        // output replaces the scratch memory.
        let block = blocks.block(r);
        let partial = Operand::Tmp(b.scratch(NodeId(r), block.start + block.len) + block.start);
        reduce_scatter(b, r, blocks, &there, [partial, sum]);
        sums[r as usize] = Some(sum);
    }
    reduce_scatter(b, c.root, blocks, &there, [Operand::Out(blocks.block(c.root).start); 2]);
    b.phase("gather");
    for from in shifts(p).map(|k| (c.root + p - k) % p) {
        let block = blocks.block(from);
        if let Some(sum) = sums[from as usize].filter(|_| block.len > 0) {
            b.combine(NodeId(c.root), 0, block.len, &[sum], &[Operand::Out(block.start)]);
        }
    }
}

fn broadcast(b: &mut Builder, c: &Collective) {
    let (p, root, blocks) = (c.ranks, NodeId(c.root), Blocks::new(c.elements, c.ranks));
    let pairs = Pairs::new(b, p, Some(c.root));
    for rank in shifts(p).map(|k| (c.root + k) % p) {
        let block = blocks.block(rank);
        b.phase("scatter");
        if block.len > 0 {
            let down = Operand::Stream(b.stream(root, &[NodeId(rank)]));
            b.combine(root, 0, block.len, &[Operand::In(block.start)], &[down]);
            b.combine(NodeId(rank), 0, block.len, &[down], &[Operand::Out(block.start)]);
        }
        allgather(b, rank, blocks, &pairs);
    }
    allgather(b, c.root, blocks, &pairs);
}

impl RankAlgorithm for AllPairs {
    const INFO: Info = Info {
        name: "all-pairs",
        summary: "blocks go straight to one rank each, and from there straight to all; best for few ranks and middle sizes",
        reference: "Cowan and others: MSCCLang, ASPLOS 2023",
        collectives: &[Kind::Allreduce, Kind::Broadcast, Kind::Reduce],
        sequences: &[
            (Kind::Allreduce, &[Kind::ReduceScatter, Kind::Allgather]),
            (Kind::Broadcast, &[Kind::Scatter, Kind::Allgather]),
            (Kind::Reduce, &[Kind::ReduceScatter, Kind::Gather]),
        ],
        ..Info::AMONG_RANKS
    };
    const KEEPS_ORDER: bool = true;

    fn instructions(&self, case: &Case, _: &Params) -> u64 {
        4 * u64::from(case.collective.ranks).pow(2)
    }

    fn emit(&self, b: &mut Builder, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        match case.collective.kind {
            Kind::Allreduce => allreduce(b, &case.collective),
            Kind::Reduce => reduce(b, &case.collective),
            _ => broadcast(b, &case.collective),
        }
        Ok(())
    }

    /// Returns the exchanges for more than [`MOST_RANKS`] ranks. For fewer ranks it returns `None`, because a plan
    /// times the schedule itself.
    fn exchanges(&self, case: &Case, _: &Params) -> Option<Vec<Exchange>> {
        let Collective { kind, ranks: p, root, elements, .. } = case.collective;
        if p <= MOST_RANKS {
            return None;
        }
        let bytes = case.bytes(elements.div_ceil(p));
        let silent = (kind == Kind::Broadcast).then_some(root);
        let all = move |k: u32| {
            let to = move |rank: u32| (rank + k) % p;
            Flow::new(bytes, 1, move |rank| if silent == Some(to(rank)) { rank } else { to(rank) })
        };
        let down = move |k: u32| Flow::new(bytes, 1, move |rank| if rank == root { (root + k) % p } else { rank });
        let up = move |k: u32| Flow::new(bytes, 1, move |rank| if rank == (root + k) % p { root } else { rank });
        let exchange = |flow: &dyn Fn(u32) -> Flow| shifts(p).map(flow).collect();
        let reduced = bytes * u64::from(p - 1);
        let [first, then] = match kind {
            Kind::Broadcast => [(exchange(&down), 0), (exchange(&all), 0)],
            Kind::Reduce => [(exchange(&all), reduced), (exchange(&up), 0)],
            _ => [(exchange(&all), reduced), (exchange(&all), 0)],
        };
        Some([first, then].map(|(flows, reduced)| Exchange { flows, reduced }).into())
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let is_listed = case.collective.ranks <= MOST_RANKS
            || case.fabric().is_some_and(|fabric| fabric.stretch_of_pairs() <= MOST_STRETCH);
        if is_listed { vec![Params::new()] } else { Vec::new() }
    }
}
