//! `Schedule` in Python, with readers, writers, proof and interpreter.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyString},
};
use unisono_lower::{File, FileError, OnGrid, Placement, from_json, link_loads, parse, print, to_json};
use unisono_plan::{Part, part_of, place, predict};
use unisono_schedule::{
    interpret::Options,
    verify::{Expected, Method, Seed, certificate::certificate},
};

use crate::{
    convert,
    errors::{detached, input, plan_error, to_python, verify_error},
    interpreted::interpreted,
    machine::Machine,
    proof::Proof,
};

/// An immutable schedule, with its placement and machine if it has them.
#[pyclass(frozen, module = "unisono")]
pub struct Schedule {
    pub(crate) file: Arc<File>,
    /// The required contents of each rank's output, if the collective does not define them.
    pub(crate) expected: Option<Arc<[Vec<Expected>]>>,
}

impl Schedule {
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || {
            let mut text = String::new();
            print(&self.file, &mut text).expect("strings take everything");
            text
        })
    }

    pub fn new(file: File) -> Self {
        Self { file: Arc::new(file), expected: None }
    }

    /// Makes a schedule of messages that are not a collective, with the required contents of each output.
    pub fn of_messages(schedule: unisono_schedule::Schedule, expected: Vec<Vec<Expected>>) -> Self {
        let file = File { schedule, placement: None, machine: None, blocks: None };
        Self { file: Arc::new(file), expected: Some(expected.into()) }
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn inner(&self) -> &unisono_schedule::Schedule {
        &self.file.schedule
    }

    fn read(outcome: Result<File, FileError>) -> PyResult<Self> {
        outcome.map(Self::new).map_err(input)
    }
}

/// The text of a schedule, and its origin.
type Pickled<'py> = (Bound<'py, PyString>, String);

#[pymethods]
impl Schedule {
    /// Reads the text form; `origin` names the file in errors.
    #[staticmethod]
    #[pyo3(signature = (text, origin = "schedule"))]
    fn parse(py: Python<'_>, text: &str, origin: &str) -> PyResult<Self> {
        Self::read(detached(py, || parse(text, origin))?)
    }

    /// Returns the schedule of a text in JSON; `origin` names the text in errors.
    #[staticmethod]
    #[pyo3(signature = (text, origin = "schedule"))]
    fn parse_json(py: Python<'_>, text: &str, origin: &str) -> PyResult<Self> {
        Self::read(detached(py, || from_json(text, origin))?)
    }

    /// The name of the collective.
    #[getter]
    fn collective(&self) -> &str {
        self.inner().collective().kind.name()
    }

    /// The number of ranks.
    #[getter]
    fn ranks(&self) -> u32 {
        self.inner().collective().ranks
    }

    /// The number of elements as MPI counts them: the whole vector, or one piece if ranks have pieces.
    #[getter]
    fn elements(&self) -> u32 {
        self.inner().collective().elements
    }

    /// The rank of the root; 0 for collectives without a root.
    #[getter]
    fn root(&self) -> u32 {
        self.inner().collective().root
    }

    /// The type of the elements.
    #[getter]
    fn dtype(&self) -> &str {
        self.inner().collective().dtype.name()
    }

    /// The operator of the reduction; `sum` for collectives that reduce nothing.
    #[getter]
    fn operator(&self) -> &str {
        self.inner().collective().operator.name()
    }

    /// The algorithm or program that made the schedule.
    #[getter]
    fn origin(&self) -> &str {
        self.inner().origin()
    }

    /// The number of ranks and of other nodes with instructions, such as switches.
    #[getter]
    fn nodes(&self) -> usize {
        self.inner().node_count()
    }

    /// The bytes of input, output and scratch memory of the node that needs the most memory.
    #[getter]
    fn memory_bytes_max(&self) -> u64 {
        let schedule = self.inner();
        let most = schedule.all_nodes().map(|node| schedule.memory_elements(node)).max();
        most.unwrap_or(0) * schedule.collective().dtype.bytes()
    }

    /// The number of instructions of all nodes.
    #[getter]
    fn instructions(&self) -> usize {
        self.inner().instr_count()
    }

    /// The number of streams of messages between nodes.
    #[getter]
    fn streams(&self) -> usize {
        self.inner().stream_count()
    }

    /// The names of the phases, in sequence.
    #[getter]
    fn phases(&self) -> Vec<String> {
        self.inner().phases().to_vec()
    }

    /// Sentences on costs that simulated times omit, in addition to the notes of the machine.
    #[getter]
    fn notes(&self) -> Vec<String> {
        unisono_plan::notes(&self.file)
    }

    /// True for a plan for GPUs, whose thread blocks affect simulated times. The text and JSON forms of a schedule omit
    /// thread blocks.
    #[getter]
    fn has_thread_blocks(&self) -> bool {
        self.file.blocks.is_some()
    }

    /// The machine, with the part on which the schedule is placed; None for a schedule without a machine.
    #[getter]
    fn machine(&self, py: Python<'_>) -> PyResult<Option<Machine>> {
        let Some(description) = &self.file.machine else {
            return Ok(None);
        };
        let part = detached(py, || part_of(&self.file))?.map_err(plan_error)?;
        Ok(Some(Machine::of_part(description.clone(), part.unwrap_or(Part::All))))
    }

    /// Returns the same schedule placed on a machine.
    ///
    /// On a wafer, node k is on PE k of the machine's shape. Without a shape the schedule keeps its grid; without a
    /// grid it is placed on a row. On a network, rank k is on accelerator `places[k]`, or on accelerator k of the part
    /// that the machine's shape selects. Without places and shape, the schedule keeps its placement on the same
    /// machine. On another machine it takes the part with the same shape or, if there is none, the first accelerators.
    /// On switches that reduce, the schedule keeps its placement, which must be on the part that the machine selects,
    /// if any.
    #[pyo3(signature = (machine, places = None))]
    fn on(&self, py: Python<'_>, machine: &Machine, places: Option<Vec<u32>>) -> PyResult<Self> {
        let description = machine.description();
        let part = places.map_or_else(|| machine.part().clone(), Part::Places);
        let placement = detached(py, || place(&self.file, description, &part))?;
        let placement = placement.map_err(plan_error)?;
        let (schedule, blocks) = (self.inner().clone(), self.file.blocks.clone());
        let file = File { schedule, placement, machine: Some(description.clone()), blocks };
        Ok(Self { expected: self.expected.clone(), ..Self::new(file) })
    }

    /// Returns the text form (`.sched`), which `parse` reads back to the same schedule.
    fn to_text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        large(py, &self.text(py)?)
    }

    /// Returns the schedule as a text in JSON.
    fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let text = detached(py, || to_json(&self.file))?;
        large(py, &text)
    }

    /// Proves the schedule and checks its placement. `method` is auto, exact or fingerprint. `seed` repeats an earlier
    /// proof. Without `seed`, the operating system seeds the random numbers.
    #[pyo3(signature = (method = "auto", seed = None))]
    fn verify(&self, py: Python<'_>, method: &str, seed: Option<&str>) -> PyResult<Proof> {
        let method: Method = method.parse().map_err(input)?;
        let seed: Option<Seed> = seed.map(str::parse).transpose().map_err(input)?;
        Ok(Proof { proof: detached(py, || self.prove_seeded(method, seed.unwrap_or_else(Seed::random)))? })
    }

    /// Returns the certificate of the proof, which `unisono.certificate_checker` checks against `text`: the text of the
    /// schedule's file, by default `to_text()`. Without `proof` the schedule is proved again.
    #[pyo3(signature = (proof = None, text = None))]
    fn certificate<'py>(
        &self,
        py: Python<'py>,
        proof: Option<&Proof>,
        text: Option<&str>,
    ) -> PyResult<Bound<'py, PyString>> {
        if self.expected.is_some() {
            return Err(input(
                "the schedule is of messages and not of a collective, so a certificate cannot state its contents",
            ));
        }
        let proof = match proof {
            Some(p) => p.proof.clone(),
            None => detached(py, || self.prove(Method::Auto))?,
        };
        if !proof.holds() {
            return Err(verify_error(py, &proof.diagnostics));
        }
        let text = text.map_or_else(|| self.text(py), |text| Ok(text.to_owned()))?;
        let digest = py.import("hashlib")?.call_method1("sha256", (text.as_bytes(),))?.call_method0("hexdigest")?;
        let digest: String = digest.extract()?;
        let made = detached(py, || certificate(self.inner(), &proof.bits, &digest))?;
        large(py, &made.map_err(|found| verify_error(py, &found))?)
    }

    /// Returns `{source, target, elements}`: arrays of the PEs and element counts of directed links between
    /// neighbouring PEs that carry data; None if the schedule is not placed on a grid.
    fn link_loads<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let grid = self.file.placement.as_ref().and_then(Placement::grid);
        let Some(placed) = grid.map(|placement| OnGrid { schedule: self.inner(), placement }) else {
            return Ok(None);
        };
        let found = placed.check();
        if !found.is_empty() {
            return Err(verify_error(py, &found));
        }
        let loads = detached(py, || link_loads(placed))?;
        let dict = PyDict::new(py);
        dict.set_item("source", PyArray1::from_iter(py, loads.iter().map(|l| l.from)))?;
        dict.set_item("target", PyArray1::from_iter(py, loads.iter().map(|l| l.to)))?;
        dict.set_item("elements", PyArray1::from_iter(py, loads.iter().map(|l| l.elements)))?;
        Ok(Some(dict))
    }

    /// Returns the time `{cycles, seconds, source, terms, phases}` by a model of the machine on which the schedule is
    /// placed. On a wafer, the terms are computed from the placement on the grid.
    #[pyo3(signature = (model = None))]
    fn predict<'py>(&self, py: Python<'py>, model: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        self.verified(py)?;
        let prediction = detached(py, || predict(&self.file, model))?;
        to_python(py, &prediction.map_err(plan_error)?)
    }

    /// Runs the schedule on one input array for each rank and returns the outputs. `chunk` elements move at a time
    /// (None: whole spans). `seed` determines the random order in which lanes advance. Arrays of bf16 values have the
    /// type float32.
    #[pyo3(signature = (inputs, chunk = None, seed = None))]
    fn interpret<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<Bound<'py, PyAny>>,
        chunk: Option<&Bound<'py, PyAny>>,
        seed: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let seed = seed.map(|s| convert::count("seed", s)).transpose()?.unwrap_or(0);
        let chunk = chunk.map(|c| convert::index("chunk", c)).transpose()?;
        if chunk == Some(0) {
            return Err(input("chunk is 0; accepted is at least 1, or None for whole spans"));
        }
        interpreted(py, self, &inputs, Options { chunk, seed })
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Schedule>().is_ok_and(|o| *o.get().file == *self.file)
    }

    fn __hash__(&self) -> u64 {
        (self.inner().instr_count() as u64) << 32 | u64::from(self.ranks())
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

    /// Returns the call with which pickle rebuilds the schedule from its text, also in another process.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Pickled<'py>)> {
        let lost = if self.expected.is_some() {
            "messages that are not a collective; build it in the other process"
        } else if self.file.blocks.is_some() {
            "the thread blocks of a plan for GPUs; send the plan, and import it in the other process"
        } else {
            return Ok((py.get_type::<Self>().getattr("parse")?, (self.to_text(py)?, self.origin().to_owned())));
        };
        Err(PyTypeError::new_err(format!("a Schedule is pickled as its text, which does not hold {lost}")))
    }

    fn __repr__(&self) -> String {
        let c = self.inner().collective();
        let (ranks, instrs) = (c.ranks, self.inner().instr_count());
        format!("<unisono.Schedule {} of {} elements on {ranks} ranks: {instrs} instructions>", c.kind, c.elements)
    }
}

/// Makes a Python string. In contrast to the usual conversion, a failed allocation returns an error instead of a panic.
fn large<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    PyString::from_bytes(py, text.as_bytes())
}
