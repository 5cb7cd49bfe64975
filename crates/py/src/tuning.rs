//! Algorithms that are worth measuring, and the decision tables of `unisono tune`.

use std::{collections::BTreeMap, sync::Arc};

use pyo3::prelude::*;
use unisono_collective::{Kind, Operator};
use unisono_plan::{
    PlanError,
    tuning::{self, Cell, Family, Measured, SizeClass},
};

use crate::{
    errors::{detached, input, plan_error},
    machine::Machine,
    plan::Plan,
};

/// A contender at a size: its plan, or None for the library; seconds; rounds won; and whether it ran as planned.
type Contender<'py> = (Option<PyRef<'py, Plan>>, f64, u32, bool);

/// Ranks, ranks per node, first and last bytes, the plan, and whether the number of ranks was measured.
type Region = (u32, u32, u64, Option<u64>, Option<Plan>, bool);

fn kind(collective: &str) -> PyResult<Kind> {
    collective.parse().map_err(input)
}

fn cells(given: Vec<Vec<Contender<'_>>>, rounds: u32) -> Vec<Cell> {
    let measured = |(plan, seconds, won, effective): Contender<'_>| {
        let plan = plan.map(|plan| Arc::clone(plan.inner()));
        Measured { plan, seconds, won, effective }
    };
    let cell = |row: Vec<Contender<'_>>| Cell { rounds, contenders: row.into_iter().map(measured).collect() };
    given.into_iter().map(cell).collect()
}

/// The first and the last size in bytes that share a plan with this size.
#[pyfunction]
pub fn size_class(bytes: u64) -> (u64, u64) {
    let class = SizeClass::of(bytes);
    (class.first_bytes, class.last_bytes)
}

/// Returns the plan that the model ranks first for the sizes in one class with `bytes`; None if no algorithm serves.
#[pyfunction]
pub fn plan_size_class(
    py: Python<'_>,
    collective: &str,
    machine: &Machine,
    ranks: u32,
    bytes: u64,
    commutes: bool,
) -> PyResult<Option<Plan>> {
    let kind = kind(collective)?;
    let operator = if commutes { Operator::Sum } else { Operator::Ordered };
    let made = detached(py, || {
        let made = SizeClass::of(bytes).plan(kind, machine.description(), ranks, operator)?;
        made.map(|plan| Plan::new(Arc::new(plan))).transpose()
    })?;
    made.map_err(plan_error)
}

/// Returns one algorithm with the parameters that it chooses; None if it does not serve.
#[pyfunction]
pub fn propose(
    py: Python<'_>,
    collective: &str,
    machine: &Machine,
    ranks: u32,
    elements: u64,
    algorithm: &str,
) -> PyResult<Option<Plan>> {
    let kind = kind(collective)?;
    let made = detached(py, || {
        let made = tuning::propose(kind, machine.description(), ranks, elements, algorithm)?;
        made.map(|plan| Plan::new(Arc::new(plan))).transpose()
    })?;
    made.map_err(plan_error)
}

/// Returns, for each count, the names of the best `most` algorithms on any of the numbers of ranks.
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

/// Returns the contender that is chosen at each size. `measured` has all contenders of each size, the library first.
#[pyfunction]
pub fn chosen(measured: Vec<Vec<Contender<'_>>>, rounds: u32) -> Vec<&'static str> {
    tuning::chosen(&cells(measured, rounds)).into_iter().map(tuning::Contender::name).collect()
}

/// Returns the regions of the decision table of one collective, from contenders by ranks and count.
#[pyfunction]
pub fn tuned_regions(
    py: Python<'_>,
    collective: &str,
    machine: &Machine,
    per_node: u32,
    counts: Vec<u64>,
    measured: BTreeMap<u32, Vec<Vec<Contender<'_>>>>,
    rounds: u32,
) -> PyResult<Vec<Region>> {
    let cells = measured.into_iter().map(|(ranks, given)| (ranks, cells(given, rounds))).collect();
    let family = Family { kind: kind(collective)?, machine: machine.description(), per_node, counts, cells };
    let made = detached(py, || {
        let row = |r: tuning::Region| {
            let plan = r.plan.map(Plan::new).transpose()?;
            Ok::<_, PlanError>((r.ranks, r.per_node, r.first_bytes, r.last_bytes, plan, r.measured))
        };
        family.regions()?.into_iter().map(row).collect::<Result<Vec<_>, PlanError>>()
    })?;
    made.map_err(plan_error)
}
