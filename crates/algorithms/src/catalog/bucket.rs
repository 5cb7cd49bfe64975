//! Bucket: an allreduce of 2D parts of the vector concurrently on a D-dimensional torus of ranks. Each part starts in
//! one of the dimensions and runs in one of the two directions. A part is reduce-scattered along one dimension after
//! another, and then allgathered in reverse order. At any time the parts use different links.
//!
//! T = 2 sum over dimensions (P_d - 1) alpha + (P-1)/P n/D beta for equal extents and the time beta of a byte on one
//! link: on a square torus 4 (sqrt P - 1) alpha + (P-1)/P n/2 beta. Unequal extents leave links idle. One rank
//! completes each element, so all ranks get the same bits. The operator must commute. Source: Jain, Sabharwal, "Optimal
//! bucket algorithms for large MPI collectives on torus interconnects", 2010; Sack, Gropp, "Collective algorithms for
//! multiported torus networks", 2015; "HammingMesh", section 4.

use unisono_base::{NodeId, Span, narrow};
use unisono_collective::Kind;
use unisono_lower::{Exchange, Flow};
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Info, Params,
    ranks::{Around, Blocks, Extents, RankAlgorithm, extents::DIMS},
};

pub struct Bucket;

const INFO: Info = Info {
    name: "bucket",
    summary: "parts of the vector go around every dimension of a torus in both directions at once; best on networks",
    reference: "Jain, Sabharwal: Optimal bucket algorithms for large MPI collectives on torus interconnects, 2010; HammingMesh, section 4",
    collectives: &[Kind::Allreduce],
    params: &[DIMS],
    sequences: &[(Kind::Allreduce, &[Kind::ReduceScatter, Kind::Allgather])],
    ..Info::AMONG_RANKS
};

/// A part of the vector: the dimensions in the order of its stages, and its direction.
struct Part {
    dims: Vec<usize>,
    up: bool,
}

/// Returns the parts: for each dimension with an extent above 1, one part for each direction that starts in this
/// dimension.
fn parts(torus: &Extents) -> Vec<Part> {
    let dims: Vec<usize> = (0..torus.dims().len()).filter(|&d| torus.dims()[d] > 1).collect();
    let turned = |first: usize| dims.iter().copied().cycle().skip(first).take(dims.len()).collect::<Vec<_>>();
    (0..dims.len()).flat_map(|first| [true, false].map(|up| Part { dims: turned(first), up })).collect()
}

/// Returns the position of a rank on the ring along a dimension, in the direction of the ring.
fn place(torus: &Extents, rank: u32, dim: usize, up: bool) -> u32 {
    let at = torus.coordinate(rank, dim);
    if up { at } else { torus.dims()[dim] - 1 - at }
}

fn within(whole: Span, count: u32, at: u32) -> Span {
    let block = Blocks::new(whole.len, count).block(at);
    Span::new(whole.start + block.start, block.len)
}

impl RankAlgorithm for Bucket {
    const INFO: Info = INFO;

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let torus =
            Extents::of(INFO.name, case, params).unwrap_or_else(|_| Extents::nearest_to_square(case.collective.ranks));
        let around: u64 = torus.dims().iter().map(|&d| 2 * u64::from(d) + 1).sum();
        2 * torus.dims().len() as u64 * u64::from(case.collective.ranks) * around
    }

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        Extents::of(INFO.name, case, params).map(|_| ())
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let torus = Extents::of(INFO.name, case, params)?;
        let parts = parts(&torus);
        let slices = Blocks::new(c.elements, narrow::<u32>(parts.len()));
        for (lane, part) in (0..).zip(&parts) {
            let rings: Vec<Vec<Around>> = part.dims.iter().map(|&dim| rings(b, &torus, dim, part.up, lane)).collect();
            for rank in 0..c.ranks {
                emit_rank(b, &torus, part, &rings, rank, slices.block(lane), lane);
            }
        }
        Ok(())
    }

    fn exchanges(&self, case: &Case, params: &Params) -> Option<Vec<Exchange>> {
        let torus = Extents::of(INFO.name, case, params).ok()?;
        let parts = parts(&torus);
        let slice = case.collective.elements.div_ceil(narrow::<u32>(parts.len()));
        let stages = parts.first().map_or(0, |part| part.dims.len());
        let exchange = |stage: usize, reduces: bool| {
            let mut reduced = 0;
            let flows = parts.iter().map(|part| {
                let (dim, up) = (part.dims[stage], part.up);
                let extents = part.dims[..=stage].iter().map(|&d| torus.dims()[d]);
                let bytes = case.bytes(extents.fold(slice, |len, extent| len.div_ceil(extent)));
                let extent = torus.dims()[dim];
                reduced += u64::from(extent - 1) * bytes;
                Flow::new(bytes, extent - 1, move |r| torus.shifted(r, dim, if up { 1 } else { extent - 1 }))
            });
            let flows = flows.collect();
            Exchange { flows, reduced: if reduces { reduced } else { 0 } }
        };
        let there = (0..stages).map(|stage| exchange(stage, true));
        Some(there.chain((0..stages).rev().map(|stage| exchange(stage, false))).collect())
    }
}

/// Creates the rings along a dimension. The rings are sorted by their ranks with coordinate 0 in this dimension.
fn rings(b: &mut Builder, torus: &Extents, dim: usize, up: bool, lane: u32) -> Vec<Around> {
    let extent = torus.dims()[dim];
    let firsts = (0..torus.ranks()).filter(|&r| torus.coordinate(r, dim) == 0);
    let order = |first: u32| {
        let at = move |q: u32| if up { q } else { extent - 1 - q };
        (0..extent).map(|q| NodeId(torus.with(first, dim, at(q)))).collect()
    };
    firsts.map(|first| Around::new(b, order(first), lane)).collect()
}

/// Returns the index of a rank's ring among the rings along a dimension.
fn ring_of(torus: &Extents, rank: u32, dim: usize) -> usize {
    let (stride, extent) = (torus.stride(dim), torus.dims()[dim]);
    (rank / (stride * extent) * stride + rank % stride) as usize
}

fn emit_rank(b: &mut Builder, torus: &Extents, part: &Part, rings: &[Vec<Around>], rank: u32, slice: Span, lane: u32) {
    let last = part.dims.len() - 1;
    // For each stage, the elements that the rank's ring reduces: in the first stage the slice, then the block that the
    // rank completed in the stage before.
    let mut whole = vec![slice];
    for (stage, &dim) in part.dims.iter().enumerate() {
        let (extent, q) = (torus.dims()[dim], place(torus, rank, dim, part.up));
        let around = &rings[stage][ring_of(torus, rank, dim)];
        let of = whole[stage];
        let block = |q: u32| within(of, extent, q);
        let kept = Operand::Out(block(q).start);
        let own = if stage == 0 { Operand::In } else { Operand::Out };
        b.phase("reduce-scatter");
        let end = [kept, around.to(q)];
        around.reduce_scatter_of(b, q, own, block, if stage == last { &end } else { &end[..1] });
        whole.push(block(q));
    }
    b.phase("allgather");
    for (stage, &dim) in part.dims.iter().enumerate().rev() {
        let (extent, q) = (torus.dims()[dim], place(torus, rank, dim, part.up));
        let around = &rings[stage][ring_of(torus, rank, dim)];
        let of = whole[stage];
        let block = |q: u32| within(of, extent, q);
        if stage < last {
            let own = block(q);
            b.combine(NodeId(rank), lane, own.len, &[Operand::Out(own.start)], &[around.to(q)]);
        }
        around.pass_on(b, q, block);
    }
}
