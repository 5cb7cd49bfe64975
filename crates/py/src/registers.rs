//! `Registers`: a collective as switches are configured for it, and its simulation.

use std::{sync::Arc, time::Instant};

use numpy::PyArray1;
use pyo3::prelude::*;
use unisono_lower::{
    File,
    switches::{self, Configured},
};
use unisono_machine::{InNetwork, Machine as Description, in_network::Layout};
use unisono_sim::collective_engine;

use crate::{
    errors::{detached, input, to_python},
    machine::Machine,
    schedule::Schedule,
};

/// Registers of switches that reduce, with their machine.
#[pyclass(frozen, module = "unisono", skip_from_py_object)]
#[derive(Clone)]
pub struct Registers {
    machine: InNetwork,
    layout: Arc<Layout>,
    configured: Arc<Configured>,
}

impl Registers {
    pub fn new(machine: InNetwork, layout: Arc<Layout>, configured: Arc<Configured>) -> Self {
        Self { machine, layout, configured }
    }
}

#[pymethods]
impl Registers {
    /// Reads the text form; `origin` names the file in errors.
    #[staticmethod]
    #[pyo3(signature = (text, origin = "registers"))]
    fn parse(py: Python<'_>, text: &str, origin: &str) -> PyResult<Self> {
        let (machine, configured) = detached(py, || switches::parse(text, origin))?.map_err(input)?;
        let layout = Arc::new(machine.layout());
        Ok(Self { machine, layout, configured: Arc::new(configured) })
    }

    fn text(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || switches::print(&self.machine, &self.configured))
    }

    #[getter]
    fn machine(&self) -> PyResult<Machine> {
        Machine::new(Description::from(self.machine.clone()), None)
    }

    #[getter]
    fn collective(&self) -> &str {
        self.configured.collective.kind.name()
    }

    #[getter]
    fn ranks(&self) -> u32 {
        self.configured.collective.ranks
    }

    #[getter]
    fn elements(&self) -> u32 {
        self.configured.collective.elements
    }

    #[getter]
    fn dtype(&self) -> &str {
        self.configured.collective.dtype.name()
    }

    #[getter]
    fn embeddings(&self) -> usize {
        self.configured.embeddings.len()
    }

    /// Switches of each embedding.
    #[getter]
    fn switches(&self) -> Vec<usize> {
        self.configured.embeddings.iter().map(|e| e.registers.len()).collect()
    }

    /// What is wrong, `[{code, rank, instruction, message}]`, `rank` being the switch; nothing for registers that do what the
    /// collective says.
    fn check<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let found = detached(py, || {
            let mut found = switches::check(&self.machine, &self.layout, &self.configured);
            found.extend(switches::check_together(&self.layout, [&*self.configured]));
            found
        })?;
        to_python(py, &found)
    }

    /// The schedule that they are; of registers that pass their check.
    fn schedule(&self, py: Python<'_>) -> PyResult<Schedule> {
        let found = switches::check(&self.machine, &self.layout, &self.configured);
        if let Some(first) = found.first() {
            return Err(input(format!("the registers are wrong: {}", first.message)));
        }
        let schedule = detached(py, || switches::schedule(&self.layout, &self.configured))?.map_err(input)?;
        let machine = Some(Description::from(self.machine.clone()));
        Ok(Schedule::of_registers(File { schedule, placement: None, machine }, self.clone()))
    }

    /// Runs them on the machine.
    fn simulate(&self, py: Python<'_>) -> PyResult<EngineSimulation> {
        let start = Instant::now();
        let run = detached(py, || collective_engine::run(&self.machine, &self.layout, &self.configured))?;
        let run = run.map_err(input)?;
        Ok(EngineSimulation { run, wall_seconds: start.elapsed().as_secs_f64() })
    }
}

/// What a run of switches that reduce did.
#[pyclass(frozen, module = "unisono")]
pub struct EngineSimulation {
    run: collective_engine::Run,
    wall_seconds: f64,
}

#[pymethods]
impl EngineSimulation {
    #[getter]
    fn nanoseconds(&self) -> f64 {
        self.run.picoseconds as f64 / 1e3
    }

    /// When the first element had come to the last memory.
    #[getter]
    fn latency_ns(&self) -> f64 {
        self.run.latency as f64 / 1e3
    }

    /// When each rank had given and got everything.
    #[getter]
    fn finish_ns<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_iter(py, self.run.finish.iter().map(|&t| t as f64 / 1e3))
    }

    #[getter]
    fn packets(&self) -> u64 {
        self.run.packets
    }

    /// Packets that left a unit of a switch, and how many of these were computed one by one.
    #[getter]
    fn events(&self) -> u64 {
        self.run.events
    }

    #[getter]
    fn computed(&self) -> u64 {
        self.run.computed
    }

    /// Directed links by the number of logical edges on them, from one on.
    #[getter]
    fn link_loads(&self) -> Vec<u64> {
        self.run.link_loads.clone()
    }

    #[getter]
    fn result_correct(&self) -> bool {
        self.run.data.result_correct
    }

    #[getter]
    fn mismatch(&self) -> Option<&str> {
        self.run.data.mismatch.as_deref()
    }

    /// Elements of the vector that flowed, from the first on.
    #[getter]
    fn elements_flowed(&self) -> u32 {
        self.run.data.elements
    }

    /// Of the bits of all outputs.
    #[getter]
    fn digest(&self) -> String {
        format!("{:016x}", self.run.data.digest)
    }

    #[getter]
    fn wall_seconds(&self) -> f64 {
        self.wall_seconds
    }
}
