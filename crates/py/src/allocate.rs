//! Jobs on the boards of a network.

use std::collections::HashSet;

use pyo3::prelude::*;
use serde::Serialize;
use unisono_machine::{
    MachineError,
    network::{
        Boards, Network,
        allocate::{Heuristic, Jobs, Outcome, Sample, Sizes, Study, study},
    },
};

use crate::{
    errors::{detached, input, to_python},
    machine::Machine,
};

/// A job of the first sample, with the rows and columns of its boards; None if it was not placed.
#[derive(Serialize)]
struct JobReport {
    boards: u32,
    rows: Option<Vec<u32>>,
    columns: Option<Vec<u32>>,
}

#[derive(Serialize)]
struct FirstReport {
    failed: Vec<[u32; 2]>,
    jobs: Vec<JobReport>,
}

#[derive(Serialize)]
struct Report<'a> {
    machine: &'a str,
    boards: [u32; 2],
    board: [u32; 2],
    leaf: [u32; 2],
    heuristic: &'static str,
    fail: u64,
    /// Boards that failed in every sample, as row and column; the others of `fail` were drawn.
    failed: &'a [[u32; 2]],
    seed: u64,
    #[serde(flatten)]
    outcome: &'a Outcome,
    first: FirstReport,
}

fn boards(machine: &Machine) -> PyResult<Boards> {
    let Some(network) = machine.description().get::<Network>() else {
        return Err(input(MachineError::NoBoards { machine: machine.description().name().to_owned() }));
    };
    machine.check_whole("jobs are placed on the boards of")?;
    let topology = network.topology(&network.name).map_err(input)?;
    topology.boards().ok_or_else(|| input(MachineError::NoBoards { machine: network.name.clone() }))
}

/// Converts boards named by row and column to row-major numbers.
fn numbers(named: &[[u32; 2]], boards: &Boards, machine: &str) -> PyResult<Vec<u32>> {
    let [rows, columns] = boards.count;
    let mut seen = HashSet::new();
    for &[row, column] in named {
        if row >= rows || column >= columns {
            let (last_row, last_column) = (rows - 1, columns - 1);
            let accepted = format!("accepted are rows 0 to {last_row} and columns 0 to {last_column} of {machine}");
            return Err(input(format!("there is no board {row},{column}; {accepted}")));
        }
        if !seen.insert([row, column]) {
            return Err(input(format!("board {row},{column} is named twice among the failed boards; name it once")));
        }
    }
    Ok(named.iter().map(|[row, column]| row * columns + column).collect())
}

fn first(sample: &Sample, boards: &Boards) -> FirstReport {
    let job = |(job, placed): &(unisono_machine::network::allocate::Job, Option<_>)| {
        let placed: Option<&unisono_machine::network::allocate::Placed> = placed.as_ref();
        JobReport {
            boards: job.boards,
            rows: placed.map(|p| p.rows.clone()),
            columns: placed.map(|p| p.columns.clone()),
        }
    };
    FirstReport {
        failed: sample.failed.iter().map(|b| [b / boards.count[1], b % boards.count[1]]).collect(),
        jobs: sample.jobs.iter().map(job).collect(),
    }
}

/// Places jobs on the boards of a machine, around failed boards.
///
/// `jobs` is the text of a job file with its name, or None for the job sizes of the trace.
#[pyfunction]
#[pyo3(signature = (machine, jobs = None, heuristic = "sort", fail = 0, samples = 1000, seed = 0, failed = None))]
#[expect(clippy::too_many_arguments, reason = "the keywords of the Python function")]
pub fn allocate<'py>(
    py: Python<'py>,
    machine: &Machine,
    jobs: Option<(String, String)>,
    heuristic: &str,
    fail: u64,
    samples: u32,
    seed: u64,
    failed: Option<Vec<[u32; 2]>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (boards, name) = (boards(machine)?, machine.description().name());
    let heuristic: Heuristic = heuristic.parse().map_err(input)?;
    let jobs = match &jobs {
        None => Jobs::Drawn(Sizes::trace()),
        Some((text, origin)) => Jobs::parse(text, origin, name, &boards).map_err(input)?,
    };
    let named = failed.unwrap_or_default();
    let failed = numbers(&named, &boards, name)?;
    let asked = Study { jobs, heuristic, failed, failures: fail, samples, seed };
    let outcome = detached(py, || study(&boards, name, &asked))?.map_err(input)?;
    to_python(
        py,
        &Report {
            machine: name,
            boards: boards.count,
            board: boards.board,
            leaf: boards.leaf,
            heuristic: heuristic.name(),
            fail: fail + named.len() as u64,
            failed: &named,
            seed,
            outcome: &outcome,
            first: first(&outcome.first, &boards),
        },
    )
}

/// Returns the accelerators of the boards at some rows and columns, in the order of ranks, and their grid.
#[pyfunction]
pub fn submesh(machine: &Machine, rows: Vec<u32>, columns: Vec<u32>) -> PyResult<(Vec<u32>, [u32; 2])> {
    let boards = boards(machine)?;
    for (what, listed, count) in [("rows", &rows, boards.count[0]), ("columns", &columns, boards.count[1])] {
        let fits = listed.iter().all(|&at| at < count) && listed.is_sorted_by(|a, b| a < b) && !listed.is_empty();
        if !fits {
            let accepted = format!("boards 0 to {} in rising order, at least one", count - 1);
            return Err(input(format!("{what} of a sub-mesh are {listed:?}; accepted are {accepted}")));
        }
    }
    Ok(boards.accelerators(&rows, &columns))
}
