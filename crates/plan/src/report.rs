//! The report of a plan. Its keys are those of the command line's JSON, and are the same for every kind of machine. A
//! value that does not exist for a kind of machine is null.

use std::{any::Any, collections::BTreeMap};

use serde::Serialize;
use unisono_algorithms::Params;
use unisono_cost::{Found, Standing, Time, assumption, model_optimum, tightest};
use unisono_lower::{File, Terms};
use unisono_machine::network::Network;

use crate::{Bits, Expressible, Format, LibraryReport, Plan, PlanError, Problem, TimeSource, Timed};

/// One phase of a schedule on a wafer.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename = "Phase")]
pub struct PhaseReport {
    pub name: String,
    pub cycles: f64,
    /// The cost terms of the slowest of the phase's parallel lines.
    pub terms: Terms,
    /// The algorithm's own choices in the phase, or the reason why its time is more exact than the model's time.
    pub note: Option<String>,
}

/// The time of a schedule by a model; `source` names the model or the measurement.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename = "PredictedTime")]
pub struct Prediction {
    pub cycles: Option<f64>,
    pub seconds: f64,
    pub source: TimeSource,
    /// The cost terms of the schedule; `None` if it is too large to be built for them, or on switches that reduce.
    pub terms: Option<Terms>,
    pub phases: Option<Vec<PhaseReport>>,
}

impl Prediction {
    pub(crate) fn new(time: Time, source: TimeSource, terms: Option<Terms>) -> Self {
        Self { cycles: time.cycles, seconds: time.seconds, source, terms, phases: None }
    }
}

/// The memory for inputs, outputs and scratch data, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MemoryReport {
    /// The memory of the PE that needs the most.
    pub needed_bytes: u64,
    /// The memory that each PE has.
    pub pe_bytes: u64,
}

/// One lower bound.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename = "Bound")]
pub struct BoundReport {
    /// With the name of a contained collective, if the bound is that of one: `reach of broadcast`.
    pub name: String,
    pub cycles: Option<f64>,
    pub seconds: f64,
    pub reference: &'static str,
    /// The value of `reference`, repeated under a second key.
    pub source: &'static str,
    pub assumes: String,
    /// `bound` holds for every schedule on the machine, `of-model` only by a model; `model-optimum` holds by a model
    /// too, and a candidate of the plan reaches it.
    pub standing: Standing,
}

/// One algorithm with its parameters, as a plan ranks it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename = "Candidate")]
pub struct CandidateReport {
    pub algorithm: &'static str,
    pub params: BTreeMap<String, String>,
    pub cycles: Option<f64>,
    pub seconds: f64,
    pub ratio: Option<f64>,
    pub source: TimeSource,
    /// True if the plan's format can express the candidate; `None` without a format, or if this was not tested.
    pub expressible: Option<bool>,
    /// The reason why the format cannot express the candidate.
    pub refused: Option<String>,
}

/// `Plan.report()` and `unisono plan --json`; candidates are sorted, best first.
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
    /// The performance guideline that the algorithm fulfils, such as `broadcast <= scatter + allgather`; `None` if it
    /// does not run collectives in sequence.
    pub guideline: Option<String>,
    pub model: &'static str,
    /// The source of a network's rates for times: `measured` or `data-sheet`. Bounds use the data sheet.
    pub rates: Option<&'static str>,
    /// The format that the plan is for.
    pub target: Option<&'static str>,
    /// True if inputs, outputs and scratch data fit into the memory of a PE; `None` if PEs have no such limit.
    pub fits_sram: Option<bool>,
    pub memory: Option<MemoryReport>,
    pub predicted: Prediction,
    pub lower_bound: Option<BoundReport>,
    /// The least time of all schedules by the model, if a candidate attains this time. On the machine, schedules may be
    /// faster.
    pub model_optimum: Option<BoundReport>,
    pub ratio: Option<f64>,
    /// The algorithm bandwidth in GB/s, as nccl-tests define it, by the predicted time; `None` for a barrier and a
    /// scan.
    pub algbw: Option<f64>,
    /// The bus bandwidth in GB/s, as nccl-tests define it, by the predicted time.
    pub busbw: Option<f64>,
    /// Sentences on costs that the times omit, and on assumptions and sources.
    pub notes: Vec<String>,
    pub candidates: Vec<CandidateReport>,
    /// A library's own choice, if it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<LibraryReport>,
    /// The properties of bits that all candidates have, if one was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<Vec<&'static str>>,
    /// The predicted time divided by the time of the fastest candidate, including candidates without these properties.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_cost: Option<f64>,
}

impl Plan {
    /// Returns the time of the best candidate divided by the bound with which plans are compared; `None` if the bound
    /// is 0 or there is no bound.
    pub fn ratio(&self) -> Option<f64> {
        ratio(self.best(), Some(tightest(&self.problem.cost())?.time))
    }

    /// Returns the bound with which plans are compared: the largest of the bounds that hold for every schedule. `None`
    /// if there is none.
    pub fn bound(&self) -> Option<BoundReport> {
        tightest_report(&self.problem)
    }

    /// Returns the report of the plan.
    ///
    /// # Errors
    /// Returns an error if the schedule cannot be built.
    pub fn report(&self) -> Result<PlanReport, PlanError> {
        let (target, c, best) = (&self.problem.target, &self.problem.collective, self.best());
        let problem = self.problem.cost();
        let bound = tightest(&problem);
        let least = bound.map(|found| found.time);
        // Leaves out simulated times that replace those of the model, which only candidates with cost terms have.
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
        let notes: Vec<_> =
            details.note.into_iter().chain(of_machine).chain(of_target).chain(self.untimed.clone()).collect();
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
            guideline: best.algorithm.info().guideline(c.kind, &best.params),
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

/// Returns every lower bound that applies, in the order of the registry.
pub fn bounds(problem: &Problem) -> Vec<BoundReport> {
    let problem = problem.cost();
    unisono_cost::bounds(&problem).into_iter().map(|bound| bound_report(problem.part, bound)).collect()
}

/// Returns the largest of the bounds that hold for every schedule; `None` if there is none.
pub(crate) fn tightest_report(problem: &Problem) -> Option<BoundReport> {
    let problem = problem.cost();
    tightest(&problem).map(|bound| bound_report(problem.part, bound))
}

pub(crate) fn bound_report(part: &dyn Any, found: Found) -> BoundReport {
    let Found { bound, time, .. } = found;
    BoundReport {
        name: found.name(),
        cycles: time.cycles,
        seconds: time.seconds,
        reference: bound.reference,
        source: bound.reference,
        assumes: assumption(bound, part),
        standing: bound.standing,
    }
}

/// Predicts the time of any schedule on the nodes where it is placed, by a model of its machine. On a wafer, the cost
/// that its algorithm states is used if it is more exact than the cost terms.
///
/// # Errors
/// Returns an error if the file has no machine, the schedule or placement is wrong, or the machine has no such model.
pub fn predict(file: &File, model: Option<&str>) -> Result<Prediction, PlanError> {
    let problem = Problem::of_file(file, model)?;
    problem.target.predict(&file.schedule, file.placement.as_ref())
}
