//! Plans for a target of emitted code: candidates in the form that the target has, and which of them it can express.

use unisono_algorithms::{Algorithm, Case, Params, resolve};
use unisono_base::interrupt;
use unisono_cost::Time;
use unisono_emit::{Choices, Emitter, not_of_gpus};
use unisono_lower::{File, Placed, Placement, VerifiedFile};
use unisono_schedule::verify::Method;

use crate::{
    PlanError, Problem, TimeSource, Timed,
    candidates::simulate_nearest,
    written::{self, Form, forms, written_as},
};

/// Instructions of all schedules that are built to find out whether the target can express them, once one is found that
/// it can; other candidates stay unmarked.
const MOST_INSTRUCTIONS: usize = 1 << 20;

/// Steps of all simulations of a plan.
const MOST_SIMULATED: f64 = 16_777_216.0;

/// Candidates whose files are timed, by estimate and as they are.
const MOST_ESTIMATED: usize = 10;
const MOST_WRITTEN: usize = 3;
/// Instructions of all of them.
const MOST_WRITTEN_INSTRUCTIONS: usize = 1 << 13;

/// Factor by which a prediction may be above the time of a file.
const TOO_SLOW: f64 = 1.05;

/// True if the target can express a candidate, or the reason why it cannot; `None` where that was not found out.
pub type Expressible = Option<Result<(), String>>;

/// The parameters of a candidate for a target: those of the candidate, and the target's where the algorithm has them.
pub(crate) fn suited(emitter: &dyn Emitter, case: &Case, algorithm: &dyn Algorithm, params: Params) -> Params {
    emitter.params().iter().fold(params, |params, (name, value)| {
        if params.get(name).is_some() {
            return params;
        }
        match resolve(algorithm.name(), case, &params.clone().with(name, value)) {
            Ok((same, merged)) if same.name() == algorithm.name() => merged,
            _ => params,
        }
    })
}

/// Sorts candidates that the target cannot express behind the others, which keep their order, and marks all of them.
///
/// # Errors
/// The target can express none of them, with the reason for the first.
pub(crate) fn mark(
    problem: &Problem,
    emitter: &dyn Emitter,
    timed: Vec<Timed>,
) -> Result<(Vec<Timed>, Vec<Expressible>), PlanError> {
    let no_gpus = if emitter.protocols().is_empty() { None } else { not_of_gpus(&problem.target.machine()) };
    if let Some(reason) = no_gpus {
        return Err(PlanError::NotExpressible { reason: format!("{} cannot have a plan: {reason}", emitter.name()) });
    }
    let (mut first, mut last) = (Vec::new(), Vec::new());
    let (mut found, mut spent) = (false, 0);
    let mut is_reshaped = false;
    for candidate in timed {
        interrupt::check();
        if found && spent >= MOST_INSTRUCTIONS {
            first.push((candidate, None));
            continue;
        }
        let file = built(problem, emitter, &candidate);
        let answer = file.and_then(|file| {
            spent += file.schedule.instr_count();
            is_reshaped |= takes_other_chunks(&file, &candidate);
            accepts(emitter, &file, &candidate)
        });
        match answer {
            Ok(()) => {
                found = true;
                first.push((candidate, Some(Ok(()))));
            }
            Err(PlanError::NotExpressible { reason }) => last.push((candidate, Some(Err(reason)))),
            // What is too large to build is not found out.
            Err(PlanError::OverLimit(_)) => last.push((candidate, None)),
            Err(e) => return Err(e),
        }
    }
    if found && !emitter.protocols().is_empty() {
        write_nearest(problem, emitter, &mut first)?;
    } else if found && (first.len() > 1 || is_reshaped) {
        let accepted = first.iter_mut().take_while(|(_, mark)| *mark == Some(Ok(())));
        let file = |one: &Timed| built(problem, emitter, one);
        let target = problem.target.as_ref();
        let count = simulate_nearest(target, accepted.map(|(one, _)| one), MOST_SIMULATED, &file)?;
        first[..count].sort_by(|a, b| a.0.time.total_cmp(&b.0.time));
    }
    if !found {
        let reason = last.iter().find_map(|(_, mark)| mark.clone()?.err());
        return Err(PlanError::NotExpressible {
            reason: reason.unwrap_or_else(|| "no candidate could be built".into()),
        });
    }
    first.extend(last);
    Ok(first.into_iter().unzip())
}

/// Times the files of candidates, and sorts those candidates first.
///
/// Estimates times in the order of predictions, until the next prediction is more than [`TOO_SLOW`] above the best
/// time: files take no less time than their schedules, but for what predictions are too slow. Of an algorithm, the
/// parameters are tried until times rise. Then writes the best by estimate, until no estimate is below the time of a
/// file.
fn write_nearest(
    problem: &Problem,
    emitter: &dyn Emitter,
    candidates: &mut Vec<(Timed, Expressible)>,
) -> Result<(), PlanError> {
    let choices = Choices::default();
    let (mut best, mut spent) = (f64::INFINITY, 0);
    let mut estimated: Vec<(usize, f64, Vec<Form>)> = Vec::new();
    let mut first = None;
    for (n, (candidate, mark)) in candidates.iter().enumerate() {
        interrupt::check();
        let is_enough = estimated.len() >= MOST_ESTIMATED || candidate.time.seconds >= best * TOO_SLOW;
        if *mark != Some(Ok(())) || is_enough {
            break;
        }
        first = first.or(Some(n));
        let of_same =
            |row: &&(usize, f64, Vec<Form>)| candidates[row.0].0.algorithm.name() == candidate.algorithm.name();
        let same: Vec<f64> = estimated.iter().filter(of_same).map(|row| row.1).collect();
        if same.last().is_some_and(|last| same.iter().any(|earlier| earlier < last)) {
            continue;
        }
        let file = built(problem, emitter, candidate)?;
        let instructions = file.schedule.instr_count();
        if instructions > written::MOST_INSTRUCTIONS || spent + instructions > MOST_WRITTEN_INSTRUCTIONS {
            continue;
        }
        spent += instructions;
        let Ok(proven) = VerifiedFile::new(&file, Method::Auto) else { continue };
        // A candidate without a time as a file keeps its prediction.
        let forms = forms(emitter, &proven, &choices);
        if let Some(seconds) = forms.first().map(|form| form.seconds) {
            estimated.push((n, seconds, forms));
            best = best.min(seconds);
        }
    }
    estimated.sort_by(|a, b| a.1.total_cmp(&b.1));
    if estimated.is_empty() {
        estimated.extend(first.map(|n| (n, candidates[n].0.time.seconds, Vec::new())));
    }
    let mut least = f64::INFINITY;
    // True where the time of a candidate is that of its file, and no estimate.
    let mut known = vec![None; candidates.len()];
    for (looked, &(n, seconds, ref forms)) in estimated.iter().enumerate() {
        interrupt::check();
        let is_written = looked < MOST_WRITTEN && seconds < least;
        let (time, source) = if is_written {
            let file = built(problem, emitter, &candidates[n].0)?;
            let Ok(proven) = VerifiedFile::new(&file, Method::Auto) else { continue };
            let Ok((_, Some(time))) = written_as(emitter, &proven, &choices, forms) else { continue };
            least = least.min(time.seconds);
            (time, TimeSource::Simulated)
        } else {
            (Time { seconds, cycles: None }, TimeSource::Estimated)
        };
        (candidates[n].0.time, candidates[n].0.source) = (time, source);
        known[n] = Some(is_written);
    }
    let mut found: Vec<_> = candidates.drain(..).zip(known).collect();
    // Stable: the others keep the order of their predictions.
    found.sort_by(|((a, _), a_known), ((b, _), b_known)| {
        let by_time = if a_known.is_some() { a.time.total_cmp(&b.time) } else { std::cmp::Ordering::Equal };
        b_known.cmp(a_known).then(by_time)
    });
    candidates.extend(found.into_iter().map(|(candidate, _)| candidate));
    Ok(())
}

/// True if the target takes chunks that the candidate's prediction does not count, because the algorithm has no
/// parameter for them.
fn takes_other_chunks(file: &File, candidate: &Timed) -> bool {
    let chunk = file.placement.as_ref().and_then(Placement::grid).map_or(1, |grid| grid.chunk);
    chunk > 1 && candidate.params.get("chunk").is_none()
}

fn accepts(emitter: &dyn Emitter, file: &File, candidate: &Timed) -> Result<(), PlanError> {
    let proven = VerifiedFile::new(file, Method::Auto).map_err(|proof| PlanError::NotProved {
        algorithm: candidate.algorithm.name().to_owned(),
        message: proof.diagnostics.first().map_or_else(String::new, ToString::to_string),
    })?;
    emitter.accepts(&proven).map_err(|e| PlanError::NotExpressible { reason: e.to_string() })
}

/// The schedule of a candidate in the placement that the target has.
pub(crate) fn built(problem: &Problem, emitter: &dyn Emitter, candidate: &Timed) -> Result<File, PlanError> {
    let Placed { schedule, placement } = problem.target.build(problem.collective, candidate)?;
    let mut file = File { schedule, placement, machine: Some(problem.target.machine()), blocks: None };
    let adapted = emitter.adapt(&file).map_err(|e| PlanError::NotExpressible { reason: e.to_string() })?;
    file.placement = adapted.or(file.placement);
    Ok(file)
}
