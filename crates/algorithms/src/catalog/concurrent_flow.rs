//! Concurrent flow: an all-to-all, a scatter or a gather along trees that load the links of the network evenly.
//!
//! The block of every pair of ranks is cut into `chunks`; for each chunk, every rank has a tree to all other ranks
//! ([`unisono_synthesis::Scatter`]). A message along a hop of the tree carries at most `batch` blocks, for ranks at and
//! below the end of the hop; the receiver keeps its own block and forwards the others. Senders pack blocks that are not
//! contiguous. A scatter has only the trees of its root, and a gather uses these trees in reverse: a rank collects the
//! blocks of the ranks below it.
//!
//! T = end of the timetable of all messages; the bound `flow` is the least time of any flow. Source: Shahrokhi and
//! Matula, "The maximum concurrent flow problem", JACM 1990; Basu et al., "Efficient all-to-all collective
//! communication schedules for direct-connect topologies", HPDC 2024. Messages take the routes of the network, which
//! are its shortest paths.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use unisono_base::{InstrId, NodeId, Span, narrow};
use unisono_collective::Kind;
use unisono_lower::Trees;
use unisono_schedule::{Builder, Operand};
use unisono_synthesis::{Fabric, Passed, Roots, Runs, Scatter, ScatterMessage};

use crate::{
    AlgorithmError, Case, Info, Means, Param, Params,
    ranks::{Blocks, Lanes, RankAlgorithm},
};

pub struct ConcurrentFlow;

const INFO: Info = Info {
    name: "concurrent-flow",
    summary: "blocks travel over other ranks, along trees that load all links of the network evenly",
    reference: "Shahrokhi and Matula: The maximum concurrent flow problem, 1990; Basu et al.: Efficient all-to-all collective \
                communication schedules for direct-connect topologies, HPDC 2024",
    collectives: &[Kind::Alltoall, Kind::Gather, Kind::Scatter],
    params: &[
        Param { name: "chunks", values: "parts of a block, each on a tree of its own, 1 to 1024 (default: 1)" },
        Param {
            name: "batch",
            values: "the most blocks in a message, 1 or more (default: all that take the same link)",
        },
        Param {
            name: "tree",
            values: "of a gather or scatter in one chunk: `soonest`, the tree whose messages arrive first, or `even`, one that loads links \
                     evenly (default: even)",
        },
    ],
    needs: &[Means::Links],
    ..Info::AMONG_RANKS
};

const MOST_CHUNKS: u32 = 1024;
/// The numbers of chunks of a block that a plan considers: `CHUNKS` in general, `CHUNKS_OF_ONE` for one root,
/// `CHUNKS_ALIKE` if all ranks are roots and see the same network. `BATCHES` (`BATCHES_OF_ONE` for one root) are the
/// numbers of blocks in a message, besides all blocks.
const CHUNKS: [u32; 4] = [1, 4, 16, 64];
const CHUNKS_OF_ONE: [u32; 10] = [1, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const CHUNKS_ALIKE: [u32; 2] = [1, 4];
/// Limits for more than `FEW` chunks of a block of one root: the least bytes of a chunk, and the most messages. Each
/// message then carries one block, because more chunks have the same effect as more messages.
const FEW: u32 = 4;
const LEAST_BYTES_OF_ONE: u64 = 1 << 12;
const MOST_MESSAGES_OF_ONE: u32 = 1 << 14;
/// If not every plan tries the trees of a network, the most product of chunks, ranks and links of more than one chunk
/// that a plan of the named algorithm considers: some seconds of CPU time.
const MOST_SEARCHED: u64 = 1 << 20;
const BATCHES: [u32; 2] = [4, 16];
const BATCHES_OF_ONE: [u32; 3] = [1, 4, 16];
/// The most ranks for which a plan considers more than one chunk, unless all ranks are roots and see the same network.
const MOST_CUT: u32 = 64;

fn fabric<'a>(case: &Case<'a>) -> Result<&'a Fabric, AlgorithmError> {
    case.fabric().ok_or_else(|| unsupported("it needs the links of a network".to_owned()))
}

fn unsupported(reason: String) -> AlgorithmError {
    AlgorithmError::Unsupported { algorithm: INFO.name, reason }
}

/// Returns the trees for the parameters, and the most blocks of a message. The latter is at most the number of ranks
/// minus one.
fn scatter(case: &Case, params: &Params) -> Result<(Arc<Scatter>, u32), AlgorithmError> {
    let chunks = params.number(INFO.name, "chunks", 1..=MOST_CHUNKS)?.unwrap_or(1);
    let batch = params.number(INFO.name, "batch", 1..=u32::MAX)?.unwrap_or(case.collective.ranks - 1);
    let fabric = fabric(case)?;
    let found = match (params.choice(INFO.name, "tree", &["even", "soonest"])?, roots(case), chunks) {
        ("even", roots, _) => fabric.scatter(roots, chunks),
        (_, Roots::One(root), 1) => fabric.soonest_scatter(root, chunk_bytes(case, 1)),
        _ => return Err(unsupported("tree=soonest is of a gather or scatter in one chunk".to_owned())),
    };
    let found = found.map_err(|e| unsupported(e.to_string()))?;
    Ok((found, batch.min(case.collective.ranks - 1)))
}

/// Returns the ranks that are roots of trees: the root of the collective, or all ranks in an alltoall.
fn roots(case: &Case) -> Roots {
    if case.collective.kind.has_root() { Roots::One(case.collective.root) } else { Roots::All }
}

fn runs(case: &Case) -> Runs {
    if case.collective.kind == Kind::Gather { Runs::Up } else { Runs::Down }
}

/// Returns the bytes of the largest chunk of a block.
fn chunk_bytes(case: &Case, chunks: u32) -> u64 {
    case.bytes(case.collective.elements.div_ceil(chunks))
}

/// Emits the messages of all trees as instructions, in the order of the timetable.
struct Messages<'a> {
    case: &'a Case<'a>,
    /// The hops of each tree; trees are ordered by root, then by chunk.
    hops: Vec<Vec<Passed>>,
    roots: Roots,
    /// By tree and hop, the offset in the receiver's scratch memory of the blocks for the ranks below it; `None` before
    /// the first block. In a gather, the rank's own block is the first.
    held: Vec<Vec<Option<u32>>>,
    /// The instruction that received a batch, by tree, hop and index of the batch in the tree.
    received: FxHashMap<(usize, u32, u32), InstrId>,
    /// The instructions of a gather that received the blocks of a batch from below, by the tree, the hop that the batch
    /// takes next, and its index.
    collected: FxHashMap<(usize, u32, u32), Vec<InstrId>>,
    /// For each tree and each rank, the hop with this receiver.
    by: Vec<Vec<u32>>,
    chunks: u32,
    batch: u32,
    lanes: Lanes,
}

/// The entry of `by` for a root, to which no hop leads.
const ROOT: u32 = u32::MAX;

impl<'a> Messages<'a> {
    fn new(case: &'a Case<'a>, fabric: &Fabric, scatter: &Scatter, batch: u32) -> Self {
        let ranks = case.collective.ranks;
        let roots = scatter.roots.list(ranks).into_iter();
        let trees = roots.flat_map(|root| (0..scatter.chunks).map(move |chunk| (root, chunk)));
        let hops: Vec<Vec<_>> = trees.map(|(root, chunk)| scatter.hops(root, chunk)).collect();
        let of_hops = |hops: &Vec<Passed>| {
            let mut by = vec![ROOT; ranks as usize];
            (0..).zip(hops).for_each(|(at, hop)| by[hop.to as usize] = at);
            by
        };
        Self {
            case,
            by: hops.iter().map(of_hops).collect(),
            held: hops.iter().map(|hops| vec![None; hops.len()]).collect(),
            received: FxHashMap::default(),
            collected: FxHashMap::default(),
            roots: scatter.roots,
            hops,
            chunks: scatter.chunks,
            batch,
            lanes: Lanes::new(fabric, ranks),
        }
    }

    /// Returns the elements of a chunk in a block.
    fn span(&self, chunk: u32) -> Span {
        let part = Blocks::new(self.case.collective.elements, self.chunks).block(chunk);
        Span::new(part.start, part.len)
    }

    /// Packs the chunks that a root sends in one message, unless they are contiguous in its input; returns their
    /// operand.
    fn packed(&self, b: &mut Builder, m: &ScatterMessage, tree: usize, lane: u32) -> Operand {
        let len = self.case.collective.elements;
        let Span { start, len: part } = self.span(m.chunk);
        let ranks: Vec<u32> = (m.first..m.first + m.blocks).map(|hop| self.hops[tree][hop as usize].to).collect();
        let apart = |pair: &[u32]| part < len || pair[1] != pair[0] + 1;
        if !ranks.windows(2).any(apart) {
            return Operand::In(ranks[0] * len + start);
        }
        let root = NodeId(m.root);
        let base = b.scratch(root, m.blocks * part);
        let mut at = base;
        for run in ranks.chunk_by(|&a, &b| !apart(&[a, b])) {
            let run_len = narrow::<u32>(run.len()) * part;
            b.combine(root, lane, run_len, &[Operand::In(run[0] * len + start)], &[Operand::Tmp(at)]);
            at += run_len;
        }
        Operand::Tmp(base)
    }

    fn tree(&self, m: &ScatterMessage) -> usize {
        let turn = if self.roots == Roots::All { m.root } else { 0 };
        (turn * self.chunks + m.chunk) as usize
    }

    /// Sends blocks from the sender of a hop to its receiver.
    fn down(&mut self, b: &mut Builder, m: &ScatterMessage) {
        let elements = self.case.collective.elements;
        let Span { start, len } = self.span(m.chunk);
        if len == 0 {
            return;
        }
        let tree = self.tree(m);
        let Passed { from, to, link, blocks } = self.hops[tree][m.hop as usize];
        let sends = self.lanes.sends(from, link);
        let above = self.by[tree][from as usize];
        // A rank stores the blocks for the ranks below it in the order of their hops, which follow the rank's own hop.
        let (source, earlier) = if above == ROOT {
            (self.packed(b, m, tree, sends), None)
        } else {
            let base = self.held[tree][above as usize].expect("the blocks came before");
            let earlier = self.received.get(&(tree, above, m.first / self.batch)).copied();
            (Operand::Tmp(base + (m.first - above - 1) * len), earlier)
        };
        let stream = Operand::Stream(b.stream(NodeId(from), &[NodeId(to)]));
        let sent = b.combine(NodeId(from), sends, m.blocks * len, &[source], &[stream]);
        if let Some(earlier) = earlier {
            b.after(sent, earlier);
        }
        let lane = self.lanes.receives(to, from);
        let own = m.first == m.hop;
        if own {
            let before = if self.roots == Roots::All { m.root * elements } else { 0 };
            let out = Operand::Out(before + start);
            b.combine(NodeId(to), lane, len, &[stream], &[out]);
        }
        let rest = m.blocks - u32::from(own);
        if rest > 0 {
            let first = m.first + u32::from(own);
            // Batches may arrive in any order, so each is stored at its own offset.
            let held = &mut self.held[tree][m.hop as usize];
            let base = *held.get_or_insert_with(|| b.scratch(NodeId(to), (blocks - 1) * len));
            let place = Operand::Tmp(base + (first - m.hop - 1) * len);
            let received = b.combine(NodeId(to), lane, rest * len, &[stream], &[place]);
            self.received.insert((tree, m.hop, m.first / self.batch), received);
        }
    }

    /// Sends blocks of a gather up a tree. Hops are stated for a scatter, so a hop's receiver sends to its sender.
    fn up(&mut self, b: &mut Builder, m: &ScatterMessage) {
        let elements = self.case.collective.elements;
        let Span { start, len } = self.span(m.chunk);
        if len == 0 {
            return;
        }
        let tree = self.tree(m);
        let Passed { from: above, to: rank, blocks, .. } = self.hops[tree][m.hop as usize];
        let (node, place) = (NodeId(rank), m.first / self.batch);
        let sends = self.lanes.sends(rank, above);
        let own = m.first == m.hop;
        let mut earlier = self.collected.remove(&(tree, m.hop, place)).unwrap_or_default();
        let source = if own && m.blocks == 1 {
            Operand::In(start)
        } else {
            let base = *self.held[tree][m.hop as usize].get_or_insert_with(|| b.scratch(node, blocks * len));
            if own {
                earlier.push(b.combine(node, Lanes::OWN, len, &[Operand::In(start)], &[Operand::Tmp(base)]));
            }
            Operand::Tmp(base + (m.first - m.hop) * len)
        };
        let stream = Operand::Stream(b.stream(node, &[NodeId(above)]));
        let sent = b.combine(node, sends, m.blocks * len, &[source], &[stream]);
        earlier.into_iter().for_each(|earlier| b.after(sent, earlier));
        let lane = self.lanes.receives(above, rank);
        let by = self.by[tree][above as usize];
        if by == ROOT {
            let ranks = (m.first..m.first + m.blocks).map(|hop| self.hops[tree][hop as usize].to).collect::<Vec<_>>();
            for run in ranks.chunk_by(|&a, &b| len == elements && b == a + 1) {
                let out = Operand::Out(run[0] * elements + start);
                b.combine(NodeId(above), lane, narrow::<u32>(run.len()) * len, &[stream], &[out]);
            }
            return;
        }
        let of_above = self.hops[tree][by as usize].blocks;
        let base = *self.held[tree][by as usize].get_or_insert_with(|| b.scratch(NodeId(above), of_above * len));
        let held = Operand::Tmp(base + (m.first - by) * len);
        let received = b.combine(NodeId(above), lane, m.blocks * len, &[stream], &[held]);
        self.collected.entry((tree, by, place)).or_default().push(received);
    }
}

impl RankAlgorithm for ConcurrentFlow {
    const INFO: Info = INFO;

    /// Checks that trees exist, and that forwarded and packed blocks fit into scratch memory.
    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        if case.collective.ranks < 2 {
            return fabric(case).map(|_| ());
        }
        let (scatter, _) = scatter(case, params)?;
        let held = scatter.most_held * u64::from(case.collective.elements.div_ceil(scatter.chunks));
        if held > u64::from(u32::MAX) {
            return Err(unsupported(format!(
                "it would hold {held} elements of others on a rank; at most {} fit",
                u32::MAX
            )));
        }
        Ok(())
    }

    /// Counts a send and a receive for each rank and tree, and the copy of the rank's own block; further batches of an
    /// alltoall are not counted. For a collective with a root, the messages of its few trees are counted exactly.
    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let c = &case.collective;
        if c.kind.has_root() && c.ranks > 1 {
            let Ok((scatter, batch)) = scatter(case, params) else { return 2 * u64::from(c.ranks) };
            let messages = |hop: &Passed| u64::from(hop.blocks / batch) + 2;
            let of_tree = |chunk| scatter.hops(c.root, chunk).iter().map(messages).sum::<u64>();
            return 3 * (0..scatter.chunks).map(of_tree).sum::<u64>();
        }
        let chunks = params.number(INFO.name, "chunks", 1..=MOST_CHUNKS).ok().flatten().unwrap_or(1);
        let ranks = u64::from(c.ranks);
        ranks * (1 + 2 * u64::from(chunks.min(c.elements)) * (ranks - 1))
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let ((scatter, batch), fabric) = (scatter(case, params)?, fabric(case)?);
        for rank in roots(case).list(c.ranks) {
            let own = rank * c.elements;
            let (source, sink) = match c.kind {
                Kind::Gather => (Operand::In(0), Operand::Out(own)),
                Kind::Scatter => (Operand::In(own), Operand::Out(0)),
                _ => (Operand::In(own), Operand::Out(own)),
            };
            b.combine(NodeId(rank), Lanes::OWN, c.elements, &[source], &[sink]);
        }
        let hop = fabric.hop(chunk_bytes(case, scatter.chunks));
        let mut messages = Messages::new(case, fabric, &scatter, batch);
        for m in scatter.timetable(fabric.graph(), batch, hop, runs(case)) {
            match runs(case) {
                Runs::Down => messages.down(b, &m),
                Runs::Up => messages.up(b, &m),
            }
        }
        Ok(())
    }

    fn trees(&self, case: &Case, params: &Params) -> Option<Trees> {
        let ((scatter, batch), fabric) = (scatter(case, params).ok()?, case.fabric()?);
        let chunk_bytes = chunk_bytes(case, scatter.chunks);
        let work = fabric.host_work(chunk_bytes);
        let (end, messages) = scatter.end(fabric.graph(), batch, fabric.hop(chunk_bytes), runs(case), work);
        // `most_messages` counts one message per hop, so it is scaled to the number of batches.
        let uncut = u64::from(scatter.chunks) * u64::from(case.collective.ranks - 1);
        Some(Trees {
            end_ns: end * chunk_bytes as f64 / fabric.graph().bytes_per_ns(),
            messages: scatter.depth,
            messages_of_rank: (scatter.most_messages * messages).div_ceil(scatter.listed_roots() * uncut),
            reduced: 0,
        })
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let is_quick = case.fabric().is_some_and(|fabric| fabric.scatters_quickly(roots(case)));
        if is_quick { self.candidates_if_named(case) } else { Vec::new() }
    }

    fn candidates_if_named(&self, case: &Case) -> Vec<Params> {
        let (roots, Some(fabric)) = (roots(case), case.fabric()) else { return Vec::new() };
        let c = &case.collective;
        let batches: &[u32] = if roots == Roots::All { &BATCHES } else { &BATCHES_OF_ONE };
        let counts: &[u32] = match (roots == Roots::All, c.ranks > MOST_CUT) {
            (true, _) if fabric.is_alike(roots) => &CHUNKS_ALIKE,
            (_, true) => &CHUNKS[..1],
            (true, false) => &CHUNKS,
            (false, false) => &CHUNKS_OF_ONE,
        };
        let all = c.ranks.max(2) - 1;
        let size = u64::from(c.ranks) * fabric.graph().arcs().len() as u64;
        let is_found =
            |chunks: u32| chunks == 1 || fabric.scatters_quickly(roots) || u64::from(chunks) * size <= MOST_SEARCHED;
        let is_listed = |chunks: u32| {
            let is_worth = chunk_bytes(case, chunks) >= LEAST_BYTES_OF_ONE && chunks * all <= MOST_MESSAGES_OF_ONE;
            chunks <= c.elements.max(1) && (roots == Roots::All || chunks <= FEW || is_worth) && is_found(chunks)
        };
        let mut found = Vec::new();
        for chunks in counts.iter().copied().filter(|&chunks| is_listed(chunks)) {
            let (batches, most) = if roots == Roots::All || chunks <= FEW { (batches, all) } else { (&[][..], 1) };
            for batch in batches.iter().copied().filter(|&batch| batch < all).chain([most]) {
                found.push(Params::new().with("chunks", chunks.to_string()).with("batch", batch.to_string()));
            }
        }
        if roots != Roots::All && c.ranks <= MOST_CUT && fabric.relays_sooner() {
            let of_one = batches.iter().copied().filter(|&batch| batch < all).chain([all]);
            found.extend(
                of_one.map(|batch| Params::new().with("chunks", 1).with("batch", batch).with("tree", "soonest")),
            );
        }
        found
    }

    fn chosen(&self, case: &Case, params: &Params) -> Params {
        let with = |params: Params, name: &str, value: u32| match params.get(name) {
            None => params.with(name, value.to_string()),
            Some(_) => params,
        };
        if case.collective.ranks < 2 {
            return params.clone();
        }
        with(with(params.clone(), "chunks", 1), "batch", case.collective.ranks - 1)
    }
}
