//! The search for the candidate whose file for GPUs is the fastest.
//!
//! A candidate has three times, of increasing accuracy and cost: the prediction from its schedule, an estimate from the
//! form of its file, and the time of the written file. The search refines the candidate whose file may be the fastest,
//! until the fastest candidate has a written file.

use std::{cmp::Ordering, collections::BTreeMap};

use unisono_base::interrupt;
use unisono_cost::Time;
use unisono_gpu::{Choices, GpuFormat};
use unisono_lower::VerifiedFile;
use unisono_schedule::verify::Method;

use crate::{
    PlanError, Problem, TimeSource, Timed,
    expressible::{Expressible, built},
    written::{Form, fastest_form, written_as},
};

/// The most candidates whose files are estimated.
const MOST_ESTIMATED: usize = 16;
/// The most candidates whose files are written.
const MOST_WRITTEN: usize = 4;
/// The limit of the instructions of all drafts of files for estimates. The last draft may exceed it.
const MOST_INSTRUCTIONS: usize = 1 << 18;

/// The least assumed quotient of a file's time and its candidate's prediction. A file may be faster, because the
/// prediction counts a message and the sum of its data in sequence, while a thread block adds data as it arrives.
const LEAST: f64 = 0.6;
/// The least quotient expected of a candidate, as a multiple of the least quotient found for other parameters of its
/// algorithm.
const LEAST_OF_ALIKE: f64 = 0.85;
/// The least quotient expected of a candidate whose algorithm has no estimates, as a multiple of the least quotient
/// found for any algorithm.
const LEAST_OF_OTHERS: f64 = 0.75;

/// The most accurate known time of a candidate.
enum Known {
    Prediction,
    Estimate(Form),
    File(Time),
    /// The candidate is not examined, because the target may not be able to express it or a limit is reached. Or the
    /// file of the candidate has no time.
    Nothing,
}

/// Sorts candidates: first candidates with written files, then candidates with estimates, then all others in their
/// order. Only candidates that the target can certainly express are examined.
///
/// # Errors
///
/// Returns an error if a schedule cannot be built.
pub(crate) fn sort_by_files(
    problem: &Problem,
    format: &dyn GpuFormat,
    candidates: &mut Vec<(Timed, Expressible)>,
) -> Result<(), PlanError> {
    let choices = Choices::default();
    let accepted = |row: &(Timed, Expressible)| row.1 == Some(Ok(()));
    let unlooked = |row: &(Timed, Expressible)| if accepted(row) { Known::Prediction } else { Known::Nothing };
    let mut known: Vec<Known> = candidates.iter().map(unlooked).collect();
    // For each algorithm: the least quotient of a file's time and its prediction, and the fewest chunks among its
    // estimates.
    let mut factors = BTreeMap::<&str, (f64, u64)>::new();
    let (mut estimates, mut files, mut instructions) = (0, 0, 0);
    loop {
        interrupt::check();
        let found = factors.values().map(|&(factor, _)| factor).reduce(f64::min);
        let unknown = found.map_or(LEAST, |found| (found * LEAST_OF_OTHERS).max(LEAST));
        // A file moves a message in slices, so its gain on the prediction grows with the length of messages. The gain
        // with many chunks is therefore no bound for the gain with fewer chunks.
        let factor = |one: &Timed| match factors.get(one.algorithm.name()) {
            Some(&(_, fewest)) if chunks(one) < fewest => LEAST,
            Some(&(found, _)) => found * LEAST_OF_ALIKE,
            None => unknown,
        };
        let least = |n: usize| {
            let one = &candidates[n].0;
            match &known[n] {
                Known::Prediction => one.time.seconds * factor(one),
                Known::Estimate(form) => form.seconds,
                Known::File(time) => time.seconds,
                Known::Nothing => f64::INFINITY,
            }
        };
        let Some(n) = (0..known.len()).min_by(|&a, &b| least(a).total_cmp(&least(b))) else { break };
        let one = &candidates[n].0;
        known[n] = match &known[n] {
            Known::Prediction if estimates >= MOST_ESTIMATED || instructions >= MOST_INSTRUCTIONS => Known::Nothing,
            Known::Prediction => {
                let file = built(problem, format, one)?;
                let proven = VerifiedFile::new(&file, Method::Auto).ok();
                let form = proven.and_then(|proven| fastest_form(format, &proven, &choices));
                estimates += usize::from(form.is_some());
                instructions += form.as_ref().map_or(0, |form| form.instructions);
                match form {
                    Some(form) => {
                        let factor = (form.seconds / one.time.seconds).clamp(LEAST, 1.0);
                        let found = factors.entry(one.algorithm.name()).or_insert((factor, u64::MAX));
                        *found = (found.0.min(factor), found.1.min(chunks(one)));
                        Known::Estimate(form)
                    }
                    None => Known::Nothing,
                }
            }
            Known::Estimate(_) if files == MOST_WRITTEN => break,
            Known::Estimate(form) => {
                files += 1;
                match write(problem, format, one, Some(form))? {
                    Ok(time) => time.map_or(Known::Nothing, Known::File),
                    Err(reason) => {
                        candidates[n].1 = Some(Err(reason));
                        Known::Nothing
                    }
                }
            }
            Known::File(_) | Known::Nothing => break,
        };
    }
    if !known.iter().any(|known| matches!(known, Known::Estimate(_) | Known::File(_)))
        && let Some(n) = candidates.iter().position(accepted)
    {
        match write(problem, format, &candidates[n].0, None)? {
            Ok(Some(time)) => known[n] = Known::File(time),
            Ok(None) => {}
            Err(reason) => candidates[n].1 = Some(Err(reason)),
        }
    }
    let mut rows: Vec<(u8, (Timed, Expressible))> = Vec::new();
    for (mut row, known) in candidates.drain(..).zip(known) {
        let (place, found) = match known {
            Known::File(time) => (0, Some((time, TimeSource::Simulated))),
            Known::Estimate(form) => (1, Some((Time { seconds: form.seconds, cycles: None }, TimeSource::Estimated))),
            Known::Prediction | Known::Nothing => (2, None),
        };
        if let Some(found) = found {
            (row.0.time, row.0.source) = found;
        }
        rows.push((place, row));
    }
    // The sort is stable, so candidates without files keep the order of their predictions.
    rows.sort_by(|(a, (x, _)), (b, (y, _))| {
        a.cmp(b).then_with(|| if *a < 2 { x.time.total_cmp(&y.time) } else { Ordering::Equal })
    });
    candidates.extend(rows.into_iter().map(|(_, row)| row));
    Ok(())
}

/// Returns the number of chunks into which a candidate cuts its vector; 1 if it has no such parameter.
fn chunks(one: &Timed) -> u64 {
    one.params.get("chunks").and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Returns the time of a candidate's file in a given form, `None` if the file has no time, or the reason why the file
/// cannot be written.
fn write(
    problem: &Problem,
    format: &dyn GpuFormat,
    one: &Timed,
    form: Option<&Form>,
) -> Result<Result<Option<Time>, String>, PlanError> {
    let file = built(problem, format, one)?;
    let Ok(proven) = VerifiedFile::new(&file, Method::Auto) else { return Ok(Ok(None)) };
    let written = written_as(format, &proven, &Choices::default(), form);
    Ok(written.map(|(_, time)| time).map_err(|refused| refused.to_string()))
}
