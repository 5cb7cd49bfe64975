//! Forest: every root's block travels along trees that are made for the links of the network.
//!
//! The trees have together the best throughput that the network allows, or come near ([`unisono_synthesis`]). An
//! allgather spreads the block of every rank, a broadcast that of one; reduce-scatter and reduce run the trees
//! backwards, and an allreduce does one after the other, block by block. A block is cut into `chunks`, each on a tree
//! of its own, and a rank passes a chunk on when it has all of it.
//!
//! T = end of the timetable of all messages ([`unisono_synthesis::Fabric::messages`]). Source: packings of
//! arborescences, Edmonds (1973); ForestColl, Zhao et al., arXiv 2402.06787. Messages take the ways that the network
//! routes, so the optimum of ForestColl, which chooses ways, is a bound.

use std::sync::Arc;

use unisono_base::{InstrId, NodeId, Span};
use unisono_collective::Kind;
use unisono_lower::Trees;
use unisono_schedule::{Builder, Operand};
use unisono_synthesis::{self as synthesis, Fabric, Message, NoForest, Roots, Runs};

use crate::{
    AlgorithmError, Case, Info, Means, Param, Params,
    ranks::{
        Blocks, Lanes, RankAlgorithm,
        shapes::{self, Shape, blocks, message_bytes, quickest, roots, shapes},
    },
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
            values: "the most messages from a root to a rank, from the least possible to that of a time near the cut (default: that of \
                     the forest that ends first)",
        },
        Param {
            name: "chunks",
            values: "parts of a block, each on a tree of its own, 1 to 1024 (default: of 1, 4, 16, ... that of the forest that ends first)",
        },
    ],
    needs: &[Means::Links],
    ..Info::AMONG_RANKS
};

const MOST_CHUNKS: u32 = 1024;
fn fabric<'a>(case: &Case<'a>) -> Result<&'a Fabric, AlgorithmError> {
    case.fabric().ok_or_else(|| unsupported("it needs the links of a network".to_owned()))
}

fn unsupported(reason: String) -> AlgorithmError {
    AlgorithmError::Unsupported { algorithm: INFO.name, reason }
}

/// A forest with the parameters that name it.
struct Chosen {
    roots: Roots,
    depth: u32,
    chunks: u32,
    forest: Arc<synthesis::Forest>,
}

impl Chosen {
    /// The forest that the parameters name, and where they do not the one that is predicted to end first. A block has
    /// no more chunks than elements.
    fn new(case: &Case, params: &Params) -> Result<Self, AlgorithmError> {
        let (fabric, roots) = (fabric(case)?, roots(case));
        let refused = |reason: NoForest| unsupported(reason.to_string());
        let least = fabric.least_depth(roots).map_err(refused)?;
        let depth = params.number(INFO.name, "depth", 1..=case.collective.ranks)?;
        if let Some(depth) = depth.filter(|&depth| depth < least) {
            return Err(unsupported(format!("a rank is {least} messages away from a root, and depth is {depth}")));
        }
        let most = blocks(case).block(0).len.max(1);
        let chunks = params.number(INFO.name, "chunks", 1..=MOST_CHUNKS)?.map(|chunks| chunks.min(most));
        let shapes = shapes(case, fabric, depth, chunks).map_err(refused)?;
        let Shape { depth, chunks } = quickest(case, fabric, &shapes).map_err(refused)?;
        let forest = fabric.forest(roots, Some(depth), chunks, message_bytes(case, chunks)).map_err(refused)?;
        Ok(Self { roots, depth, chunks, forest })
    }
}

/// Messages of a forest as instructions, in the order of the timetable.
struct Messages<'a> {
    case: &'a Case<'a>,
    forest: &'a synthesis::Forest,
    lanes: Lanes,
}

impl Messages<'_> {
    /// The elements of a chunk: where they are in the vector that its root owns, and in the vector of all blocks.
    fn span(&self, root: u32, chunk: u32) -> (Span, u32) {
        let c = &self.case.collective;
        let blocks = blocks(self.case);
        let block = if c.kind == Kind::Allreduce { blocks.block(root) } else { blocks.block(0) };
        let part = Blocks::new(block.len, self.forest.chunks).block(chunk);
        let own = block.start + part.start;
        let all = match c.kind {
            Kind::Allgather | Kind::ReduceScatter => root * c.elements + own,
            _ => own,
        };
        (Span::new(own, part.len), all)
    }

    /// The place of a chunk on a rank in tables.
    fn index(&self, root: u32, chunk: u32, rank: u32) -> usize {
        let turn = if self.case.collective.kind.has_root() { 0 } else { root };
        (turn * self.forest.chunks + chunk) as usize * self.case.collective.ranks as usize + rank as usize
    }

    fn table<T: Clone>(&self, empty: T) -> Vec<T> {
        let c = &self.case.collective;
        let roots = if c.kind.has_root() { 1 } else { c.ranks };
        vec![empty; (roots * self.forest.chunks) as usize * c.ranks as usize]
    }

    /// Every root's chunks go down its trees. `made` are the instructions that make them where they are not its input.
    fn spread(&mut self, b: &mut Builder, table: &[Message], made: Option<&[Option<InstrId>]>) {
        let mut received = self.table(None);
        for m in table {
            let (Span { start: own, len }, all) = self.span(m.root, m.chunk);
            if len == 0 {
                continue;
            }
            let edge = m.edge;
            let (from, to) = (NodeId(edge.from), NodeId(edge.to));
            let at_root = edge.from == m.root;
            let source = if at_root && made.is_none() { Operand::In(own) } else { Operand::Out(all) };
            let stream = Operand::Stream(b.stream(from, &[to]));
            let sent = b.combine(from, self.lanes.sends(edge.from, edge.ends[0]), len, &[source], &[stream]);
            let before = self.index(m.root, m.chunk, edge.from);
            let earlier = if at_root { made.and_then(|made| made[before]) } else { received[before] };
            if let Some(earlier) = earlier {
                b.after(sent, earlier);
            }
            let lane = self.lanes.receives(edge.to, edge.from);
            let index = self.index(m.root, m.chunk, edge.to);
            received[index] = Some(b.combine(to, lane, len, &[stream], &[Operand::Out(all)]));
        }
    }

    /// The timetable backwards: every rank combines its part of each chunk with those from below and sends the sum up.
    /// Returns the instructions that end the chunks at their roots.
    fn collect(&mut self, b: &mut Builder, table: &[Message]) -> Vec<Option<InstrId>> {
        let mut arrived: Vec<Vec<Operand>> = self.table(Vec::new());
        let mut ends = self.table(None);
        for m in table.iter().rev() {
            let (Span { start: own, len }, all) = self.span(m.root, m.chunk);
            if len == 0 {
                continue;
            }
            let edge = m.edge;
            let (node, above) = (NodeId(edge.to), NodeId(edge.from));
            let up = Operand::Stream(b.stream(node, &[above]));
            let mut sources = vec![Operand::In(all)];
            sources.append(&mut arrived[self.index(m.root, m.chunk, edge.to)]);
            b.combine(node, self.lanes.sends(edge.to, edge.ends[1]), len, &sources, &[up]);
            let index = self.index(m.root, m.chunk, edge.from);
            if edge.from != m.root {
                arrived[index].push(up);
                continue;
            }
            // The root adds what arrives at once, so that little is left to do after the last message.
            let lane = self.lanes.receives(m.root, m.root);
            let so_far = if ends[index].is_none() { Operand::In(all) } else { Operand::Out(own) };
            ends[index] = Some(b.combine(above, lane, len, &[so_far, up], &[Operand::Out(own)]));
        }
        ends
    }
}

impl RankAlgorithm for Forest {
    fn info(&self) -> &'static Info {
        &INFO
    }

    /// The network must allow it; on networks that do not look alike from all ranks this finds the forest.
    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        if case.collective.ranks < 2 { fabric(case).map(|_| ()) } else { Chosen::new(case, params).map(|_| ()) }
    }

    /// For each message that goes down a send and a receive, for each that goes up one and a sum at its root.
    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let c = &case.collective;
        let chunks = params.number(INFO.name, "chunks", 1..=MOST_CHUNKS).ok().flatten().unwrap_or(1);
        let roots = if c.kind.has_root() { 1 } else { u64::from(c.ranks) };
        let each = match c.kind {
            Kind::Allreduce => 4,
            _ => 2,
        };
        each * roots * u64::from(chunks.min(c.elements)) * u64::from(c.ranks - 1)
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let (chosen, fabric) = (Chosen::new(case, params)?, fabric(case)?);
        let Chosen { roots, depth, chunks, .. } = chosen;
        let table = |runs| {
            let table = fabric.messages(roots, Some(depth), chunks, message_bytes(case, chunks), runs);
            table.map_err(|reason| unsupported(reason.to_string()))
        };
        let mut messages = Messages { case, forest: &chosen.forest, lanes: Lanes::new(fabric, c.ranks) };
        match c.kind {
            Kind::Broadcast => messages.spread(b, &table(Runs::Down)?, None),
            Kind::Allgather => {
                for rank in 0..c.ranks {
                    let out = Operand::Out(rank * c.elements);
                    b.combine(NodeId(rank), Lanes::OWN, c.elements, &[Operand::In(0)], &[out]);
                }
                messages.spread(b, &table(Runs::Down)?, None);
            }
            Kind::Allreduce => {
                let made = messages.collect(b, &table(Runs::Up)?);
                messages.spread(b, &table(Runs::Down)?, Some(&made));
            }
            _ => drop(messages.collect(b, &table(Runs::Up)?)),
        }
        Ok(())
    }

    fn trees(&self, case: &Case, params: &Params) -> Option<Trees> {
        let Chosen { depth, chunks, .. } = Chosen::new(case, params).ok()?;
        shapes::trees(case, case.fabric()?, Shape { depth, chunks }).ok()
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let (Some(fabric), roots) = (case.fabric(), roots(case)) else { return Vec::new() };
        if !fabric.is_cheap(roots) && !fabric.is_affordable(roots) {
            return Vec::new();
        }
        let named = |Shape { depth, chunks }: &Shape| Params::new().with("depth", *depth).with("chunks", *chunks);
        shapes(case, fabric, None, None).map_or_else(|_| Vec::new(), |shapes| shapes.iter().map(named).collect())
    }

    fn chosen(&self, case: &Case, params: &Params) -> Params {
        if case.collective.ranks < 2 {
            return params.clone();
        }
        match Chosen::new(case, params) {
            Ok(Chosen { depth, chunks, .. }) => params.clone().with("depth", depth).with("chunks", chunks),
            Err(_) => params.clone(),
        }
    }
}
