//! Candidates that are composed of the best algorithms of other collectives, one after the other or inside nodes and
//! among nodes. With them, no collective takes longer than other collectives that can replace it.

use std::sync::Arc;

use unisono_algorithms::{
    AlgorithmError, Means, Params, Profile,
    catalog::{composition, hierarchical},
    find, named,
};
use unisono_base::{interrupt, narrow};
use unisono_collective::Kind;
use unisono_cost::{Time, tightest};

use crate::{
    PlanError, Problem, Timed,
    candidates::{Ranked, rank_part, time_within},
};

/// The name of the algorithm.
pub(crate) const NAME: &str = "composition";

/// The parts are planned only if by their bounds a composition may take less than this multiple of the best time.
const WORTH: f64 = 0.95;
/// The most algorithms of a containing collective from which candidates are made.
const MOST: usize = 4;

/// The most instructions of a composition, which has no closed form.
const MOST_INSTRUCTIONS: u64 = 1 << 18;

/// The most ranks for which parts of a sequence may be cut out of other collectives. Such parts double the time of a
/// plan.
const MOST_CUT: u32 = 128;

/// If the bound divided by the best time is at least this, no further candidate on a network is searched.
const OPTIMAL: f64 = 0.98;

/// The most ranks for compositions on a network, and the number of bytes from which collectives are not planned as
/// parts.
const MOST_ON_LINKS: u32 = 16;
const MOST_BYTES_ON_LINKS: u64 = 1 << 16;

/// The algorithms of containing collectives from which compositions on a network are made without a plan: algorithms
/// that the other collective does not have, or with which it divides its data less well.
const ON_LINKS: [(Kind, &str); 5] = [
    (Kind::Allreduce, "dissemination"),
    (Kind::Allreduce, FOREST),
    (Kind::Alltoall, "linear"),
    (Kind::Broadcast, "circulant"),
    (Kind::Broadcast, FOREST),
];
const FOREST: &str = "forest";
/// Limits for an allreduce in which sums of early chunks are distributed while later chunks are summed: the most chunks
/// of a block, the most messages, and the least bytes of a chunk.
const MOST_CHUNKS: u32 = 64;
const MOST_MESSAGES: u32 = 1 << 11;
const LEAST_BYTES: u64 = 64;

/// Adds compositions of at most `most` collectives to the timed candidates of a problem among ranks, and on clusters
/// hierarchical algorithms whose steps are planned. `next` is the position of the first of them in the list of
/// candidates. Those that take much longer than `limit` are left out. On networks, timing the candidates of one
/// collective may take seconds. There, planned collectives are composed only for short vectors on few ranks, and only
/// if latencies differ so much that messages arrive sooner over other ranks. Barriers are composed on such networks and
/// on clusters with nodes: elsewhere, their algorithms are those of an allreduce.
///
/// # Errors
/// Returns the errors of [`rank_part`] and of timing, except those of limits and of cases that are not supported.
pub(crate) fn add(
    problem: &Problem,
    timed: &mut Vec<(usize, Timed)>,
    next: usize,
    most: usize,
    limit: Option<Time>,
) -> Result<(), PlanError> {
    let c = problem.collective;
    let case = problem.target.case(c);
    let (is_cluster, fabric) = (case.offers() == [Means::Messages], case.fabric());
    let is_few = if fabric.is_some() { c.ranks <= MOST_ON_LINKS } else { is_cluster };
    if most == 0 && !is_cluster || !is_few || c.is_local() {
        return Ok(());
    }
    let relays = fabric.is_some_and(|fabric| fabric.relays_sooner());
    let longest = limit.map_or(f64::INFINITY, |limit| limit.seconds);
    let best = timed.iter().map(|(_, one)| one.time.seconds).fold(longest, f64::min);
    let has_levels = case.ranks().node_ranks.or(case.ranks().dealt_node_ranks).is_some();
    let is_optimal = !is_cluster && tightest(&problem.cost()).is_some_and(|bound| bound.time.seconds >= OPTIMAL * best);
    if is_optimal || c.kind == Kind::Barrier && !relays && !has_levels {
        return Ok(());
    }
    let is_planned = is_cluster || relays && case.bytes(c.elements) < MOST_BYTES_ON_LINKS;
    let limit = if is_planned { limit } else { Some(Time::from_ns(best * 1e9)) };
    let mut made = Vec::new();
    let on_levels = if is_cluster { on_levels(problem, best)? } else { Vec::new() };
    for (_, kinds) in composition::SEQUENCES.iter().filter(|(kind, kinds)| *kind == c.kind && kinds.len() <= most) {
        made.extend(match kinds {
            _ if is_planned => settings(problem, kinds, best, most)?,
            [kind] => on_links(problem, *kind, best)?,
            _ => Vec::new(),
        });
    }
    let made = made.into_iter().map(|params| (NAME, params));
    for (name, params) in on_levels.into_iter().map(|params| (hierarchical::NAME, params)).chain(made) {
        interrupt::check();
        let algorithm = find(name)?;
        let params = algorithm.chosen(&case, &params);
        if algorithm.size(&case, &params).instructions.is_none_or(|count| count > MOST_INSTRUCTIONS) {
            continue;
        }
        match time_within(problem, algorithm, &params, limit) {
            Ok(one) => timed.extend(one.map(|one| (next + timed.len(), one))),
            Err(e) if leaves_out(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Returns the parameters of compositions of the containing collective `kind` on a network, by the algorithms of
/// [`ON_LINKS`] that may take less than `best` seconds. A forest is estimated by its closed form. An allreduce whose
/// chunks follow each other is estimated as two messages in sequence.
fn on_links(problem: &Problem, kind: Kind, best: f64) -> Result<Vec<Params>, PlanError> {
    let Some(collective) = composition::part(&problem.collective, kind) else { return Ok(Vec::new()) };
    let case = problem.target.case(collective);
    let (c, ranks) = (&case.collective, case.ranks());
    let mut found = Vec::new();
    for (_, name) in ON_LINKS.into_iter().filter(|one| one.0 == kind) {
        let algorithm = find(name)?;
        let mut add = |params: &Params, may_win: &dyn Fn(&Params) -> bool| {
            if algorithm.supports(&case, params).is_ok() {
                let params = algorithm.chosen(&case, params);
                found.extend(may_win(&params).then(|| Params::new().with(kind.name(), named(name, &params))));
            }
        };
        if name != FOREST {
            algorithm.candidates(&case).iter().for_each(|params| add(params, &|_| true));
            continue;
        }
        add(&Params::new(), &|params| match algorithm.profile(&case, params) {
            Some(Profile::Trees(trees)) => {
                trees.time_ns(ranks.issue_ns, ranks.signal_ns, ranks.reduce_ns_per_byte) < best * 1e9
            }
            _ => false,
        });
        let block = case.bytes(c.elements.div_ceil(c.ranks));
        let most = (MOST_MESSAGES / (c.ranks * (c.ranks - 1)).max(1)).min(MOST_CHUNKS);
        let most: u32 = narrow((block / LEAST_BYTES).min(most.into()));
        if let Some(doublings) = most.checked_ilog2().filter(|_| kind == Kind::Allreduce) {
            let pipelined = Params::new().with("depth", 1).with("chunks", 1_u32 << doublings).with("order", "tree");
            add(&pipelined, &|_| 2.0 * case.message(block >> doublings).arrival_ns(false) < best * 1e9);
        }
    }
    Ok(found)
}

/// Returns the parameters of compositions of `kinds` that may take less than `best` seconds. A plan composes at most
/// `most_parts` collectives.
fn settings(problem: &Problem, kinds: &[Kind], best: f64, most_parts: usize) -> Result<Vec<Params>, PlanError> {
    let part = |kind: &Kind| {
        let collective = composition::part(&problem.collective, *kind)?;
        Some(Problem { collective, ..problem.clone() })
    };
    let Some(parts) = kinds.iter().map(part).collect::<Option<Vec<Problem>>>() else { return Ok(Vec::new()) };
    // A part of a sequence may be cut out of one collective, such as a scatter out of a broadcast, and the broadcast
    // that contains a scatter out of an allreduce.
    let is_nested = parts.len() > 1 || kinds == [Kind::Broadcast] && most_parts > 1;
    let is_cut = is_nested && problem.collective.ranks <= MOST_CUT;
    if let ([kind], [part]) = (kinds, &parts[..]) {
        let most = containing(problem.collective.kind, *kind) * best;
        if least_seconds(part) >= most * WORTH {
            return Ok(Vec::new());
        }
        let timed = ranked(part, Ranked::Within(Time::from_ns(most * 1e9)), usize::from(is_cut))?;
        let near = timed.iter().filter(|one| one.time.seconds < most).take(MOST);
        return Ok(near.map(|one| Params::new().with(kind.name(), text(one))).collect());
    }
    let parts = kinds.iter().map(|kind| kind.name()).zip(parts);
    Ok(best_parts(&parts.collect::<Vec<_>>(), best, usize::from(is_cut), |_| true)?.into_iter().collect())
}

/// Returns the parameters of hierarchical algorithms, through leaders and with lanes, that may take less than `best`
/// seconds: with the best algorithm of each step inside a node and among nodes.
fn on_levels(problem: &Problem, best: f64) -> Result<Vec<Params>, PlanError> {
    let (c, Some((inside, among))) = (&problem.collective, problem.target.levels()) else { return Ok(Vec::new()) };
    let mut made = Vec::new();
    for mode in hierarchical::MODES {
        let steps = hierarchical::steps(c, inside.ranks(), mode).into_iter().map(|(param, collective)| {
            let target = if param == hierarchical::AMONG { &among } else { &inside };
            (param, Problem { collective, target: Arc::clone(target) })
        });
        let steps: Vec<_> = steps.collect();
        if !steps.is_empty() {
            let has_one_level = |one: &Timed| one.algorithm.name() != hierarchical::NAME;
            made.extend(best_parts(&steps, best, 0, has_one_level)?.map(|params| params.with("mode", mode)));
        }
    }
    Ok(made)
}

fn least_seconds(problem: &Problem) -> f64 {
    tightest(&problem.cost()).map_or(0.0, |bound| bound.time.seconds)
}

fn text(one: &Timed) -> String {
    named(one.algorithm.name(), &one.params)
}

fn ranked(part: &Problem, ranked: Ranked, composed: usize) -> Result<Vec<Timed>, PlanError> {
    match rank_part(part, ranked, composed) {
        Err(e) if leaves_out(&e) => Ok(Vec::new()),
        ranked => ranked,
    }
}

/// Returns for each part of a sequence, which a parameter names, its best algorithm that `suits`, if together they may
/// take less than `most` seconds.
fn best_parts(
    parts: &[(&str, Problem)],
    most: f64,
    composed: usize,
    suits: impl Fn(&Timed) -> bool,
) -> Result<Option<Params>, PlanError> {
    let bounds: Vec<f64> = parts.iter().map(|(_, part)| least_seconds(part)).collect();
    if bounds.iter().sum::<f64>() >= most * WORTH {
        return Ok(None);
    }
    let (mut params, mut left) = (Params::new(), most - bounds.iter().sum::<f64>());
    for ((param, part), bound) in parts.iter().zip(bounds) {
        // A part has its least time and what the parts before it left of the time beyond all least times.
        left += bound;
        let timed = ranked(part, Ranked::BestWithin(Time::from_ns(left * 1e9)), composed)?;
        let fits = |one: &&Timed| one.time.seconds < left && suits(one);
        let Some(one) = timed.iter().find(fits) else { return Ok(None) };
        left -= one.time.seconds;
        params = params.with(param, text(one));
    }
    Ok(Some(params))
}

/// Returns the multiple of the best time that a collective `whole` may take if one of kind `kind` is made of it: less
/// is sent if the results need less. An allgather or a barrier needs all that is sent, and of an allreduce the
/// broadcast needs as many rounds.
fn containing(kind: Kind, whole: Kind) -> f64 {
    match (kind, whole) {
        (Kind::Allgather | Kind::Barrier, _) => 1.0,
        (Kind::Broadcast, _) => 1.25,
        _ => 2.0,
    }
}

/// Returns true if an error only excludes the candidate: the case is not supported, or is too large.
fn leaves_out(error: &PlanError) -> bool {
    let is_of_case = matches!(error, PlanError::Algorithm(AlgorithmError::Build(_)) | PlanError::OverLimit(_));
    is_of_case || error.is_unsupported()
}
