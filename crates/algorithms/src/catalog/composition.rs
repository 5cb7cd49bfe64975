//! A collective that is made of other collectives. It runs two in sequence, such as a scatter and an allgather for a
//! broadcast, or it runs one that contains it, such as an allreduce for a reduce. Messages carry only the data that the
//! results need.
//!
//! T <= the sum of the times of the parts. These compositions are the performance guidelines of Träff, Gropp, Thakur,
//! "Self-consistent MPI performance guidelines", IEEE TPDS 2010: if a collective takes longer than a composition, the
//! composition should replace it.

use unisono_base::{NodeId, Span};
use unisono_collective::{Collective, Kind};
use unisono_schedule::{Builder, Operand, Schedule};

use crate::{
    ALGORITHMS, Algorithm, AlgorithmError, Case, Info, Param, Params,
    compose::{named, parsed},
    ranks::RankAlgorithm,
    resolve,
};

pub struct Composition;

/// The sequences of collectives that implement a collective.
pub const SEQUENCES: &[(Kind, &[Kind])] = &[
    (Kind::Broadcast, &[Kind::Scatter, Kind::Allgather]),
    (Kind::Broadcast, &[Kind::Allreduce]),
    (Kind::Reduce, &[Kind::ReduceScatter, Kind::Gather]),
    (Kind::Reduce, &[Kind::Allreduce]),
    (Kind::Allreduce, &[Kind::ReduceScatter, Kind::Allgather]),
    (Kind::Allreduce, &[Kind::Reduce, Kind::Broadcast]),
    (Kind::Barrier, &[Kind::Allreduce]),
    (Kind::Allgather, &[Kind::Gather, Kind::Broadcast]),
    (Kind::Allgather, &[Kind::Alltoall]),
    (Kind::ReduceScatter, &[Kind::Reduce, Kind::Scatter]),
    (Kind::ReduceScatter, &[Kind::Allreduce]),
    (Kind::Gather, &[Kind::Allgather]),
    (Kind::Scatter, &[Kind::Broadcast]),
];

const INFO: Info = Info {
    name: "composition",
    summary: "two collectives in sequence, or one that contains this one, each by an algorithm of its own",
    reference: "Träff, Gropp, Thakur: Self-consistent MPI performance guidelines, 2010",
    collectives: &[
        Kind::Allgather,
        Kind::Allreduce,
        Kind::Barrier,
        Kind::Broadcast,
        Kind::Gather,
        Kind::Reduce,
        Kind::ReduceScatter,
        Kind::Scatter,
    ],
    params: &[
        Param { name: "allgather", values: "an allgather, as NAME or NAME:K=V:K=V (default: ring)" },
        Param { name: "allreduce", values: "an allreduce, in the same form (default: ring)" },
        Param { name: "alltoall", values: "an alltoall, in the same form (default: pairwise)" },
        Param { name: "broadcast", values: "a broadcast, in the same form (default: binomial)" },
        Param { name: "gather", values: "a gather, in the same form (default: binomial)" },
        Param { name: "reduce", values: "a reduce, in the same form (default: binomial)" },
        Param { name: "reduce-scatter", values: "a reduce-scatter, in the same form (default: ring)" },
        Param { name: "scatter", values: "a scatter, in the same form (default: binomial)" },
    ],
    sequences: SEQUENCES,
    composed: true,
    ..Info::AMONG_RANKS
};

/// One collective of a sequence.
pub struct Part<'a> {
    algorithm: &'static dyn Algorithm,
    case: Case<'a>,
    params: Params,
}

/// Returns the collective of a part of `whole`; `None` if its buffers would have 2^31 elements or more. Blocks are
/// equal. If the number of ranks does not divide the vector, blocks are rounded up, and the last blocks have padding.
pub fn part(whole: &Collective, kind: Kind) -> Option<Collective> {
    let (n, ranks) = (whole.elements, whole.ranks);
    let is_vector = |kind: Kind| matches!(kind, Kind::Allreduce | Kind::Barrier | Kind::Broadcast | Kind::Reduce);
    let elements = match (is_vector(whole.kind), is_vector(kind)) {
        (true, false) => n.div_ceil(ranks),
        (false, true) => n.checked_mul(ranks)?,
        _ => n,
    };
    let most = if is_vector(kind) { elements } else { elements.checked_mul(ranks)? };
    if most >= 1 << 31 {
        return None;
    }
    // If the collective has no root, rank 0 is the root of the parts.
    Some(Collective { kind, elements, root: if kind.has_root() { whole.root } else { 0 }, ..*whole })
}

fn parts<'a>(case: &Case<'a>, params: &Params) -> Result<Vec<Part<'a>>, AlgorithmError> {
    let c = case.collective;
    let kinds = INFO.sequence(c.kind, params).ok_or_else(|| AlgorithmError::Unsupported {
        algorithm: INFO.name,
        reason: format!("no sequence of other collectives makes {}", c.kind),
    })?;
    if let Some((other, _)) = params.iter().find(|(k, _)| !kinds.iter().any(|kind| kind.name() == *k)) {
        let sequences = SEQUENCES.iter().filter(|(kind, _)| *kind == c.kind);
        let of = |kinds: &[Kind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" and ");
        let accepted = sequences.map(|(_, kinds)| of(kinds)).collect::<Vec<_>>().join(", or ");
        return Err(AlgorithmError::UnknownParam { algorithm: INFO.name, found: other.to_owned(), accepted });
    }
    let divides = kinds.iter().any(|&kind| part(&c, kind).is_some_and(|part| part.elements < c.elements));
    if divides && c.elements < c.ranks {
        let reason = format!("a vector of {} elements has no block for each of {} ranks", c.elements, c.ranks);
        return Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
    }
    kinds.iter().map(|&kind| one(case, params, kind)).collect()
}

fn one<'a>(case: &Case<'a>, params: &Params, kind: Kind) -> Result<Part<'a>, AlgorithmError> {
    let default = match kind {
        Kind::Allgather | Kind::Allreduce | Kind::ReduceScatter => "ring",
        Kind::Alltoall => "pairwise",
        _ => "binomial",
    };
    let param = INFO.params.iter().find(|param| param.name == kind.name()).expect("a parameter for each part").name;
    let text = params.get(param).unwrap_or(default);
    let (name, own) = parsed(text).ok_or_else(|| AlgorithmError::Param {
        algorithm: INFO.name,
        param,
        found: text.to_owned(),
        accepted: format!("an algorithm for {kind}, as NAME or NAME:K=V:K=V"),
    })?;
    let collective = part(&case.collective, kind).ok_or_else(|| AlgorithmError::Unsupported {
        algorithm: INFO.name,
        reason: format!("the blocks of the {kind} would have 2^31 elements or more"),
    })?;
    let case = Case { collective, ..*case };
    let (algorithm, params) = resolve(name, &case, &own).map_err(|error| match error {
        AlgorithmError::Unknown { found, .. } => AlgorithmError::Param {
            algorithm: INFO.name,
            param,
            found,
            accepted: ALGORITHMS
                .iter()
                .filter(|one| one.info().serves(kind, case.offers()))
                .map(|one| one.name())
                .collect::<Vec<_>>()
                .join(", "),
        },
        other => other,
    })?;
    Ok(Part { algorithm, case, params })
}

impl Part<'_> {
    fn build(&self) -> Result<Schedule, AlgorithmError> {
        Ok(self.algorithm.build(&self.case, &self.params)?.schedule)
    }
}

/// Emits the parts. Blocks may reach beyond the buffers. Returns a function for the first element of each rank's
/// output, in the numbering of the instructions.
fn emit_parts(b: &mut Builder, c: &Collective, parts: &[Part]) -> Result<fn(u32, u32) -> u32, AlgorithmError> {
    let nodes: Vec<NodeId> = (0..c.ranks).map(NodeId).collect();
    let (block, built) = (parts[0].case.collective.elements, parts[0].build()?);
    let next = parts.get(1).map(|part| part.build().map(|built| (part.case.collective, built))).transpose()?;
    let Some((then, next)) = next else {
        b.embed(&built, &nodes, |_| Operand::In(0), |_| Operand::Out(0));
        if c.kind == Kind::Scatter {
            let own = c.root * c.elements;
            b.combine(NodeId(c.root), 0, c.elements, &[Operand::In(own)], &[Operand::Out(own)]);
        }
        let has_blocks = matches!(c.kind, Kind::Scatter | Kind::ReduceScatter);
        return Ok(if has_blocks { |rank, elements| rank * elements } else { |_, _| 0 });
    };
    // The data between the parts: each rank's block in its place in the output, or the whole vector of the root.
    let mut between: Vec<Operand> = match (c.kind, then.kind) {
        (Kind::Allgather, _) | (_, Kind::Broadcast) => vec![Operand::Out(0); nodes.len()],
        (Kind::Reduce | Kind::ReduceScatter, _) => {
            let len = if then.kind == Kind::Scatter { block } else { then.elements };
            nodes.iter().map(|&node| Operand::Tmp(b.scratch(node, len))).collect()
        }
        _ => (0..c.ranks).map(|rank| Operand::Out(rank * then.elements)).collect(),
    };
    let root = c.root as usize;
    let mut result = vec![Operand::Out(0); nodes.len()];
    if c.kind == Kind::Broadcast {
        // The output of the root is empty, and its input has all blocks.
        result[root] = Operand::Tmp(b.scratch(nodes[root], then.elements * c.ranks));
        between[root] = result[root];
    }
    b.embed(&built, &nodes, |_| Operand::In(0), |rank| between[rank as usize]);
    if c.kind == Kind::Broadcast {
        between[root] = Operand::In(c.root * then.elements);
    }
    b.embed(&next, &nodes, |rank| between[rank as usize], |rank| result[rank as usize]);
    Ok(|_, _| 0)
}

impl RankAlgorithm for Composition {
    const INFO: Info = INFO;

    // [`RankAlgorithm::check`] checks the order for each part.
    const KEEPS_ORDER: bool = true;

    fn check(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        parts(case, params).map(|_| ())
    }

    fn instructions(&self, case: &Case, params: &Params) -> u64 {
        let of = |part: &Part| part.algorithm.size(&part.case, &part.params).instructions.unwrap_or(0);
        let own = 3 * u64::from(case.collective.ranks);
        parts(case, params).map_or(own, |parts| parts.iter().map(of).sum::<u64>() + own)
    }

    fn emit(&self, b: &mut Builder, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let c = case.collective;
        let mut whole = Builder::new(c);
        let parts = parts(case, params)?;
        let first = emit_parts(&mut whole, &c, &parts)?;
        let whole = match (c.kind, parts.len()) {
            // The only addend that remains is the vector of the root. A rank sends the same block to all other ranks.
            (Kind::Broadcast, 1) => whole.finish()?.fed(|rank| (rank == c.root).then_some(c.elements)),
            (Kind::Allgather, 1) => whole.finish()?.fed(|_| Some(c.elements)),
            _ => whole.finish(),
        };
        let kept = |rank| Span::new(first(rank, c.elements), c.output_len(rank));
        let nodes: Vec<NodeId> = (0..c.ranks).map(NodeId).collect();
        b.embed(&whole?.restricted(kept)?, &nodes, |_| Operand::In(0), |_| Operand::Out(0));
        Ok(())
    }

    /// Returns no candidates. Only the planner knows the best algorithms of the parts, and it composes them.
    fn candidates(&self, _: &Case) -> Vec<Params> {
        Vec::new()
    }

    fn chosen(&self, case: &Case, params: &Params) -> Params {
        let parts = parts(case, params).into_iter().flatten();
        parts.fold(Params::new(), |chosen, part| {
            chosen.with(part.case.collective.kind.name(), named(part.algorithm.name(), &part.params))
        })
    }
}
