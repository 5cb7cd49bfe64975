//! Plans for a target of emitted code: candidates are adapted to the target, and candidates that it can express are
//! found.

use std::collections::HashSet;

use unisono_algorithms::{Algorithm, Case, Params, resolve};
use unisono_base::{interrupt, parallel};
use unisono_formats::Emitter;
use unisono_gpu::not_of_gpus;
use unisono_lower::{File, Placed, Placement, VerifiedFile};
use unisono_schedule::verify::Method;

use crate::{PlanError, Problem, Timed, candidates::simulate_nearest, fastest_file::sort_by_files};

/// The most instructions of all schedules that are built to test whether the target can express them. The tests
/// continue beyond this limit until one candidate is expressible. For GPUs, one candidate of each algorithm that was
/// not tested follows, up to the same limit again. Candidates without a test stay unmarked.
const MOST_INSTRUCTIONS: usize = 1 << 20;

/// The most candidates that are built at the same time.
const AT_ONCE: usize = 8;

/// The most simulator steps of all simulations of one plan.
const MOST_SIMULATED: f64 = 16_777_216.0;

/// `Ok` if the target can express a candidate, or the reason why it cannot; `None` if it was not tested.
pub type Expressible = Option<Result<(), String>>;

/// The values, by name, that parameters have for a format, in algorithms with these parameters.
pub(crate) type FormatParams = [(&'static str, &'static str)];

/// Adds the format's values for parameters that the algorithm has and that the candidate does not state.
pub(crate) fn suited(format: &FormatParams, case: &Case, algorithm: &dyn Algorithm, params: Params) -> Params {
    format.iter().fold(params, |params, (name, value)| {
        if params.get(name).is_some() {
            return params;
        }
        match resolve(algorithm.name(), case, &params.clone().with(name, value)) {
            Ok((same, merged)) if same.name() == algorithm.name() => merged,
            _ => params,
        }
    })
}

/// Moves candidates that the target cannot express behind all others, sorts the others by the times of their files or
/// by simulations, and marks all candidates.
///
/// # Errors
///
/// Returns an error with the reasons if the target can express no candidate.
pub(crate) fn mark(
    problem: &Problem,
    emitter: &dyn Emitter,
    timed: Vec<Timed>,
) -> Result<(Vec<Timed>, Vec<Expressible>), PlanError> {
    let for_gpus = unisono_gpu::named(emitter.name());
    if let Some(reason) = for_gpus.and_then(|_| not_of_gpus(problem.target.machine())) {
        return Err(PlanError::NotExpressible { reason: format!("{} cannot have a plan: {reason}", emitter.name()) });
    }
    let (mut first, mut last) = (Vec::new(), Vec::new());
    let (mut found, mut spent) = (false, 0);
    let mut is_reshaped = false;
    let tried = |candidate: &Timed| -> Result<_, PlanError> {
        interrupt::check();
        let file = built(problem, emitter, candidate)?;
        let answer = accepts(emitter, &file, candidate);
        Ok((file.schedule.instr_count(), takes_other_chunks(&file, candidate), answer))
    };
    let is_enough = |found, spent| found && spent >= MOST_INSTRUCTIONS;
    let (mut rest, mut largest) = (timed.as_slice(), MOST_INSTRUCTIONS / 2);
    while !rest.is_empty() {
        // Builds as many schedules at once as the limit probably admits.
        let count = (MOST_INSTRUCTIONS.saturating_sub(spent) / largest.max(1)).clamp(1, AT_ONCE).min(rest.len());
        let (candidates, others) = rest.split_at(count);
        rest = others;
        largest = 0;
        let mut answers = (!is_enough(found, spent)).then(|| parallel::map(candidates, tried));
        for candidate in candidates.iter().cloned() {
            let answer = answers.as_mut().filter(|_| !is_enough(found, spent)).and_then(Iterator::next);
            let answer = answer.map(|built| {
                let (instructions, other_chunks, answer) = built?;
                spent += instructions;
                largest = largest.max(instructions);
                is_reshaped |= other_chunks;
                answer
            });
            match answer {
                None => first.push((candidate, None)),
                Some(Ok(())) => {
                    found = true;
                    first.push((candidate, Some(Ok(()))));
                }
                Some(Err(PlanError::NotExpressible { reason })) => last.push((candidate, Some(Err(reason)))),
                // A schedule that is too large to build is not tested, so its candidate stays unmarked.
                Some(Err(PlanError::OverLimit(_))) => last.push((candidate, None)),
                Some(Err(e)) => return Err(e),
            }
        }
    }
    if let Some(format) = for_gpus.filter(|_| found) {
        // Large schedules of one algorithm may have reached the limit. So one candidate of each other algorithm is
        // tested too.
        let marked = first.iter().filter(|row| row.1.is_some()).chain(&last);
        let mut tested: HashSet<&str> = marked.map(|row| row.0.algorithm.name()).collect();
        let mut spent = 0;
        for (candidate, mark) in first.iter_mut().filter(|row| row.1.is_none()) {
            if spent < MOST_INSTRUCTIONS && tested.insert(candidate.algorithm.name()) {
                let answer = tried(candidate).and_then(|(instructions, _, answer)| {
                    spent += instructions;
                    answer
                });
                match answer {
                    Ok(()) => *mark = Some(Ok(())),
                    Err(PlanError::NotExpressible { reason }) => *mark = Some(Err(reason)),
                    Err(PlanError::OverLimit(_)) => {}
                    Err(e) => return Err(e),
                }
            }
        }
        sort_by_files(problem, format, &mut first)?;
        // The proof of a written file may find faults that its draft did not show.
        let (kept, refused): (Vec<_>, Vec<_>) = first.into_iter().partition(|row| !matches!(row.1, Some(Err(_))));
        found = !kept.is_empty();
        first = kept;
        last.splice(0..0, refused);
    } else if found && (first.len() > 1 || is_reshaped) {
        let accepted = first.iter_mut().take_while(|(_, mark)| *mark == Some(Ok(())));
        let file = |one: &Timed| built(problem, emitter, one);
        let target = problem.target.as_ref();
        let count = simulate_nearest(target, accepted.map(|(one, _)| one), MOST_SIMULATED, &file)?;
        first[..count].sort_by(|a, b| a.0.time.total_cmp(&b.0.time));
    }
    if !found {
        let refused =
            last.iter().filter_map(|(one, mark)| Some((one.algorithm.name(), mark.as_ref()?.as_ref().err()?)));
        let reason = reasons(refused).unwrap_or_else(|| "no candidate could be built".to_owned());
        return Err(PlanError::NotExpressible { reason });
    }
    first.extend(last);
    Ok(first.into_iter().unzip())
}

/// Returns the reasons for which algorithms are refused, each with the names of its algorithms unless there is only one
/// reason. If an algorithm has several reasons, the first is used.
pub(crate) fn reasons<'a>(refused: impl Iterator<Item = (&'a str, &'a String)>) -> Option<String> {
    let (mut named, mut grouped) = (HashSet::new(), Vec::<(&String, Vec<&str>)>::new());
    for (name, reason) in refused.filter(|(name, _)| named.insert(*name)) {
        match grouped.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => grouped.push((reason, vec![name])),
        }
    }
    match grouped.as_slice() {
        [] => None,
        [(reason, _)] => Some((*reason).clone()),
        several => {
            let each = several.iter().map(|(reason, names)| format!("{reason} ({})", names.join(", ")));
            Some(each.collect::<Vec<_>>().join("; "))
        }
    }
}

/// Returns true if the target cuts chunks that the candidate's prediction ignores, because the algorithm has no
/// parameter for them.
fn takes_other_chunks(file: &File, candidate: &Timed) -> bool {
    let chunk = file.placement.as_ref().and_then(Placement::grid).map_or(1, |grid| grid.chunk);
    chunk > 1 && candidate.params.get("chunk").is_none()
}

/// Returns a sentence if the code of a schedule combines children in chunks of another length than the placement
/// states, and therefore takes another time than predictions and simulations; otherwise `None`.
pub fn chunks_of_code(emitter: &dyn Emitter, file: &File) -> Option<String> {
    let adapted = emitter.adapt(file).ok().flatten()?;
    let [stated, taken] = [file.placement.as_ref()?, &adapted].map(|placement| placement.grid().map(|grid| grid.chunk));
    let (stated, taken) = (stated?, taken?);
    let name = emitter.name();
    (stated != taken).then(|| {
        format!(
            "the code combines children in chunks of {taken} elements, and predictions and simulations of this schedule \
             count chunks of {stated}; a plan with '--for {name}' counts those of the code"
        )
    })
}

fn accepts(emitter: &dyn Emitter, file: &File, candidate: &Timed) -> Result<(), PlanError> {
    let proven = VerifiedFile::new(file, Method::Auto).map_err(|proof| PlanError::NotProved {
        algorithm: candidate.algorithm.name().to_owned(),
        message: proof.diagnostics.first().map_or_else(String::new, ToString::to_string),
    })?;
    emitter.accepts(&proven).map_err(|e| PlanError::NotExpressible { reason: e.to_string() })
}

/// Builds a candidate's schedule, in the target's placement if there is one.
pub(crate) fn built(problem: &Problem, emitter: &dyn Emitter, candidate: &Timed) -> Result<File, PlanError> {
    let Placed { schedule, placement } = problem.target.build(problem.collective, candidate)?;
    let mut file = File { schedule, placement, machine: Some(problem.target.machine().clone()), blocks: None };
    let adapted = emitter.adapt(&file).map_err(|e| PlanError::NotExpressible { reason: e.to_string() })?;
    file.placement = adapted.or(file.placement);
    Ok(file)
}
