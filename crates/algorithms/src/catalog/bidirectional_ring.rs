//! Bidirectional ring: two rings in opposite directions, each with half of the vector, so that both directions of every
//! link are in use.
//!
//! T = 2(P-1)(alpha + n/(2P) beta) + (P-1) n/(2P) gamma, if messages in opposite directions do not disturb each other.
//! One rank completes each element, so all ranks get the same bits. The operator must commute.
//! Source: Jain, Sabharwal, "Optimal bucket algorithms for large MPI collectives on torus interconnects", 2010, for one
//! dimension; `ring` otherwise.

use unisono_base::{NodeId, Span};
use unisono_collective::Kind;
use unisono_lower::{Exchange, Flow};
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Formula, Info, Params,
    ranks::{Around, Blocks, RankAlgorithm, exchanges_around},
};

pub struct BidirectionalRing;

impl RankAlgorithm for BidirectionalRing {
    const INFO: Info = Info {
        name: "bidirectional-ring",
        summary: "two rings in opposite directions with half of the vector each; best for long vectors on links of two directions",
        reference: "Jain, Sabharwal: Optimal bucket algorithms for large MPI collectives on torus interconnects, 2010",
        collectives: &[Kind::Allreduce],
        formulas: &[Formula::new("hockney", &[Kind::Allreduce], "4 (P-1) (alpha + n/(2 P) beta)")
            .when("2 P divides the vector, and a reduction is faster than its message")],
        sequences: &[(Kind::Allreduce, &[Kind::ReduceScatter, Kind::Allgather])],
        ..Info::AMONG_RANKS
    };

    fn instructions(&self, case: &Case, _: &Params) -> u64 {
        4 * u64::from(case.collective.ranks).pow(2)
    }

    fn emit(&self, b: &mut Builder, case: &Case, _: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let halves = Blocks::new(c.elements, 2);
        let ahead = Around::new(b, (0..c.ranks).map(NodeId).collect(), 0);
        let back = Around::new(b, (0..c.ranks).rev().map(NodeId).collect(), 1);
        for r in 0..c.ranks {
            for (around, q, half) in [(&ahead, r, halves.block(0)), (&back, c.ranks - 1 - r, halves.block(1))] {
                let blocks = Blocks::new(half.len, c.ranks);
                let block = |q: u32| Span::new(half.start + blocks.block(q).start, blocks.block(q).len);
                b.phase("reduce-scatter");
                around.reduce_scatter(b, q, block, &[Operand::Out(block(q).start), around.to(q)]);
                b.phase("allgather");
                around.pass_on(b, q, block);
            }
        }
        Ok(())
    }

    fn exchanges(&self, case: &Case, _: &Params) -> Option<Vec<Exchange>> {
        let c = case.collective;
        let bytes = case.bytes(c.elements.div_ceil(2 * c.ranks));
        let ahead = Flow::new(bytes, c.ranks - 1, move |r| (r + 1) % c.ranks);
        let back = Flow::new(bytes, c.ranks - 1, move |r| (r + c.ranks - 1) % c.ranks);
        Some(exchanges_around(c.kind, vec![ahead, back]))
    }
}
