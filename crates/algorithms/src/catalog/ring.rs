//! Ring allreduce: a reduce-scatter around a ring, then an allgather around it, in P chunks.
//!
//! The ring has two mappings to a line of PEs (Fig. 7): `line` goes to the far end in single hops and back in one long
//! hop; `fold` goes out over the even PEs and back over the odd PEs, in steps of at most two hops.
//! T = 2(P-1)B/P + 4P-6 + 2(P-1)(2 T_R + 1) for B wavelets on P PEs, with the ramp latency T_R, if P divides B.
//! Source: "Near-Optimal Wafer-Scale Reduce", section 6.2, Lemma 6.1. Among ranks the algorithm is [`RankRing`].
//!
//! A PE has two lanes: one receives into the output, one sends from it. In one lane all PEs would send before they
//! receive, and would block if chunks are longer than queues.

use unisono_base::{NodeId, Span, narrow};
use unisono_collective::Kind;
use unisono_lower::{Estimate, GridPlacement, Phase, Placed, Terms};
use unisono_schedule::{Builder, Operand};

use crate::{
    Algorithm, AlgorithmError, Case, Formula, Info, Means, Param, Params, Profile, Size,
    formula::DIVIDES,
    ranks::{self, RankRing},
};

pub struct Ring;

const INFO: Info = Info {
    name: "ring",
    summary: "blocks go around a ring of ranks, or of PEs laid on a line; best for long vectors",
    reference: "Near-Optimal Wafer-Scale Reduce, section 6.2; Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms, 2009",
    collectives: ranks::RING_COLLECTIVES,
    params: &[Param { name: "mapping", values: "line, fold (default: line)" }],
    needs: &[Means::Grid, Means::Messages],
    formulas: &[
        Formula::new("hockney", &[Kind::Allgather], "(P-1) (alpha + n beta)"),
        Formula::new("hockney", &[Kind::ReduceScatter], "(P-1) (alpha + n beta + n gamma)"),
        Formula::new("hockney", &[Kind::Allreduce], "2 (P-1) (alpha + n/P beta) + (P-1) n/P gamma").when(DIVIDES),
        Formula::new("paper", &[Kind::Allreduce], "2 (P-1) B/P + 4 P - 6 + 2 (P-1) (2 T_R + 1)").when(DIVIDES),
    ],
    sequences: &[(Kind::Allreduce, &[Kind::ReduceScatter, Kind::Allgather])],
    ..Info::ON_GRID
};

/// The most instructions of a schedule among ranks, of a ring on PEs or of `two-way`. The build of a ring of this size
/// takes about 4 GB. A ring on P PEs has about 4 P^2 instructions, so its schedules exhaust memory before its cost
/// terms do.
pub const MOST_INSTRUCTIONS: u64 = 1 << 26;

/// Returns an upper bound of the instructions that [`emit`] makes on a line of `pes` PEs.
pub fn instructions(pes: u32) -> u64 {
    4 * u64::from(pes).pow(2)
}

/// Returns the reason of a refusal if there are more than [`MOST_INSTRUCTIONS`] instructions.
pub fn too_large(instructions: u64) -> Option<String> {
    (instructions > MOST_INSTRUCTIONS)
        .then(|| format!("it would take {instructions} instructions; at most {MOST_INSTRUCTIONS} are made"))
}

/// Returns the mapping of the ring to the line.
///
/// # Errors
/// Returns an error if the parameter names no mapping.
pub fn mapping(params: &Params) -> Result<&'static str, AlgorithmError> {
    params.choice("ring", "mapping", &["line", "fold"])
}

/// Returns the PEs of a line in the order of the ring.
fn order(pes: u32, params: &Params) -> Result<Vec<u32>, AlgorithmError> {
    Ok(match mapping(params)? {
        "fold" => (0..pes).step_by(2).chain((0..pes).rev().filter(|i| i % 2 == 1)).collect(),
        _ => (0..pes).collect(),
    })
}

/// Returns the chunks of a vector. If their sizes differ, larger chunks start with chunk 2, which does not cross the
/// ring's long hop back.
fn chunks(elements: u32, pes: u32) -> Vec<Span> {
    let (size, larger) = (elements / pes, elements % pes);
    let mut start = 0;
    let sized = |c: u32| {
        let len = size + u32::from((c + 2 * pes - 2) % pes < larger);
        start += len;
        Span::new(start - len, len)
    };
    (0..pes).map(sized).collect()
}

/// The lane in which a PE receives, and the lane in which it sends.
const RECEIVES: u32 = 0;
const SENDS: u32 = 1;

/// Emits an allreduce of the vectors at `own` into the outputs of `line`.
///
/// One lane of a PE receives into the output, and another sends from there. In a single lane all PEs would send before
/// they receive, and would deadlock if chunks are longer than the queues around the ring. Forwarding arrivals directly
/// would deadlock too.
///
/// The second phase overwrites elements that the first phase sent. The ring as a whole implies this order; explicit
/// dependencies state it for each PE.
pub fn emit(
    b: &mut Builder,
    line: &[NodeId],
    own: fn(u32) -> Operand,
    phases: [&str; 2],
    params: &Params,
) -> Result<(), AlgorithmError> {
    let (elements, pes) = (b.collective().elements, narrow::<u32>(line.len()));
    let ring: Vec<NodeId> = order(pes, params)?.into_iter().map(|i| line[i as usize]).collect();
    if pes == 1 {
        if own(0) != Operand::Out(0) {
            b.combine(line[0], RECEIVES, elements, &[own(0)], &[Operand::Out(0)]);
        }
        return Ok(());
    }
    let chunks = chunks(elements, pes);
    let edges: Vec<_> = (0..pes).map(|q| b.stream(ring[q as usize], &[ring[((q + 1) % pes) as usize]])).collect();
    for q in 0..pes {
        let node = ring[q as usize];
        let [to, from] = [q, q + pes - 1].map(|edge| Operand::Stream(edges[(edge % pes) as usize]));
        // The instructions that last received and last sent each chunk.
        let (mut received, mut sent) = (vec![None; pes as usize], vec![None; pes as usize]);
        for (phase, name) in (0..).zip(phases) {
            b.phase(name);
            for step in 0..pes {
                // A PE starts the first phase with its own chunk, and the second with the chunk of which it completed
                // the sum.
                let at = ((q + phase + pes - step) % pes) as usize;
                let c = chunks[at];
                let (mine, kept) = (own(c.start), Operand::Out(c.start));
                if step > 0 {
                    let sources = [from, mine];
                    let receive = b.combine(node, RECEIVES, c.len, &sources[..2 - phase as usize], &[kept]);
                    sent[at].into_iter().for_each(|send| b.after(receive, send));
                    received[at] = Some(receive);
                }
                if step < pes - 1 {
                    let source = if received[at].is_some() { kept } else { mine };
                    let send = b.combine(node, SENDS, c.len, &[source], &[to]);
                    received[at].into_iter().for_each(|receive| b.after(send, receive));
                    sent[at] = Some(send);
                }
            }
        }
    }
    Ok(())
}

/// Returns the two phases of [`emit`] on a line of `pes` PEs in closed form. One PE has no phases. `None` if the
/// mapping is unknown. `bytes` is the size of an element.
pub fn estimate(pes: u32, elements: u32, bytes: u64, phases: [&str; 2], params: &Params) -> Option<Vec<Phase>> {
    let order = order(pes, params).ok()?;
    let wavelets = |len: u32| unisono_base::Wavelets::of(u64::from(len), bytes).0 as f64;
    if pes == 1 {
        return Some(Vec::new());
    }
    let sizes: Vec<f64> = chunks(elements, pes).iter().map(|c| wavelets(c.len)).collect();
    let total: f64 = sizes.iter().sum();
    let least = sizes.iter().copied().fold(f64::INFINITY, f64::min);
    let around = f64::from(2 * (pes - 1));
    let hop = |edge: u32| f64::from(order[edge as usize].abs_diff(order[((edge + 1) % pes) as usize]));
    let some = f64::from(u32::from(elements > 0));
    // In a phase, a PE does not receive one of the chunks and does not send another. These two chunks are consecutive.
    let next = |c: usize| (c + 1) % sizes.len();
    let left_out = (0..sizes.len()).map(|c| sizes[c] + sizes[next(c)]).fold(f64::INFINITY, f64::min);
    let phase = |name: &str, behind: u32| {
        // Chunk c crosses every edge of the ring except the edge `behind` positions before its start.
        let ways: Vec<f64> = (0..pes).map(|c| around - hop((c + pes - behind) % pes)).collect();
        let used: Vec<usize> = (0..sizes.len()).filter(|&c| sizes[c] > 0.0).collect();
        let terms = Terms {
            energy: sizes.iter().zip(&ways).map(|(s, w)| s * w).sum(),
            distance: used.iter().map(|&c| ways[c]).fold(0.0, f64::max),
            depth: some * f64::from(pes - 1),
            contention: total - least,
            links: if let [one] = used[..] { ways[one] } else { some * around },
            max_link_load: total - least,
            datapath: 2.0 * total - left_out,
        };
        Phase::new(name, terms)
    };
    Some(vec![phase(phases[0], 1), phase(phases[1], 2)])
}

const PHASES: [&str; 2] = ["reduce-scatter", "allgather"];

impl Algorithm for Ring {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        if !case.offers().contains(&Means::Grid) {
            return ranks::supports(&RankRing, case, params);
        }
        let no = |reason: String| Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
        let c = case.collective;
        if c.kind != Kind::Allreduce || !case.grid().is_line() {
            return no(format!("it makes an allreduce along one row or column, not {} on {}", c.kind, case.grid()));
        }
        if !c.operator.commutative() {
            return no(format!(
                "its chunks start in the middle of the line, and operator {} does not commute",
                c.operator
            ));
        }
        if let Some(reason) = too_large(instructions(c.ranks)) {
            return no(reason);
        }
        mapping(params).map(|_| ())
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        if !case.offers().contains(&Means::Grid) {
            return ranks::build(&RankRing, case, params);
        }
        let line: Vec<NodeId> = (0..case.collective.ranks).map(NodeId).collect();
        let mut b = Builder::new(case.collective);
        b.reserve(4 * line.len() * line.len(), line.len());
        emit(&mut b, &line, Operand::In, PHASES, params)?;
        Ok(Placed::on_grid(b.finish()?, GridPlacement::new(case.grid())))
    }

    fn profile(&self, case: &Case, params: &Params) -> Option<Profile> {
        if !case.offers().contains(&Means::Grid) {
            return ranks::profile(&RankRing, case, params);
        }
        let c = case.collective;
        Some(Profile::Terms(Estimate { phases: estimate(c.ranks, c.elements, c.element_bytes(), PHASES, params)? }))
    }

    fn size(&self, case: &Case, params: &Params) -> Size {
        let instructions = ranks::RankAlgorithm::instructions(&RankRing, case, params);
        let in_order = !case.offers().contains(&Means::Grid);
        Size { instructions: Some(instructions), in_order, ..Size::default() }
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        if !case.offers().contains(&Means::Grid) {
            return vec![Params::new()];
        }
        ["line", "fold"].map(|m| Params::new().with("mapping", m)).to_vec()
    }
}
