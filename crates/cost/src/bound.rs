//! Lower bounds on the time of a collective, on all kinds of machines: one type, one registry.

use std::any::Any;

use serde::Serialize;
use unisono_collective::{Collective, Kind};

use crate::{BOUNDS, Time, endpoint::LevelPrices, network::NetworkPart};

/// The collectives that a collective contains, with blocks or vectors of the same size and, in a barrier, of its one
/// element. A schedule of the first is also one of each other, for every root: the contributions of other ranks are
/// zero, or results are ignored. So a bound that holds for every schedule of a contained collective holds for it too.
pub const CONTAINED: &[(Kind, &[Kind])] = &[
    (Kind::Allgather, &[Kind::Broadcast, Kind::Gather]),
    (Kind::Allreduce, &[Kind::Broadcast, Kind::Reduce]),
    (Kind::Alltoall, &[Kind::Broadcast, Kind::Gather, Kind::Scatter]),
    (Kind::Barrier, &[Kind::Broadcast]),
    (Kind::ReduceScatter, &[Kind::Reduce, Kind::Scatter]),
    // Only from the first rank, and to the last one.
    (Kind::Scan, &[Kind::Broadcast, Kind::Reduce]),
];

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

    /// Returns the collectives that the collective contains ([`CONTAINED`]), for one root of each set of roots that the
    /// machine does not distinguish; on large machines for some roots.
    pub fn contained(&self) -> Vec<Collective> {
        let c = self.collective;
        let kinds = CONTAINED.iter().find(|(kind, _)| *kind == c.kind).map_or(&[][..], |(_, kinds)| kinds);
        if kinds.is_empty() || c.is_local() {
            return Vec::new();
        }
        // Endpoints are alike. PE 0, in a corner of a wafer, is the farthest from another PE.
        let all = self.on::<NetworkPart>().map_or(&[0][..], |part| part.of_data_sheet().model.views());
        let roots = |kind: Kind| match (c.kind, kind) {
            (Kind::Scan, Kind::Broadcast) => vec![0],
            (Kind::Scan, _) => vec![c.ranks - 1],
            _ => all.to_vec(),
        };
        kinds.iter().flat_map(|&kind| roots(kind).into_iter().map(move |root| Collective { kind, root, ..c })).collect()
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
    /// The name of a model by which no schedule ends earlier than the bound; `None` if there is no such model. A
    /// schedule with this predicted time is optimal by the model.
    pub model: Option<&'static str>,
    /// True if the bound of a contained collective can be larger than all bounds of the collective itself; false if the
    /// same bound of the collective is known to be the larger one, or nearly so.
    pub of_contained: bool,
    /// Returns the bound, or `None` if it does not apply to the problem.
    pub time: fn(&CostProblem) -> Option<Time>,
}

impl Bound {
    /// The values of fields that few bounds state: a bound of every schedule on the machine.
    pub(crate) const OF_MACHINE: Self = Self {
        name: "",
        reference: "",
        assumes: "",
        standing: Standing::Bound,
        model: None,
        of_contained: true,
        time: |_| None,
    };
}

/// The value of a bound for one problem.
#[derive(Clone, Copy)]
pub struct Found {
    pub bound: &'static Bound,
    /// The contained collective ([`CONTAINED`]) that the bound is computed for; `None` for the collective itself.
    pub of: Option<Kind>,
    pub time: Time,
}

impl Found {
    /// Returns the name of the bound, and that of the contained collective, if the bound is computed for one.
    pub fn name(&self) -> String {
        self.of.map_or(self.bound.name.to_owned(), |kind| format!("{} of {kind}", self.bound.name))
    }

    /// Computes the bounds that `wants` selects, without the others, which may take long.
    fn all(problem: &CostProblem, of: Option<Kind>, wants: impl Fn(&Bound) -> bool) -> impl Iterator<Item = Self> {
        let found = move |bound: &'static Bound| Some(Self { bound, of, time: (bound.time)(problem)? });
        all().filter(move |bound| wants(bound)).filter_map(found)
    }
}

/// Returns every registered bound, by kind of machine, then by name.
pub fn all() -> impl Iterator<Item = &'static Bound> {
    BOUNDS.iter().flat_map(|kind| kind.iter().copied())
}

/// The tolerance in comparisons of times, relative to a time.
const ROUNDING: f64 = 1e-9;

/// Returns every bound that applies, in the order of [`BOUNDS`], and after them the largest bound of contained
/// collectives if it is larger than those of the collective itself.
pub fn bounds(problem: &CostProblem) -> Vec<Found> {
    let own: Vec<Found> = Found::all(problem, None, |_| true).collect();
    let contained = largest_contained(problem, largest(own.iter().copied()));
    own.into_iter().chain(contained).collect()
}

/// Returns the largest of the bounds with [`Standing::Bound`], which hold for every schedule on the machine; `None` if
/// no such bound applies to the problem.
pub fn tightest(problem: &CostProblem) -> Option<Found> {
    let own = largest(Found::all(problem, None, holds_for_every_schedule));
    largest_contained(problem, own).or(own)
}

fn holds_for_every_schedule(bound: &Bound) -> bool {
    bound.standing == Standing::Bound
}

fn largest(found: impl Iterator<Item = Found>) -> Option<Found> {
    found.filter(|found| holds_for_every_schedule(found.bound)).max_by(|a, b| a.time.total_cmp(&b.time))
}

/// Returns the largest bound of contained collectives if it is larger than `own` by more than rounding; of equal ones,
/// that of the first collective.
fn largest_contained(problem: &CostProblem, own: Option<Found>) -> Option<Found> {
    let of = |collective: Collective| {
        let part = CostProblem { collective, ..*problem };
        largest(Found::all(&part, Some(collective.kind), |bound| bound.of_contained && holds_for_every_schedule(bound)))
    };
    let found = largest(problem.contained().into_iter().rev().filter_map(of))?;
    let least = own.map_or(0.0, |own| own.time.seconds);
    (found.time.seconds > least * (1.0 + ROUNDING)).then_some(found)
}

/// Returns a bound of the model named `model` that differs from `least` only by rounding. `least` is the least time
/// that the model predicts for a known schedule; if it equals a bound, it is optimal by the model. `None` if no bound
/// equals it.
pub fn model_optimum(problem: &CostProblem, model: &str, least: Time) -> Option<Found> {
    let mut of_model = Found::all(problem, None, |bound| bound.model == Some(model));
    of_model.find(|Found { time, .. }| (least.seconds - time.seconds).abs() <= ROUNDING * time.seconds)
}

/// The condition of a bound if it assumes only the machine's model, and the beginning of this condition otherwise.
const OF_MODEL: &str = "nothing beyond the model";
/// The condition of the bounds of a machine whose prices are fitted to typical times.
const TYPICAL: &str = "prices of typical runs, so a run may be faster";

/// Returns the condition of a bound. On a network, the notes of the machine file follow, which state assumptions and
/// omissions. On a machine with typical prices, this comes first. The texts are separated by "; ".
pub fn assumption(bound: &Bound, part: &dyn Any) -> String {
    let notes = part.downcast_ref::<NetworkPart>().map_or(&[][..], |part| &part.network.notes);
    let is_typical = part.downcast_ref::<LevelPrices>().is_some_and(|prices| prices.are_typical);
    let own = match bound.assumes.strip_prefix(OF_MODEL) {
        Some(rest) if is_typical => [TYPICAL, rest.trim_start_matches(": ")],
        _ => [bound.assumes, ""],
    };
    let all = own.into_iter().chain(notes.iter().map(String::as_str));
    all.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
}
