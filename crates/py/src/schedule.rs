//! `Schedule` and `Proof`.

use std::sync::Arc;

use half::{bf16, f16};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::{
    prelude::*,
    types::{PyDict, PyString},
};
use unisono_collective::Dtype;
use unisono_lower::{File, FileError, OnGrid, Placement, VerifiedFile, from_json, link_loads, parse, print, to_json};
use unisono_plan::{Part, part_of, place, predict};
use unisono_schedule::{
    interpret::{self, Element, InterpretError, Options},
    verify::{self, Expected, Method, Seed, certificate::certificate},
};

use crate::{
    convert,
    errors::{detached, input, plan_error, simulation_error, to_python, verify_error},
    machine::Machine,
};

/// A schedule, with its placement and machine if it has them. It is immutable.
#[pyclass(frozen, module = "unisono")]
pub struct Schedule {
    file: Arc<File>,
    /// The required contents of each rank's output, if the collective does not define them.
    expected: Option<Arc<[Vec<Expected>]>>,
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

    /// Makes a schedule of messages outside of collectives, with the required contents of each output.
    pub fn of_messages(schedule: unisono_schedule::Schedule, expected: Vec<Vec<Expected>>) -> Self {
        let file = File { schedule, placement: None, machine: None, blocks: None };
        Self { file: Arc::new(file), expected: Some(expected.into()) }
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    fn inner(&self) -> &unisono_schedule::Schedule {
        &self.file.schedule
    }

    fn read(outcome: Result<File, FileError>) -> PyResult<Self> {
        outcome.map(Self::new).map_err(input)
    }

    /// Returns the schedule with its proof, for lowering and emission.
    ///
    /// # Errors
    /// `VerifyError` with the diagnostics of the proof and of the placement.
    pub fn verified(&self, py: Python<'_>) -> PyResult<VerifiedFile<'_>> {
        let proven = detached(py, || match &self.expected {
            Some(expected) => VerifiedFile::of_messages(&self.file, Method::Auto, expected),
            None => VerifiedFile::new(&self.file, Method::Auto),
        })?;
        proven.map_err(|proof| verify_error(py, &proof.diagnostics))
    }

    /// Returns the findings of the proof, and of the placement on the machine.
    pub fn prove(&self, method: Method) -> verify::Proof {
        self.prove_seeded(method, Seed::random())
    }

    /// Repeats an earlier proof from its seed.
    pub fn prove_seeded(&self, method: Method, seed: Seed) -> verify::Proof {
        let mut proof = match &self.expected {
            Some(expected) => verify::verify_with(self.inner(), method, seed, expected),
            None => verify::verify_seeded(self.inner(), method, seed),
        };
        proof.diagnostics.extend(self.file.check());
        proof
    }
}

#[pymethods]
impl Schedule {
    /// Reads the text form; `origin` names the file in errors.
    #[staticmethod]
    #[pyo3(signature = (text, origin = "schedule"))]
    fn parse(py: Python<'_>, text: &str, origin: &str) -> PyResult<Self> {
        Self::read(detached(py, || parse(text, origin))?)
    }

    #[staticmethod]
    #[pyo3(signature = (text, origin = "schedule"))]
    fn parse_json(py: Python<'_>, text: &str, origin: &str) -> PyResult<Self> {
        Self::read(detached(py, || from_json(text, origin))?)
    }

    #[getter]
    fn collective(&self) -> &str {
        self.inner().collective().kind.name()
    }

    #[getter]
    fn ranks(&self) -> u32 {
        self.inner().collective().ranks
    }

    #[getter]
    fn elements(&self) -> u32 {
        self.inner().collective().elements
    }

    #[getter]
    fn root(&self) -> u32 {
        self.inner().collective().root
    }

    #[getter]
    fn dtype(&self) -> &str {
        self.inner().collective().dtype.name()
    }

    #[getter]
    fn operator(&self) -> &str {
        self.inner().collective().operator.name()
    }

    #[getter]
    fn origin(&self) -> &str {
        self.inner().origin()
    }

    #[getter]
    fn nodes(&self) -> usize {
        self.inner().node_count()
    }

    /// Bytes of input, output and scratch memory of the node that needs most.
    #[getter]
    fn memory_bytes_max(&self) -> u64 {
        let schedule = self.inner();
        let most = schedule.all_nodes().map(|node| schedule.memory_elements(node)).max();
        most.unwrap_or(0) * schedule.collective().dtype.bytes()
    }

    #[getter]
    fn instructions(&self) -> usize {
        self.inner().instr_count()
    }

    #[getter]
    fn streams(&self) -> usize {
        self.inner().stream_count()
    }

    #[getter]
    fn phases(&self) -> Vec<String> {
        self.inner().phases().to_vec()
    }

    /// Sentences on costs that the simulated times leave out, in addition to the notes of the machine.
    #[getter]
    fn notes(&self) -> Vec<String> {
        unisono_plan::notes(&self.file)
    }

    /// True for a plan for GPUs: its thread blocks count in simulated times. Text and JSON of a schedule do not keep
    /// them.
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
    /// that the machine's shape selects. Without either, the schedule keeps its placement on the same machine, and is
    /// placed on the part of the shape on another machine. On switches that reduce, the schedule keeps its placement,
    /// which must be on the part that the machine selects, if any.
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

    fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let text = detached(py, || to_json(&self.file))?;
        large(py, &text)
    }

    /// Proves the schedule and checks its placement. `method` is auto, exact or fingerprint. `seed` repeats an earlier
    /// proof; without it the operating system seeds the random numbers.
    #[pyo3(signature = (method = "auto", seed = None))]
    fn verify(&self, py: Python<'_>, method: &str, seed: Option<&str>) -> PyResult<Proof> {
        let method: Method = method.parse().map_err(input)?;
        let seed = seed.map(str::parse).transpose().map_err(input)?;
        let seed: Seed = seed.unwrap_or_else(Seed::random);
        Ok(Proof { proof: detached(py, || self.prove_seeded(method, seed))? })
    }

    /// Returns the certificate of the proof, which `unisono.certificate_checker` checks against `text`: the text of the
    /// file of the schedule, or by default `to_text()`. An existing `proof` saves a second one.
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

    /// Returns `{source, target, elements}`, arrays of the directed links between neighbouring PEs that carry data;
    /// None if the schedule is not on a wafer.
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

    /// Returns `{cycles, seconds, source, terms, phases}` by a model of the machine on which the schedule is placed. On
    /// a wafer, the terms are computed on the grid.
    #[pyo3(signature = (model = None))]
    fn predict<'py>(&self, py: Python<'py>, model: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        self.verified(py)?;
        let prediction = detached(py, || predict(&self.file, model))?;
        to_python(py, &prediction.map_err(plan_error)?)
    }

    /// Runs the schedule on one input for each rank and returns the outputs. `chunk` elements move at a time (None:
    /// whole spans). Lanes advance in an order drawn from `seed`. bf16 values travel as float32 arrays.
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
        let options = Options { chunk, seed };
        match self.inner().collective().dtype {
            Dtype::F32 => self.run::<f32, f32>(py, &inputs, options, "float32", |x| x, |x| x),
            Dtype::F64 => self.run::<f64, f64>(py, &inputs, options, "float64", |x| x, |x| x),
            Dtype::I32 => self.run::<i32, i32>(py, &inputs, options, "int32", |x| x, |x| x),
            Dtype::I64 => self.run::<i64, i64>(py, &inputs, options, "int64", |x| x, |x| x),
            Dtype::F16 => self.run::<f16, f16>(py, &inputs, options, "float16", |x| x, |x| x),
            Dtype::Bf16 => self.run::<f32, bf16>(py, &inputs, options, "float32", bf16::from_f32, bf16::to_f32),
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Schedule>().is_ok_and(|o| *o.get().file == *self.file)
    }

    fn __hash__(&self) -> u64 {
        (self.inner().instr_count() as u64) << 32 | u64::from(self.ranks())
    }

    /// Returns the HTML table that notebooks show.
    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        convert::display(slf.as_any())
    }

    fn __repr__(&self) -> String {
        let c = self.inner().collective();
        let (ranks, instrs) = (c.ranks, self.inner().instr_count());
        format!("<unisono.Schedule {} of {} elements on {ranks} ranks: {instrs} instructions>", c.kind, c.elements)
    }
}

impl Schedule {
    fn run<'py, A: numpy::Element + Copy, T: Element + Send + Sync>(
        &self,
        py: Python<'py>,
        inputs: &[Bound<'py, PyAny>],
        options: Options,
        dtype: &str,
        to: fn(A) -> T,
        back: fn(T) -> A,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut data = Vec::with_capacity(inputs.len());
        for (rank, given) in inputs.iter().enumerate() {
            let array: PyReadonlyArray1<'_, A> = given
                .extract()
                .map_err(|_| input(format!("the input of rank {rank} is not a 1-D array of {dtype}")))?;
            data.push(array.as_array().iter().map(|&x| to(x)).collect::<Vec<T>>());
        }
        let schedule = self.inner();
        match detached(py, || interpret::run(schedule, &data, options))? {
            Ok(outputs) => Ok(outputs
                .into_iter()
                .map(|o| PyArray1::from_vec(py, o.into_iter().map(back).collect()).into_any())
                .collect()),
            Err(InterpretError::Stuck { stuck }) => {
                let message = InterpretError::Stuck { stuck: stuck.clone() }.to_string();
                Err(simulation_error(py, message, stuck.iter().map(ToString::to_string).collect()))
            }
            Err(InterpretError::IllFormed(_)) => Err(verify_error(py, &self.prove(Method::Auto).diagnostics)),
            Err(e) => Err(input(e)),
        }
    }
}

/// The findings of a proof; true if it holds.
#[pyclass(frozen, module = "unisono")]
pub struct Proof {
    proof: verify::Proof,
}

#[pymethods]
impl Proof {
    #[getter]
    fn complete(&self) -> bool {
        self.proof.complete
    }

    #[getter]
    fn deadlock_free(&self) -> bool {
        self.proof.deadlock_free
    }

    #[getter]
    fn race_free(&self) -> bool {
        self.proof.race_free
    }

    #[getter]
    fn repeatable(&self) -> bool {
        self.proof.repeatable
    }

    #[getter]
    fn method(&self) -> &str {
        self.proof.method
    }

    #[getter]
    fn error_probability(&self) -> Option<f64> {
        self.proof.error_probability
    }

    #[getter]
    fn seed(&self) -> Option<String> {
        self.proof.seed.map(|seed| seed.to_string())
    }

    #[getter]
    fn scratch_bytes_max(&self) -> u64 {
        self.proof.scratch_bytes_max.0
    }

    #[getter]
    fn expression_class(&self) -> Option<&str> {
        self.proof.expression_class.as_deref()
    }

    #[getter]
    fn bits(&self) -> Vec<&'static str> {
        self.proof.bits.clone()
    }

    #[getter]
    fn element_class(&self) -> Option<&str> {
        self.proof.element_class.as_deref()
    }

    #[getter]
    fn unlike_elements(&self) -> Option<&str> {
        self.proof.unlike_elements.as_deref()
    }

    #[getter]
    fn diagnostics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.proof.diagnostics)
    }

    #[getter]
    fn holds(&self) -> bool {
        self.proof.holds()
    }

    fn __bool__(&self) -> bool {
        self.proof.holds()
    }

    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.proof)
    }

    /// Returns the HTML table that notebooks show.
    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        convert::display(slf.as_any())
    }

    fn __repr__(&self) -> String {
        let verdict = if self.proof.holds() { "holds" } else { "fails" };
        format!("<unisono.Proof {verdict}, {} findings, {}>", self.proof.diagnostics.len(), self.proof.method)
    }
}

/// Makes a Python string. Its allocation may fail, and the usual conversion panics then.
fn large<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    PyString::from_bytes(py, text.as_bytes())
}
