//! `Simulation`: the result of a simulated run, with the same attributes on every kind of machine.

use numpy::PyArray1;
use pyo3::{
    prelude::*,
    types::{PyDict, PyTuple},
};
use unisono_sim::{collective_engine, endpoint, fabric, network};

use crate::errors::to_python;

// The names of the simulators, as in `--sim`.
pub const FABRIC: &str = "fabric";
pub const ENDPOINT: &str = "endpoint";
pub const NETWORK: &str = "network";
pub const COLLECTIVE_ENGINE: &str = "collective-engine";

/// The value of a metric.
enum Value {
    Count(u64),
    Number(f64),
    Counts(Vec<u64>),
    Text(String),
}

/// When the nodes were done.
enum Finish {
    Cycles(Vec<u32>),
    Nanoseconds(Vec<f64>),
}

/// The operations of the traced nodes.
enum Trace {
    None,
    Pes { events: Vec<fabric::TraceEvent>, phases: Vec<String> },
    Ranks { events: Vec<endpoint::TraceEvent>, ticks_per_ns: f64 },
}

/// What a simulated run did. A value that its simulator does not have is None.
#[pyclass(frozen, module = "unisono")]
pub struct Simulation {
    simulator: &'static str,
    cycles: Option<u64>,
    seconds: f64,
    nanoseconds: f64,
    finish: Finish,
    events: u64,
    stalls: Option<u64>,
    /// Whether the outputs equal plain arithmetic, and the first that does not; None where no data flowed.
    checked: Option<(bool, Option<String>)>,
    metrics: Vec<(&'static str, Value, &'static str)>,
    trace: Trace,
    wall_seconds: f64,
}

impl Simulation {
    /// A run of the fabric of a wafer.
    pub fn on_fabric(run: fabric::Run, clock_mhz: f64, phases: Vec<String>, wall_seconds: f64) -> Self {
        Self {
            simulator: FABRIC,
            cycles: Some(run.cycles),
            seconds: run.cycles as f64 / (clock_mhz * 1e6),
            nanoseconds: run.cycles as f64 * 1e3 / clock_mhz,
            finish: Finish::Cycles(run.finish),
            events: run.events,
            stalls: Some(run.stalls),
            checked: Some((run.result_correct, run.mismatch)),
            metrics: vec![
                ("hops", Value::Count(run.hops), "wavelets over links"),
                ("stalled_cycles", Value::Count(run.stalls), "cycles"),
            ],
            trace: Trace::Pes { events: run.trace, phases },
            wall_seconds,
        }
    }

    /// A run among ranks whose clock has `ticks_per_ns`.
    pub fn among_ranks(run: endpoint::Run, ticks_per_ns: f64, wall_seconds: f64) -> Self {
        let nanoseconds = run.makespan as f64 / ticks_per_ns;
        Self {
            simulator: ENDPOINT,
            cycles: None,
            seconds: nanoseconds / 1e9,
            nanoseconds,
            finish: Finish::Nanoseconds(run.finish.iter().map(|&t| t as f64 / ticks_per_ns).collect()),
            events: run.events,
            stalls: None,
            checked: None,
            metrics: vec![
                ("messages", Value::Count(run.sends), "messages"),
                ("unreceived_messages", Value::Count(run.left_over), "messages"),
            ],
            trace: Trace::Ranks { events: run.trace, ticks_per_ns },
            wall_seconds,
        }
    }

    /// A run on a network, of which one of `planes` was simulated.
    pub fn on_network(run: network::Run, ticks_per_ns: f64, planes: u32, wall_seconds: f64) -> Self {
        let mut made = Self::among_ranks(run.hosts, ticks_per_ns, wall_seconds);
        made.simulator = NETWORK;
        made.events = run.events;
        made.metrics.extend([
            ("planes", Value::Count(planes.into()), "planes that carry the same, of which one was simulated"),
            ("packets", Value::Count(run.packets), "packets of one plane"),
            ("hops", Value::Count(run.hops), "packets over links of one plane"),
            ("link_packets", Value::Counts(run.link_packets), "packets over each link of one plane"),
        ]);
        made
    }

    /// A run of switches that reduce.
    pub fn in_switches(run: collective_engine::Run, wall_seconds: f64) -> Self {
        let nanoseconds = run.picoseconds as f64 / 1e3;
        Self {
            simulator: COLLECTIVE_ENGINE,
            cycles: None,
            seconds: nanoseconds / 1e9,
            nanoseconds,
            finish: Finish::Nanoseconds(run.finish.iter().map(|&t| t as f64 / 1e3).collect()),
            events: run.events,
            stalls: None,
            checked: Some((run.data.result_correct, run.data.mismatch)),
            metrics: vec![
                ("latency", Value::Number(run.latency as f64 / 1e3), "ns until the first element is everywhere"),
                ("embeddings", Value::Count(run.embeddings as u64), "embeddings"),
                ("packets", Value::Count(run.packets), "packets of all embeddings"),
                ("computed_events", Value::Count(run.computed), "events"),
                ("link_loads", Value::Counts(run.link_loads), "links with 1, 2, ... logical edges"),
                ("elements_flowed", Value::Count(run.data.elements.into()), "elements, from the first on"),
                ("digest", Value::Text(format!("{:016x}", run.data.digest)), "hash of the bits of all outputs"),
            ],
            trace: Trace::None,
            wall_seconds,
        }
    }
}

#[pymethods]
impl Simulation {
    #[getter]
    fn simulator(&self) -> &str {
        self.simulator
    }

    #[getter]
    fn cycles(&self) -> Option<u64> {
        self.cycles
    }

    #[getter]
    fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The time as exact as the clock of a simulation in nanoseconds.
    #[getter]
    fn nanoseconds(&self) -> f64 {
        self.nanoseconds
    }

    /// When the last operation of each PE ended, cycles (0 for a PE without any); on other machines when each rank was done,
    /// seconds.
    #[getter]
    fn finish<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match &self.finish {
            Finish::Cycles(ends) => PyArray1::from_slice(py, ends).into_any(),
            Finish::Nanoseconds(ends) => PyArray1::from_iter(py, ends.iter().map(|ns| ns / 1e9)).into_any(),
        }
    }

    /// The same in nanoseconds; None on a machine with cycles.
    #[getter]
    fn finish_ns<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        match &self.finish {
            Finish::Cycles(_) => None,
            Finish::Nanoseconds(ends) => Some(PyArray1::from_slice(py, ends)),
        }
    }

    #[getter]
    fn events(&self) -> u64 {
        self.events
    }

    /// Cycles that wavelets waited at routers; None where nothing of that kind is counted.
    #[getter]
    fn stalls(&self) -> Option<u64> {
        self.stalls
    }

    /// Whether the outputs are those of plain arithmetic; None where no data flowed.
    #[getter]
    fn result_correct(&self) -> Option<bool> {
        self.checked.as_ref().map(|(correct, _)| *correct)
    }

    /// The first output that differs from plain arithmetic.
    #[getter]
    fn mismatch(&self) -> Option<&str> {
        self.checked.as_ref().and_then(|(_, mismatch)| mismatch.as_deref())
    }

    /// `{name: (value, unit)}` of everything else that the simulator counts.
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value, unit) in &self.metrics {
            let value = match value {
                Value::Count(count) => count.into_pyobject(py)?.into_any(),
                Value::Number(number) => number.into_pyobject(py)?.into_any(),
                Value::Counts(counts) => PyArray1::from_slice(py, counts).into_any(),
                Value::Text(text) => text.into_pyobject(py)?.into_any(),
            };
            dict.set_item(name, PyTuple::new(py, [value, unit.into_pyobject(py)?.into_any()])?)?;
        }
        Ok(dict)
    }

    #[getter]
    fn wall_seconds(&self) -> f64 {
        self.wall_seconds
    }

    /// `[{pe, thread, instr, phase, elements, start, end}]` of the traced PEs, in cycles; `[{rank, kind, cpu, peer, bytes, start,
    /// end}]` of the traced ranks, in ticks, of which `ticks_per_ns` make a nanosecond.
    #[getter]
    fn trace_events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.trace {
            Trace::None => to_python(py, &[(); 0]),
            Trace::Pes { events, .. } => to_python(py, events),
            Trace::Ranks { events, .. } => to_python(py, events),
        }
    }

    #[getter]
    fn ticks_per_ns(&self) -> Option<f64> {
        match self.trace {
            Trace::Ranks { ticks_per_ns, .. } => Some(ticks_per_ns),
            _ => None,
        }
    }

    /// The phases that traced operations of PEs name by their number.
    #[getter]
    fn phases(&self) -> Vec<String> {
        match &self.trace {
            Trace::Pes { phases, .. } => phases.clone(),
            _ => Vec::new(),
        }
    }
}
