//! Reports of whole programs of tasks, and the rate at which discovery reads tasks.

use std::{collections::HashMap, time::Instant};

use pyo3::prelude::*;
use unisono_discover::{DiscoverError, Discovery as Engine, Example, Options, Program, Rules, report, report_of};
use unisono_plan::program::MovedData;

use super::{nodes_of, refused};
use crate::{
    errors::{detached, input, to_python},
    moved::Moved,
};

/// Reports on a program of tasks, given as JSON text, on `nodes` nodes: its forwards (data on the way between tasks) in
/// the order of issue, and its messages.
#[pyfunction]
#[pyo3(signature = (program, nodes, rules="full"))]
pub fn discover<'py>(
    py: Python<'py>,
    program: &str,
    nodes: &Bound<'py, PyAny>,
    rules: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let (nodes, rules) = (nodes_of(nodes)?, rules.parse::<Rules>().map_err(input)?);
    let made = detached(py, || Program::parse(program).and_then(|program| report(&program, nodes, rules)))?;
    to_python(py, &made.map_err(refused)?)
}

/// Returns the report of `discover`, and the data moved.
#[pyfunction]
#[pyo3(signature = (program, nodes, rules="full"))]
pub fn discover_moved<'py>(
    py: Python<'py>,
    program: &str,
    nodes: &Bound<'py, PyAny>,
    rules: &str,
) -> PyResult<(Bound<'py, PyAny>, Vec<Moved>)> {
    let (nodes, rules) = (nodes_of(nodes)?, rules.parse::<Rules>().map_err(input)?);
    let made = detached(py, || {
        let mut discovery = Engine::new(Options::report(nodes, rules))?;
        Program::parse(program)?.submit(&mut discovery)?;
        Ok((report_of(&mut discovery), MovedData::all(&discovery, &HashMap::new())))
    })?;
    let (report, moved) = made.map_err(refused)?;
    Ok((to_python(py, &report)?, moved.into_iter().map(Moved).collect()))
}

/// Returns the number of tasks of an example that rank 0 reads per second: the largest rate of `rounds` runs.
#[pyfunction]
pub fn discovery_rate(
    py: Python<'_>,
    example: &str,
    nodes: &Bound<'_, PyAny>,
    rules: &str,
    tasks: usize,
    rounds: usize,
) -> PyResult<f64> {
    let known = Example::ALL.map(Example::name).join(", ");
    let found = Example::ALL.into_iter().find(|e| e.name() == example);
    let example = found.ok_or_else(|| input(format!("example is '{example}'; accepted are {known}")))?;
    let (nodes, rules) = (nodes_of(nodes)?, rules.parse::<Rules>().map_err(input)?);
    let once = || {
        let start = Instant::now();
        let mut discovery = Engine::new(Options::commands(nodes, 0, rules))?;
        example.submit(&mut discovery, 1 << 12, tasks)?;
        Ok(tasks as f64 / start.elapsed().as_secs_f64())
    };
    let rates: Result<Vec<f64>, DiscoverError> = detached(py, || (0..rounds).map(|_| once()).collect())?;
    Ok(rates.map_err(refused)?.into_iter().fold(0.0, f64::max))
}
