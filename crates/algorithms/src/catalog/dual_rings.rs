//! Dual rings: two bidirectional rings on edge-disjoint Hamiltonian cycles of a torus of ranks. Each direction of each
//! ring carries a quarter of the vector, so all four links of every rank are in use in both directions.
//!
//! T = 2(P-1) alpha + (P-1)/P n/2 beta for the time beta of a byte on one link. One rank completes each element, so all
//! ranks get the same bits. The operator must commute. Source: "HammingMesh", section 4 (allreduce); the cycles:
//! [`crate::ranks::hamilton`].

use unisono_base::{NodeId, Span};
use unisono_collective::Kind;
use unisono_lower::{Exchange, Flow};
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Info, Params,
    ranks::{Around, Blocks, Extents, RankAlgorithm, exchanges_around, extents::DIMS, hamilton::two_cycles},
};

pub struct DualRings;

/// The number of rings: one in each direction on each of two cycles.
const RINGS: u32 = 4;

/// Returns the ranks in the order of each ring.
fn rings(case: &Case, params: &Params) -> Result<[Vec<u32>; 4], AlgorithmError> {
    let (rows, columns) = Extents::of_two(DualRings::INFO.name, case, params)?;
    let Some([one, other]) = two_cycles(rows, columns) else {
        let reason = format!("{rows}x{columns} ranks have no two such cycles; it needs a torus of at least 3x3");
        return Err(AlgorithmError::Unsupported { algorithm: DualRings::INFO.name, reason });
    };
    let back = |cycle: &[u32]| cycle.iter().rev().copied().collect();
    Ok([back(&one), back(&other), one, other])
}

impl RankAlgorithm for DualRings {
    const INFO: Info = Info {
        name: "dual-rings",
        summary: "two bidirectional rings on edge-disjoint cycles of a torus; best for long vectors on networks of four links a rank",
        reference: "HammingMesh, section 4; Bae, AlBdaiwi, Bose: Edge-disjoint Hamiltonian cycles in two-dimensional torus, 2004",
        collectives: &[Kind::Allgather, Kind::Allreduce, Kind::ReduceScatter],
        params: &[DIMS],
        sequences: &[(Kind::Allreduce, &[Kind::ReduceScatter, Kind::Allgather])],
        ..Info::AMONG_RANKS
    };

    fn instructions(&self, case: &Case, _: &Params) -> u64 {
        2 * u64::from(RINGS) * u64::from(case.collective.ranks).pow(2)
    }

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        if case.collective.ranks == 1 { Ok(()) } else { rings(case, params).map(|_| ()) }
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let quarters = Blocks::new(c.elements, RINGS);
        for (lane, ring) in (0..).zip(rings(case, params)?) {
            let quarter = quarters.block(lane);
            let around = Around::new(b, ring.iter().map(|&r| NodeId(r)).collect(), lane);
            // In an allreduce each rank has one block of the quarter; other collectives have a quarter of each rank's
            // block.
            let blocks = Blocks::new(quarter.len, c.ranks);
            let part = |q: u32| Span::new(quarter.start + blocks.block(q).start, blocks.block(q).len);
            let of_rank = |q: u32| Span::new(ring[q as usize] * c.elements + quarter.start, quarter.len);
            for q in 0..c.ranks {
                match c.kind {
                    Kind::ReduceScatter => around.reduce_scatter(b, q, of_rank, &[Operand::Out(quarter.start)]),
                    Kind::Allgather => {
                        let sinks = [Operand::Out(of_rank(q).start), around.to(q)];
                        let node = NodeId(ring[q as usize]);
                        b.combine(node, lane, quarter.len, &[Operand::In(quarter.start)], &sinks);
                        around.pass_on(b, q, of_rank);
                    }
                    _ => {
                        b.phase("reduce-scatter");
                        around.reduce_scatter(b, q, part, &[Operand::Out(part(q).start), around.to(q)]);
                        b.phase("allgather");
                        around.pass_on(b, q, part);
                    }
                }
            }
        }
        Ok(())
    }

    fn exchanges(&self, case: &Case, params: &Params) -> Option<Vec<Exchange>> {
        let c = case.collective;
        let all = c.kind == Kind::Allreduce;
        let bytes = case.bytes(c.elements.div_ceil(if all { RINGS * c.ranks } else { RINGS }));
        let flow = |ring: Vec<u32>| {
            let mut next = vec![0; ring.len()];
            (0..ring.len()).for_each(|q| next[ring[q] as usize] = ring[(q + 1) % ring.len()]);
            Flow::new(bytes, c.ranks - 1, move |r| next[r as usize])
        };
        Some(exchanges_around(c.kind, rings(case, params).ok()?.map(flow).into()))
    }
}
