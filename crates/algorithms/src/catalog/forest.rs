//! Forest: every root's block travels along trees that are made for the links of the network.
//!
//! The trees have together the best throughput that the network allows, or come near ([`unisono_synthesis`]). An allgather
//! spreads the block of every rank, a broadcast that of one; reduce-scatter and reduce run the trees backwards, and an allreduce
//! does one after the other, block by block. A block is cut into `chunks`, each on a tree of its own, and a rank passes
//! a chunk on when it has all of it.
//!
//! T = (time of the busiest link) + (latency of the deepest tree). Source: packings of arborescences, Edmonds (1973);
//! ForestColl, Zhao et al., arXiv 2402.06787, whose optimum this reaches with a limit on the depth.

use std::sync::Arc;

use unisono_base::{NodeId, Span};
use unisono_collective::Kind;
use unisono_lower::Trees;
use unisono_schedule::{Builder, Operand};
use unisono_synthesis::{self as synthesis, Fabric, Roots};

use crate::{
    AlgorithmError, Case, Info, Means, Param, Params,
    ranks::{Blocks, RankAlgorithm},
};

pub struct Forest;

const INFO: Info = Info {
    name: "forest",
    summary: "trees made for the links of the network, with the best throughput it allows at a given depth",
    reference: "Edmonds, 1973; Zhao et al.: ForestColl, arXiv 2402.06787",
    collectives: &[Kind::Allgather, Kind::Allreduce, Kind::Broadcast, Kind::Reduce, Kind::ReduceScatter],
    params: &[
        Param {
            name: "depth",
            values: "the most messages from a root to a rank (default: the least where all ranks see the same network, else twice that)",
        },
        Param { name: "chunks", values: "parts of a block, each on a tree of its own, 1 to 64 (default: 1)" },
    ],
    needs: &[Means::Links],
    ..Info::AMONG_RANKS
};

const MOST_CHUNKS: u32 = 64;
/// Numbers of chunks that a plan considers.
const CHUNKS: [u32; 4] = [1, 2, 4, 8];

fn roots(case: &Case) -> Roots {
    if case.collective.kind.has_root() { Roots::One(case.collective.root) } else { Roots::All }
}

fn fabric<'a>(case: &Case<'a>) -> Result<&'a Fabric, AlgorithmError> {
    case.fabric().ok_or_else(|| unsupported("it needs the links of a network".to_owned()))
}

fn unsupported(reason: String) -> AlgorithmError {
    AlgorithmError::Unsupported { algorithm: INFO.name, reason }
}

/// The forest that the parameters name.
fn forest(case: &Case, params: &Params) -> Result<Arc<synthesis::Forest>, AlgorithmError> {
    let (fabric, roots) = (fabric(case)?, roots(case));
    let chunks = params.number(INFO.name, "chunks", 1..=MOST_CHUNKS)?.unwrap_or(1);
    let depth = params.number(INFO.name, "depth", 1..=case.collective.ranks)?;
    let least = fabric.least_depth(roots).ok_or_else(|| unsupported("a rank cannot be reached".to_owned()))?;
    let most = depth.unwrap_or_else(|| fabric.usual_depth(roots, least));
    if most < least {
        return Err(unsupported(format!("a rank is {least} messages away from a root, and depth is {most}")));
    }
    fabric.forest(roots, Some(most), chunks).map_err(|e| unsupported(e.to_string()))
}

/// The vector that every root's tree carries: a rank's block, or of an allreduce one block of the vector.
fn blocks(case: &Case) -> Blocks {
    let c = &case.collective;
    match c.kind {
        Kind::Allreduce => Blocks::new(c.elements, c.ranks),
        _ => Blocks::new(c.elements, 1),
    }
}

/// One tree of a forest, and the lane that it has on every rank.
struct Tree {
    root: NodeId,
    edges: Vec<(u32, u32)>,
    /// Of each rank, the ranks below.
    below: Vec<Vec<NodeId>>,
    lane: u32,
    len: u32,
}

impl Tree {
    fn new(forest: &synthesis::Forest, root: u32, chunk: u32, ranks: u32, lane: u32, len: u32) -> Self {
        let edges = forest.edges(root, chunk);
        let mut below = vec![Vec::new(); ranks as usize];
        edges.iter().for_each(|&(from, to)| below[from as usize].push(NodeId(to)));
        Self { root: NodeId(root), edges, below, lane, len }
    }

    /// The root combines `sources` into `sinks` and sends the result down; every other rank writes it to `out`.
    fn spread(&self, b: &mut Builder, sources: &[Operand], sinks: &[Operand], out: Operand) {
        let mut from = vec![None; self.below.len()];
        let nodes = [(self.root, sources, sinks)];
        let others = self.edges.iter().map(|&(_, to)| NodeId(to));
        for (node, root_sources, own) in nodes.into_iter().chain(others.map(|node| (node, &[][..], &[][..]))) {
            let below = &self.below[node.index()];
            let down = (!below.is_empty()).then(|| Operand::Stream(b.stream(node, below)));
            below.iter().for_each(|to| from[to.index()] = down);
            let arrives = from[node.index()];
            let sources: Vec<Operand> = root_sources.iter().copied().chain(arrives).collect();
            let kept = arrives.map(|_| out);
            let sinks: Vec<Operand> = own.iter().copied().chain(kept).chain(down).collect();
            if !sinks.is_empty() {
                b.combine(node, self.lane, self.len, &sources, &sinks);
            }
        }
    }

    /// Every rank combines its part at `input` with what comes from below and sends it up. Returns the sources of the root.
    fn collect(&self, b: &mut Builder, input: Operand) -> Vec<Operand> {
        let mut arrive: Vec<Vec<Operand>> = vec![vec![input]; self.below.len()];
        for &(above, node) in self.edges.iter().rev() {
            let (node, above) = (NodeId(node), NodeId(above));
            let up = Operand::Stream(b.stream(node, &[above]));
            let sources = std::mem::take(&mut arrive[node.index()]);
            b.combine(node, self.lane, self.len, &sources, &[up]);
            arrive[above.index()].push(up);
        }
        std::mem::take(&mut arrive[self.root.index()])
    }
}

impl RankAlgorithm for Forest {
    fn info(&self) -> &'static Info {
        &INFO
    }

    /// The network must allow it; on networks that do not look alike from all ranks this finds the forest.
    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        if case.collective.ranks < 2 { fabric(case).map(|_| ()) } else { forest(case, params).map(|_| ()) }
    }

    /// One a rank and chunk of every root's block, twice for an allreduce.
    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let c = &case.collective;
        let chunks = params.number(INFO.name, "chunks", 1..=MOST_CHUNKS).ok().flatten().unwrap_or(1);
        let roots = if c.kind.has_root() { 1 } else { u64::from(c.ranks) };
        let ways = if c.kind == Kind::Allreduce { 2 } else { 1 };
        ways * roots * u64::from(chunks.min(c.elements)) * u64::from(c.ranks - 1)
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let (forest, blocks) = (forest(case, params)?, blocks(case));
        let reduces = c.kind.reduces();
        for (turn, root) in (0..).zip(roots(case).list(c.ranks)) {
            // Elements of the root's block in the vector that all ranks have, and in an input or output of all blocks.
            let block = if c.kind == Kind::Allreduce { blocks.block(root) } else { blocks.block(0) };
            let place = match c.kind {
                Kind::Allgather | Kind::ReduceScatter => root * c.elements,
                _ => 0,
            };
            let parts = Blocks::new(block.len, forest.chunks);
            for chunk in 0..forest.chunks {
                let Span { start, len } = parts.block(chunk);
                if len == 0 {
                    continue;
                }
                let (own, all) = (block.start + start, block.start + start + place);
                let tree = Tree::new(&forest, root, chunk, c.ranks, turn * forest.chunks + chunk, len);
                match c.kind {
                    Kind::Broadcast => tree.spread(b, &[Operand::In(own)], &[], Operand::Out(own)),
                    Kind::Allgather => {
                        tree.spread(b, &[Operand::In(own)], &[Operand::Out(all)], Operand::Out(all));
                    }
                    Kind::Allreduce => {
                        let sources = tree.collect(b, Operand::In(own));
                        tree.spread(b, &sources, &[Operand::Out(own)], Operand::Out(own));
                    }
                    _ => {
                        let sources = tree.collect(b, Operand::In(all));
                        b.combine(tree.root, tree.lane, len, &sources, &[Operand::Out(own)]);
                    }
                }
            }
        }
        debug_assert!(reduces || c.kind == Kind::Broadcast || c.kind == Kind::Allgather);
        Ok(())
    }

    fn trees(&self, case: &Case, params: &Params) -> Option<Trees> {
        let c = &case.collective;
        let forest = forest(case, params).ok()?;
        let block = blocks(case).block(0).len;
        let bytes = case.bytes(block);
        let ways = if c.kind == Kind::Allreduce { 2 } else { 1 };
        let rate = fabric(case).ok()?.graph().bytes_per_ns();
        let message_bytes = case.bytes(block.div_ceil(forest.chunks));
        let one_root = c.kind.has_root();
        let roots = if one_root { 1 } else { u64::from(c.ranks) };
        let filling = if one_root { u64::from(forest.depth - 1) * message_bytes } else { 0 };
        Some(Trees {
            busiest_ns: f64::from(ways) * forest.time * bytes as f64 / rate,
            messages: ways * forest.depth,
            links: ways * forest.links,
            filling_bytes: filling,
            messages_of_rank: u64::from(ways) * (roots * u64::from(forest.chunks) + forest.most_sends),
            reduced: if c.kind.reduces() { forest.most_sends * message_bytes } else { 0 },
        })
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let (Some(fabric), roots) = (case.fabric(), roots(case)) else { return Vec::new() };
        let Some(least) = fabric.least_depth(roots).filter(|_| fabric.is_cheap(roots)) else { return Vec::new() };
        let block = blocks(case).block(0).len;
        let mut found = Vec::new();
        for depth in fabric.depths(roots, least) {
            for chunks in CHUNKS.into_iter().filter(|&chunks| chunks <= block.max(1)) {
                found.push(Params::new().with("depth", depth.to_string()).with("chunks", chunks.to_string()));
            }
        }
        found
    }

    fn chosen(&self, case: &Case, params: &Params) -> Params {
        if case.collective.ranks < 2 {
            return params.clone();
        }
        let roots = roots(case);
        let usual = |fabric: &Fabric| fabric.least_depth(roots).map(|least| fabric.usual_depth(roots, least));
        let depth = fabric(case).ok().and_then(usual);
        let with = |params: Params, name: &str, value: Option<u32>| match (params.get(name), value) {
            (None, Some(value)) => params.with(name, value.to_string()),
            _ => params,
        };
        with(with(params.clone(), "depth", depth), "chunks", Some(1))
    }
}
