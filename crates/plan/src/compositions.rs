//! Candidates made of the best algorithms of other collectives, so that no collective takes longer than others that
//! replace it.

use unisono_algorithms::{AlgorithmError, Means, Params, catalog::composition, find, named};
use unisono_base::interrupt;
use unisono_collective::Kind;
use unisono_cost::{Time, tightest};

use crate::{
    PlanError, Problem, Timed,
    candidates::{Ranked, rank_part, time_within},
};

/// The name of the algorithm.
pub(crate) const NAME: &str = "composition";

/// A collective that contains another one may take this many times as long as the best candidate: it takes less time if
/// it sends only what is needed.
const CONTAINING: f64 = 2.0;
/// The parts are planned only if by their bounds a composition may take less than this multiple of the best time.
const WORTH: f64 = 0.95;
/// The most algorithms of a containing collective from which candidates are made.
const MOST: usize = 4;

/// The most instructions of a composition, which has no closed form.
const MOST_INSTRUCTIONS: u64 = 1 << 18;

/// The most ranks for which parts of a sequence may be cut out of other collectives, which doubles the time of a plan.
const MOST_CUT: u32 = 128;

/// The most ranks, and the bytes from which a vector is too long, for compositions on a network.
const MOST_ON_LINKS: u32 = 16;
const MOST_BYTES_ON_LINKS: u64 = 1 << 16;

/// Adds compositions of at most `most` collectives to the timed candidates of a problem among ranks. `next` is the
/// place of the first in the list of candidates; those that take much longer than `limit` are left out. Of networks,
/// whose candidates of one collective may take seconds, only short vectors on few ranks are composed, if latencies are
/// so unlike that messages arrive sooner over other ranks. Other barriers are not composed.
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
    let is_cluster = c.kind != Kind::Barrier && case.offers() == [Means::Messages];
    let is_tried = case.fabric().map_or(is_cluster, |fabric| {
        c.ranks <= MOST_ON_LINKS && case.bytes(c.elements) < MOST_BYTES_ON_LINKS && fabric.relays_sooner()
    });
    if most == 0 || !is_tried || c.is_local() {
        return Ok(());
    }
    let algorithm = find(NAME)?;
    let mut made = Vec::new();
    for (_, kinds) in composition::SEQUENCES.iter().filter(|(kind, kinds)| *kind == c.kind && kinds.len() <= most) {
        let best = timed.iter().map(|(_, one)| one.time.seconds).fold(f64::INFINITY, f64::min);
        made.extend(settings(problem, kinds, best)?);
    }
    for params in made {
        interrupt::check();
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

/// Returns the parameters of compositions of `kinds` that may take less than `best` seconds.
fn settings(problem: &Problem, kinds: &[Kind], best: f64) -> Result<Vec<Params>, PlanError> {
    let part = |kind: &Kind| {
        let collective = composition::part(&problem.collective, *kind)?;
        Some(Problem { collective, ..problem.clone() })
    };
    let Some(parts) = kinds.iter().map(part).collect::<Option<Vec<Problem>>>() else { return Ok(Vec::new()) };
    let most = if parts.len() == 1 { CONTAINING * best } else { best };
    let bounds = parts.iter().filter_map(|part| Some(tightest(&part.cost())?.1.seconds));
    if bounds.sum::<f64>() >= most * WORTH {
        return Ok(Vec::new());
    }
    let mut ranked = Vec::new();
    // A part of a sequence may be cut out of one collective, such as a scatter out of a broadcast.
    let is_cut = parts.len() > 1 && problem.collective.ranks <= MOST_CUT;
    let composed = usize::from(is_cut);
    // Only the best algorithm of each part of a sequence is used.
    let wanted = if parts.len() == 1 { Ranked::Within(Time::from_ns(most * 1e9)) } else { Ranked::Best };
    for part in &parts {
        match rank_part(part, wanted, composed) {
            Ok(timed) => ranked.push(timed),
            Err(e) if leaves_out(&e) => return Ok(Vec::new()),
            Err(e) => return Err(e),
        }
    }
    let text = |one: &Timed| named(one.algorithm.name(), &one.params);
    if let [one] = &ranked[..] {
        let near = one.iter().filter(|one| one.time.seconds < most).take(MOST);
        return Ok(near.map(|one| Params::new().with(kinds[0].name(), text(one))).collect());
    }
    if ranked.iter().map(|timed| timed[0].time.seconds).sum::<f64>() >= most {
        return Ok(Vec::new());
    }
    let with = |params: Params, (kind, timed): (&Kind, &Vec<Timed>)| params.with(kind.name(), text(&timed[0]));
    Ok(vec![kinds.iter().zip(&ranked).fold(Params::new(), with)])
}

/// Returns whether an error only leaves a candidate out: the case is not supported, or too large.
fn leaves_out(error: &PlanError) -> bool {
    let is_of_case = matches!(error, PlanError::Algorithm(AlgorithmError::Build(_)) | PlanError::OverLimit(_));
    is_of_case || error.is_unsupported()
}
