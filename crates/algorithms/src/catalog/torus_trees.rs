//! Torus trees: a concurrent broadcast of four parts of the vector, in chunks, along arc-disjoint trees of a torus of
//! ranks, so that all four links of every rank are in use in both directions.
//!
//! A broadcast with c chunks of each part, d messages from the root to the farthest rank, and the time beta of a byte
//! on one link takes T = n/4 beta (1 + d/c) + d alpha: d is about 3/4 of the longer side plus half of the shorter side
//! on a torus, and at most 4 log2 of a side if switches join the boards of rows and columns. A reduce also adds the
//! chunks of a rank's children on each of the d ranks. The operator of a reduce must commute.
//!
//! A reduce is the broadcast in reverse. Leaves of a tree wait for no message, and an interface sends few messages at a
//! time, in posting order: all chunks of the trees in which a rank is a leaf, posted at once, would delay its other
//! trees. So a leaf sends a chunk no earlier than in the reversed broadcast, measured by the chunks of the rank's other
//! trees.
//!
//! Source: arc-disjoint spanning trees, Edmonds (1973); the trees: [`crate::ranks::torus_trees`] and, of boards that
//! switches join, [`crate::ranks::board_trees`].

use unisono_base::{InstrId, NodeId, Span, narrow, rounded};
use unisono_collective::Kind;
use unisono_lower::Trees;
use unisono_schedule::{Builder, Operand};

mod ways;

use crate::{
    AlgorithmError, Case, Info, Param, Params,
    ranks::{
        Blocks, Extents, RankAlgorithm,
        board_trees::board_trees,
        extents::DIMS,
        torus_trees::{TREES, torus_trees},
    },
};
use ways::Ways;

pub struct TorusTrees;

const CHUNKS: &str = "chunks";
const LINES: &str = "lines";
const RINGS: &str = "rings";
const SWITCHES: &str = "switches";

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
        Param {
            name: LINES,
            values: "rings (default), or switches: rows and columns of boards of 2x2 ranks that a switch joins",
        },
    ],
    ..Info::AMONG_RANKS
};

const MOST_CHUNKS: u32 = 1 << 16;
const DEFAULT: u32 = 64;
/// The numbers of chunks that a plan considers. A chunk must have at least `LEAST_BYTES` bytes, and the schedule at
/// most `MOST_INSTRUCTIONS` instructions.
const WORTH: [u32; 6] = [4, 16, 64, 256, 512, 1024];
const LEAST_BYTES: u64 = 1 << 11;
const MOST_INSTRUCTIONS: u64 = 1 << 24;
/// The number of chunks by which the leaves of a reduce run ahead of the reversed broadcast.
const SLACK: u64 = 2;

/// Returns the parent of each rank in each tree; the root is its own parent.
fn parents(case: &Case, params: &Params) -> Result<[Vec<u32>; TREES], AlgorithmError> {
    let (rows, columns) = Extents::of_two(INFO.name, case, params)?;
    let on_boards = params.choice(INFO.name, LINES, &[RINGS, SWITCHES])? == SWITCHES;
    let Some(trees) = (if on_boards { board_trees(rows, columns) } else { torus_trees(rows, columns) }) else {
        let needs = if on_boards { "even sides of at least 6 with lines=switches" } else { "a torus of at least 3x3" };
        let reason = format!("{rows}x{columns} ranks have no four such trees; it needs {needs}");
        return Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
    };
    let (row, column) = (case.collective.root / columns, case.collective.root % columns);
    // The trees are shifted by whole boards of two ranks per side. If the root is odd, the ranks of each board are
    // swapped.
    let along = |at: u32, root: u32, side: u32| {
        if on_boards { ((at + root / 2 * 2) % side) ^ (root % 2) } else { (at + root) % side }
    };
    let moved = |rank: u32| along(rank / columns, row, rows) * columns + along(rank % columns, column, columns);
    Ok(trees.map(|tree| {
        let mut parents = vec![0; tree.len()];
        (0..).zip(tree).for_each(|(rank, parent)| parents[moved(rank) as usize] = moved(parent));
        parents
    }))
}

/// Returns the number of chunks of a quarter of the vector, at most its elements.
fn chunks(case: &Case, params: &Params) -> Result<u32, AlgorithmError> {
    let given = params.number(INFO.name, CHUNKS, 1..=MOST_CHUNKS)?;
    Ok(given.unwrap_or(DEFAULT).min(case.collective.elements.div_ceil(narrow(TREES)).max(1)))
}

/// The trees, with the times of their messages.
struct TreeTimes<'a> {
    parents: [Vec<u32>; TREES],
    /// For each tree and rank, the number of messages on the path between the root and the rank, and the sum of their
    /// times in ns.
    ends: [Vec<(u32, f64)>; TREES],
    /// The time between consecutive chunks of a tree, in ns.
    period_ns: f64,
    ways: Option<Ways<'a>>,
}

impl<'a> TreeTimes<'a> {
    /// Computes the times of messages by the links of a network; without a network, each message takes 1, the period of
    /// a chunk.
    fn new(case: &'a Case, params: &Params, chunks: u32) -> Result<Self, AlgorithmError> {
        let (c, parents) = (&case.collective, parents(case, params)?);
        let bytes = case.bytes(c.elements.div_ceil(chunks * narrow::<u32>(TREES)));
        let ways = case.fabric().and_then(|fabric| Ways::new(fabric, &parents));
        let reduces_ns = if c.kind == Kind::Reduce { bytes as f64 * case.ranks().reduce_ns_per_byte } else { 0.0 };
        let ends = std::array::from_fn(|tree| {
            let mut children = vec![0_u32; parents[tree].len()];
            parents[tree].iter().for_each(|&parent| children[parent as usize] += 1);
            ends(&parents[tree], c.root, |rank| {
                let Some(ways) = &ways else { return 1.0 };
                let reduced = f64::from(children[parents[tree][rank] as usize]) * reduces_ns;
                ways.message_ns(tree, rank, bytes) + 2.0 * case.ranks().issue_ns + reduced
            })
        });
        let period_ns = ways.as_ref().map_or(1.0, |ways| ways.busiest_ns(bytes));
        Ok(Self { parents, ends, period_ns, ways })
    }

    /// Returns `(a, b)`: chunk a + i of the tree `leaf`, in which the rank is a leaf, waits for chunk b + i of the tree
    /// `other`. b - a is the difference of the times of both trees to the root, in periods.
    fn window(&self, rank: usize, leaf: usize, other: usize) -> (usize, usize) {
        let later = (self.ends[leaf][rank].1 - self.ends[other][rank].1) / self.period_ns;
        let (ahead, behind) = (SLACK + rounded(later), rounded(-later));
        (narrow(ahead.saturating_sub(behind)), narrow(behind.saturating_sub(ahead)))
    }
}

/// Returns, for each rank, the number of messages from the root to the rank, and the sum of their times in ns.
/// `takes(rank)` is the time of the message to the rank.
fn ends(parents: &[u32], root: u32, takes: impl Fn(usize) -> f64) -> Vec<(u32, f64)> {
    let mut known = vec![None; parents.len()];
    known[root as usize] = Some((0, 0.0));
    for rank in 0..parents.len() {
        let mut open = vec![rank];
        while let Some(&at) = open.last() {
            match known[parents[at] as usize] {
                _ if known[at].is_some() => drop(open.pop()),
                Some((messages, ns)) => known[at] = Some((messages + 1, ns + takes(at))),
                None => open.push(parents[at] as usize),
            }
        }
    }
    known.into_iter().map(Option::unwrap_or_default).collect()
}

impl RankAlgorithm for TorusTrees {
    const INFO: Info = INFO;

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
        // The instruction of each chunk, by tree and rank.
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
            let timed = TreeTimes::new(case, params, chunks)?;
            for rank in 0..c.ranks as usize {
                let (idle, busy): (Vec<usize>, Vec<usize>) = (0..TREES).partition(|&lane| leaves[lane][rank]);
                for (&leaf, &other) in idle.iter().flat_map(|leaf| busy.iter().map(move |other| (leaf, other))) {
                    let (ahead, behind) = timed.window(rank, leaf, other);
                    let waited = made[other][rank].iter().skip(behind);
                    made[leaf][rank].iter().skip(ahead).zip(waited).for_each(|(&sent, &added)| b.after(sent, added));
                }
            }
        }
        Ok(())
    }

    fn trees(&self, case: &Case, params: &Params) -> Option<Trees> {
        let (c, chunks) = (&case.collective, chunks(case, params).ok()?);
        let timed = TreeTimes::new(case, params, chunks).ok()?;
        timed.ways.as_ref()?;
        let (messages, ns) =
            timed.ends.iter().flatten().fold((0, 0.0_f64), |most, of| (most.0.max(of.0), most.1.max(of.1)));
        let mut children = vec![0_u64; c.ranks as usize];
        for parents in &timed.parents {
            let below = (0..).zip(parents).filter(|&(rank, _)| rank != c.root);
            below.for_each(|(_, &parent)| children[parent as usize] += 1);
        }
        let most = children.into_iter().max().unwrap_or(0);
        let reduced = if c.kind == Kind::Reduce { most * case.bytes(c.elements) / TREES as u64 } else { 0 };
        Some(Trees {
            end_ns: ns + f64::from(chunks - 1) * timed.period_ns,
            messages,
            messages_of_rank: u64::from(chunks) * (most + TREES as u64),
            reduced,
        })
    }

    /// Returns candidates only on networks with two dimensions.
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
        let rings = WORTH.into_iter().filter(is_worth).map(|chunks| Params::new().with(CHUNKS, chunks));
        let switches = Params::new().with(LINES, SWITCHES);
        let has_switches = TreeTimes::new(case, &switches, 1).is_ok_and(|timed| timed.ways.is_some());
        let on_boards = rings.clone().filter(|_| has_switches).map(|params| params.with(LINES, SWITCHES));
        rings.clone().chain(on_boards).collect()
    }

    fn chosen(&self, case: &Case, params: &Params) -> Params {
        chunks(case, params).map_or_else(|_| params.clone(), |chunks| params.clone().with(CHUNKS, chunks))
    }
}
