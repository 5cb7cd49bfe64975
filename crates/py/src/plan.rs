//! Functions for plans, bounds, sweeps and the registry of algorithms.

use std::sync::Arc;

use pyo3::{exceptions::PyTypeError, prelude::*, types::PyMapping};
use unisono_plan::{
    BoundCertificate, PlanError, PlanOptions, PlanReport, Problem, Request, bounds as bounds_of, library_choice,
    library_regions, plan_with, registry, sweep_point as point_of,
};

use crate::{
    convert::{self, request},
    errors::{detached, input, plan_error, to_python},
    machine::Machine,
    schedule::Schedule,
};

/// The candidates of a request, best first, and the schedule of the best candidate.
#[pyclass(frozen, module = "unisono")]
pub struct Plan {
    plan: Arc<unisono_plan::Plan>,
    report: PlanReport,
}

impl Plan {
    pub fn new(plan: Arc<unisono_plan::Plan>) -> Result<Self, PlanError> {
        let report = plan.report()?;
        Ok(Self { plan, report })
    }

    pub fn inner(&self) -> &Arc<unisono_plan::Plan> {
        &self.plan
    }
}

#[pymethods]
impl Plan {
    /// The name of the collective.
    #[getter]
    fn collective(&self) -> &'static str {
        self.report.collective
    }

    /// The name of the best algorithm.
    #[getter]
    fn algorithm(&self) -> &'static str {
        self.report.algorithm
    }

    /// The parameters of the best algorithm, as `{name: value}` of texts.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.report.params)
    }

    /// The name of the model that predicts the times.
    #[getter]
    fn model(&self) -> &'static str {
        self.report.model
    }

    /// True if results of the collective are rounded. They then depend on the order of combination.
    #[getter]
    fn rounds(&self) -> bool {
        self.plan.problem.collective.rounds()
    }

    /// True if inputs, outputs and scratch data fit into the memory of a PE; None on machines without such a limit.
    #[getter]
    fn fits_sram(&self) -> Option<bool> {
        self.report.fits_sram
    }

    /// The predicted time: `{cycles, seconds, source, terms, phases}`. Cycles and phases are None on machines without a
    /// clock.
    #[getter]
    fn predicted<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.report.predicted)
    }

    /// The algorithm that a communication library would choose, if requested; otherwise None.
    #[getter]
    fn library<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.report.library)
    }

    /// The largest lower bound: `{name, cycles, seconds, reference, source, assumes}`; None if no bound applies.
    #[getter]
    fn bound<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.report.lower_bound)
    }

    /// The predicted time divided by the largest lower bound; None if no bound applies.
    #[getter]
    fn ratio(&self) -> Option<f64> {
        self.report.ratio
    }

    /// All algorithms that were timed, best first: `[{algorithm, params, cycles, seconds, ratio, source, expressible,
    /// refused}]`.
    #[getter]
    fn candidates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.report.candidates)
    }

    /// The schedule of the best candidate, with its machine and placement, before its proof by `.verify()`.
    #[getter]
    fn schedule(&self, py: Python<'_>) -> PyResult<Schedule> {
        let file = detached(py, || self.plan.file())?.map_err(plan_error)?;
        Ok(Schedule { file, expected: None })
    }

    /// Returns the digest of the expression by which the programs of a `.plan` file compute all elements at every
    /// length. None if the programs do not serve every length or use several expressions. With `contributors`, also
    /// None if they do not use the tree of this number of logical contributors.
    #[pyo3(signature = (contributors = None))]
    fn size_class(&self, py: Python<'_>, contributors: Option<u32>) -> PyResult<Option<String>> {
        detached(py, || self.plan.size_class(contributors))?.map_err(plan_error)
    }

    /// Returns a certificate of the bound `cut` or, for an alltoall, `flow` as JSON: dual prices of links (of linear
    /// programming). These prices and the machine are enough to check the bound.
    fn certificate(&self, py: Python<'_>) -> PyResult<String> {
        let made = detached(py, || BoundCertificate::of(&self.plan.problem))?.map_err(plan_error)?;
        Ok(made.to_json())
    }

    /// Returns the trees of one root of the best candidate, which must be a forest: `{root, depth, chunks, places,
    /// links, trees}`. The default is the first root.
    #[pyo3(signature = (root = None))]
    fn forest<'py>(&self, py: Python<'py>, root: Option<u32>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &detached(py, || self.plan.forest(root))?.map_err(plan_error)?)
    }

    /// Returns the times of forests by depth, up to the depth beyond which the time hardly falls: `{fluid_seconds,
    /// points: [{depth, fluid_seconds, forests}]}`.
    fn front<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &detached(py, || self.plan.front())?.map_err(plan_error)?)
    }

    /// Returns the plan as a dictionary with the keys of `unisono plan --json`.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.report)
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        convert::display(slf.as_any())
    }

    /// Returns the value itself, which nothing changes.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Plan is not pickled: send its `schedule` or `report()`, or plan in the other process",
        ))
    }

    fn __repr__(&self) -> String {
        let predicted = &self.report.predicted;
        let time = match predicted.cycles {
            Some(cycles) => format!("{cycles:.2} cycles"),
            None => format!("{:.3} us", predicted.seconds * 1e6),
        };
        format!("<unisono.Plan {} by {}: {time}>", self.collective(), self.algorithm())
    }
}

#[pyfunction]
#[pyo3(signature = (collective, machine, elements, dtype = "f32", operator = "sum", root = None, algorithm = None, params = None, model = None, places = None, target = None, library = None, behaves_as = None, bits = None, contributors = None))]
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
    params: Option<&Bound<'_, PyMapping>>,
    model: Option<&str>,
    places: Option<Vec<u32>>,
    target: Option<&str>,
    library: Option<Vec<u8>>,
    behaves_as: Option<&str>,
    bits: Option<&str>,
    contributors: Option<u32>,
) -> PyResult<Plan> {
    let request = Request { model, ..request(collective, machine, elements, dtype, operator, root, places)? };
    let at_defaults = params.map_or(Ok(false), PyMappingMethods::is_empty)?;
    let (params, file) = (convert::params(params)?, library.as_deref());
    let options = PlanOptions { algorithm, at_defaults, target, file, behaves_as, bits, contributors };
    let made = detached(py, || Plan::new(Arc::new(plan_with(&request, &params, &options)?)))?;
    made.map_err(plan_error)
}

/// Returns the algorithm that a communication library would choose for a collective.
#[pyfunction]
#[pyo3(signature = (library, collective, machine, elements, dtype = "f32", operator = "sum", places = None))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn library_choice_of<'py>(
    py: Python<'py>,
    library: &str,
    collective: &str,
    machine: &Machine,
    elements: &Bound<'_, PyAny>,
    dtype: &str,
    operator: &str,
    places: Option<Vec<u32>>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = request(collective, machine, elements, dtype, operator, None, places)?;
    let found = detached(py, || library_choice(library, &Problem::new(&request)?))?;
    to_python(py, &found.map_err(plan_error)?)
}

/// Returns `[{first_bytes, last_bytes, algorithm, protocol}]`: for each range of sizes, the library's own algorithm
/// with the least predicted time.
#[pyfunction]
#[pyo3(signature = (library, collective, machine, dtype = "f32", operator = "sum"))]
pub fn library_sizes<'py>(
    py: Python<'py>,
    library: &str,
    collective: &str,
    machine: &Machine,
    dtype: &str,
    operator: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let one = 1_u64.into_pyobject(py)?;
    let request = request(collective, machine, &one, dtype, operator, None, None)?;
    let found = detached(py, || library_regions(library, &Problem::new(&request)?))?;
    to_python(py, &found.map_err(plan_error)?)
}

/// Checks a bound from its certificate and the links of a machine. Returns a dictionary with the claim and the result.
#[pyfunction]
pub fn check_bound<'py>(py: Python<'py>, text: &str, machine: &Machine) -> PyResult<Bound<'py, PyAny>> {
    let found = detached(py, || BoundCertificate::parse(text)?.check(machine.description(), machine.part()))?;
    to_python(py, &found.map_err(plan_error)?)
}

/// Returns `[{name, cycles, seconds, reference, source, assumes}]` of all bounds that apply.
#[pyfunction]
#[pyo3(signature = (collective, machine, elements, dtype = "f32", operator = "sum", root = None, model = None))]
#[expect(clippy::too_many_arguments, reason = "the keywords of the Python function")]
pub fn bounds<'py>(
    py: Python<'py>,
    collective: &str,
    machine: &Machine,
    elements: &Bound<'py, PyAny>,
    dtype: &str,
    operator: &str,
    root: Option<&Bound<'py, PyAny>>,
    model: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = Request { model, ..request(collective, machine, elements, dtype, operator, root, None)? };
    let found = detached(py, || Problem::new(&request).map(|problem| bounds_of(&problem)))?;
    to_python(py, &found.map_err(plan_error)?)
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
    params: Option<&Bound<'py, PyMapping>>,
    model: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = Request { model, ..request(collective, machine, elements, dtype, operator, root, None)? };
    let params = convert::params(params)?;
    let names = algorithms.unwrap_or_default();
    let point = detached(py, || point_of(Problem::new(&request)?, &names, baseline, &params))?;
    to_python(py, &point.map_err(plan_error)?)
}

/// Returns the entries of all algorithms, or of those for one collective.
#[pyfunction]
#[pyo3(signature = (collective = None))]
pub fn algorithms<'py>(py: Python<'py>, collective: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &registry(collective.map(str::parse).transpose().map_err(input)?))
}
