//! Places jobs on the boards of a network.

use std::collections::HashSet;

use pyo3::prelude::*;
use serde::Serialize;
use unisono_base::excerpt;
use unisono_machine::{
    MachineError,
    network::{
        Boards, FAMILIES, Network, Topology,
        allocate::{
            Counts, Heuristic, Job, JobSpace, Jobs, Outcome, Placed, Rule, Sample, Sizes, Study, UpperShare, admit,
            counts, outcome,
        },
    },
};

use crate::{
    errors::{detached, input, to_python},
    machine::Machine,
};

/// A job of the first sample. `positions` lists the coordinates of its boards by dimension; None if the job was not
/// placed. In two dimensions, `rows` and `columns` repeat the two lists.
#[derive(Serialize)]
#[serde(rename = "Job")]
struct JobReport {
    boards: u32,
    rows: Option<Vec<u32>>,
    columns: Option<Vec<u32>>,
    positions: Option<Vec<Vec<u32>>>,
}

/// One sample: the positions of the boards that failed, such as (row, column), and its jobs.
#[derive(Serialize)]
#[serde(rename = "SampledJobs")]
struct FirstReport {
    failed: Vec<Vec<u32>>,
    jobs: Vec<JobReport>,
}

/// The report of `unisono.allocate` and `unisono allocate --json`.
#[derive(Serialize)]
#[serde(rename = "AllocationReport")]
struct Report<'a> {
    machine: &'a str,
    boards: &'a [u32],
    board: &'a [u32],
    leaf: &'a [u32],
    heuristic: &'static str,
    /// The name of the rule for the sets of boards that a job may have.
    rule: &'static str,
    fail: u64,
    /// The boards that failed in every sample. `fail` also includes boards that are drawn in each sample.
    failed: Vec<Vec<u32>>,
    seed: u64,
    #[serde(flatten)]
    outcome: &'a Outcome,
    first: FirstReport,
}

/// A board that failed: its position in each dimension, or the name of a part of the machine.
#[derive(FromPyObject)]
pub enum FailedBoard {
    Position(Vec<u32>),
    Part(String),
}

/// A network whose boards are given to jobs.
struct Places {
    name: String,
    topology: Box<dyn Topology>,
    space: JobSpace,
    /// The row-major indices of the boards with accelerators that the description marks as failed.
    failed: Vec<u32>,
}

fn rule(space: &JobSpace) -> &'static str {
    match space.rule {
        Rule::Crossings => "crossings",
        Rule::SubBox { .. } => "sub-box",
        Rule::Blocks { aligned: false, .. } => "any",
        Rule::Blocks { aligned: true, .. } => "aligned",
    }
}

impl Places {
    fn of(machine: &Machine, board: Option<u32>, aligned: bool) -> PyResult<Self> {
        let name = machine.description().name().to_owned();
        let accepted = || FAMILIES.iter().filter_map(|family| family.jobs).collect::<Vec<_>>().join(", ");
        let refused =
            |found: String| input(MachineError::NoJobSpace { machine: name.clone(), found, accepted: accepted() });
        let Some(network) = machine.description().get::<Network>() else {
            return Err(refused("which is not a network".to_owned()));
        };
        machine.check_whole("jobs are placed on the boards of")?;
        let topology = network.whole_topology(&name).map_err(input)?;
        let Some(mut space) = topology.jobs() else {
            return Err(refused(format!("a {} of {:?} accelerators", topology.name(), topology.extents())));
        };
        if let Some(board) = board {
            space = space.in_boards_of(&name, board).map_err(input)?;
        }
        if aligned {
            space = space.aligned(&name).map_err(input)?;
        }
        let left = network.topology(&name).map_err(input)?;
        let kept: Option<HashSet<u32>> = left.kept().map(|kept| kept.iter().copied().collect());
        let gone = (0..topology.accelerators()).filter(|node| kept.as_ref().is_some_and(|kept| !kept.contains(node)));
        let mut failed: Vec<u32> = gone.map(|node| space.board_of(node)).collect();
        failed.sort_unstable();
        failed.dedup();
        Ok(Self { name, topology, space, failed })
    }

    /// Returns the row-major indices of the boards that fail in every sample, without duplicates: boards with failed
    /// accelerators of the machine, then the named boards.
    fn failed(&self, named: &[FailedBoard]) -> PyResult<Vec<u32>> {
        let mut seen: HashSet<u32> = self.failed.iter().copied().collect();
        let (mut found, mut positions, mut names) = (self.failed.clone(), HashSet::new(), HashSet::new());
        for one in named {
            let boards = match one {
                FailedBoard::Position(position) => {
                    let board = self.number(position)?;
                    if !positions.insert(board) {
                        let board = list(position);
                        return Err(input(format!(
                            "board {board} is named twice among the failed boards; name it once"
                        )));
                    }
                    vec![board]
                }
                FailedBoard::Part(name) => {
                    if !names.insert(name) {
                        let name = excerpt(name);
                        return Err(input(format!("'{name}' is named twice among the failed boards; name it once")));
                    }
                    self.of_part(name)?
                }
            };
            found.extend(boards.into_iter().filter(|&board| seen.insert(board)));
        }
        Ok(found)
    }

    fn number(&self, position: &[u32]) -> PyResult<u32> {
        let (count, machine) = (&self.space.count, &self.name);
        if position.len() != count.len() || position.iter().zip(count).any(|(at, all)| at >= all) {
            let accepted = match count[..] {
                [rows, columns] => format!("rows 0 to {} and columns 0 to {}", rows - 1, columns - 1),
                [all] => format!("boards 0 to {}", all - 1),
                _ => {
                    let last: Vec<u32> = count.iter().map(|all| all - 1).collect();
                    format!("positions 0 to {} in the {} dimensions", list(&last), count.len())
                }
            };
            return Err(input(format!("there is no board {}; accepted are {accepted} of {machine}", list(position))));
        }
        Ok(position.iter().zip(count).fold(0, |number, (at, all)| number * all + at))
    }

    /// Returns the row-major indices of the boards with accelerators of the part called `name`.
    fn of_part(&self, name: &str) -> PyResult<Vec<u32>> {
        let of_name = (0..self.topology.accelerators()).filter(|&node| self.topology.node_name(node).is(name));
        let mut boards: Vec<u32> = of_name.map(|node| self.space.board_of(node)).collect();
        boards.dedup();
        if boards.is_empty() {
            let last = self.topology.node_name(self.topology.accelerators() - 1);
            let part = last.within.map_or_else(String::new, |part| format!(" or '{part}'"));
            let (name, machine) = (excerpt(name), &self.name);
            return Err(input(format!(
                "'{name}' is no part of {machine} with accelerators; accepted are a number of boards, the position of one, \
                 and names such as '{}'{part}",
                last.own
            )));
        }
        Ok(boards)
    }

    fn first(&self, sample: &Sample) -> FirstReport {
        let job = |(job, placed): &(Job, Option<Placed>)| {
            let positions = placed.as_ref().map(|placed| placed.positions.clone());
            let [rows, columns] = match positions.as_deref() {
                Some([rows, columns]) => [Some(rows.clone()), Some(columns.clone())],
                _ => [None, None],
            };
            JobReport { boards: job.boards, rows, columns, positions }
        };
        FirstReport {
            failed: sample.failed.iter().map(|&board| self.space.position(board)).collect(),
            jobs: sample.jobs.iter().map(job).collect(),
        }
    }
}

fn list(position: &[u32]) -> String {
    position.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// The keywords of a study of allocations. `jobs` is the text and the name of a job file, or None for random jobs with
/// the sizes of the built-in trace. `board` is the number of accelerators that form a board on networks without boards.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Asked {
    jobs: Option<(String, String)>,
    heuristic: String,
    fail: u64,
    seed: u64,
    failed: Vec<FailedBoard>,
    board: Option<u32>,
    aligned: bool,
}

impl Asked {
    fn study(&self, machine: &Machine) -> PyResult<(Places, Study)> {
        let places = Places::of(machine, self.board, self.aligned)?;
        let heuristic: Heuristic = self.heuristic.parse().map_err(input)?;
        let jobs = match &self.jobs {
            None => Jobs::Drawn(Sizes::trace()),
            Some((text, origin)) => Jobs::parse(text, origin, &places.name, &places.space).map_err(input)?,
        };
        let failed = places.failed(&self.failed)?;
        Ok((places, Study { jobs, heuristic, failed, failures: self.fail, seed: self.seed }))
    }
}

/// The sums over the jobs of one sample, in the order of the fields of [`Counts`].
type CountsTuple = (u64, u64, u64, f64, f64);

/// Checks that a study of `samples` samples can be computed.
#[pyfunction]
pub fn admit_allocations(machine: &Machine, asked: Asked, samples: u32) -> PyResult<()> {
    let (places, study) = asked.study(machine)?;
    admit(&places.space, &places.name, &study, samples).map_err(input)
}

/// Places the jobs of the samples with the numbers `first .. end`, around failed boards.
#[pyfunction]
pub fn count_allocations(
    py: Python<'_>,
    machine: &Machine,
    asked: Asked,
    first: u32,
    end: u32,
) -> PyResult<Vec<CountsTuple>> {
    let (places, study) = asked.study(machine)?;
    let counts = detached(py, || counts(&places.space, &study, first..end))?;
    Ok(counts.iter().map(|of| (of.placed, of.refused, of.requested, of.upper.alltoall, of.upper.allreduce)).collect())
}

/// Summarizes a study of allocations from the counts of its samples.
#[pyfunction]
pub fn allocation_report<'py>(
    py: Python<'py>,
    machine: &Machine,
    asked: Asked,
    counts: Vec<CountsTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let (places, study) = asked.study(machine)?;
    let (space, failed) = (&places.space, &study.failed);
    let of = |(placed, refused, requested, alltoall, allreduce)| Counts {
        placed,
        refused,
        requested,
        upper: UpperShare { alltoall, allreduce },
    };
    let counts: Vec<Counts> = counts.into_iter().map(of).collect();
    let outcome = detached(py, || outcome(space, &study, &counts))?;
    to_python(
        py,
        &Report {
            machine: &places.name,
            boards: &space.count,
            board: &space.board,
            leaf: &space.leaf,
            heuristic: study.heuristic.name(),
            rule: rule(space),
            fail: study.failures + failed.len() as u64,
            failed: failed.iter().map(|&board| space.position(board)).collect(),
            seed: study.seed,
            outcome: &outcome,
            first: places.first(&outcome.first),
        },
    )
}

/// Returns the grid of boards of a whole network.
fn boards(machine: &Machine) -> PyResult<Boards> {
    let none = || input(MachineError::NoBoards { machine: machine.description().name().to_owned() });
    let network = machine.description().get::<Network>().ok_or_else(none)?;
    machine.check_whole("jobs are placed on the boards of")?;
    let topology = network.topology(&network.name).map_err(input)?;
    topology.boards().ok_or_else(none)
}

/// Returns the accelerators of the boards at some rows and columns, in the order of ranks, and the extents of the grid
/// that these accelerators form.
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
