//! Torus trees: a broadcast of four parts of the vector at once over arc-disjoint trees of a torus of ranks, chunk
//! after chunk, so that all four links of every rank are in use in both directions; a reduce goes up the same trees.
//!
//! T = n/4 beta (1 + d/c) + d alpha to broadcast c chunks of a part, d messages from the root to the farthest rank
//! (about 3/4 of the longer side and half of the other), and the price beta of a byte on one link. The operator of a
//! reduce must commute.
//!
//! The leaves of a reduce keep a *window*. Nothing else delays them, and an interface sends few messages at a time, in
//! posting order: a rank that posts all chunks of the trees in which it is a leaf delays those of its other trees. So a
//! leaf sends a chunk only if the rank's other trees are no more chunks behind than are under way at a time.
//!
//! Source: arc-disjoint spanning trees, Edmonds (1973); the trees: [`crate::ranks::torus_trees`].

use unisono_base::{InstrId, NodeId, Span, narrow, rounded_up};
use unisono_collective::Kind;
use unisono_lower::Trees;
use unisono_schedule::{Builder, Operand};
use unisono_synthesis::{Fabric, Graph};

use crate::{
    AlgorithmError, Case, Info, Param, Params,
    ranks::{
        Blocks, Extents, RankAlgorithm,
        extents::DIMS,
        torus_trees::{TREES, torus_trees},
    },
};

pub struct TorusTrees;

const CHUNKS: &str = "chunks";

const INFO: Info = Info {
    name: "torus-trees",
    summary: "four arc-disjoint trees of a torus from one root; best for long vectors on networks of four links a rank",
    reference: "Edmonds: Edge-disjoint branchings, 1973; the trees are this project's own",
    collectives: &[Kind::Broadcast, Kind::Reduce],
    params: &[
        Param {
            name: CHUNKS,
            values: "parts of a quarter of the vector, which follow each other, 1 to 65536 (default: 64)",
        },
        DIMS,
    ],
    ..Info::AMONG_RANKS
};

const MOST_CHUNKS: u32 = 1 << 16;
const DEFAULT: u32 = 64;
/// Numbers of chunks that a plan considers, with the least bytes of a chunk and the most instructions of a schedule.
const WORTH: [u32; 5] = [4, 16, 64, 256, 1024];
const LEAST_BYTES: u64 = 1 << 11;
const MOST_INSTRUCTIONS: u64 = 1 << 23;

/// Returns the parent of each rank in each tree; the root is its own.
fn parents(case: &Case, params: &Params) -> Result<[Vec<u32>; TREES], AlgorithmError> {
    let (rows, columns) = Extents::of_two(INFO.name, case, params)?;
    let Some(trees) = torus_trees(rows, columns) else {
        let reason = format!("{rows}x{columns} ranks have no four such trees; it needs a torus of at least 3x3");
        return Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
    };
    let (row, column) = (case.collective.root / columns, case.collective.root % columns);
    let moved = |rank: u32| (rank / columns + row) % rows * columns + (rank % columns + column) % columns;
    Ok(trees.map(|tree| {
        let mut parents = vec![0; tree.len()];
        (0..).zip(tree).for_each(|(rank, parent)| parents[moved(rank) as usize] = moved(parent));
        parents
    }))
}

/// Returns the chunks of a quarter of the vector, no more than its elements.
fn chunks(case: &Case, params: &Params) -> Result<u32, AlgorithmError> {
    let given = params.number(INFO.name, CHUNKS, 1..=MOST_CHUNKS)?;
    Ok(given.unwrap_or(DEFAULT).min(case.collective.elements.div_ceil(narrow(TREES)).max(1)))
}

/// Returns the number of chunks by which the leaves of a reduce may be ahead of the rank's other trees.
///
/// Some chunks travel on the longest path, and each rank keeps one until its sum is made. The weights of both are those
/// of the least simulated time on tori of 3 x 3 to 32 x 32; half and twice the window take longer.
fn window(case: &Case, chunks: u32, parents: &[Vec<u32>; TREES]) -> u32 {
    let c = &case.collective;
    let Some(ways) = case.fabric().and_then(|fabric| Ways::new(fabric, parents)) else { return chunks.div_ceil(4) };
    let (messages, ns) = ways.deepest_ns(parents, c.root, 0, 2.0 * case.ranks().issue_ns);
    let chunk_ns = ways.busiest_ns(case.bytes(c.elements.div_ceil(chunks * narrow::<u32>(TREES))));
    let on_the_way = rounded_up(ns / chunk_ns).min(u64::from(chunks));
    messages.div_ceil(2) + (3 * narrow::<u32>(on_the_way)).div_ceil(4)
}

impl RankAlgorithm for TorusTrees {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        chunks(case, params)?;
        if case.collective.ranks == 1 { Ok(()) } else { parents(case, params).map(|_| ()) }
    }

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        4 * u64::from(case.collective.ranks) * u64::from(chunks(case, params).unwrap_or(1))
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let (c, chunks) = (case.collective, chunks(case, params)?);
        let quarters = Blocks::new(c.elements, narrow(TREES));
        let down = c.kind == Kind::Broadcast;
        let parents = parents(case, params)?;
        // The instructions of the chunks, by tree and rank.
        let mut made: Vec<Vec<Vec<InstrId>>> = Vec::new();
        let mut leaves: Vec<Vec<bool>> = Vec::new();
        for (lane, parents) in (0..).zip(&parents) {
            let quarter = quarters.block(lane);
            let mut above = vec![None; parents.len()];
            let mut below = vec![Vec::new(); parents.len()];
            for (rank, &parent) in (0..).zip(parents).filter(|&(rank, _)| rank != c.root) {
                let (from, to) = if down { (parent, rank) } else { (rank, parent) };
                let stream = Operand::Stream(b.stream(NodeId(from), &[NodeId(to)]));
                above[rank as usize] = Some(stream);
                below[parent as usize].push(stream);
            }
            leaves.push(below.iter().map(Vec::is_empty).collect());
            made.push(Vec::new());
            for (rank, (above, below)) in (0..).zip(above.into_iter().zip(below)) {
                let combine = |chunk: u32| {
                    let part = Blocks::new(quarter.len, chunks).block(chunk);
                    let Span { start, len } = Span::new(quarter.start + part.start, part.len);
                    let (own, end) = (Operand::In(start), Operand::Out(start));
                    if down {
                        let sinks: Vec<Operand> = above.map(|_| end).into_iter().chain(below.clone()).collect();
                        b.combine(NodeId(rank), lane, len, &[above.unwrap_or(own)], &sinks)
                    } else {
                        let sources: Vec<Operand> = std::iter::once(own).chain(below.clone()).collect();
                        b.combine(NodeId(rank), lane, len, &sources, &[above.unwrap_or(end)])
                    }
                };
                made[lane as usize].push((0..chunks).map(combine).collect());
            }
        }
        if !down {
            let window = window(case, chunks, &parents) as usize;
            for rank in 0..c.ranks as usize {
                let (idle, busy): (Vec<usize>, Vec<usize>) = (0..TREES).partition(|&lane| leaves[lane][rank]);
                for (&leaf, &other) in idle.iter().flat_map(|leaf| busy.iter().map(move |other| (leaf, other))) {
                    let behind = made[other][rank].iter();
                    made[leaf][rank].iter().skip(window).zip(behind).for_each(|(&sent, &added)| b.after(sent, added));
                }
            }
        }
        Ok(())
    }

    fn trees(&self, case: &Case, params: &Params) -> Option<Trees> {
        let (c, fabric) = (&case.collective, case.fabric()?);
        // Trees of a reduce delay each other at the interfaces, which only the messages of its schedule show.
        if c.kind == Kind::Reduce {
            return None;
        }
        let (chunks, parents) = (chunks(case, params).ok()?, parents(case, params).ok()?);
        let bytes = case.bytes(c.elements.div_ceil(chunks * narrow::<u32>(TREES)));
        let ways = Ways::new(fabric, &parents)?;
        let host_ns = 2.0 * case.ranks().issue_ns;
        let deepest = ways.deepest_ns(&parents, c.root, bytes, host_ns);
        let mut children = vec![0_u64; c.ranks as usize];
        parents.iter().for_each(|tree| tree.iter().for_each(|&parent| children[parent as usize] += 1));
        let most = children.into_iter().max().unwrap_or(0);
        Some(Trees {
            end_ns: deepest.1 + f64::from(chunks - 1) * ways.busiest_ns(bytes),
            messages: deepest.0,
            messages_of_rank: u64::from(chunks) * (most + TREES as u64),
            reduced: 0,
        })
    }

    /// Returns candidates on networks of two dimensions only.
    fn candidates(&self, case: &Case) -> Vec<Params> {
        let Some(extents) = case.ranks().extents else { return Vec::new() };
        if extents.dims().len() != 2 {
            return Vec::new();
        }
        let is_worth = |&chunks: &u32| {
            let params = Params::new().with(CHUNKS, chunks);
            let bytes = case.bytes(case.collective.elements) / (4 * u64::from(chunks));
            bytes >= LEAST_BYTES && self.instructions(case, &params) <= MOST_INSTRUCTIONS
        };
        WORTH.into_iter().filter(is_worth).map(|chunks| Params::new().with(CHUNKS, chunks)).collect()
    }

    fn chosen(&self, case: &Case, params: &Params) -> Params {
        chunks(case, params).map_or_else(|_| params.clone(), |chunks| params.clone().with(CHUNKS, chunks))
    }
}

/// The links that the messages of the trees take on a network.
struct Ways<'a> {
    fabric: &'a Fabric,
    /// By tree and rank: the links from the parent, and the least rate of one of them.
    of: Vec<Vec<(u32, u64)>>,
    /// Messages of a chunk on the busiest link, divided by its rate.
    busiest: f64,
}

impl<'a> Ways<'a> {
    /// Finds the paths; `None` if a rank cannot be reached.
    fn new(fabric: &'a Fabric, parents: &[Vec<u32>]) -> Option<Self> {
        let graph = fabric.graph();
        let mut on_arcs = vec![0_u32; graph.arcs().len()];
        let mut of = Vec::with_capacity(parents.len());
        for tree in parents {
            let mut links = vec![(0, u64::MAX); tree.len()];
            for (rank, &parent) in (0..).zip(tree).filter(|&(rank, &parent)| parent != rank) {
                let way = way(graph, parent, rank)?;
                way.iter().for_each(|&arc| on_arcs[arc as usize] += 1);
                let rate = way.iter().map(|&arc| graph.arcs()[arc as usize].rate).min()?;
                links[rank as usize] = (narrow(way.len()), rate);
            }
            of.push(links);
        }
        let loads = graph.arcs().iter().zip(on_arcs).map(|(arc, count)| f64::from(count) / arc.rate as f64);
        Some(Self { fabric, of, busiest: loads.fold(0.0, f64::max) })
    }

    /// Returns the time for which one chunk of each tree occupies the busiest link.
    fn busiest_ns(&self, bytes: u64) -> f64 {
        self.busiest * bytes as f64 / self.fabric.graph().bytes_per_ns()
    }

    /// Returns the most messages between the root and a rank in any tree, and the longest time of a chunk on its path.
    fn deepest_ns(&self, parents: &[Vec<u32>], root: u32, bytes: u64, host_ns: f64) -> (u32, f64) {
        let of_tree = |(tree, parents): (usize, &Vec<u32>)| self.deepest_of(tree, parents, root, bytes, host_ns);
        let trees = parents.iter().enumerate().map(of_tree);
        trees.fold((0, 0.0), |most: (u32, f64), found| (most.0.max(found.0), most.1.max(found.1)))
    }

    fn deepest_of(&self, tree: usize, parents: &[u32], root: u32, bytes: u64, host_ns: f64) -> (u32, f64) {
        let per_unit = self.fabric.graph().bytes_per_ns();
        let hop_ns = self.fabric.hop(1) / per_unit;
        let mut known = vec![None; parents.len()];
        known[root as usize] = Some((0, 0.0));
        let (mut most, mut longest) = (0, 0.0_f64);
        for rank in 0..narrow::<u32>(parents.len()) {
            let mut open = vec![rank];
            while let Some(&at) = open.last() {
                if known[at as usize].is_some() {
                    open.pop();
                    continue;
                }
                let parent = parents[at as usize];
                let Some((messages, ns)) = known[parent as usize] else {
                    open.push(parent);
                    continue;
                };
                let (links, rate) = self.of[tree][at as usize];
                let takes = f64::from(links) * hop_ns + host_ns + bytes as f64 / (rate as f64 * per_unit);
                known[at as usize] = Some((messages + 1, ns + takes));
                (most, longest) = (most.max(messages + 1), longest.max(ns + takes));
            }
        }
        (most, longest)
    }
}

/// Returns the arcs of a shortest path between two ranks over relays.
fn way(graph: &Graph, from: u32, to: u32) -> Option<Vec<u32>> {
    let mut reached: Vec<(u32, Vec<u32>)> = vec![(from, Vec::new())];
    let mut met = std::collections::BTreeSet::from([from]);
    while !reached.is_empty() {
        let mut next = Vec::new();
        for (node, way) in &reached {
            for &arc in graph.leaving(*node) {
                let at = graph.arcs()[arc as usize].to;
                let longer = || way.iter().copied().chain([arc]).collect::<Vec<u32>>();
                if at == to {
                    return Some(longer());
                }
                if at >= graph.ranks() && met.insert(at) {
                    next.push((at, longer()));
                }
            }
        }
        reached = next;
    }
    None
}
