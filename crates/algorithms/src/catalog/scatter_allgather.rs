//! Scatter, then allgather: van de Geijn's broadcast. The root scatters blocks of the vector over a binomial tree, then
//! all ranks gather them, around a ring or by recursive doubling.
//!
//! T = (ceil(log2 P) + P - 1) alpha + 2 (P-1)/P n beta with a ring, 2 log2 P alpha + 2 (P-1)/P n beta with doubling.
//! The root has all blocks and receives none. Doubling may begin with the nearest ranks, or with the farthest
//! (distance-halving), so that long messages go to near ranks, for networks with few links between far ranks.
//! Source: Barnett, Gupta, Payne, Shuler, van de Geijn, Watts, "Interprocessor collective communication library", 1994;
//! Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005 (broadcast).

use unisono_base::NodeId;
use unisono_collective::{Collective, Kind};
use unisono_lower::{Exchange, Flow, Round};
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Formula, Info, Param, Params,
    formula::POWER_THAT_DIVIDES,
    ranks::{
        Around, Blocks, RankAlgorithm,
        halving::{self, Halving},
        tree::{BINARY, children, parent, size},
    },
};

pub struct ScatterAllgather;

const ALLGATHER: &str = "allgather";
const ALLGATHERS: [&str; 3] = ["ring", "recursive-doubling", "distance-halving"];

/// Returns, for each stage of an allgather by doubling, the bit in which peers differ; `None` for an allgather around a
/// ring.
fn bits(case: &Case, params: &Params) -> Result<Option<Vec<u32>>, AlgorithmError> {
    let stages = 0..case.collective.ranks.ilog2();
    Ok(match params.choice(ScatterAllgather::INFO.name, ALLGATHER, &ALLGATHERS)? {
        "recursive-doubling" => Some(stages.collect()),
        "distance-halving" => Some(stages.rev().collect()),
        _ => None,
    })
}

impl RankAlgorithm for ScatterAllgather {
    const INFO: Info = Info {
        name: "scatter-allgather",
        summary: "the root scatters blocks of the vector, then all gather them; best for long vectors",
        reference: "Barnett et al.: Interprocessor collective communication library, 1994",
        collectives: &[Kind::Broadcast],
        params: &[Param {
            name: ALLGATHER,
            values: "ring, recursive-doubling or distance-halving (P a power of two) (default: ring)",
        }],
        formulas: &[Formula::new("hockney", &[Kind::Broadcast], "(log2(P) + P - 1) alpha + 2 (P-1)/P n beta")
            .when(POWER_THAT_DIVIDES)],
        sequences: &[(Kind::Broadcast, &[Kind::Scatter, Kind::Allgather])],
        ..Info::AMONG_RANKS
    };

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let ranks = case.collective.ranks;
        if bits(case, params)?.is_some() && !ranks.is_power_of_two() {
            let reason = format!("its doubling needs a power of two, and {ranks} ranks are none");
            return Err(AlgorithmError::Unsupported { algorithm: Self::INFO.name, reason });
        }
        Ok(())
    }

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let ranks = u64::from(case.collective.ranks);
        let doubles = bits(case, params).is_ok_and(|bits| bits.is_some());
        ranks * if doubles { 2 * u64::from(ranks.ilog2()) + 3 } else { ranks + 3 }
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let (p, blocks) = (c.ranks, Blocks::new(c.elements, c.ranks));
        let nodes: Vec<NodeId> = (c.root..p).chain(0..c.root).map(NodeId).collect();
        if let Some(bits) = bits(case, params)? {
            let start = |block: u32| blocks.start(block);
            let down = Halving { nodes: &nodes, bits: bits.iter().rev().copied().collect(), start };
            b.phase("scatter");
            let mut held = down.scatter(b);
            b.phase("allgather");
            Halving { nodes: &nodes, bits, start }.allgather(b, &mut held, |_| None, Some(0));
            return Ok(());
        }
        let down: Vec<Operand> = (1..p)
            .map(|v| Operand::Stream(b.stream(nodes[parent(v, BINARY) as usize], &[nodes[v as usize]])))
            .collect();
        let around = Around::new(b, nodes.clone(), 0);
        for v in 0..p {
            b.phase("scatter");
            let node = nodes[v as usize];
            let part = |v: u32| blocks.span(v, v + size(v, p, BINARY));
            if v > 0 {
                b.combine(node, 0, part(v).len, &[down[v as usize - 1]], &[Operand::Out(part(v).start)]);
            }
            for child in children(v, p, BINARY).rev() {
                let start = part(child).start;
                let source = if v == 0 { Operand::In(start) } else { Operand::Out(start) };
                b.combine(node, 0, part(child).len, &[source], &[down[child as usize - 1]]);
            }
            b.phase("allgather");
            around.pass_on_from_first(b, v, |q| blocks.block(q));
        }
        Ok(())
    }

    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        let p = case.collective.ranks;
        let blocks = Blocks::new(case.collective.elements, p);
        let bytes = |from: u32, to: u32| case.bytes(blocks.span(from, to.min(p)).len);
        let stages = p.next_power_of_two().ilog2();
        // Blocks without elements are not sent.
        let halves = (0..stages).rev().map(|k| Round::new(1, bytes(1 << k, 2 << k))).filter(|round| round.bytes > 0);
        Some(if bits(case, params).ok()?.is_some() {
            halves.chain((0..stages).map(|k| Round::new(1, bytes(0, 1 << k)))).collect()
        } else {
            // The root receives nothing.
            halves.chain([Round::new(1, bytes(0, 1)).times(p - 2)]).collect()
        })
    }

    /// Returns the exchanges if the schedule is too large to be built for its time ([`halving::MOST_BUILT`]), otherwise
    /// `None`.
    fn exchanges(&self, case: &Case, params: &Params) -> Option<Vec<Exchange>> {
        let Collective { ranks: p, root, elements, .. } = case.collective;
        if self.instructions(case, params) <= halving::MOST_BUILT {
            return None;
        }
        let block = case.bytes(elements.div_ceil(p));
        let around = bits(case, params).ok()?;
        let bits = around.clone().unwrap_or_else(|| (0..p.next_power_of_two().ilog2()).collect());
        let real = move |v: u32| (v + root) % p;
        let down = bits.iter().enumerate().rev().map(|(stage, &bit)| {
            let done = bits[stage + 1..].iter().fold(0, |done, bit| done | 1 << bit);
            Flow::new(block << stage, 1, move |rank| match (rank + p - root) % p {
                v if v & !done == 0 && v + (1 << bit) < p => real(v + (1 << bit)),
                _ => rank,
            })
        });
        let all: Vec<Flow> = match around {
            None => vec![Flow::new(block, p - 2, move |rank| (rank + 1) % p)],
            Some(bits) => (0..)
                .zip(bits)
                .map(|(stage, bit)| {
                    // The root receives nothing.
                    let to = move |rank: u32| match ((rank + p - root) % p) ^ 1 << bit {
                        0 => rank,
                        v => real(v),
                    };
                    Flow::new(block << stage, 1, to)
                })
                .collect(),
        };
        Some(down.chain(all).map(|flow| Exchange { flows: vec![flow], reduced: 0 }).collect())
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        // Without a network all distances are equivalent, so distance-halving is omitted.
        let count = if case.fabric().is_some() { ALLGATHERS.len() } else { 2 };
        ALLGATHERS[..count].iter().map(|all| Params::new().with(ALLGATHER, all)).collect()
    }
}
