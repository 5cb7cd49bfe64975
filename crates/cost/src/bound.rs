//! Lower bounds on the time of a collective, on all kinds of machines: one type, one registry.

use std::any::Any;

use serde::Serialize;
use unisono_collective::Collective;

use crate::{BOUNDS, Time, network::NetworkPart};

/// One collective on one part of a machine. Each kind of machine has its own type of part, which [`CostProblem::on`]
/// returns.
#[derive(Clone, Copy)]
pub struct CostProblem<'a> {
    pub collective: Collective,
    pub part: &'a dyn Any,
}

impl<'a> CostProblem<'a> {
    pub fn on<Part: Any>(&self) -> Option<&'a Part> {
        self.part.downcast_ref()
    }
}

/// The schedules for which a bound holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// No schedule on the machine ends earlier.
    Bound,
    /// No schedule ends earlier by a model. On the machine a schedule may end earlier, if it overlaps work whose times
    /// the model adds up.
    OfModel,
    /// Like [`Standing::OfModel`], and the model predicts exactly this time for some schedule.
    ModelOptimum,
}

/// A lower bound. A bound is a constant in a file of its kind of machine.
pub struct Bound {
    pub name: &'static str,
    pub reference: &'static str,
    /// The condition on algorithms under which the bound holds.
    pub assumes: &'static str,
    pub standing: Standing,
    /// The name of the model that predicts no schedule to end earlier than the bound; `None` if there is no such
    /// model. A schedule with this predicted time is optimal by the model.
    pub model: Option<&'static str>,
    /// Returns the bound, or `None` if it does not apply to the problem.
    pub time: fn(&CostProblem) -> Option<Time>,
}

impl Bound {
    /// The values of fields that few bounds state: a bound of every schedule on the machine.
    pub(crate) const OF_MACHINE: Self =
        Self { name: "", reference: "", assumes: "", standing: Standing::Bound, model: None, time: |_| None };
}

/// Returns every registered bound, by kind of machine, then by name.
pub fn all() -> impl Iterator<Item = &'static Bound> {
    BOUNDS.iter().flat_map(|kind| kind.iter().copied())
}

/// Returns every bound that applies, in the order of [`BOUNDS`].
pub fn bounds(problem: &CostProblem) -> Vec<(&'static Bound, Time)> {
    all().filter_map(|bound| Some((bound, (bound.time)(problem)?))).collect()
}

/// Returns the largest of the bounds with [`Standing::Bound`], which hold for every schedule on the machine; `None` if
/// no such bound applies to the problem.
pub fn tightest(problem: &CostProblem) -> Option<(&'static Bound, Time)> {
    let standing = all().filter(|bound| bound.standing == Standing::Bound);
    standing.filter_map(|bound| Some((bound, (bound.time)(problem)?))).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Returns a bound of the model named `model` that differs from `least` only by rounding. `least` is the least time
/// that the model predicts for a known schedule; if it equals a bound, it is optimal by the model. `None` if no bound
/// equals it.
pub fn model_optimum(problem: &CostProblem, model: &str, least: Time) -> Option<(&'static Bound, Time)> {
    const ROUNDING: f64 = 1e-9;
    let of_model = all().filter(|bound| bound.model == Some(model));
    let mut times = of_model.filter_map(|bound| Some((bound, (bound.time)(problem)?)));
    times.find(|(_, time)| (least.seconds - time.seconds).abs() <= ROUNDING * time.seconds)
}

/// Returns the condition of a bound, followed on a network by the notes of its machine file, which state assumptions
/// and omissions; separated by "; ".
pub fn assumption(bound: &Bound, part: &dyn Any) -> String {
    let notes = part.downcast_ref::<NetworkPart>().map_or(&[][..], |part| &part.network.notes);
    let all = [bound.assumes].into_iter().chain(notes.iter().map(String::as_str));
    all.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
}
