//! Scatter, then allgather: van de Geijn's broadcast. The root scatters blocks of the vector over a binomial tree, then
//! all ranks gather them, around a ring or by recursive doubling.
//!
//! T = (ceil(log2 P) + P - 1) alpha + 2 (P-1)/P n beta with a ring, 2 log2 P alpha + 2 (P-1)/P n beta with doubling.
//! Nothing is sent to the root, which has all blocks.
//! Source: Barnett, Gupta, Payne, Shuler, van de Geijn, Watts, "Interprocessor collective communication library", 1994;
//! Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005 (broadcast).

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::Round;
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Formula, Info, Param, Params,
    formula::POWER_THAT_DIVIDES,
    ranks::{
        Around, Blocks, RankAlgorithm,
        halving::Halving,
        tree::{BINARY, children, parent, size},
    },
};

pub struct ScatterAllgather;

const INFO: Info = Info {
    name: "scatter-allgather",
    summary: "the root scatters blocks of the vector, then all gather them; best for long vectors",
    reference: "Barnett et al.: Interprocessor collective communication library, 1994",
    collectives: &[Kind::Broadcast],
    params: &[Param { name: "allgather", values: "ring, recursive-doubling (P a power of two) (default: ring)" }],
    formulas: &[Formula::new("hockney", &[Kind::Broadcast], "(log2(P) + P - 1) alpha + 2 (P-1)/P n beta")
        .when(POWER_THAT_DIVIDES)],
    sequences: &[(Kind::Broadcast, &[Kind::Scatter, Kind::Allgather])],
    ..Info::AMONG_RANKS
};

const ALLGATHERS: [&str; 2] = ["ring", "recursive-doubling"];

impl RankAlgorithm for ScatterAllgather {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let ranks = case.collective.ranks;
        if params.choice(INFO.name, "allgather", &ALLGATHERS)? == ALLGATHERS[1] && !ranks.is_power_of_two() {
            let reason = format!("its recursive doubling needs a power of two, and {ranks} ranks are none");
            return Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
        }
        Ok(())
    }

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let ranks = u64::from(case.collective.ranks);
        let doubles = params.get("allgather") == Some(ALLGATHERS[1]);
        ranks * if doubles { 2 * u64::from(ranks.ilog2()) + 3 } else { ranks + 3 }
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let (p, blocks) = (c.ranks, Blocks::new(c.elements, c.ranks));
        let nodes: Vec<NodeId> = (c.root..p).chain(0..c.root).map(NodeId).collect();
        let doubles = params.choice(INFO.name, "allgather", &ALLGATHERS)? == ALLGATHERS[1];
        let down: Vec<Operand> = (1..p)
            .map(|v| Operand::Stream(b.stream(nodes[parent(v, BINARY) as usize], &[nodes[v as usize]])))
            .collect();
        let around = (!doubles).then(|| Around::new(b, nodes.clone(), 0));
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
            if let Some(around) = &around {
                b.phase("allgather");
                around.pass_on_from_first(b, v, |q| blocks.block(q));
            }
        }
        if doubles {
            b.phase("allgather");
            let start = |block: u32| blocks.start(block);
            let doubling = Halving { nodes: &nodes, bits: (0..p.ilog2()).collect(), start };
            let mut held: Vec<_> = (0..p).map(|v| v..v + 1).collect();
            doubling.allgather(b, &mut held, |_| None, Some(0));
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
        let doubles = params.choice(INFO.name, "allgather", &ALLGATHERS).ok()? == ALLGATHERS[1];
        Some(if doubles {
            halves.chain((0..stages).map(|k| Round::new(1, bytes(0, 1 << k)))).collect()
        } else {
            // The root receives nothing.
            halves.chain([Round::new(1, bytes(0, 1)).times(p - 2)]).collect()
        })
    }

    fn candidates(&self, _: &Case) -> Vec<Params> {
        ALLGATHERS.map(|a| Params::new().with("allgather", a)).to_vec()
    }
}
