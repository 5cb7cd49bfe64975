//! Balanced shift: an alltoall or allgather of direct messages. Shift k adds the coordinates of rank k to those of
//! every rank, modulo the extents, so it shifts the whole torus and loads all links of a direction equally. Ranks send
//! in the order of [`shifts`] and wait for no receive: one lane sends, another receives.
//!
//! T = alpha + b beta, where the busiest link carries b bytes. In one dimension this is the shift pattern of `pairwise`
//! without its rounds. In an allgather every rank sends its block to every other rank directly, so no message waits for
//! another.
//!
//! Blocks that exceed the buffers of the network fill them, and messages then wait behind those for busier links. With
//! `pieces`, ranks send one piece of every block before the next pieces, and a piece only after the piece before it of
//! the same shift was received. So at most P - 1 pieces of a rank are under way, and the load of a link is even over
//! time. Source: Prisacari, Rodriguez, Minkenberg, Hoefler, "Bandwidth-optimal all-to-all exchanges in fat tree
//! networks", 2013; "HammingMesh", section 5 (the alltoall by shifts; the extension to dimensions is ours).

use unisono_base::{InstrId, NodeId};
use unisono_collective::Kind;
use unisono_lower::{Exchange, Flow, Round};
use unisono_schedule::{Builder, Operand};
use unisono_synthesis::Fabric;

use crate::{
    AlgorithmError, Case, Formula, Info, Param, Params,
    ranks::{Blocks, Extents, RankAlgorithm, extents::DIMS, shifts},
};

pub struct BalancedShift;

const PIECES: &str = "pieces";
/// The numbers of pieces that a plan considers on links between ranks, the least bytes of such a piece, and the most
/// instructions.
const COUNTS: [u32; 3] = [4, 16, 64];
const LEAST_PIECE_BYTES: u64 = 1 << 16;
const MOST_TRIED: u64 = 1 << 18;

const INFO: Info = Info {
    name: "balanced-shift",
    summary: "messages in the order of shifts of the whole torus, nobody waiting for another; best for few ranks, and on networks",
    reference: "Prisacari and others: Bandwidth-optimal all-to-all exchanges in fat tree networks, 2013; HammingMesh, section 5",
    collectives: &[Kind::Allgather, Kind::Alltoall],
    params: &[
        DIMS,
        Param { name: PIECES, values: "pieces of a block, which follow each other, 1 or more (default: 1)" },
    ],
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

/// Returns the number of pieces of a block; no piece of several is empty.
fn pieces(case: &Case, params: &Params) -> Result<u32, AlgorithmError> {
    let pieces = params.number(INFO.name, PIECES, 1..=u32::MAX)?.unwrap_or(1);
    Ok(pieces.min(case.collective.elements.max(1)))
}

impl RankAlgorithm for BalancedShift {
    const INFO: Info = INFO;

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        2 * u64::from(case.collective.ranks).pow(2) * u64::from(pieces(case, params).unwrap_or(1))
    }

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        pieces(case, params)?;
        Extents::of(INFO.name, case, params).map(|_| ())
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let (p, len) = (c.ranks, c.elements);
        let torus = Extents::of(INFO.name, case, params)?;
        // Stream (k-1) P + r goes from rank r to the rank at shift k.
        let ways = (1..p).flat_map(|k| (0..p).map(move |r| (NodeId(r), NodeId(shifted(&torus, r, k)))));
        // An allgather sends the same block to all ranks, an alltoall a block for each rank.
        let block = |to: u32| if c.kind == Kind::Allgather { 0 } else { to * len };
        let pieces = pieces(case, params)?;
        let streams: Vec<Operand> = ways.map(|(from, to)| Operand::Stream(b.stream(from, &[to]))).collect();
        for r in 0..p {
            let mut earlier: Vec<Option<InstrId>> = vec![None; p as usize];
            for piece in (0..pieces).map(|piece| Blocks::new(len, pieces).block(piece)) {
                for k in shifts(p) {
                    let (to, from) = (shifted(&torus, r, k), origin(&torus, r, k));
                    let (out, got) = (streams[((k - 1) * p + r) as usize], streams[((k - 1) * p + from) as usize]);
                    let sent = b.combine(NodeId(r), 0, piece.len, &[Operand::In(block(to) + piece.start)], &[out]);
                    if let Some(earlier) = earlier[k as usize] {
                        b.after(sent, earlier);
                    }
                    let into = Operand::Out(from * len + piece.start);
                    earlier[k as usize] = Some(b.combine(NodeId(r), 1, piece.len, &[got], &[into]));
                }
            }
            b.combine(NodeId(r), 0, len, &[Operand::In(block(r))], &[Operand::Out(r * len)]);
        }
        Ok(())
    }

    fn exchanges(&self, case: &Case, params: &Params) -> Option<Vec<Exchange>> {
        let c = case.collective;
        let (torus, pieces) = (Extents::of(INFO.name, case, params).ok()?, pieces(case, params).ok()?);
        let (len, longer) = (c.elements / pieces, c.elements % pieces);
        let lengths = [(len + 1, longer), (len, pieces - longer)].into_iter().filter(|&(_, repeat)| repeat > 0);
        let exchange = |(len, repeat)| {
            let flow = |k| Flow::new(case.bytes(len), repeat, move |r| shifted(&torus, r, k));
            Exchange { flows: shifts(c.ranks).map(flow).collect(), reduced: 0 }
        };
        Some(lengths.map(exchange).collect())
    }

    fn rounds(&self, case: &Case, params: &Params) -> Option<Vec<Round>> {
        let c = &case.collective;
        (pieces(case, params) == Ok(1)).then(|| vec![Round::new(c.ranks - 1, case.bytes(c.elements))])
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let ranks = case.collective.ranks;
        let joins = |fabric: &Fabric| fabric.graph().arcs().iter().any(|arc| arc.from.max(arc.to) < ranks);
        let counts =
            if case.collective.kind == Kind::Alltoall && case.fabric().is_some_and(joins) { &COUNTS[..] } else { &[] };
        let of_count = counts.iter().map(|&count| (count, Params::new().with(PIECES, count)));
        let is_tried = |(count, params): &(u32, Params)| {
            case.bytes(case.collective.elements) / u64::from(*count) >= LEAST_PIECE_BYTES
                && self.instructions(case, params) <= MOST_TRIED
        };
        let cut = of_count.filter(is_tried).map(|(_, params)| params);
        [Params::new()].into_iter().chain(cut).collect()
    }
}
