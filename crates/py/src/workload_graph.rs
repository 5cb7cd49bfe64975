//! `WorkloadGraph`, which reads programs of other tools and predicts their times on machines.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use pyo3::prelude::*;
use unisono_base::{limits::counted, parallel};
use unisono_collective::Kind;
use unisono_emit::PROGRAM_FORMATS;
use unisono_machine::network::{Network, Topology};
use unisono_plan::{
    Part, PlanError, RunError,
    workload::{
        TaskProgram, Workload, WorkloadError, discovered,
        graph::{GraphReport, Level, ProgramPrices, Step},
        is_program_of_tasks, places, places_on,
    },
};
use unisono_workload::{Accelerator, SourceFile, WorkloadGraph as Graph, chakra, read_also};

use crate::{
    discover::TaskList,
    errors::{detached, failed, input, to_python},
    machine::Machine,
    network::whole_network,
};

/// A machine, its accelerator's operations and bytes of memory per second, and the algorithms by kind of collective.
type Case = (Py<Machine>, Option<(f64, f64)>, Option<BTreeMap<String, String>>);
/// A [`Case`] after its kinds of collectives were checked.
type Named = (Py<Machine>, Option<(f64, f64)>, BTreeMap<&'static str, String>);

/// A program that computes and communicates, and the workload from which it was made, if any.
#[pyclass(frozen, module = "unisono")]
pub struct WorkloadGraph(pub(crate) Graph, pub(crate) Option<Workload>);

#[pymethods]
impl WorkloadGraph {
    /// Reads a program from files, each with its name for messages. A program of tasks runs among `ranks` ranks; other
    /// files state their number of ranks.
    #[staticmethod]
    #[pyo3(signature = (files, strict = false, ranks = None))]
    fn read(py: Python<'_>, files: Vec<SourceFile>, strict: bool, ranks: Option<u32>) -> PyResult<Self> {
        if let [(origin, bytes)] = &files[..]
            && is_program_of_tasks(bytes)
        {
            let Some(ranks) = ranks else {
                let text = format!(
                    "{origin} is a program of tasks, for any number of ranks; state it with ranks=N (--ranks N)"
                );
                return Err(input(text));
            };
            let text = String::from_utf8_lossy(bytes);
            let name = origin.rsplit('/').next().unwrap_or_default().split('.').next().unwrap_or_default();
            let graph = detached(py, || discovered(&text, name, ranks, strict))?;
            return graph.map(|graph| Self(graph, None)).map_err(|e| input(format!("{origin}: {e}")));
        }
        if let Some(ranks) = ranks {
            let origin = files.first().map_or("the program", |file| &file.0);
            let text = format!(
                "{ranks} ranks are given (--ranks), and {origin} states its own; accepted with ranks is a program of tasks"
            );
            return Err(input(text));
        }
        detached(py, || read_also(PROGRAM_FORMATS, &files, strict))?.map(|graph| Self(graph, None)).map_err(input)
    }

    /// Reads the workload `text` from the file `origin`, or the preset `origin` if there is no text.
    #[staticmethod]
    #[pyo3(signature = (origin, text = None))]
    fn of_workload(origin: &str, text: Option<&str>) -> PyResult<Self> {
        let read = text.map_or_else(|| Workload::preset(origin), |text| Workload::from_toml(text, origin));
        let workload = read.map_err(input)?;
        Ok(Self(workload.program(), Some(workload)))
    }

    /// Returns the workload with as many copies of its model as fit on a whole network.
    fn filling(&self, py: Python<'_>, machine: &Machine) -> PyResult<Self> {
        let Some(workload) = &self.1 else {
            let text =
                format!("{} states its ranks; workloads, by name or as a TOML file, fill a machine", self.0.name);
            return Err(input(text));
        };
        let network = whole_network(machine, "a workload that fills a network runs")?;
        let filled = detached(py, || {
            let topology = network.topology(&network.name)?;
            let extents = if in_order(&*topology) { vec![topology.accelerators()] } else { topology.extents() };
            let filled = workload.filling(&network.name, &extents);
            Ok::<_, PlanError>(filled.map_err(|e| e.with_boxes_named(network))?)
        })?
        .map_err(input)?;
        Ok(Self(filled.program(), Some(filled)))
    }

    /// The number of copies of the model; None without a data-parallel dimension.
    #[getter]
    fn copies(&self) -> Option<u32> {
        self.1.as_ref().and_then(Workload::copies)
    }

    /// Discovers the communication of a program of tasks among `ranks`. `reduced` maps each buffer that only messages
    /// reduce to the bytes that messages add to each element.
    #[staticmethod]
    #[pyo3(signature = (tasks, name, ranks, strict = false, reduced = None))]
    fn of_tasks(
        py: Python<'_>,
        tasks: &TaskList,
        name: &str,
        ranks: u32,
        strict: bool,
        reduced: Option<HashMap<u32, u64>>,
    ) -> PyResult<Self> {
        let reduced = reduced.unwrap_or_default();
        let program = TaskProgram { name, tasks: &tasks.0, ranks, reduced: &reduced, strict };
        let graph = detached(py, || program.discovered())?;
        graph.map(|graph| Self(graph, None)).map_err(|e| input(format!("{name}: {e}")))
    }

    /// The name of the workload.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The name of the format of the files.
    #[getter]
    fn format(&self) -> &'static str {
        self.0.format
    }

    /// The number of ranks.
    #[getter]
    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    /// The number of nodes in the graph of each class of equal ranks.
    #[getter]
    fn nodes(&self) -> Vec<usize> {
        self.0.classes.iter().map(|class| class.nodes.len()).collect()
    }

    /// True if the time of some compute, other than reductions of schedules, depends on the rates of the accelerator.
    #[getter]
    fn counts_operations(&self) -> bool {
        self.0.counts_operations()
    }

    /// Returns the program as Chakra execution traces, by file name.
    fn to_chakra(&self, py: Python<'_>) -> PyResult<BTreeMap<String, Cow<'static, [u8]>>> {
        let files = detached(py, || chakra::write(&self.0))?.map_err(input)?;
        Ok(files.into_iter().map(|(name, bytes)| (name, bytes.into())).collect())
    }

    /// Times one step on a machine. The rates of the accelerator are operations and bytes of memory per second; without
    /// them, the rates of the machine file apply. `algorithms` maps a kind of collective to the algorithm of all
    /// collectives of this kind.
    #[pyo3(signature = (machine, accelerator = None, overlap = true, level = "model", algorithms = None))]
    fn time<'py>(
        &self,
        py: Python<'py>,
        machine: Py<Machine>,
        accelerator: Option<(f64, f64)>,
        overlap: bool,
        level: &str,
        algorithms: Option<BTreeMap<String, String>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut reports = self.times(py, vec![(machine, accelerator, algorithms)], overlap, level)?;
        Ok(reports.remove(0))
    }

    /// Times one step for each case, on all cores of this machine. Rates and algorithms are as for `time`.
    #[pyo3(signature = (cases, overlap = true, level = "model"))]
    fn times<'py>(
        &self,
        py: Python<'py>,
        cases: Vec<Case>,
        overlap: bool,
        level: &str,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let level = Level::named(level, &self.0.name).map_err(input)?;
        let of_kind = |(kind, name): (String, String)| Ok((kind.parse::<Kind>().map_err(input)?.name(), name));
        let read = |(machine, rates, algorithms): Case| {
            let algorithms = algorithms.unwrap_or_default().into_iter().map(of_kind).collect::<PyResult<_>>()?;
            Ok((machine, rates, algorithms))
        };
        let cases: Vec<Named> = cases.into_iter().map(read).collect::<PyResult<_>>()?;
        let timed: Vec<_> = detached(py, || {
            let step = |(machine, rates, algorithms): &Named| {
                let machine = machine.get();
                let own = machine.description().get::<Network>().and_then(|network| network.accelerator);
                let rates = rates.or_else(|| own.map(|own| (own.tflops * 1e12, own.memory_gb_per_second * 1e9)));
                let accelerator = rates.map(|(operations_per_second, memory_bytes_per_second)| Accelerator {
                    operations_per_second,
                    memory_bytes_per_second,
                });
                let (part, note) = part_of(machine, self.1.as_ref())?;
                let prices = ProgramPrices::new(&self.0, machine.description(), &part)?.by(algorithms.clone());
                let mut report = Step { prices, accelerator, overlap, level }.report()?;
                report.notes.extend(note);
                Ok(report)
            };
            // The steps of each case are counted separately, and compared with the limit.
            parallel::map_long(&cases, |case| counted(|| step(case))).collect()
        })?;
        let reported = |timed: Result<GraphReport, RunError>| {
            let mut report = timed.map_err(|e| failed(py, e))?;
            report.reference = self.1.as_ref().map_or_else(String::new, |workload| workload.reference.clone());
            to_python(py, &report)
        };
        timed.into_iter().map(reported).collect()
    }

    fn __repr__(&self) -> String {
        format!("<unisono.WorkloadGraph {}, {} ranks, from {}>", self.0.name, self.0.ranks, self.0.format)
    }
}

/// Returns the part of a machine on which the ranks run. On a whole network, a workload determines the accelerator of
/// each rank; boxes are filled in order. The second result is a note about this placement, if there is one.
fn part_of(machine: &Machine, workload: Option<&Workload>) -> Result<(Part, Option<String>), PlanError> {
    match (machine.part(), workload, machine.description().get::<Network>()) {
        (Part::All, Some(workload), Some(network)) => {
            let topology = network.topology(&network.name)?;
            let named = |e: WorkloadError| e.with_boxes_named(network);
            // Boxes do not form rows of a grid, so ranks fill boxes in order.
            if in_order(&*network.whole_topology(&network.name)?) {
                let line = [topology.accelerators()];
                let in_order = || places(workload, &network.name, &line).map(Part::Places).map_err(named);
                return Ok((topology.kept().map_or(Ok(Part::All), |_| in_order())?, None));
            }
            let (places, note) = places_on(workload, &network.name, &*topology).map_err(named)?;
            Ok((Part::Places(places), note))
        }
        (part, ..) => Ok((part.clone(), None)),
    }
}

/// Returns true if ranks fill a network in order. Boxes do not form rows of a grid.
fn in_order(topology: &dyn Topology) -> bool {
    topology.name() == "boxes"
}
