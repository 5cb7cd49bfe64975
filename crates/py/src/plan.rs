//! Planning, bounds, sweeps and the registry of algorithms.

use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};
use serde::Serialize;
use unisono_algorithms::ALGORITHMS;
use unisono_collective::Kind;
use unisono_lower::{File, Placement};
use unisono_machine::Machine as Description;
use unisono_plan::{
    PlanError, PlanReport,
    endpoint::{EndpointPlan, EndpointReport, Timed, endpoint_bounds, endpoint_sweep_point, plan_endpoint},
    in_network::{InNetworkPlan, in_network_bounds, plan_in_network},
    network::{NetworkPlan, network_bounds, network_sweep_point, plan_network},
};
use unisono_schedule::stored::Stored;

use crate::{
    convert::{self, AnyRequest},
    endpoint::Simulated,
    errors::{detached, input, plan_error, to_python},
    machine::Machine,
    registers::Registers,
    schedule::Schedule,
};

/// The candidates of a request, best first, and the schedule of the best.
#[pyclass(frozen, module = "unisono")]
pub struct Plan {
    made: Made,
}

enum Made {
    Wafer { plan: Box<unisono_plan::Plan>, report: Box<PlanReport> },
    Endpoint { plan: Box<EndpointPlan>, report: Box<EndpointReport> },
    InNetwork { plan: Box<InNetworkPlan>, report: Box<EndpointReport> },
    Network { plan: Box<NetworkPlan>, report: Box<EndpointReport> },
}

impl Plan {
    /// The best candidate, where the plan is one among ranks.
    pub fn best_among_ranks(&self) -> Option<&Timed> {
        match &self.made {
            Made::Wafer { .. } => None,
            Made::Endpoint { plan, .. } => Some(plan.best()),
            // What runs in switches is none for MPI programs.
            Made::InNetwork { .. } => None,
            Made::Network { plan, .. } => Some(plan.best()),
        }
    }

    /// Its schedule as MPI programs run it, where the plan is one among ranks.
    pub fn stored(&self) -> Option<Result<Stored, PlanError>> {
        match &self.made {
            Made::Wafer { .. } => None,
            Made::Endpoint { plan, .. } => Some(plan.stored()),
            Made::InNetwork { .. } => None,
            Made::Network { plan, .. } => Some(plan.stored()),
        }
    }

    /// One answer from the report, whichever the kind of machine.
    fn of<T>(&self, wafer: impl FnOnce(&PlanReport) -> T, endpoint: impl FnOnce(&EndpointReport) -> T) -> T {
        match &self.made {
            Made::Wafer { report, .. } => wafer(report),
            Made::Endpoint { report, .. } | Made::InNetwork { report, .. } | Made::Network { report, .. } => {
                endpoint(report)
            }
        }
    }
}

#[pymethods]
impl Plan {
    #[getter]
    fn collective(&self) -> &'static str {
        self.of(|r| r.collective, |r| r.collective)
    }

    #[getter]
    fn algorithm(&self) -> &'static str {
        self.of(|r| r.algorithm, |r| r.algorithm)
    }

    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.of(|r| to_python(py, &r.params), |r| to_python(py, &r.params))
    }

    #[getter]
    fn model(&self) -> &'static str {
        self.of(|r| r.model, |r| r.model)
    }

    #[getter]
    fn fits_sram(&self) -> bool {
        self.of(|r| r.fits_sram, |r| r.fits_sram)
    }

    /// `{cycles, seconds, terms, phases}`; among ranks `{seconds, source, terms}`.
    #[getter]
    fn predicted<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.of(|r| to_python(py, &r.predicted), |r| to_python(py, &r.predicted))
    }

    /// `{name, cycles, seconds, source, assumes}`, or None; among ranks without cycles.
    #[getter]
    fn bound<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.of(|r| to_python(py, &r.lower_bound), |r| to_python(py, &r.lower_bound))
    }

    #[getter]
    fn ratio(&self) -> Option<f64> {
        self.of(|r| r.ratio, |r| r.ratio)
    }

    #[getter]
    fn candidates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.of(|r| to_python(py, &r.candidates), |r| to_python(py, &r.candidates))
    }

    /// The schedule of the best candidate with its machine and placement; `.verify()` proves it.
    #[getter]
    fn schedule(&self, py: Python<'_>) -> PyResult<Schedule> {
        let file = detached(py, || match &self.made {
            Made::Wafer { plan, .. } => plan.placed().cloned().map(|placed| File {
                schedule: placed.schedule,
                placement: Some(Placement::Grid(placed.placement)),
                machine: Some(Description::Wafer(plan.request.wafer.clone())),
            }),
            Made::Endpoint { plan, .. } => plan.schedule().cloned().map(|schedule| File {
                schedule,
                placement: None,
                machine: Some(Description::Endpoint(plan.request.machine.clone())),
            }),
            Made::InNetwork { plan, .. } => plan.schedule().cloned().map(|schedule| File {
                schedule,
                placement: None,
                machine: Some(Description::InNetwork(plan.request.site.machine.clone())),
            }),
            Made::Network { plan, .. } => plan.schedule().cloned().map(|schedule| File {
                schedule,
                placement: Some(Placement::Nodes(plan.request.model.nodes().to_vec())),
                machine: Some(Description::Network(plan.request.machine.clone())),
            }),
        })?;
        let file = file.map_err(plan_error)?;
        Ok(match self.registers(py)? {
            Some(registers) => Schedule::of_registers(file, registers),
            None => Schedule::new(file),
        })
    }

    /// The registers of switches that reduce, where the best candidate runs there.
    #[getter]
    fn registers(&self, py: Python<'_>) -> PyResult<Option<Registers>> {
        let Made::InNetwork { plan, .. } = &self.made else { return Ok(None) };
        let site = &plan.request.site;
        let made = detached(py, || plan.registers().map(Option::<&_>::cloned))?.map_err(plan_error)?;
        Ok(made.map(|made| Registers::new(site.machine.clone(), site.layout.clone(), made)))
    }

    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.of(|r| to_python(py, r), |r| to_python(py, r))
    }

    fn __repr__(&self) -> String {
        let time = self
            .of(|r| format!("{:.2} cycles", r.predicted.cycles), |r| format!("{:.3} us", r.predicted.seconds * 1e6));
        format!("<unisono.Plan {} by {}: {time}>", self.collective(), self.algorithm())
    }
}

#[pyfunction]
#[pyo3(signature = (collective, machine, elements, dtype = "f32", operator = "sum", root = None, algorithm = None, params = None, model = None, places = None))]
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
    places: Option<Vec<u32>>,
) -> PyResult<Plan> {
    let request = convert::request(collective, machine, elements, dtype, operator, &or_zero(py, root)?, model)?;
    let params = convert::params(params)?;
    let made = detached(py, || match request {
        AnyRequest::Wafer(request) => {
            let plan = Box::new(unisono_plan::plan(request, algorithm, &params, model)?);
            let report = Box::new(plan.report()?);
            Ok(Made::Wafer { plan, report })
        }
        AnyRequest::Endpoint(request) => {
            let plan = Box::new(plan_endpoint(*request, algorithm, &params, &Simulated)?);
            let report = Box::new(plan.report());
            Ok(Made::Endpoint { plan, report })
        }
        AnyRequest::InNetwork(request) => {
            let plan = Box::new(plan_in_network(*request, algorithm, &params)?);
            let report = Box::new(plan.report());
            Ok(Made::InNetwork { plan, report })
        }
        AnyRequest::Network(request) => {
            let request = match places {
                Some(places) => request.on_places(places)?,
                None => *request,
            };
            let plan = Box::new(plan_network(request, algorithm, &params)?);
            let report = Box::new(plan.report());
            Ok(Made::Network { plan, report })
        }
    })?;
    made.map(|made| Plan { made }).map_err(plan_error)
}

/// `[{name, cycles, seconds, reference, assumes}]` of all bounds that apply; among ranks without cycles.
#[pyfunction]
#[pyo3(signature = (collective, machine, elements, dtype = "f32", root = None, model = None))]
pub fn bounds<'py>(
    py: Python<'py>,
    collective: &str,
    machine: &Machine,
    elements: &Bound<'py, PyAny>,
    dtype: &str,
    root: Option<&Bound<'py, PyAny>>,
    model: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    match convert::request(collective, machine, elements, dtype, "sum", &or_zero(py, root)?, model)? {
        AnyRequest::Wafer(request) => to_python(py, &detached(py, || unisono_plan::bounds(&request))?),
        AnyRequest::Endpoint(request) => to_python(py, &detached(py, || endpoint_bounds(&request))?),
        AnyRequest::InNetwork(request) => to_python(py, &detached(py, || in_network_bounds(&request))?),
        AnyRequest::Network(request) => to_python(py, &detached(py, || network_bounds(&request))?),
    }
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
    let request = convert::request(collective, machine, elements, dtype, operator, &or_zero(py, root)?, model)?;
    let params = convert::params(params)?;
    let names = algorithms.unwrap_or_default();
    match request {
        AnyRequest::Wafer(request) => {
            let point = detached(py, || unisono_plan::sweep_point(&request, &names, baseline, &params, model))?;
            to_python(py, &point.map_err(plan_error)?)
        }
        AnyRequest::Endpoint(request) => {
            let point = detached(py, || endpoint_sweep_point(&request, &names, baseline, &params, &Simulated))?;
            to_python(py, &point.map_err(plan_error)?)
        }
        AnyRequest::InNetwork(request) => {
            Err(input(format!("sweeps are not made on {}; plan each point", request.site.machine.name)))
        }
        AnyRequest::Network(request) => {
            let point = detached(py, || network_sweep_point(&request, &names, baseline, &params))?;
            to_python(py, &point.map_err(plan_error)?)
        }
    }
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
    machines: Vec<&'static str>,
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
                machines: a.runs_on().iter().map(|k| k.name()).collect(),
                reference: a.reference(),
                summary: a.summary(),
            },
        )?)?;
    }
    Ok(rows.into_any())
}
