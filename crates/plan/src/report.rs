//! The report of a plan, with the keys of the command line's JSON: the same on every kind of machine. A value that a
//! kind of machine does not have is null.

use std::{any::Any, collections::BTreeMap};

use serde::Serialize;
use unisono_algorithms::Params;
use unisono_cost::{Bound, Standing, Time, assumption, model_optimum, tightest};
use unisono_lower::{File, Terms};
use unisono_machine::network::Network;

use crate::{Bits, Expressible, Format, LibraryReport, Plan, PlanError, Problem, TimeSource, Timed};

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PhaseReport {
    pub name: String,
    pub cycles: f64,
    /// The terms of the slowest of the phase's parallel lines.
    pub terms: Terms,
    /// The algorithm's own choices, or the reason why its time is sharper than the model's.
    pub note: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Prediction {
    pub cycles: Option<f64>,
    pub seconds: f64,
    pub source: TimeSource,
    /// `None` where the schedule is too large to be built for its terms.
    pub terms: Option<Terms>,
    pub phases: Option<Vec<PhaseReport>>,
}

impl Prediction {
    pub(crate) fn new(time: Time, source: TimeSource, terms: Option<Terms>) -> Self {
        Self { cycles: time.cycles, seconds: time.seconds, source, terms, phases: None }
    }
}

/// Memory for inputs, outputs and scratch memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MemoryReport {
    /// The memory of the PE that needs most.
    pub needed_bytes: u64,
    /// The memory of a PE.
    pub pe_bytes: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BoundReport {
    pub name: &'static str,
    pub cycles: Option<f64>,
    pub seconds: f64,
    pub reference: &'static str,
    /// The reference again, under the key that plans use.
    pub source: &'static str,
    pub assumes: String,
    pub standing: Standing,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CandidateReport {
    pub algorithm: &'static str,
    pub params: BTreeMap<String, String>,
    pub cycles: Option<f64>,
    pub seconds: f64,
    pub ratio: Option<f64>,
    pub source: TimeSource,
    /// True if the target of emitted code can express it; `None` without a target, and where that was not found out.
    pub expressible: Option<bool>,
    /// The reason why the target cannot.
    pub refused: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlanReport {
    pub collective: &'static str,
    pub machine: String,
    pub shape: Vec<u32>,
    pub ranks: u32,
    pub elements: u64,
    pub bytes: u64,
    pub dtype: &'static str,
    pub operator: &'static str,
    pub root: u32,
    pub algorithm: &'static str,
    pub params: BTreeMap<String, String>,
    /// The performance guideline that the algorithm makes true; `None` if it does not run collectives in sequence.
    pub guideline: Option<String>,
    pub model: &'static str,
    /// The side of a network that times come from: `measured` or `data-sheet`. Bounds are of the data sheet.
    pub rates: Option<&'static str>,
    /// The target of emitted code that the plan is for.
    pub target: Option<&'static str>,
    /// True if inputs, outputs and scratch memory fit the memory of a PE; `None` where PEs have no such limit.
    pub fits_sram: Option<bool>,
    pub memory: Option<MemoryReport>,
    pub predicted: Prediction,
    pub lower_bound: Option<BoundReport>,
    /// The least time of all schedules by the model, where a candidate is known to have it; schedules may end before it
    /// on the machine.
    pub model_optimum: Option<BoundReport>,
    pub ratio: Option<f64>,
    /// GB/s as nccl-tests define them, of the predicted time.
    pub algbw: Option<f64>,
    pub busbw: Option<f64>,
    /// Sentences on the costs that the times leave out, their assumptions and their sources.
    pub notes: Vec<String>,
    pub candidates: Vec<CandidateReport>,
    /// The own choice of a library, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<LibraryReport>,
    /// The properties of the bits that all candidates have, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<Vec<&'static str>>,
    /// The predicted time divided by that of the fastest candidate without these properties.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_cost: Option<f64>,
}

impl Plan {
    /// The time of the best candidate divided by the bound that plans are compared with; `None` where that is 0.
    pub fn ratio(&self) -> Option<f64> {
        let (_, bound) = tightest(&self.problem.cost())?;
        ratio(self.best(), Some(bound))
    }

    /// Reports the bound that plans are compared with.
    pub fn bound(&self) -> Option<BoundReport> {
        tightest_report(&self.problem)
    }

    /// # Errors
    /// The schedule cannot be built.
    pub fn report(&self) -> Result<PlanReport, PlanError> {
        let (target, c, best) = (&self.problem.target, &self.problem.collective, self.best());
        let problem = self.problem.cost();
        let bound = tightest(&problem);
        let least = bound.map(|(_, time)| time);
        // A simulation of a candidate that has cost terms is no time of the model.
        let is_of_model = |timed: &&Timed| timed.source != TimeSource::Simulated || timed.estimate.is_none();
        let first = self.candidates.iter().filter(is_of_model).map(|timed| timed.time).min_by(Time::total_cmp);
        let optimum = first
            .and_then(|first| model_optimum(&problem, target.model(), first))
            .map(|optimum| BoundReport { standing: Standing::ModelOptimum, ..bound_report(problem.part, optimum) });
        let candidate = |(t, mark): (&Timed, &Expressible)| CandidateReport {
            algorithm: t.algorithm.name(),
            params: map(&t.params),
            cycles: t.time.cycles,
            seconds: t.time.seconds,
            ratio: ratio(t, least),
            source: t.source,
            expressible: mark.as_ref().map(Result::is_ok),
            refused: mark.as_ref().and_then(|m| m.clone().err()),
        };
        let details = target.details(self)?;
        let of_target = self.form.as_ref().and_then(Format::emitter).and_then(|emitter| emitter.note(c));
        let bytes = c.bytes();
        let of_machine = target.machine().notes(bytes, Some(target.model()));
        let notes: Vec<_> = details.note.into_iter().chain(of_machine).chain(of_target).collect();
        let predicted = Prediction { phases: details.phases, ..Prediction::new(best.time, best.source, details.terms) };
        let bandwidths = c.kind.bandwidths(c.ranks, bytes, best.time.seconds);
        Ok(PlanReport {
            collective: c.kind.name(),
            machine: target.machine().name().to_owned(),
            shape: target.shape(),
            ranks: c.ranks,
            elements: c.count(),
            bytes: c.bytes(),
            dtype: c.dtype.name(),
            operator: c.operator.name(),
            root: c.root,
            algorithm: best.algorithm.name(),
            params: map(&best.params),
            guideline: best.algorithm.info().guideline(c.kind),
            model: target.model(),
            rates: target.machine().get().map(Network::rates),
            target: self.form.as_ref().map(Format::name),
            fits_sram: details.memory.map(|memory| memory.needed_bytes <= memory.pe_bytes),
            memory: details.memory,
            predicted,
            lower_bound: bound.map(|bound| bound_report(problem.part, bound)),
            model_optimum: optimum,
            ratio: ratio(best, least),
            algbw: bandwidths.map(|b| b.algbw),
            busbw: bandwidths.map(|b| b.busbw),
            notes,
            candidates: self.candidates.iter().zip(&self.expressible).map(candidate).collect(),
            library: self.library.clone(),
            bits: self.bits.map(Bits::names),
            bits_cost: self.fastest.and_then(|fastest| ratio(best, Some(fastest))),
        })
    }
}

fn ratio(candidate: &Timed, bound: Option<Time>) -> Option<f64> {
    let bound = bound.filter(|bound| bound.seconds > 0.0)?;
    Some(match (candidate.time.cycles, bound.cycles) {
        (Some(cycles), Some(least)) => cycles / least,
        _ => candidate.time.seconds / bound.seconds,
    })
}

pub(crate) fn map(params: &Params) -> BTreeMap<String, String> {
    params.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

/// Reports every lower bound that applies, in the order of the registry.
pub fn bounds(problem: &Problem) -> Vec<BoundReport> {
    let problem = problem.cost();
    unisono_cost::bounds(&problem).into_iter().map(|bound| bound_report(problem.part, bound)).collect()
}

/// Reports the largest of the bounds that hold for every schedule.
pub(crate) fn tightest_report(problem: &Problem) -> Option<BoundReport> {
    let problem = problem.cost();
    tightest(&problem).map(|bound| bound_report(problem.part, bound))
}

pub(crate) fn bound_report(part: &dyn Any, (bound, time): (&'static dyn Bound, Time)) -> BoundReport {
    BoundReport {
        name: bound.name(),
        cycles: time.cycles,
        seconds: time.seconds,
        reference: bound.reference(),
        source: bound.reference(),
        assumes: assumption(bound, part),
        standing: bound.standing(),
    }
}

/// Predicts the time of a schedule of any origin where it is placed, by a model of its machine. A planned schedule gets
/// the time of its plan.
///
/// # Errors
/// The file has no machine, the schedule or its placement is wrong, or the machine has no model of schedules.
pub fn predict(file: &File, model: Option<&str>) -> Result<Prediction, PlanError> {
    let problem = Problem::of_file(file, model)?;
    problem.target.predict(&file.schedule, file.placement.as_ref())
}
