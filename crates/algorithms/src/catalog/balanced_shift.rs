//! Balanced shift: an alltoall or allgather of direct messages. Shift k adds the coordinates of rank k to those of
//! every rank, modulo the extents, so it shifts the whole torus and loads all links of a direction equally. Ranks send
//! in the order of [`shifts`] and wait for no receive: one lane sends, another receives.
//!
//! T = alpha + b beta, where the busiest link carries b bytes. In one dimension this is the shift pattern of `pairwise`
//! without its rounds. In an allgather every rank sends its block to every other rank directly, so no message waits for
//! another. Source: Prisacari, Rodriguez, Minkenberg, Hoefler, "Bandwidth-optimal all-to-all exchanges in fat tree
//! networks", 2013; "HammingMesh", section 5 (the alltoall by shifts; the extension to dimensions is ours).

use unisono_base::NodeId;
use unisono_collective::Kind;
use unisono_lower::{Exchange, Flow, Round};
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Formula, Info, Params,
    ranks::{Extents, RankAlgorithm, extents::DIMS, shifts},
};

pub struct BalancedShift;

const INFO: Info = Info {
    name: "balanced-shift",
    summary: "messages in the order of shifts of the whole torus, nobody waiting for another; best for few ranks, and on networks",
    reference: "Prisacari and others: Bandwidth-optimal all-to-all exchanges in fat tree networks, 2013; HammingMesh, section 5",
    collectives: &[Kind::Allgather, Kind::Alltoall],
    params: &[DIMS],
    formulas: &[Formula::new("hockney", &[Kind::Allgather, Kind::Alltoall], "(P-1) (alpha + n beta)")],
    ..Info::AMONG_RANKS
};

/// Returns the rank that a shift by `by` sends `rank` to: in every dimension, the coordinate of `by` is added to that
/// of `rank`.
fn shifted(torus: &Extents, rank: u32, by: u32) -> u32 {
    (0..torus.dims().len()).fold(rank, |at, dim| torus.shifted(at, dim, torus.coordinate(by, dim)))
}

/// Returns the rank that a shift by `by` sends to `rank`.
fn origin(torus: &Extents, rank: u32, by: u32) -> u32 {
    let back = |at, dim| torus.shifted(at, dim, torus.dims()[dim] - torus.coordinate(by, dim));
    (0..torus.dims().len()).fold(rank, back)
}

impl RankAlgorithm for BalancedShift {
    const INFO: Info = INFO;

    fn instructions(&self, case: &Case, _: &Params) -> u64 {
        2 * u64::from(case.collective.ranks).pow(2)
    }

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        Extents::of(INFO.name, case, params).map(|_| ())
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let (p, len) = (c.ranks, c.elements);
        let torus = Extents::of(INFO.name, case, params)?;
        // Stream (k-1) P + r goes from rank r to the rank at shift k.
        let ways = (1..p).flat_map(|k| (0..p).map(move |r| (NodeId(r), NodeId(shifted(&torus, r, k)))));
        // An allgather sends the same block to all ranks, an alltoall a block for each rank.
        let block = |to: u32| Operand::In(if c.kind == Kind::Allgather { 0 } else { to * len });
        let streams: Vec<Operand> = ways.map(|(from, to)| Operand::Stream(b.stream(from, &[to]))).collect();
        for r in 0..p {
            for k in shifts(p) {
                let (to, from) = (shifted(&torus, r, k), origin(&torus, r, k));
                let (sent, got) = (streams[((k - 1) * p + r) as usize], streams[((k - 1) * p + from) as usize]);
                b.combine(NodeId(r), 0, len, &[block(to)], &[sent]);
                b.combine(NodeId(r), 1, len, &[got], &[Operand::Out(from * len)]);
            }
            b.combine(NodeId(r), 0, len, &[block(r)], &[Operand::Out(r * len)]);
        }
        Ok(())
    }

    fn exchanges(&self, case: &Case, params: &Params) -> Option<Vec<Exchange>> {
        let c = case.collective;
        let torus = Extents::of(INFO.name, case, params).ok()?;
        let bytes = case.bytes(c.elements);
        let flows = shifts(c.ranks).map(|k| Flow::new(bytes, 1, move |r| shifted(&torus, r, k))).collect();
        Some(vec![Exchange { flows, reduced: 0 }])
    }

    fn rounds(&self, case: &Case, _: &Params) -> Option<Vec<Round>> {
        let c = &case.collective;
        Some(vec![Round::new(c.ranks - 1, case.bytes(c.elements))])
    }
}
