//! `Discovery`, which reads a program of tasks while the program submits it, and reports of whole programs.

mod arguments;
mod commands;
mod converted;
mod reports;
mod task_list;

pub(crate) use arguments::{nodes_of, point, refused};
pub use converted::Operation;
pub(crate) use converted::boxes;
pub use reports::{discover, discover_moved, discovery_rate};
pub use task_list::TaskList;

use std::collections::HashMap;

use pyo3::{
    prelude::*,
    types::{PyList, PyTuple},
};
use unisono_base::{BufferId, TaskId};
use unisono_discover::{Buffer, Discovery as Engine, Options, PartAccess, Proofs, ProvedReads, Task, report_of};
use unisono_plan::program::MovedData;

use self::{
    arguments::{fenced, numbers, submitted},
    converted::{Converted, view},
};
use crate::{
    convert::index,
    errors::{Error, detached, input, to_python},
    mapper::Mapper,
    moved::Moved,
};

/// The largest number of repeated tasks that the engine processes in one call.
const MOST_REPEATED: usize = 256;

/// Reads a program of tasks on one rank: receives buffers and tasks, and returns the commands of this rank.
#[pyclass(module = "unisono")]
pub struct Discovery {
    engine: Engine,
    /// True once a call was interrupted by a signal, a limit or a panic. The engine may then have processed only a part
    /// of a task.
    broken: bool,
    /// Resubmitted tasks that the engine has not processed yet.
    repeated: Vec<TaskId>,
    converted: Converted,
    proved: ProvedReads,
}

#[pymethods]
impl Discovery {
    #[new]
    #[pyo3(signature = (nodes, rank=None, rules="full", window=None, rows=false, report=true))]
    fn new(
        nodes: &Bound<'_, PyAny>,
        rank: Option<&Bound<'_, PyAny>>,
        rules: &str,
        window: Option<usize>,
        rows: bool,
        report: bool,
    ) -> PyResult<Self> {
        let options = Options {
            nodes: nodes_of(nodes)?,
            rank: rank.map(|rank| index("rank", rank)).transpose()?,
            rules: rules.parse().map_err(input)?,
            window: window.unwrap_or(Options::WINDOW),
            rows,
            report,
        };
        let engine = Engine::new(options).map_err(refused)?;
        let (converted, proved) = (Converted::default(), ProvedReads::default());
        Ok(Self { engine, broken: false, repeated: Vec::new(), converted, proved })
    }

    /// Declares a buffer and returns its number.
    #[pyo3(signature = (name, shape, element_bytes=8, initialized=false))]
    fn buffer(
        &mut self,
        py: Python<'_>,
        name: &str,
        shape: &Bound<'_, PyAny>,
        element_bytes: u64,
        initialized: bool,
    ) -> PyResult<u32> {
        let shape = numbers(&format!("buffer '{name}': shape"), shape)?;
        let buffer = Buffer::new(name, &shape, element_bytes, initialized).map_err(refused)?;
        Ok(self.whole(py, |engine| engine.buffer(buffer))?.0)
    }

    /// Submits a task and returns its number; accesses are `(buffer, mode, mapper)`.
    #[pyo3(signature = (name, sizes, accesses, offset=None, granularity=None, split="1d"))]
    #[allow(clippy::too_many_arguments)]
    fn task(
        &mut self,
        py: Python<'_>,
        name: &str,
        sizes: &Bound<'_, PyAny>,
        accesses: Vec<(u32, Bound<'_, PyAny>, Mapper)>,
        offset: Option<&Bound<'_, PyAny>>,
        granularity: Option<&Bound<'_, PyAny>>,
        split: &str,
    ) -> PyResult<u32> {
        let (geometry, accesses) = submitted(name, sizes, accesses, (offset, granularity, split))?;
        let submitted = self.whole(py, |engine| engine.submit(&Task { name, geometry, accesses: &accesses }))?;
        Ok(submitted.map_err(refused)?.0)
    }

    /// Submits an earlier task, given by its number, again and returns the new number.
    fn again(&mut self, py: Python<'_>, task: u32) -> PyResult<u32> {
        let count = self.engine.task_count() + self.repeated.len();
        if task as usize >= count {
            return Err(input(format!("there is no task {task}")));
        }
        let number = u32::try_from(count).map_err(|_| input(format!("a program has at most {} tasks", u32::MAX)))?;
        self.repeated.push(TaskId(task));
        if self.repeated.len() >= MOST_REPEATED {
            self.take_repeated(py)?;
        }
        Ok(number)
    }

    /// Submits a task that reads the box on every rank. Issues all commands, and returns the task's number.
    fn fence(
        &mut self,
        py: Python<'_>,
        name: &str,
        buffer: u32,
        low: &Bound<'_, PyAny>,
        high: &Bound<'_, PyAny>,
    ) -> PyResult<u32> {
        let window = fenced(low, high)?;
        let submitted = self.whole(py, |engine| engine.fence(name, BufferId(buffer), window))?;
        Ok(submitted.map_err(refused)?.0)
    }

    /// Issues the commands of all tasks that wait in the look-ahead window. All ranks call this after the same
    /// submissions.
    fn flush(&mut self, py: Python<'_>) -> PyResult<()> {
        self.whole(py, Engine::flush)
    }

    /// Returns this rank's commands since the last call, in the order of issue. Each command is a tuple of its name,
    /// its number, its task and its dependencies `(numbers, until)`: single commands, and all commands up to number
    /// `until` unless None. Then follow:
    ///
    /// * `push`: buffer, rank, region, name of the schedule;
    /// * `await`: buffer, tuple of `(rank, region)`, name of the schedule;
    /// * `collective`: buffer, group, operation, region given, region received;
    /// * `execute`: min and max of the chunk.
    ///
    /// Regions are tuples of boxes `(min, max)`. A loop returns the same tuple object in each iteration.
    ///
    /// With `prove`, the messages of each read are proved first, and `push` and `await` follow the proved schedule. The
    /// name of the schedule is None if only one rank's messages are listed, or the discovery has no rank. Without
    /// `prove` all names are None.
    #[pyo3(signature = (prove=false))]
    fn commands<'py>(&mut self, py: Python<'py>, prove: bool) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for (command, name) in self.take(py, prove)? {
            list.append(self.tuple(py, &command, name.as_deref())?)?;
        }
        Ok(list)
    }

    /// Returns, for each access of a task, the elements that this rank's part of the range accesses: their bounding box
    /// `(min, max)`, and the boxes that they form. Empty if this rank has no part.
    fn views<'py>(&mut self, py: Python<'py>, task: u32) -> PyResult<Bound<'py, PyTuple>> {
        self.take_repeated(py)?;
        let task = TaskId(task);
        if self.engine.find_task(task).is_none() {
            return Err(input(format!("there is no task {}", task.0)));
        }
        self.converted.views(py, &self.engine, task)
    }

    /// Divides this rank's part of a task's range into at most `devices` parts, and returns the result of `views` for
    /// each part. Returns no parts if this rank has none.
    fn device_views<'py>(&mut self, py: Python<'py>, task: u32, devices: u32) -> PyResult<Bound<'py, PyTuple>> {
        self.take_repeated(py)?;
        if self.engine.find_task(TaskId(task)).is_none() {
            return Err(input(format!("there is no task {task}")));
        }
        let parts = self.engine.parts(TaskId(task), devices).map_err(refused)?;
        let view = |access: &PartAccess| view(py, &self.engine, access.buffer, &access.region);
        let of_part = |part: &Vec<PartAccess>| PyTuple::new(py, part.iter().map(view).collect::<PyResult<Vec<_>>>()?);
        PyTuple::new(py, parts.iter().map(of_part).collect::<PyResult<Vec<_>>>()?)
    }

    /// Returns the forwards since the last report, and the messages of all ranks so far.
    fn report<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.take_repeated(py)?;
        to_python(py, &report_of(&mut self.engine))
    }

    /// Returns the data moved so far, each distinct operation once; nothing for a discovery without `report`. `reduced`
    /// maps each buffer that only messages reduce to the bytes that messages add to each element.
    #[pyo3(signature = (reduced=None))]
    fn moved(&mut self, py: Python<'_>, reduced: Option<HashMap<u32, u64>>) -> PyResult<Vec<Moved>> {
        self.take_repeated(py)?;
        let (engine, reduced) = (&self.engine, reduced.unwrap_or_default());
        Ok(detached(py, || MovedData::all(engine, &reduced))?.into_iter().map(Moved).collect())
    }

    fn task_name(&mut self, py: Python<'_>, task: u32) -> PyResult<&str> {
        self.take_repeated(py)?;
        self.engine.find_task(TaskId(task)).ok_or_else(|| input(format!("there is no task {task}")))
    }

    /// Returns the number of submissions (buffers and tasks) and a hash of all of them. Ranks with the same submissions
    /// have the same hash.
    #[getter]
    fn chain(&mut self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.take_repeated(py)?;
        Ok((self.engine.chain().len(), self.engine.chain().end()))
    }

    /// Returns the number of the first submission whose hash is kept, and the hashes from this submission on.
    fn chain_links(&mut self, py: Python<'_>) -> PyResult<(u64, Vec<u64>)> {
        self.take_repeated(py)?;
        let (first, links) = self.engine.chain().links();
        Ok((first, links.to_vec()))
    }

    /// Forgets the hashes so far, after all ranks have found them equal.
    fn chain_agreed(&mut self, py: Python<'_>) -> PyResult<()> {
        self.take_repeated(py)?;
        self.engine.chain_mut().agreed();
        Ok(())
    }

    /// Returns the name of a submission, such as `task 'step'`, from its number.
    fn submission(&mut self, py: Python<'_>, number: u64) -> PyResult<String> {
        self.take_repeated(py)?;
        Ok(self.engine.submission(number))
    }
}

impl Discovery {
    /// Runs a step of the engine that must not stop part of the way through.
    ///
    /// # Errors
    ///
    /// Returns an error if this or an earlier call was interrupted, or a repeated task is refused.
    fn whole<R: Send>(&mut self, py: Python<'_>, act: impl FnOnce(&mut Engine) -> R + Send) -> PyResult<R> {
        if self.broken {
            return Err(Error::new_err(
                "this discovery was interrupted within a task and cannot go on; make a new one",
            ));
        }
        let (engine, repeated) = (&mut self.engine, &mut self.repeated);
        let done = detached(py, || {
            for task in repeated.drain(..) {
                engine.again(task)?;
            }
            Ok(act(engine))
        });
        self.broken = done.is_err();
        done?.map_err(refused)
    }

    fn take_repeated(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.repeated.is_empty() { Ok(()) } else { self.whole(py, |_| ()) }
    }

    pub(crate) fn engine_and_proofs(&mut self) -> (&Engine, &mut Proofs) {
        (&self.engine, &mut self.proved.proofs)
    }
}
