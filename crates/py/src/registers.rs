//! `Registers`: a collective as switches are configured for it, and its simulation.

use std::{sync::Arc, time::Instant};

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
    simulation::Simulation,
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
    pub fn simulate(&self, py: Python<'_>) -> PyResult<Simulation> {
        let start = Instant::now();
        let run = detached(py, || collective_engine::run(&self.machine, &self.layout, &self.configured))?;
        let run = run.map_err(input)?;
        Ok(Simulation::in_switches(run, self.configured.embeddings.len(), start.elapsed().as_secs_f64()))
    }
}
