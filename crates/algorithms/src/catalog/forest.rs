//! Forest: every root's block travels along trees that are made for the links of the network.
//!
//! The trees have together the best throughput that the network allows, or come near ([`unisono_synthesis`]). An allgather
//! spreads the block of every rank, a broadcast that of one; reduce-scatter and reduce run the trees backwards, and an allreduce
//! does one after the other, block by block. A block is cut into `chunks`, each on a tree of its own, and a rank passes
//! a chunk on when it has all of it.
//!
//! T = end of the timetable of all messages ([`unisono_synthesis::Forest::timetable`]). Source: packings of arborescences,
//! Edmonds (1973); ForestColl, Zhao et al., arXiv 2402.06787. Messages take the ways that the network routes, so the optimum of
//! ForestColl, which chooses ways, is a bound.

use std::sync::Arc;

use unisono_base::{InstrId, NodeId, Span, narrow};
use unisono_collective::Kind;
use unisono_lower::Trees;
use unisono_schedule::{Builder, Operand};
use unisono_synthesis::{self as synthesis, Fabric, Roots, Timetable};

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
            values: "the most messages from a root to a rank (default: the least possible, raised until the time is near the cut)",
        },
        Param { name: "chunks", values: "parts of a block, each on a tree of its own, 1 to 1024 (default: 1)" },
    ],
    needs: &[Means::Links],
    ..Info::AMONG_RANKS
};

const MOST_CHUNKS: u32 = 1024;
/// Numbers of chunks that a plan considers. Where all ranks see the same network, few chunks keep all links busy. Elsewhere
/// more come nearer to the best shares of trees, and the block of one root must be in many places at once.
const CHUNKS: [u32; 5] = [1, 4, 16, 64, 256];
const CHUNKS_ALIKE: [u32; 4] = [1, 2, 4, 8];
/// Of a block in more chunks than [`FEW`], each has at least so many bytes: only long messages gain from many.
const LEAST_BYTES: u64 = 1 << 15;
const FEW: u32 = 64;
const CHUNKS_OF_ONE: [u32; 5] = [1, 4, 16, 64, 256];

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

/// The longest message of a forest.
fn message_bytes(case: &Case, forest: &synthesis::Forest) -> u64 {
    case.bytes(blocks(case).block(0).len.div_ceil(forest.chunks))
}

/// The vector that every root's tree carries: a rank's block, or of an allreduce one block of the vector.
fn blocks(case: &Case) -> Blocks {
    let c = &case.collective;
    match c.kind {
        Kind::Allreduce => Blocks::new(c.elements, c.ranks),
        _ => Blocks::new(c.elements, 1),
    }
}

/// Messages of a forest as instructions. A rank sends in the order of the timetable, so that each link has its next message
/// when it is free: all from one lane, or from one for each link where the links of a rank do not wait for each other. What it
/// receives from one rank has a lane of its own.
struct Messages<'a> {
    case: &'a Case<'a>,
    forest: &'a synthesis::Forest,
    sends_by_link: bool,
    /// What each rank does in each of its lanes.
    lanes: Vec<Vec<Lane>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// What a rank has itself, and its sends.
    Own,
    /// Sends over a link.
    Link(u32),
    /// What comes from a rank.
    From(u32),
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

    fn lane(&mut self, at: u32, does: Lane) -> u32 {
        let lanes = &mut self.lanes[at as usize];
        let place = lanes.iter().position(|&lane| lane == does).unwrap_or_else(|| {
            lanes.push(does);
            lanes.len() - 1
        });
        narrow(place)
    }

    /// The lane of a rank's sends that begin or end on a link.
    fn sends(&mut self, at: u32, link: u32) -> u32 {
        self.lane(at, if self.sends_by_link { Lane::Link(link) } else { Lane::Own })
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
    fn spread(&mut self, b: &mut Builder, table: &Timetable, made: Option<&[Option<InstrId>]>) {
        let mut received = self.table(None);
        for m in &table.messages {
            let (Span { start: own, len }, all) = self.span(m.root, m.chunk);
            if len == 0 {
                continue;
            }
            let edge = m.edge;
            let (from, to) = (NodeId(edge.from), NodeId(edge.to));
            let at_root = edge.from == m.root;
            let source = if at_root && made.is_none() { Operand::In(own) } else { Operand::Out(all) };
            let stream = Operand::Stream(b.stream(from, &[to]));
            let sent = b.combine(from, self.sends(edge.from, edge.ends[0]), len, &[source], &[stream]);
            let before = self.index(m.root, m.chunk, edge.from);
            let earlier = if at_root { made.and_then(|made| made[before]) } else { received[before] };
            if let Some(earlier) = earlier {
                b.after(sent, earlier);
            }
            let lane = self.lane(edge.to, Lane::From(edge.from));
            let index = self.index(m.root, m.chunk, edge.to);
            received[index] = Some(b.combine(to, lane, len, &[stream], &[Operand::Out(all)]));
        }
    }

    /// The timetable backwards: every rank combines its part of each chunk with those from below and sends the sum up. Returns
    /// the instructions that end the chunks at their roots.
    fn collect(&mut self, b: &mut Builder, table: &Timetable) -> Vec<Option<InstrId>> {
        let mut arrived: Vec<Vec<Operand>> = self.table(Vec::new());
        let mut below = self.table(0_u32);
        for m in &table.messages {
            below[self.index(m.root, m.chunk, m.edge.from)] += 1;
        }
        let mut ends = self.table(None);
        for m in table.messages.iter().rev() {
            let (Span { start: own, len }, all) = self.span(m.root, m.chunk);
            if len == 0 {
                continue;
            }
            let edge = m.edge;
            let (node, above) = (NodeId(edge.to), NodeId(edge.from));
            let up = Operand::Stream(b.stream(node, &[above]));
            let mut sources = vec![Operand::In(all)];
            sources.append(&mut arrived[self.index(m.root, m.chunk, edge.to)]);
            b.combine(node, self.sends(edge.to, edge.ends[1]), len, &sources, &[up]);
            let index = self.index(m.root, m.chunk, edge.from);
            arrived[index].push(up);
            below[index] -= 1;
            if edge.from == m.root && below[index] == 0 {
                let mut sources = vec![Operand::In(all)];
                sources.append(&mut arrived[index]);
                let lane = self.lane(m.root, Lane::From(m.root));
                ends[index] = Some(b.combine(above, lane, len, &sources, &[Operand::Out(own)]));
            }
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
        if case.collective.ranks < 2 { fabric(case).map(|_| ()) } else { forest(case, params).map(|_| ()) }
    }

    /// For each message that goes down a send and a receive, for each that goes up one.
    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let c = &case.collective;
        let chunks = params.number(INFO.name, "chunks", 1..=MOST_CHUNKS).ok().flatten().unwrap_or(1);
        let roots = if c.kind.has_root() { 1 } else { u64::from(c.ranks) };
        let each = match c.kind {
            Kind::Allreduce => 3,
            Kind::Allgather | Kind::Broadcast => 2,
            _ => 1,
        };
        each * roots * u64::from(chunks.min(c.elements)) * u64::from(c.ranks - 1)
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let (forest, fabric) = (forest(case, params)?, fabric(case)?);
        let table = forest.timetable(fabric.graph(), fabric.hop(message_bytes(case, &forest)));
        let mut messages = Messages {
            case,
            forest: &forest,
            sends_by_link: fabric.sends_by_link(),
            lanes: vec![vec![Lane::Own]; c.ranks as usize],
        };
        match c.kind {
            Kind::Broadcast => messages.spread(b, &table, None),
            Kind::Allgather => {
                for rank in 0..c.ranks {
                    let out = Operand::Out(rank * c.elements);
                    b.combine(NodeId(rank), 0, c.elements, &[Operand::In(0)], &[out]);
                }
                messages.spread(b, &table, None);
            }
            Kind::Allreduce => {
                let made = messages.collect(b, &table);
                messages.spread(b, &table, Some(&made));
            }
            _ => drop(messages.collect(b, &table)),
        }
        Ok(())
    }

    fn trees(&self, case: &Case, params: &Params) -> Option<Trees> {
        let c = &case.collective;
        let (forest, fabric) = (forest(case, params).ok()?, case.fabric()?);
        let ways = if c.kind == Kind::Allreduce { 2 } else { 1 };
        let message_bytes = message_bytes(case, &forest);
        let end = forest.end(fabric.graph(), fabric.hop(message_bytes));
        let received = u64::from(forest.chunks) * if c.kind.has_root() { 1 } else { u64::from(c.ranks) };
        Some(Trees {
            end_ns: f64::from(ways) * end * message_bytes as f64 / fabric.graph().bytes_per_ns(),
            messages: ways * forest.depth,
            messages_of_rank: u64::from(ways) * (received + forest.most_sends),
            reduced: if c.kind.reduces() { forest.most_sends * message_bytes } else { 0 },
        })
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let (Some(fabric), roots) = (case.fabric(), roots(case)) else { return Vec::new() };
        let Some(least) = fabric.least_depth(roots).filter(|_| fabric.is_cheap(roots)) else { return Vec::new() };
        let block = blocks(case).block(0).len;
        let mut found = Vec::new();
        for depth in fabric.depths(roots, least) {
            let counts: &[u32] = match (case.collective.kind.has_root(), fabric.is_alike(roots)) {
                (true, _) => &CHUNKS_OF_ONE,
                (false, true) => &CHUNKS_ALIKE,
                (false, false) => &CHUNKS,
            };
            let long = |chunks: u32| chunks <= FEW || case.bytes(block) / u64::from(chunks) >= LEAST_BYTES;
            for chunks in counts.iter().copied().filter(|&chunks| chunks <= block.max(1) && long(chunks)) {
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
