//! Planning, bounds, sweeps and the registry of algorithms.

use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};
use serde::Serialize;
use unisono_algorithms::ALGORITHMS;
use unisono_collective::Kind;
use unisono_lower::File;
use unisono_machine::Machine as Description;
use unisono_plan::PlanReport;

use crate::{
    convert,
    errors::{detached, input, plan_error, to_python},
    machine::Machine,
    schedule::Schedule,
};

/// The candidates of a request, best first, and the schedule of the best.
#[pyclass(frozen, module = "unisono")]
pub struct Plan {
    plan: unisono_plan::Plan,
    report: PlanReport,
}

#[pymethods]
impl Plan {
    #[getter]
    fn collective(&self) -> &str {
        self.report.collective
    }

    #[getter]
    fn algorithm(&self) -> &str {
        self.report.algorithm
    }

    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.report.params)
    }

    #[getter]
    fn model(&self) -> &str {
        self.report.model
    }

    #[getter]
    fn fits_sram(&self) -> bool {
        self.report.fits_sram
    }

    /// `{cycles, seconds, terms, phases}`.
    #[getter]
    fn predicted<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.report.predicted)
    }

    /// `{name, cycles, seconds, source, assumes}`, or None.
    #[getter]
    fn bound<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.report.lower_bound)
    }

    #[getter]
    fn ratio(&self) -> Option<f64> {
        self.report.ratio
    }

    #[getter]
    fn candidates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.report.candidates)
    }

    /// The schedule of the best candidate with its machine and placement; `.verify()` proves it.
    #[getter]
    fn schedule(&self, py: Python<'_>) -> PyResult<Schedule> {
        let placed = detached(py, || self.plan.placed().cloned())?.map_err(plan_error)?;
        Ok(Schedule::new(File {
            schedule: placed.schedule,
            placement: Some(placed.placement),
            machine: Some(Description::Wafer(self.plan.request.wafer.clone())),
        }))
    }

    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.report)
    }

    fn __repr__(&self) -> String {
        let r = &self.report;
        format!("<unisono.Plan {} by {}: {:.2} cycles>", r.collective, r.algorithm, r.predicted.cycles)
    }
}

#[pyfunction]
#[pyo3(signature = (collective, machine, elements, dtype = "f32", operator = "sum", root = None, algorithm = None, params = None, model = None))]
#[expect(clippy::too_many_arguments, reason = "the keywords of the Python function")]
pub fn plan(
    py: Python<'_>,
    collective: &str,
    machine: &Machine,
    elements: &Bound<'_, PyAny>,
    dtype: &str,
    operator: &str,
    root: Option<&Bound<'_, PyAny>>,
    algorithm: Option<&str>,
    params: Option<&Bound<'_, PyDict>>,
    model: Option<&str>,
) -> PyResult<Plan> {
    let request = convert::request(collective, machine, elements, dtype, operator, &or_zero(py, root)?)?;
    let params = convert::params(params)?;
    let made = detached(py, || {
        let plan = unisono_plan::plan(request, algorithm, &params, model)?;
        let report = plan.report()?;
        Ok(Plan { plan, report })
    })?;
    made.map_err(plan_error)
}

/// `[{name, cycles, seconds, reference, assumes}]` of all bounds that apply.
#[pyfunction]
#[pyo3(signature = (collective, machine, elements, dtype = "f32", root = None))]
pub fn bounds<'py>(
    py: Python<'py>,
    collective: &str,
    machine: &Machine,
    elements: &Bound<'py, PyAny>,
    dtype: &str,
    root: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = convert::request(collective, machine, elements, dtype, "sum", &or_zero(py, root)?)?;
    to_python(py, &detached(py, || unisono_plan::bounds(&request))?)
}

#[pyfunction]
#[pyo3(signature = (collective, machine, elements, algorithms = None, baseline = None, dtype = "f32", operator = "sum", root = None, params = None, model = None))]
#[expect(clippy::too_many_arguments, reason = "the keywords of the Python function")]
pub fn sweep_point<'py>(
    py: Python<'py>,
    collective: &str,
    machine: &Machine,
    elements: &Bound<'py, PyAny>,
    algorithms: Option<Vec<String>>,
    baseline: Option<&str>,
    dtype: &str,
    operator: &str,
    root: Option<&Bound<'py, PyAny>>,
    params: Option<&Bound<'py, PyDict>>,
    model: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = convert::request(collective, machine, elements, dtype, operator, &or_zero(py, root)?)?;
    let params = convert::params(params)?;
    let names = algorithms.unwrap_or_default();
    let point = detached(py, || unisono_plan::sweep_point(&request, &names, baseline, &params, model))?;
    to_python(py, &point.map_err(plan_error)?)
}

fn or_zero<'py>(py: Python<'py>, root: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    match root {
        Some(root) => Ok(root.clone()),
        None => Ok(0u32.into_pyobject(py)?.into_any()),
    }
}

#[derive(Serialize)]
struct Param {
    name: &'static str,
    values: &'static str,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    collectives: Vec<&'static str>,
    params: Vec<Param>,
    reference: &'static str,
    summary: &'static str,
}

/// The registry, or the part of it that makes one collective.
#[pyfunction]
#[pyo3(signature = (collective = None))]
pub fn algorithms<'py>(py: Python<'py>, collective: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let kind: Option<Kind> = collective.map(str::parse).transpose().map_err(input)?;
    let rows = PyList::empty(py);
    for a in ALGORITHMS.iter().filter(|a| kind.is_none_or(|k| a.collectives().contains(&k))) {
        rows.append(to_python(
            py,
            &Row {
                name: a.name(),
                collectives: a.collectives().iter().map(|k| k.name()).collect(),
                params: a.params().iter().map(|p| Param { name: p.name, values: p.values }).collect(),
                reference: a.reference(),
                summary: a.summary(),
            },
        )?)?;
    }
    Ok(rows.into_any())
}
