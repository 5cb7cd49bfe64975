//! The ring: every rank sends only to the next rank, and all ranks forward the blocks of a vector.
//!
//! Block q starts at rank q + 1. Each rank adds one operand to it, and after P - 1 hops it is complete at rank q. In an
//! allgather, the block then goes around the ring once. Every rank gets the sum that one rank completed, so all ranks
//! end with the same bits. A block does not start at rank 0, so the operator must commute. T = (P-1)(alpha + n/P beta +
//! n/P gamma) to reduce-scatter, (P-1)(alpha + n/P beta) to allgather. Source: Thakur, Rabenseifner, Gropp,
//! "Optimization of Collective Communication Operations in MPICH", 2005, section 5.3; Patarasuk, Yuan, "Bandwidth
//! optimal all-reduce algorithms for clusters of workstations", 2009.

use unisono_base::{NodeId, Span, narrow};
use unisono_collective::Kind;
use unisono_lower::{Exchange, Flow, Round};
use unisono_schedule::{Builder, Operand};

use crate::{
    AlgorithmError, Case, Info, Params,
    ranks::{Blocks, RankAlgorithm},
};

/// A ring of nodes. The node at position q is `nodes[q]`.
pub struct Around {
    nodes: Vec<NodeId>,
    lane: u32,
    /// The stream from each position to the next.
    to: Vec<Operand>,
}

impl Around {
    /// Creates the streams of a ring of at least two nodes.
    pub fn new(b: &mut Builder, nodes: Vec<NodeId>, lane: u32) -> Self {
        let next = |q: usize| nodes[(q + 1) % nodes.len()];
        let to = (0..nodes.len()).map(|q| Operand::Stream(b.stream(nodes[q], &[next(q)]))).collect();
        Self { nodes, lane, to }
    }

    fn places(&self) -> u32 {
        narrow::<u32>(self.nodes.len())
    }

    /// Returns the position `steps` before position `q`.
    fn before(&self, q: u32, steps: u32) -> u32 {
        (q + self.places() - steps) % self.places()
    }

    pub fn to(&self, q: u32) -> Operand {
        self.to[q as usize]
    }

    fn from(&self, q: u32) -> Operand {
        self.to[self.before(q, 1) as usize]
    }

    /// Emits the reduce-scatter at position `q` from the inputs. The complete block goes to the sinks `end`. `block(k)`
    /// is the span of block k.
    pub fn reduce_scatter(&self, b: &mut Builder, q: u32, block: impl Fn(u32) -> Span, end: &[Operand]) {
        self.reduce_scatter_of(b, q, Operand::In, block, end);
    }

    /// Emits the reduce-scatter at position `q` from the operands `own(e)`, which start at element e.
    pub fn reduce_scatter_of(
        &self,
        b: &mut Builder,
        q: u32,
        own: fn(u32) -> Operand,
        block: impl Fn(u32) -> Span,
        end: &[Operand],
    ) {
        let (node, from) = (self.nodes[q as usize], self.from(q));
        for step in 1..=self.places() {
            let span = block(self.before(q, step));
            let sources = [from, own(span.start)];
            let sources = if step == 1 { &sources[1..] } else { &sources };
            let sinks = if step == self.places() { end } else { &[self.to(q)] };
            b.combine(node, self.lane, span.len, sources, sinks);
        }
    }

    /// Emits the receives of all other blocks at position `q`, after the position has sent its own block. Each block
    /// except the last one is also sent to the next position.
    pub fn pass_on(&self, b: &mut Builder, q: u32, block: impl Fn(u32) -> Span) {
        for step in 1..self.places() {
            let span = block(self.before(q, step));
            let sinks = [Operand::Out(span.start), self.to(q)];
            let last = step + 1 == self.places();
            let sinks = if last { &sinks[..1] } else { &sinks };
            b.combine(self.nodes[q as usize], self.lane, span.len, &[self.from(q)], sinks);
        }
    }

    /// Emits the allgather at position `q` if position 0 has all blocks in its input. Position 0 receives no blocks,
    /// and sends from its input.
    pub fn pass_on_from_first(&self, b: &mut Builder, q: u32, block: impl Fn(u32) -> Span) {
        let (node, last) = (self.nodes[q as usize], self.places() - 1);
        if q == 0 {
            for step in 0..last {
                let span = block(self.before(q, step));
                b.combine(node, self.lane, span.len, &[Operand::In(span.start)], &[self.to(q)]);
            }
            return;
        }
        if q < last {
            let own = block(q);
            b.combine(node, self.lane, own.len, &[Operand::Out(own.start)], &[self.to(q)]);
        }
        for step in 1..=last {
            let span = block(self.before(q, step));
            let sinks = [Operand::Out(span.start), self.to(q)];
            let stays = step == last || q == last;
            b.combine(node, self.lane, span.len, &[self.from(q)], if stays { &sinks[..1] } else { &sinks });
        }
    }
}

/// Returns the exchanges of rings with the given flows: one exchange for a reduce-scatter or an allgather; for other
/// collectives both, in sequence.
pub fn exchanges_around(kind: Kind, flows: Vec<Flow>) -> Vec<Exchange> {
    let brings = flows.iter().map(|flow| flow.bytes * u64::from(flow.repeat)).sum();
    let [reduces, gathers] = [brings, 0].map(|reduced| Exchange { flows: flows.clone(), reduced });
    match kind {
        Kind::ReduceScatter => vec![reduces],
        Kind::Allgather => vec![gathers],
        _ => vec![reduces, gathers],
    }
}

/// The algorithm `ring` among ranks.
pub struct RankRing;

/// The collectives that a ring of ranks implements.
pub const RING_COLLECTIVES: &[Kind] = &[Kind::Allgather, Kind::Allreduce, Kind::ReduceScatter];

impl RankAlgorithm for RankRing {
    const INFO: Info = Info {
        name: "ring",
        summary: "blocks go around the ranks, each rank sending to the next; best for long vectors",
        reference: "Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH, 2005",
        collectives: RING_COLLECTIVES,
        ..Info::AMONG_RANKS
    };

    fn instructions(&self, case: &Case, _: &Params) -> u64 {
        2 * u64::from(case.collective.ranks).pow(2)
    }

    fn check(&self, _: &Case, params: &Params) -> Result<(), AlgorithmError> {
        match params.get("mapping") {
            None => Ok(()),
            Some(found) => Err(AlgorithmError::Param {
                algorithm: Self::INFO.name,
                param: "mapping",
                found: found.to_owned(),
                accepted: "none among ranks, which lie on no line".to_owned(),
            }),
        }
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let around = Around::new(b, (0..c.ranks).map(NodeId).collect(), 0);
        let whole = Blocks::new(c.elements, c.ranks);
        let of_each = |q: u32| Span::new(q * c.elements, c.elements);
        let of_rank = |b: &mut Builder, q: u32| match c.kind {
            Kind::ReduceScatter => around.reduce_scatter(b, q, of_each, &[Operand::Out(0)]),
            Kind::Allgather => {
                let sinks = [Operand::Out(of_each(q).start), around.to(q)];
                b.combine(NodeId(q), 0, c.elements, &[Operand::In(0)], &sinks);
                around.pass_on(b, q, of_each);
            }
            _ => {
                b.phase("reduce-scatter");
                let block = |q: u32| whole.block(q);
                around.reduce_scatter(b, q, block, &[Operand::Out(block(q).start), around.to(q)]);
                b.phase("allgather");
                around.pass_on(b, q, block);
            }
        };
        b.in_halves(self.instructions(case, params), |b| {
            for q in 0..c.ranks {
                if b.keeps(NodeId(q)) {
                    of_rank(b, q);
                }
            }
            Ok(())
        })
    }

    fn exchanges(&self, case: &Case, _: &Params) -> Option<Vec<Exchange>> {
        let c = case.collective;
        let bytes = case.bytes(if c.kind == Kind::Allreduce { c.elements.div_ceil(c.ranks) } else { c.elements });
        let around = Flow::new(bytes, c.ranks - 1, move |r| (r + 1) % c.ranks);
        Some(exchanges_around(c.kind, vec![around]))
    }

    fn rounds(&self, case: &Case, _: &Params) -> Option<Vec<Round>> {
        let c = case.collective;
        let of = |elements: u32, reduces: bool| {
            let bytes = case.bytes(elements);
            Round::new(1, bytes).reducing(if reduces { bytes } else { 0 }).times(c.ranks - 1)
        };
        let longest = c.elements.div_ceil(c.ranks);
        Some(match c.kind {
            Kind::ReduceScatter => vec![of(c.elements, true)],
            Kind::Allgather => vec![of(c.elements, false)],
            _ => vec![of(longest, true), of(longest, false)],
        })
    }
}
