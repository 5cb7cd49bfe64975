//! Circulant graphs: the fewest rounds for any number of ranks, if each rank sends one message and receives one in a
//! round.
//!
//! A broadcast sends S blocks in sequence, and every rank receives a new block in nearly every round; a reduce runs the
//! same rounds in reverse. An allgather consists of concurrent broadcasts of one block from each rank, so a message has
//! the blocks of consecutive ranks; a reduce-scatter is an allgather in reverse, and an allreduce runs both. T =
//! (S-1+q)(alpha + n/S beta) for q = ceil(log2 P), least near S = sqrt((q-1) n beta / alpha); q alpha + (P-1) n beta to
//! allgather or reduce-scatter blocks of n, 2 q alpha + 2 (P-1)/P n beta for an allreduce. On ports that transfer one
//! message at a time, ranks that run ahead may delay others: a broadcast takes up to 1.5 T. One rank completes each
//! element of an allreduce, so all ranks get the same bits. The operator must commute.
//! Source: Träff, "Optimal Broadcast Schedules in Logarithmic Time with Applications to Broadcast, All-Broadcast,
//! Reduction and All-Reduction", arXiv 2407.18004; Träff, "Optimal, Non-pipelined Reduce-scatter and Allreduce
//! Algorithms", arXiv 2410.14234.

use unisono_base::{NodeId, Span, narrow};
use unisono_collective::Kind;
use unisono_lower::{Exchange, Flow, Round};
use unisono_schedule::{Builder, Operand};

mod of_ranks;

use crate::{
    AlgorithmError, Case, Formula, Info, Param, Params,
    ranks::{
        RankAlgorithm,
        circulant::{Pipeline, Skips},
        segments,
    },
};

use of_ranks::OfRanks;

pub struct Circulant;

const BLOCKS: &str = "blocks";

const MOST_BLOCKS: u32 = 1 << 20;

/// On a network, a plan also considers this multiple of the best number of blocks. Messages share links there, so
/// blocks should be shorter than the times of a single message suggest.
const MORE_ON_NETWORKS: u32 = 4;
/// The approximate limit of the instructions, in sum, of the candidates with numbers of blocks near the best number.
const MOST_TRIED: u64 = 1 << 18;

/// Up to this number of blocks, each number is compared. Above it, the next compared number is larger by the fraction 1
/// / `EACH`.
const EACH: u32 = 16;

/// Returns the number of blocks with the least time by the formula of a broadcast or a reduce. The number is at most
/// [`MOST_BLOCKS`] and at most the number of elements.
fn best_blocks(case: &Case) -> u32 {
    let c = &case.collective;
    let most = c.elements.clamp(1, MOST_BLOCKS);
    let (rounds, reduces) = (f64::from(Skips::new(c.ranks).rounds().max(1)), c.kind == Kind::Reduce);
    let ns = |blocks: u32| {
        let length = c.elements.div_ceil(blocks).max(1);
        let further = f64::from(c.elements.div_ceil(length).max(1) - 1);
        let message = case.message(case.bytes(length.min(c.elements)));
        let arrival = message.arrival_ns(reduces);
        let busy = (rounds - 1.0 + further) * message.gap_ns() - message.slack + arrival;
        // Of two ranks, one only sends and the other only receives, so no send waits for a message to arrive.
        let hold = message.hold_ns(reduces);
        let turn = if c.ranks > 2 { arrival.max(hold) } else { message.send_cpu.max(hold - message.send_cpu) };
        (rounds * arrival + further * turn).max(busy)
    };
    let next = |&blocks: &u32| (blocks < most).then(|| (blocks + blocks.div_ceil(EACH)).min(most));
    let tried = std::iter::successors(Some(1), next).map(|blocks| (ns(blocks), blocks));
    tried.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(1, |best| best.1)
}

/// Returns the elements of a block of a broadcast or a reduce. All blocks except the last have this length. A rank that
/// received a shorter block would send its next message early, and this message would delay others.
fn length(case: &Case, params: &Params) -> Result<u32, AlgorithmError> {
    let given = params.number(Circulant::INFO.name, BLOCKS, 1..=MOST_BLOCKS)?;
    Ok(case.collective.elements.div_ceil(given.unwrap_or_else(|| best_blocks(case))).max(1))
}

/// Returns the number of blocks of a broadcast or a reduce.
fn blocks(case: &Case, params: &Params) -> Result<u32, AlgorithmError> {
    Ok(case.collective.elements.div_ceil(length(case, params)?).max(1))
}

/// The rounds of a broadcast or a reduce on the ranks of a case.
struct Rooted {
    pipeline: Pipeline,
    ranks: u32,
    root: u32,
    elements: u32,
    length: u32,
}

impl Rooted {
    fn new(case: &Case, params: &Params) -> Result<Self, AlgorithmError> {
        let c = &case.collective;
        let (length, pipeline) = (length(case, params)?, Pipeline::new(c.ranks, blocks(case, params)?));
        Ok(Self { pipeline, ranks: c.ranks, root: c.root, elements: c.elements, length })
    }

    fn block(&self, at: u32) -> Span {
        let start = at * self.length;
        Span::new(start, self.length.min(self.elements - start))
    }

    /// Converts a rank counted from the root to a rank of the case.
    fn real(&self, rank: u32) -> u32 {
        around(self.ranks, self.root, rank)
    }

    /// Returns the rank, counted from the root, that sends to `rank` in a round of a broadcast.
    fn sender(&self, round: u32, rank: u32) -> u32 {
        before(self.ranks, rank, self.pipeline.skip(round))
    }

    /// Creates the streams between each rank and its peers. They have the direction of a broadcast if `down`, otherwise
    /// of a reduce. They are indexed by the rank that receives in a broadcast, then by the skip.
    fn streams(&self, b: &mut Builder, down: bool) -> Vec<Operand> {
        let q = self.pipeline.skips.rounds();
        let mut streams = Vec::with_capacity((self.ranks * q) as usize);
        for rank in 0..self.ranks {
            for k in 0..q {
                let from = self.real(before(self.ranks, rank, self.pipeline.skips.skip(k)));
                let (from, to) = if down { (from, self.real(rank)) } else { (self.real(rank), from) };
                streams.push(Operand::Stream(b.stream(NodeId(from), &[NodeId(to)])));
            }
        }
        streams
    }

    fn stream(&self, streams: &[Operand], round: u32, rank: u32) -> Operand {
        streams[(rank * self.pipeline.skips.rounds() + self.pipeline.exponent(round)) as usize]
    }

    fn broadcast(&self, b: &mut Builder) {
        let streams = self.streams(b, true);
        for round in 0..self.pipeline.rounds() {
            for rank in 0..self.ranks {
                let to = around(self.ranks, rank, self.pipeline.skip(round));
                if let Some(block) = self.pipeline.received(round, to) {
                    let Span { start, len } = self.block(block);
                    let have = if rank == 0 { Operand::In(start) } else { Operand::Out(start) };
                    b.combine(NodeId(self.real(rank)), 0, len, &[have], &[self.stream(&streams, round, to)]);
                }
                if let Some(block) = self.pipeline.received(round, rank) {
                    let Span { start, len } = self.block(block);
                    let from = self.stream(&streams, round, rank);
                    b.combine(NodeId(self.real(rank)), 0, len, &[from], &[Operand::Out(start)]);
                }
            }
        }
    }

    /// Emits a reduce, which is the broadcast in reverse. In the round in which a rank would receive a block, it sends
    /// the sum of all messages with this block.
    fn reduce(&self, b: &mut Builder) {
        let streams = self.streams(b, false);
        // The offset of each rank's sums in scratch memory, and a flag for each block that already has a partial sum.
        let mut sums = vec![None; self.ranks as usize];
        let mut started = vec![false; self.ranks as usize * self.pipeline.blocks as usize];
        for round in (0..self.pipeline.rounds()).rev() {
            for rank in 0..self.ranks {
                let node = NodeId(self.real(rank));
                let at = |block: u32| rank as usize * self.pipeline.blocks as usize + block as usize;
                let sum =
                    |base: Option<u32>, start: u32| base.map_or(Operand::Out(start), |at| Operand::Tmp(at + start));
                if let Some(block) = self.pipeline.received(round, rank) {
                    let Span { start, len } = self.block(block);
                    let have = if started[at(block)] { sum(sums[rank as usize], start) } else { Operand::In(start) };
                    b.combine(node, 0, len, &[have], &[self.stream(&streams, round, rank)]);
                }
                let from = around(self.ranks, rank, self.pipeline.skip(round));
                if let Some(block) = self.pipeline.received(round, from) {
                    let Span { start, len } = self.block(block);
                    if rank > 0 && sums[rank as usize].is_none() {
                        sums[rank as usize] = Some(b.scratch(node, self.elements));
                    }
                    let sum = sum(sums[rank as usize], start);
                    let have = if started[at(block)] { sum } else { Operand::In(start) };
                    started[at(block)] = true;
                    b.combine(node, 0, len, &[have, self.stream(&streams, round, from)], &[sum]);
                }
            }
        }
    }

    /// Returns the exchanges. Rounds in which every rank except the root receives a block are merged into one exchange
    /// for each distance.
    fn exchanges(&self, case: &Case) -> Vec<Exchange> {
        let (down, bytes) = (case.collective.kind == Kind::Broadcast, { case.bytes(self.length.min(self.elements)) });
        let exchange = |round: u32, repeat: u32| {
            let receives = |rank: u32| self.pipeline.received(round, rank).is_some();
            let mut peers: Vec<u32> = (0..self.ranks).collect();
            for rank in (0..self.ranks).filter(|&rank| receives(rank)) {
                let (from, to) = (self.real(self.sender(round, rank)), self.real(rank));
                let (from, to) = if down { (from, to) } else { (to, from) };
                peers[from as usize] = to;
            }
            let reduced = if down { 0 } else { u64::from(repeat) * bytes };
            Exchange { flows: vec![Flow::new(bytes, repeat, move |rank| peers[rank as usize])], reduced }
        };
        let (full, q) = (self.pipeline.full(), self.pipeline.skips.rounds());
        let first = (0..full.start).map(|round| (round, 1));
        let each = full.clone().take(q as usize).map(|round| (round, (full.end - round).div_ceil(q)));
        let mut all: Vec<Exchange> = first
            .chain(each)
            .chain((full.end..self.pipeline.rounds()).map(|round| (round, 1)))
            .map(|(a, n)| exchange(a, n))
            .collect();
        if !down {
            all.reverse();
        }
        all
    }
}

/// Returns the rank `steps` after `rank`.
fn around(ranks: u32, rank: u32, steps: u32) -> u32 {
    narrow::<u32>((u64::from(rank) + u64::from(steps)) % u64::from(ranks))
}

/// Returns the rank `steps` before `rank`.
fn before(ranks: u32, rank: u32, steps: u32) -> u32 {
    around(ranks, rank, ranks - steps)
}

impl RankAlgorithm for Circulant {
    const INFO: Info = Info {
        name: "circulant",
        summary: "as few rounds as any number of ranks can do with, over distances that halve; a vector of one root in blocks",
        reference: "Träff: Optimal broadcast schedules in logarithmic time, arXiv 2407.18004",
        collectives: &[Kind::Allgather, Kind::Allreduce, Kind::Broadcast, Kind::Reduce, Kind::ReduceScatter],
        params: &[Param {
            name: BLOCKS,
            values: "of a broadcast or a reduce: the blocks of the vector, 1 to 1048576 (default: the best number by alpha and beta)",
        }],
        formulas: &[
            Formula::new("hockney", &[Kind::Allgather], "ceil(log2(P)) alpha + (P-1) n beta"),
            Formula::new("hockney", &[Kind::ReduceScatter], "ceil(log2(P)) alpha + (P-1) n (beta + gamma)"),
        ],
        sequences: &[(Kind::Allreduce, &[Kind::ReduceScatter, Kind::Allgather])],
        ..Info::AMONG_RANKS
    };

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        match params.get(BLOCKS) {
            Some(found) if !case.collective.kind.has_root() => Err(AlgorithmError::Param {
                algorithm: Self::INFO.name,
                param: BLOCKS,
                found: found.to_owned(),
                accepted: format!("none in a collective without a root such as {}", case.collective.kind),
            }),
            _ => blocks(case, params).map(|_| ()),
        }
    }

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let (c, ranks) = (&case.collective, u64::from(case.collective.ranks));
        if c.kind.has_root() {
            return 2 * ranks * u64::from(blocks(case, params).unwrap_or(1));
        }
        let ways = if c.kind == Kind::Allreduce { 2 } else { 1 };
        ranks * (5 * ways * u64::from(Skips::new(c.ranks).rounds()) + 2)
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        match c.kind {
            Kind::Broadcast => Rooted::new(case, params)?.broadcast(b),
            Kind::Reduce => Rooted::new(case, params)?.reduce(b),
            Kind::Allgather => {
                for rank in 0..c.ranks {
                    b.combine(NodeId(rank), 0, c.elements, &[Operand::In(0)], &[Operand::Out(rank * c.elements)]);
                }
                OfRanks::new(case).allgather(b);
            }
            Kind::ReduceScatter => OfRanks::new(case).reduce_scatter(b),
            _ => {
                b.phase("reduce-scatter");
                OfRanks::new(case).reduce_scatter(b);
                b.phase("allgather");
                OfRanks::new(case).allgather(b);
            }
        }
        Ok(())
    }

    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        let c = &case.collective;
        if !c.kind.has_root() {
            let round = |e: Exchange| Round::new(1, e.flows[0].bytes).reducing(e.reduced);
            return Some(OfRanks::new(case).exchanges(case).into_iter().map(round).collect());
        }
        let blocks = blocks(case, params).ok()?;
        let bytes = case.bytes(length(case, params).ok()?.min(c.elements));
        let round = Round::new(1, bytes).reducing(if c.kind == Kind::Reduce { bytes } else { 0 });
        Some(vec![round.times(blocks - 1 + Skips::new(c.ranks).rounds())])
    }

    fn exchanges(&self, case: &Case, params: &Params) -> Option<Vec<Exchange>> {
        Some(match case.collective.kind.has_root() {
            true => Rooted::new(case, params).ok()?.exchanges(case),
            false => OfRanks::new(case).exchanges(case),
        })
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        if !case.collective.kind.has_root() {
            return vec![Params::new()];
        }
        let named = |blocks: u32| Params::new().with(BLOCKS, blocks);
        let (best, most) = (best_blocks(case), case.collective.elements.clamp(1, MOST_BLOCKS));
        let mut numbers: Vec<u32> = if case.fabric().is_some() {
            vec![best, (MORE_ON_NETWORKS * best).min(most)]
        } else {
            // Some ranks wait for no message in a round and run ahead. The number of blocks modulo q decides if they
            // delay others, so numbers near the best are candidates too.
            let tried = narrow::<u32>(MOST_TRIED / self.instructions(case, &named(best)).max(1));
            let near = (Skips::new(case.collective.ranks).rounds() / 2).min(tried / 2);
            (best.saturating_sub(near).max(1)..=(best + near).min(most)).collect()
        };
        numbers.iter_mut().for_each(|number| *number = blocks(case, &named(*number)).unwrap_or(*number));
        numbers.dedup();
        numbers.into_iter().map(named).collect()
    }

    fn recut(&self, case: &Case, params: &Params) -> [Option<Params>; 2] {
        match blocks(case, params) {
            Ok(blocks) if case.collective.kind.has_root() => {
                segments::recut_number(BLOCKS, blocks, case.collective.elements.clamp(1, MOST_BLOCKS), params)
            }
            _ => [None, None],
        }
    }

    fn chosen(&self, case: &Case, params: &Params) -> Params {
        match blocks(case, params) {
            Ok(blocks) if case.collective.kind.has_root() => params.clone().with(BLOCKS, blocks),
            _ => params.clone(),
        }
    }
}
