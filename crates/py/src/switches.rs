//! `simulate` on switches that reduce, and the check of their registers.

use std::time::Instant;

use numpy::PyArray1;
use pyo3::prelude::*;
use unisono_emit::registers::parse;
use unisono_lower::{
    Placement,
    switches::{RaiseError, raise},
};
use unisono_machine::{InNetwork, Machine as Description};
use unisono_schedule::verify::{Method, verify};
use unisono_sim::collective_engine;

use crate::{
    errors::{detached, input, to_python, verify_error},
    schedule::Schedule,
};

/// Proves a schedule and runs it in the switches where it is placed.
#[pyfunction]
pub fn simulate_switches(py: Python<'_>, schedule: &Schedule) -> PyResult<EngineSimulation> {
    let file = schedule.file();
    let Some(machine) = file.machine.as_ref().and_then(Description::get::<InNetwork>) else {
        return Err(input("the schedule has no machine whose switches reduce; give it one with schedule.on(machine)"));
    };
    let Some(placement) = file.placement.as_ref().and_then(Placement::switches) else {
        let made_by =
            file.schedule.origin().split(' ').next().filter(|name| !name.is_empty()).unwrap_or("the schedule");
        let name = &machine.name;
        return Err(input(format!(
            "{made_by} runs on the cores of {name}, where only plans have times; in-network can be simulated"
        )));
    };
    // The placement is checked where it is lowered.
    let proof = detached(py, || verify(&file.schedule, Method::Auto))?;
    if !proof.holds() {
        return Err(verify_error(py, &proof.diagnostics));
    }
    let start = Instant::now();
    let run = detached(py, || collective_engine::run(machine, &file.schedule, placement))?.map_err(input)?;
    Ok(EngineSimulation { run, wall_seconds: start.elapsed().as_secs_f64() })
}

/// `[{code, rank, instruction, message}]` of the first fault in a text of registers, `rank` being the switch; empty where
/// they agree with each other, the machine and the collective.
#[pyfunction]
pub fn check_registers<'py>(py: Python<'py>, text: &str, origin: &str) -> PyResult<Bound<'py, PyAny>> {
    let (machine, configured) = detached(py, || parse(text))?.map_err(|e| input(format!("{origin}: {e}")))?;
    let found = match detached(py, || raise(&machine.layout(), &configured).map(drop))? {
        Err(RaiseError::Registers(fault)) => vec![fault],
        Err(RaiseError::Build(error)) => return Err(input(error)),
        Ok(()) => Vec::new(),
    };
    to_python(py, &found)
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
    fn embeddings(&self) -> usize {
        self.run.embeddings
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
