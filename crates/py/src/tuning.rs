//! Choice of the algorithms that `unisono tune` measures, and its decision tables.

use std::{collections::BTreeMap, sync::Arc};

use pyo3::{prelude::*, types::PyMapping};
use unisono_collective::{Kind, Operator};
use unisono_plan::{
    PlanError,
    tuning::{self, Cell, Family, Measured, SizeClass},
};

use crate::{
    convert::params,
    errors::{detached, input, plan_error},
    machine::Machine,
    plan::Plan,
};

/// The measurement of a contender at a size: its plan (None for the library), its time, the rounds that it won, and
/// true if its calls ran as planned, so that the measurement counts.
#[derive(FromPyObject)]
pub struct Contender<'py> {
    plan: Option<PyRef<'py, Plan>>,
    seconds: f64,
    won: u32,
    #[pyo3(attribute("counts"))]
    effective: bool,
}

#[derive(IntoPyObject)]
pub struct Region {
    ranks: u32,
    per_node: u32,
    first_bytes: u64,
    last_bytes: Option<u64>,
    plan: Option<Plan>,
    measured: bool,
}

fn kind(collective: &str) -> PyResult<Kind> {
    collective.parse().map_err(input)
}

fn cells(given: Vec<Vec<Contender<'_>>>, rounds: u32) -> Vec<Cell> {
    let measured = |one: Contender<'_>| {
        let plan = one.plan.map(|plan| Arc::clone(plan.inner()));
        Measured { plan, seconds: one.seconds, won: one.won, effective: one.effective }
    };
    let cell = |row: Vec<Contender<'_>>| Cell { rounds, contenders: row.into_iter().map(measured).collect() };
    given.into_iter().map(cell).collect()
}

/// Returns the first and the last size, in bytes, of the sizes that share a plan with this size.
#[pyfunction]
pub fn size_class(bytes: u64) -> (u64, u64) {
    let class = SizeClass::of(bytes);
    (class.first_bytes, class.last_bytes)
}

/// Returns the plan that the model ranks first in the middle of the size class of `bytes`, for `root` if the collective
/// has one; None if no algorithm serves the class.
#[pyfunction]
pub fn plan_size_class(
    py: Python<'_>,
    collective: &str,
    machine: &Machine,
    ranks: u32,
    bytes: u64,
    commutes: bool,
    root: u32,
) -> PyResult<Option<Plan>> {
    let kind = kind(collective)?;
    let operator = if commutes { Operator::Sum } else { Operator::Ordered };
    let made = detached(py, || {
        let made = SizeClass::of(bytes).plan(kind, machine.description(), ranks, operator, root)?;
        made.map(|plan| Plan::new(Arc::new(plan))).transpose()
    })?;
    made.map_err(plan_error)
}

/// Returns algorithms with values of their parameters: first each algorithm with its best values by the model, best
/// algorithm first, then each algorithm with its second-best values, and so on. `target` is the format of the file that
/// states the values.
#[pyfunction]
pub fn settings(
    py: Python<'_>,
    collective: &str,
    machine: &Machine,
    ranks: u32,
    elements: u64,
    target: &str,
) -> PyResult<Vec<(&'static str, BTreeMap<String, String>)>> {
    let kind = kind(collective)?;
    let found = detached(py, || tuning::settings(kind, machine.description(), ranks, elements, target))?;
    let found = found.map_err(plan_error)?;
    Ok(found
        .into_iter()
        .map(|(name, params)| (name, params.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()))
        .collect())
}

/// Returns the plan of one algorithm, with its best parameters by the model if none are given; None if the algorithm
/// does not serve the collective.
#[pyfunction]
pub fn propose(
    py: Python<'_>,
    collective: &str,
    machine: &Machine,
    ranks: u32,
    elements: u64,
    algorithm: &str,
    given: Option<&Bound<'_, PyMapping>>,
) -> PyResult<Option<Plan>> {
    let (kind, params) = (kind(collective)?, given.map(|given| params(Some(given))).transpose()?);
    let made = detached(py, || {
        let made = tuning::propose(kind, machine.description(), ranks, elements, algorithm, params.as_ref())?;
        made.map(|plan| Plan::new(Arc::new(plan))).transpose()
    })?;
    made.map_err(plan_error)
}

/// Returns, for each element count, the sorted names of the algorithms that the model ranks among the best `most` on
/// any of the numbers of ranks.
#[pyfunction]
pub fn worthwhile(
    py: Python<'_>,
    collective: &str,
    machine: &Machine,
    counts: Vec<u64>,
    ranks: Vec<u32>,
    most: usize,
) -> PyResult<Vec<Vec<&'static str>>> {
    let kind = kind(collective)?;
    detached(py, || tuning::worthwhile(kind, machine.description(), &counts, &ranks, most))?.map_err(plan_error)
}

/// Returns the name of the chosen contender at each size. `measured` lists all contenders of each size, the library
/// first.
#[pyfunction]
pub fn chosen(measured: Vec<Vec<Contender<'_>>>, rounds: u32) -> Vec<&'static str> {
    tuning::chosen(&cells(measured, rounds)).into_iter().map(tuning::Contender::name).collect()
}

/// Returns the regions of the decision table of one collective, for the numbers of ranks up to the largest measured
/// number. The contenders are given by number of ranks and element count. Without `best`, numbers of ranks between the
/// measured numbers use the parameters of measured plans.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the measurements of a family")]
pub fn tuned_regions(
    py: Python<'_>,
    collective: &str,
    machine: &Machine,
    per_node: u32,
    counts: Vec<u64>,
    measured: BTreeMap<u32, Vec<Vec<Contender<'_>>>>,
    rounds: u32,
    best: bool,
) -> PyResult<Vec<Region>> {
    let cells = measured.into_iter().map(|(ranks, given)| (ranks, cells(given, rounds))).collect();
    let (kind, machine) = (kind(collective)?, machine.description());
    let family = Family { kind, machine, per_node, counts, best, cells };
    let made = detached(py, || {
        let row = |r: tuning::Region| {
            let tuning::Region { ranks, per_node, first_bytes, last_bytes, measured, .. } = r;
            let plan = r.plan.map(Plan::new).transpose()?;
            Ok::<_, PlanError>(Region { ranks, per_node, first_bytes, last_bytes, plan, measured })
        };
        family.regions()?.into_iter().map(row).collect::<Result<Vec<_>, PlanError>>()
    })?;
    made.map_err(plan_error)
}
