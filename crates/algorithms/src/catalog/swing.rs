//! Swing: an allreduce by halving and doubling with peers on alternating sides, at distances 1, 1, 3, 5, 11, ..., so
//! that paths on a torus are shorter than at distances 1, 2, 4, 8.
//!
//! In step s rank r exchanges with r + rho(s) if r is even, with r - rho(s) if r is odd, rho(s) = (1 - (-2)^(s+1)) / 3,
//! along one dimension; the steps alternate among the D dimensions. 2D parts of the vector run concurrently, one for
//! each first dimension and each sign of rho. The blocks of a message follow from trees: the tree of block b consists
//! of the ranks that rank b reaches in the steps from the last to the first, and each rank sends its sum in the step in
//! which it was reached. So every operand is added once, and blocks return along the same tree. If extents are powers
//! of two, each message is a contiguous half of the sender's blocks; with other even extents a step takes several
//! messages. T = 2 log2 P alpha + (P-1)/P n/D beta (1 + the fraction of links on longer paths) for the time beta of a
//! byte on one link. The operator must commute; all ranks get the same bits. The extra rank of an odd extent is not
//! implemented. Source: De Sensi, Bonato, Saam, Hoefler, "Swing: Short-cutting Rings for Higher Bandwidth Allreduce",
//! NSDI 2024.

use unisono_base::{NodeId, Span, narrow};
use unisono_collective::Kind;
use unisono_lower::{Exchange, Flow};
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Info, Params,
    ranks::{Blocks, Extents, RankAlgorithm, extents::DIMS},
};

pub struct Swing;

/// Returns the extents of the torus, or an error unless each is even or 1.
fn torus(case: &Case, params: &Params) -> Result<Extents, AlgorithmError> {
    let torus = Extents::of(Swing::INFO.name, case, params)?;
    match torus.dims().iter().find(|&&d| d > 1 && d % 2 == 1) {
        None => Ok(torus),
        Some(odd) => Err(AlgorithmError::Unsupported {
            algorithm: Swing::INFO.name,
            reason: format!("its ranks meet in pairs, and of {torus} ranks the extent {odd} is odd"),
        }),
    }
}

/// One part of the vector: its steps in order, and the sign of rho (`mirrored` if negative).
struct Part {
    torus: Extents,
    steps: Vec<Step>,
    mirrored: bool,
}

/// The step with index `at` along dimension `dim`.
#[derive(Clone, Copy)]
struct Step {
    dim: usize,
    at: u32,
}

/// Returns rho(s) = (1 - (-2)^(s+1)) / 3, the signed distance of step s.
fn rho(s: u32) -> i64 {
    (1 - (-2_i64).pow(s + 1)) / 3
}

/// Returns one part for each first dimension and each sign of rho.
fn parts(torus: &Extents) -> Vec<Part> {
    let dims: Vec<usize> = (0..torus.dims().len()).filter(|&d| torus.dims()[d] > 1).collect();
    let needs = |dim: usize| torus.dims()[dim].next_power_of_two().ilog2();
    let most = dims.iter().map(|&d| needs(d)).max().unwrap_or(0);
    let steps = |first: usize| -> Vec<Step> {
        let turn = dims.iter().cycle().skip(first).take(dims.len());
        let turns = (0..most).flat_map(|at| turn.clone().map(move |&dim| Step { dim, at }));
        turns.filter(|step| step.at < needs(step.dim)).collect()
    };
    let of = |first| [false, true].map(|mirrored| Part { torus: *torus, steps: steps(first), mirrored });
    (0..dims.len()).flat_map(of).collect()
}

impl Part {
    /// Returns whether a rank sends one contiguous half of its blocks in each step.
    fn halves(&self) -> bool {
        self.torus.dims().iter().all(|d| d.is_power_of_two())
    }

    /// Returns the peer of a rank in a step. The relation is symmetric, as the extents are even.
    fn peer(&self, rank: u32, step: Step) -> u32 {
        peer(&self.torus, self.mirrored, rank, step)
    }

    /// Returns the ranks in the order of their blocks. If all extents are powers of two, ranks are sorted by the class
    /// of ranks that still exchange after the first step, then after the second, and so on; such a class consists of
    /// the even ranks that are equal modulo 2^(s+1), and the odd ranks at distance rho(s) from them. Otherwise the
    /// order is ascending.
    fn order(&self) -> Vec<u32> {
        let class = |rank: u32, step: Step| {
            let at = i64::from(self.torus.coordinate(rank, step.dim));
            let rho = if self.mirrored { -rho(step.at + 1) } else { rho(step.at + 1) };
            // No ranks exchange after the last step of a dimension.
            let apart = 4 << step.at > self.torus.dims()[step.dim];
            if apart { at } else { (at - if at % 2 == 1 { rho } else { 0 }).rem_euclid(4 << step.at) }
        };
        let mut order: Vec<u32> = (0..self.torus.ranks()).collect();
        if self.halves() {
            order.sort_by_cached_key(|&rank| self.steps.iter().map(|&s| class(rank, s)).collect::<Vec<_>>());
        }
        order
    }

    /// Returns, for each block and rank, the step in which the rank sends its sum of the block; `NEVER` for the rank
    /// that computes the block's final sum.
    fn trees(&self, order: &[u32]) -> Vec<Vec<u8>> {
        let tree = |&end: &u32| {
            let mut sends = vec![NEVER; order.len()];
            let mut reached = vec![end];
            for (s, &step) in self.steps.iter().enumerate().rev() {
                for k in 0..reached.len() {
                    let to = self.peer(reached[k], step);
                    if to != end && sends[to as usize] == NEVER {
                        sends[to as usize] = narrow::<u8>(s);
                        reached.push(to);
                    }
                }
            }
            debug_assert_eq!(reached.len(), order.len(), "steps reach all ranks of {}", self.torus);
            sends
        };
        order.iter().map(tree).collect()
    }
}

fn peer(torus: &Extents, mirrored: bool, rank: u32, step: Step) -> u32 {
    let (at, extent) = (torus.coordinate(rank, step.dim), i64::from(torus.dims()[step.dim]));
    let there = if (at % 2 == 1) == mirrored { rho(step.at) } else { -rho(step.at) };
    torus.shifted(rank, step.dim, narrow::<u32>(there.rem_euclid(extent)))
}

/// The entry of the rank that computes a block's final sum. It is larger than any step.
const NEVER: u8 = u8::MAX;

impl RankAlgorithm for Swing {
    const INFO: Info = Info {
        name: "swing",
        summary: "halves exchanged at distances 1, 1, 3, 5, 11, ... on alternating sides; best for middle vectors on a torus",
        reference: "De Sensi, Bonato, Saam, Hoefler: Swing: Short-cutting Rings for Higher Bandwidth Allreduce, NSDI 2024",
        collectives: &[Kind::Allreduce],
        params: &[DIMS],
        sequences: &[(Kind::Allreduce, &[Kind::ReduceScatter, Kind::Allgather])],
        ..Info::AMONG_RANKS
    };

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let ranks = u64::from(case.collective.ranks);
        let Ok(torus) = torus(case, params) else { return 0 };
        let parts = 2 * torus.dims().len() as u64;
        if torus.dims().iter().all(|d| d.is_power_of_two()) {
            return 4 * parts * ranks * u64::from(ranks.ilog2() + 1);
        }
        2 * parts * ranks.pow(2)
    }

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        if case.collective.ranks == 1 { Ok(()) } else { torus(case, params).map(|_| ()) }
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let parts = parts(&torus(case, params)?);
        let slices = Blocks::new(case.collective.elements, narrow::<u32>(parts.len()));
        for (lane, part) in (0..).zip(&parts) {
            emit_part(b, part, slices.block(lane), lane);
        }
        Ok(())
    }

    fn exchanges(&self, case: &Case, params: &Params) -> Option<Vec<Exchange>> {
        let torus = torus(case, params).ok()?;
        if !torus.dims().iter().all(|d| d.is_power_of_two()) {
            return None;
        }
        let parts = parts(&torus);
        let slice = case.collective.elements.div_ceil(narrow::<u32>(parts.len()));
        let steps = parts.first().map_or(0, |part| part.steps.len());
        let exchange = |s: usize, reduces: bool| {
            let bytes = case.bytes(slice.div_ceil(2 << s));
            let flow = |part: &Part| {
                let (mirrored, step) = (part.mirrored, part.steps[s]);
                Flow::new(bytes, 1, move |r| peer(&torus, mirrored, r, step))
            };
            let reduced = if reduces { bytes * parts.len() as u64 } else { 0 };
            Exchange { flows: parts.iter().map(flow).collect(), reduced }
        };
        let there = (0..steps).map(|s| exchange(s, true));
        Some(there.chain((0..steps).rev().map(|s| exchange(s, false))).collect())
    }
}

/// Groups consecutive blocks for which `of` returns the same value, and returns the groups as `(first, end, value)`.
/// Blocks for which `of` returns `None` are omitted.
fn runs<T: PartialEq + Copy>(count: u32, of: impl Fn(u32) -> Option<T>) -> Vec<(u32, u32, T)> {
    let mut runs: Vec<(u32, u32, T)> = Vec::new();
    for block in 0..count {
        let Some(value) = of(block) else { continue };
        match runs.last_mut() {
            Some((_, end, last)) if *end == block && *last == value => *end += 1,
            _ => runs.push((block, block + 1, value)),
        }
    }
    runs
}

/// The blocks that a rank sends in each step.
enum Sent {
    /// Half of the rank's blocks, if all extents are powers of two. The vector holds the position of each rank's own
    /// block.
    Halves(Vec<u32>),
    /// With other extents, the blocks by their trees: for each block and rank, the step of [`Part::trees`].
    Trees(Vec<Vec<u8>>),
}

impl Sent {
    fn of(part: &Part) -> Self {
        let order = part.order();
        if !part.halves() {
            return Self::Trees(part.trees(&order));
        }
        let mut places = vec![0; order.len()];
        (0..).zip(&order).for_each(|(place, &rank)| places[rank as usize] = place);
        Self::Halves(places)
    }

    /// Returns the runs of blocks that rank `from` sends in step `s`, as `(first, end, flag)`. The flag is true if
    /// `rank` has received addends of the run in earlier steps, so that its sum is in its output.
    fn runs(&self, part: &Part, s: usize, from: u32, rank: u32) -> Vec<(u32, u32, bool)> {
        match self {
            // In the step before, the rank received addends of all blocks that remain.
            Self::Halves(_) => self.blocks(part, s, from).into_iter().map(|(a, b)| (a, b, s > 0)).collect(),
            Self::Trees(trees) => {
                let sends = |rank: u32, block: u32, s: usize| trees[block as usize][rank as usize] == narrow::<u8>(s);
                let received = |block: u32| {
                    (0..).zip(&part.steps[..s]).any(|(before, &step)| sends(part.peer(rank, step), block, before))
                };
                runs(part.torus.ranks(), |block| sends(from, block, s).then(|| received(block)))
            }
        }
    }

    /// Returns the runs of blocks that a rank sends in step `s`, as `(first, end)`.
    fn blocks(&self, part: &Part, s: usize, rank: u32) -> Vec<(u32, u32)> {
        match self {
            Self::Halves(places) => {
                // These are the blocks of the peer, and of the ranks with which the peer exchanges later.
                let (half, to) = (part.torus.ranks() >> (s + 1), places[part.peer(rank, part.steps[s]) as usize]);
                vec![(to / half * half, (to / half + 1) * half)]
            }
            Self::Trees(trees) => {
                let sends = |block: u32| (trees[block as usize][rank as usize] == narrow::<u8>(s)).then_some(());
                runs(part.torus.ranks(), sends).into_iter().map(|(from, to, ())| (from, to)).collect()
            }
        }
    }
}

fn emit_part(b: &mut Builder, part: &Part, slice: Span, lane: u32) {
    let sent = Sent::of(part);
    let ranks = part.torus.ranks();
    let blocks = Blocks::new(slice.len, ranks);
    let span = |from: u32, to: u32| {
        let span = blocks.span(from, to);
        Span::new(slice.start + span.start, span.len)
    };
    let place = |summed: bool, at: u32| if summed { Operand::Out(at) } else { Operand::In(at) };
    b.phase("reduce-scatter");
    for (s, &step) in part.steps.iter().enumerate() {
        let streams = streams(b, part, step);
        for rank in 0..ranks {
            let peer = part.peer(rank, step);
            for (from, to, summed) in sent.runs(part, s, rank, rank) {
                let span = span(from, to);
                b.combine(NodeId(rank), lane, span.len, &[place(summed, span.start)], &[streams[rank as usize]]);
            }
            for (from, to, summed) in sent.runs(part, s, peer, rank) {
                let span = span(from, to);
                let sources = [place(summed, span.start), streams[peer as usize]];
                b.combine(NodeId(rank), lane, span.len, &sources, &[Operand::Out(span.start)]);
            }
        }
    }
    b.phase("allgather");
    for (s, &step) in part.steps.iter().enumerate().rev() {
        let streams = streams(b, part, step);
        for rank in 0..ranks {
            let peer = part.peer(rank, step);
            for (from, to) in sent.blocks(part, s, peer) {
                let span = span(from, to);
                let own = Operand::Out(span.start);
                b.combine(NodeId(rank), lane, span.len, &[own], &[streams[rank as usize]]);
            }
            for (from, to) in sent.blocks(part, s, rank) {
                let span = span(from, to);
                let own = Operand::Out(span.start);
                b.combine(NodeId(rank), lane, span.len, &[streams[peer as usize]], &[own]);
            }
        }
    }
}

/// Creates the stream of each rank to its peer in a step.
fn streams(b: &mut Builder, part: &Part, step: Step) -> Vec<Operand> {
    let ranks = 0..part.torus.ranks();
    ranks.map(|r| Operand::Stream(b.stream(NodeId(r), &[NodeId(part.peer(r, step))]))).collect()
}
