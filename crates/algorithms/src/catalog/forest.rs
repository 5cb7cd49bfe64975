//! Forest: every root's block travels along trees that are made for the links of the network.
//!
//! The trees have together the best throughput that the network allows, or come near ([`unisono_synthesis`]). An allgather
//! spreads the block of every rank, a broadcast that of one; reduce-scatter and reduce run the trees backwards, and an allreduce
//! does one after the other, block by block. A block is cut into `chunks`, each on a tree of its own, and a rank passes
//! a chunk on when it has all of it.
//!
//! T = end of the timetable of all messages ([`unisono_synthesis::Fabric::messages`]). Source: packings of arborescences,
//! Edmonds (1973); ForestColl, Zhao et al., arXiv 2402.06787. Messages take the ways that the network routes, so the optimum of
//! ForestColl, which chooses ways, is a bound.

use std::sync::Arc;

use unisono_base::{InstrId, NodeId, Span};
use unisono_collective::Kind;
use unisono_lower::Trees;
use unisono_schedule::{Builder, Operand};
use unisono_synthesis::{self as synthesis, Fabric, Message, NoForest, Roots};

use crate::{
    AlgorithmError, Case, Info, Means, Param, Params,
    ranks::{Blocks, Lanes, RankAlgorithm},
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
        Param {
            name: "chunks",
            values: "parts of a block, each on a tree of its own, 1 to 1024 (default: of 1, 4, 16, ... those that end first)",
        },
    ],
    needs: &[Means::Links],
    ..Info::AMONG_RANKS
};

const MOST_CHUNKS: u32 = 1024;
/// Numbers of chunks that a plan considers. Where all ranks see the same network, few chunks keep all links busy. Elsewhere
/// more come nearer to the best shares of trees, and the block of one root must be in many places at once.
const CHUNKS: [u32; 5] = [1, 4, 16, 64, 256];
const CHUNKS_ALIKE: [u32; 4] = [1, 2, 4, 8];
/// Where a block has more chunks than [`FEW`], each has at least so many bytes: only long messages gain from many.
const LEAST_BYTES: u64 = 1 << 15;
const LEAST_BYTES_OF_ONE: u64 = 1 << 12;
/// A schedule of more than [`MOST_MESSAGES`] is not built to be timed, and the timetable alone does not know what short messages cost.
const LEAST_BYTES_OF_LARGE: u64 = 1 << 13;
const FEW: u32 = 64;
/// Where ranks see unlike networks, a plan considers forests of at most so many messages of unlike roots, which it times, and of all
/// roots.
const MOST_MESSAGES: u64 = 1 << 17;
const MOST_SENT: u64 = 1 << 20;
const MOST_MESSAGES_OF_ONE: u64 = 1 << 19;
const CHUNKS_OF_ONE: [u32; 6] = [1, 4, 16, 64, 256, 1024];

fn roots(case: &Case) -> Roots {
    if case.collective.kind.has_root() { Roots::One(case.collective.root) } else { Roots::All }
}

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
    /// The forest that the parameters name, and where they do not the one whose timetable ends first. A block has no more chunks
    /// than elements.
    fn new(case: &Case, params: &Params) -> Result<Self, AlgorithmError> {
        let (fabric, roots) = (fabric(case)?, roots(case));
        let refused = |reason: NoForest| unsupported(reason.to_string());
        let least = fabric.least_depth(roots).map_err(refused)?;
        let depth = params.number(INFO.name, "depth", 1..=case.collective.ranks)?;
        let depth = depth.unwrap_or_else(|| fabric.usual_depth(roots, least));
        if depth < least {
            return Err(unsupported(format!("a rank is {least} messages away from a root, and depth is {depth}")));
        }
        let most = blocks(case).block(0).len.max(1);
        let chunks = match params.number(INFO.name, "chunks", 1..=MOST_CHUNKS)? {
            Some(chunks) => chunks.min(most),
            None => quickest(case, fabric, depth).map_err(refused)?,
        };
        let forest = fabric.forest(roots, Some(depth), chunks, message_bytes(case, chunks)).map_err(refused)?;
        Ok(Self { roots, depth, chunks, forest })
    }
}

/// The number of chunks whose timetable ends first. Of equal ends the fewest, or the most where ranks reduce: what is reduced
/// after the last message is then least.
fn quickest(case: &Case, fabric: &Fabric, depth: u32) -> Result<u32, NoForest> {
    const EQUAL: f64 = 1e-3;
    let (mut best, mut earliest) = (1, f64::INFINITY);
    for chunks in counts(case, fabric) {
        let end = fabric.end_ns(roots(case), Some(depth), chunks, message_bytes(case, chunks))?;
        let limit = if case.collective.kind.reduces() { 1.0 + EQUAL } else { 1.0 - EQUAL };
        if end < earliest * limit {
            (best, earliest) = (chunks, end.min(earliest));
        }
    }
    Ok(best)
}

/// Numbers of chunks that are worth a try.
fn counts(case: &Case, fabric: &Fabric) -> Vec<u32> {
    let counts: &[u32] = match (case.collective.kind.has_root(), fabric.is_alike(roots(case))) {
        (true, _) => &CHUNKS_OF_ONE,
        (false, true) => &CHUNKS_ALIKE,
        (false, false) => &CHUNKS,
    };
    let most = blocks(case).block(0).len.max(1);
    let least = if case.collective.kind.has_root() { LEAST_BYTES_OF_ONE } else { LEAST_BYTES };
    let long = |chunks: u32| chunks <= FEW || message_bytes(case, chunks) >= least;
    let others = u64::from(case.collective.ranks - 1);
    let roots = roots(case);
    let timed = u64::from(fabric.unlike_roots(roots)) * others;
    let sent = roots.list(case.collective.ranks).len() as u64 * others;
    let messages = if case.collective.kind.has_root() { MOST_MESSAGES_OF_ONE } else { MOST_MESSAGES };
    let few = |chunks: u32| {
        let is_known = u64::from(chunks) * sent <= MOST_MESSAGES || message_bytes(case, chunks) >= LEAST_BYTES_OF_LARGE;
        let chunks = u64::from(chunks);
        chunks == 1 || fabric.is_alike(roots) || is_known && chunks * timed <= messages && chunks * sent <= MOST_SENT
    };
    counts.iter().copied().filter(|&chunks| chunks <= most && long(chunks) && few(chunks)).collect()
}

/// Whether a depth is worth a try: for long blocks, forests that are limited to few messages put too much on some links.
fn is_worth(case: &Case, fabric: &Fabric, depth: u32, depths: &[u32], counts: &[u32]) -> bool {
    const WORTH: f64 = 1.25;
    let roots = roots(case);
    let Some(&deepest) = depths.last().filter(|&&deepest| deepest > depth) else { return true };
    let end = |&chunks: &u32| fabric.end_ns(roots, Some(deepest), chunks, message_bytes(case, chunks)).ok();
    let least = counts.iter().filter_map(end).fold(f64::INFINITY, f64::min);
    fabric.fluid_ns(roots, depth, message_bytes(case, 1)).is_ok_and(|fluid| fluid <= WORTH * least)
}

/// The longest message of a forest of so many chunks.
fn message_bytes(case: &Case, chunks: u32) -> u64 {
    case.bytes(blocks(case).block(0).len.div_ceil(chunks))
}

/// The vector that every root's tree carries: a rank's block, or of an allreduce one block of the vector.
fn blocks(case: &Case) -> Blocks {
    let c = &case.collective;
    match c.kind {
        Kind::Allreduce => Blocks::new(c.elements, c.ranks),
        _ => Blocks::new(c.elements, 1),
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

    /// The timetable backwards: every rank combines its part of each chunk with those from below and sends the sum up. Returns
    /// the instructions that end the chunks at their roots.
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
        let table = fabric.messages(roots, Some(depth), chunks, message_bytes(case, chunks));
        let table = table.map_err(|reason| unsupported(reason.to_string()))?;
        let mut messages = Messages { case, forest: &chosen.forest, lanes: Lanes::new(fabric, c.ranks) };
        match c.kind {
            Kind::Broadcast => messages.spread(b, &table, None),
            Kind::Allgather => {
                for rank in 0..c.ranks {
                    let out = Operand::Out(rank * c.elements);
                    b.combine(NodeId(rank), Lanes::OWN, c.elements, &[Operand::In(0)], &[out]);
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
        let Chosen { roots, depth, chunks, forest } = Chosen::new(case, params).ok()?;
        let ways = if c.kind == Kind::Allreduce { 2 } else { 1 };
        let message_bytes = message_bytes(case, chunks);
        let end_ns = case.fabric()?.end_ns(roots, Some(depth), chunks, message_bytes).ok()?;
        let received = u64::from(forest.chunks) * if c.kind.has_root() { 1 } else { u64::from(c.ranks) };
        let reduces = u64::from(c.kind.reduces());
        Some(Trees {
            end_ns: f64::from(ways) * end_ns,
            messages: ways * forest.depth,
            messages_of_rank: u64::from(ways) * (received + forest.most_sends),
            reduced: reduces * forest.most_sends * message_bytes,
            reduced_last: reduces * u64::from(forest.most_sums) * message_bytes,
        })
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let (Some(fabric), roots) = (case.fabric(), roots(case)) else { return Vec::new() };
        if !fabric.is_cheap(roots) {
            return Vec::new();
        }
        let Ok(least) = fabric.least_depth(roots) else { return Vec::new() };
        let named = |depth: u32, chunks: u32| Params::new().with("depth", depth).with("chunks", chunks);
        let (depths, counts) = (fabric.depths(roots, least), counts(case, fabric));
        let worth = |&depth: &u32| depths.len() == 1 || is_worth(case, fabric, depth, &depths, &counts);
        let worth = depths.iter().copied().filter(worth);
        worth.flat_map(|depth| counts.iter().map(move |&chunks| named(depth, chunks))).collect()
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
