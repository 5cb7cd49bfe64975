//! Programs of tasks: `Discovery`, which reads a program as it is submitted, and reports of whole programs.

mod arguments;
mod commands;
mod reports;
mod task_list;

pub(crate) use arguments::{nodes_of, point, refused};
pub use reports::{discover, discover_moved, discovery_rate};
pub use task_list::TaskList;

use std::{collections::HashMap, sync::Arc};

use pyo3::{
    prelude::*,
    types::{PyList, PyString, PyTuple},
};
use rustc_hash::FxHashMap;
use unisono_base::{BufferId, TaskId};
use unisono_discover::{
    Box3, Buffer, DirectExchange, DiscoverError, Discovery as Engine, Operation as Found, Options, PartAccess, Proofs,
    RankPart, ReadPlan, Region, Task, report_of,
};
use unisono_plan::program::MovedData;

use self::arguments::{fenced, numbers, submitted};
use crate::{
    convert::index,
    errors::{Error, detached, input, to_python},
    mapper::Mapper,
    moved::Moved,
};

/// The most converted regions or operations that are cached. A full cache is emptied.
const MOST_KEPT: usize = 1 << 16;
/// Repeated tasks that the engine processes in one call.
const MOST_REPEATED: usize = 256;

fn boxes<'py>(py: Python<'py>, region: &[Box3], dims: usize) -> PyResult<Bound<'py, PyTuple>> {
    let corner = |p: &[i64; 3]| PyTuple::new(py, &p[..dims]);
    let pairs: PyResult<Vec<_>> = region.iter().map(|b| Ok((corner(&b.min)?, corner(&b.max)?))).collect();
    PyTuple::new(py, pairs?)
}

/// A collective among some ranks. `Discovery` lists the messages of each rank.
#[pyclass(frozen, module = "unisono")]
pub struct Operation {
    found: Arc<Found>,
    dims: usize,
}

#[pymethods]
impl Operation {
    #[getter]
    fn pattern(&self) -> &'static str {
        self.found.pattern.name()
    }

    /// The participating ranks, in ascending order.
    #[getter]
    fn participants(&self) -> Vec<u32> {
        self.found.participants.iter().collect()
    }

    #[getter]
    fn root(&self) -> Option<u32> {
        self.found.root
    }
}

/// A program as one rank reads it: it takes buffers and tasks and returns the commands of this rank.
#[pyclass(module = "unisono")]
pub struct Discovery {
    engine: Engine,
    /// A call was interrupted, so the engine has processed only a part of a task.
    broken: bool,
    /// Tasks that were submitted again and that the engine has not processed yet.
    repeated: Vec<TaskId>,
    /// Cached Python objects of regions and operations, by address. The Rust value is kept, so its address stays in
    /// use.
    regions: FxHashMap<(usize, usize), (Arc<Region>, Py<PyTuple>)>,
    operations: FxHashMap<usize, (Arc<Found>, Py<Operation>)>,
    /// Cached tuples of chunks by box and number of dimensions, and of the regions that tasks touch by shape.
    chunks: FxHashMap<(Box3, usize), (Py<PyTuple>, Py<PyTuple>)>,
    views: FxHashMap<u32, Py<PyTuple>>,
    proofs: Proofs,
    /// The proved reads, by address of the plan and bytes of an element.
    proved: FxHashMap<(usize, u64), ProvedRead>,
}

/// A read whose messages were proved.
struct ProvedRead {
    name: Option<Py<PyString>>,
    /// Keeps the plan alive, so that its address stays in use.
    _plan: Arc<ReadPlan>,
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
        Ok(Self {
            engine,
            broken: false,
            repeated: Vec::new(),
            regions: FxHashMap::default(),
            operations: FxHashMap::default(),
            chunks: FxHashMap::default(),
            views: FxHashMap::default(),
            proofs: Proofs::default(),
            proved: FxHashMap::default(),
        })
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

    /// Submits an earlier task, given by number, again and returns the new number.
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

    /// Submits a task that reads the box on every rank, issues all commands, and returns the task's number.
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

    /// Issues the commands that wait for later tasks. All ranks call this at the same points.
    fn flush(&mut self, py: Python<'_>) -> PyResult<()> {
        self.whole(py, Engine::flush)
    }

    /// Returns this rank's commands since the last call, in the order of issue. Each command is a tuple of its name,
    /// its number, its task and its dependencies `(numbers, all until this number or None)`, followed by:
    ///
    /// * `push`: buffer, rank, region, name of the schedule;
    /// * `await`: buffer, tuple of `(rank, region)`, name of the schedule;
    /// * `collective`: buffer, group, operation, region given, region received;
    /// * `execute`: min and max of the chunk.
    ///
    /// Regions are tuples of boxes `(min, max)`. A loop returns the same tuple object in each iteration.
    ///
    /// With `prove`, the messages of each read are proved first, and pushes and receipts are those of the proved
    /// schedule. The name of the schedule is None if it has only this rank's messages. Without `prove` all names are
    /// None.
    #[pyo3(signature = (prove=false))]
    fn commands<'py>(&mut self, py: Python<'py>, prove: bool) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for (command, name) in self.take(py, prove)? {
            list.append(self.tuple(py, &command, name.as_ref())?)?;
        }
        Ok(list)
    }

    /// Returns, for each access of a task, the elements that this rank's part of the range touches: the smallest box
    /// `(min, max)` around them, and their boxes.
    fn views<'py>(&mut self, py: Python<'py>, task: u32) -> PyResult<Bound<'py, PyTuple>> {
        self.take_repeated(py)?;
        let task = TaskId(task);
        if self.engine.find_task(task).is_none() {
            return Err(input(format!("there is no task {}", task.0)));
        }
        let shape = self.engine.shape_number(task);
        if let Some(known) = self.views.get(&shape) {
            return Ok(known.bind(py).clone());
        }
        let made = self.engine.views(task).into_iter().zip(self.engine.accessed(task)).map(|(region, buffer)| {
            let (dims, around) = (self.dims(buffer), region.bounds());
            let corner = |p: &[i64; 3]| PyTuple::new(py, &p[..dims]);
            Ok(((corner(&around.min)?, corner(&around.max)?), boxes(py, region.boxes(), dims)?))
        });
        let made = PyTuple::new(py, made.collect::<PyResult<Vec<_>>>()?)?;
        if self.views.len() >= MOST_KEPT {
            self.views.clear();
        }
        self.views.insert(shape, made.clone().unbind());
        Ok(made)
    }

    /// Returns the result of `views` for each of at most `devices` parts of this rank's part of a task's range.
    fn device_views<'py>(&mut self, py: Python<'py>, task: u32, devices: u32) -> PyResult<Bound<'py, PyTuple>> {
        self.take_repeated(py)?;
        if self.engine.find_task(TaskId(task)).is_none() {
            return Err(input(format!("there is no task {task}")));
        }
        let parts = self.engine.parts(TaskId(task), devices).map_err(refused)?;
        let view = |access: &PartAccess| {
            let (dims, around) = (self.dims(access.buffer), access.region.bounds());
            Ok((boxes(py, &[around], dims)?.get_item(0)?, boxes(py, access.region.boxes(), dims)?))
        };
        let of_part = |part: &Vec<PartAccess>| PyTuple::new(py, part.iter().map(view).collect::<PyResult<Vec<_>>>()?);
        PyTuple::new(py, parts.iter().map(of_part).collect::<PyResult<Vec<_>>>()?)
    }

    /// Returns this rank's part of an operation by messages, read from its proved schedule.
    ///
    /// The tuple holds the sends and the receipts, lists of `(rank, boxes)`; for a reduction the contributions to its
    /// result in order, `(rank, boxes, first of these elements in its message, whether it is the first contribution
    /// there)`, and this rank's own contribution; and the name of the schedule, None if it has only this rank's
    /// messages.
    fn direct<'py>(&mut self, py: Python<'py>, operation: &Operation, element_bytes: u64) -> PyResult<Direct<'py>> {
        let Some(rank) = self.engine.options().rank else {
            return Err(input("a discovery without a rank takes no part in an exchange"));
        };
        let (engine, proofs, found) = (&self.engine, &mut self.proofs, &operation.found);
        let made = detached(py, || {
            let exchange = DirectExchange::of_operation(found, engine.sides(), Some(rank));
            let part = proofs.part(&exchange, engine.options().nodes, element_bytes, rank)?;
            Ok((part, exchange.complete.then(|| exchange.lengths.name(element_bytes))))
        })?;
        let (RankPart { sends, receives, pieces, own }, name) = made.map_err(refused)?;
        let dims = operation.dims;
        let rows = |rows: Vec<(u32, Vec<Box3>)>| {
            rows.iter().map(|(rank, region)| Ok((*rank, boxes(py, region, dims)?))).collect::<PyResult<Vec<_>>>()
        };
        let pieces = pieces.iter().map(|p| Ok((p.from, boxes(py, &p.boxes, dims)?, p.start, p.first)));
        Ok((rows(sends)?, rows(receives)?, pieces.collect::<PyResult<Vec<_>>>()?, boxes(py, &own, dims)?, name))
    }

    /// Returns the messages that a rank sends in an operation: a list of `(rank, region)`.
    fn sends<'py>(&self, py: Python<'py>, operation: &Operation, rank: u32) -> PyResult<Bound<'py, PyList>> {
        rows(py, operation.found.sends(self.engine.sides(), rank), operation.dims)
    }

    /// Returns the messages that a rank receives, in the same form.
    fn receives<'py>(&self, py: Python<'py>, operation: &Operation, rank: u32) -> PyResult<Bound<'py, PyList>> {
        rows(py, operation.found.receives(self.engine.sides(), rank), operation.dims)
    }

    /// Returns the region that a rank contributes: its own part or its partial result.
    fn given<'py>(&self, py: Python<'py>, operation: &Operation, rank: u32) -> PyResult<Bound<'py, PyTuple>> {
        boxes(py, operation.found.given(self.engine.sides(), rank).boxes(), operation.dims)
    }

    /// Returns the region that a rank has new after the operation.
    fn received<'py>(&self, py: Python<'py>, operation: &Operation, rank: u32) -> PyResult<Bound<'py, PyTuple>> {
        boxes(py, operation.found.received(self.engine.sides(), rank).boxes(), operation.dims)
    }

    /// Returns the elements that ranks receive from others in an operation; for a reduction, the smallest possible
    /// number.
    fn elements(&self, operation: &Operation) -> u64 {
        operation.found.elements(self.engine.sides())
    }

    /// Returns the elements that each participant sends to each other one; None if they differ.
    fn even(&self, operation: &Operation) -> Option<u64> {
        operation.found.even(self.engine.sides())
    }

    /// Returns the forwards since the last call, and the messages of all ranks so far.
    fn report<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.take_repeated(py)?;
        to_python(py, &report_of(&mut self.engine))
    }

    /// Returns the data moved so far, each distinct operation once. `reduced` maps buffers that only messages reduce to
    /// the bytes that accompany each element.
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

    /// Returns the number of submissions (buffers and tasks) and a hash over all of them. Ranks with the same
    /// submissions have the same hash.
    #[getter]
    fn chain(&mut self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.take_repeated(py)?;
        Ok((self.engine.chain().len(), self.engine.chain().end()))
    }

    /// Returns the number of the first submission with a kept hash, and the hashes from there on.
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

type Rows<'py> = Vec<(u32, Bound<'py, PyTuple>)>;
type Direct<'py> =
    (Rows<'py>, Rows<'py>, Vec<(u32, Bound<'py, PyTuple>, u64, bool)>, Bound<'py, PyTuple>, Option<String>);

fn rows(py: Python<'_>, rows: Vec<(u32, Region)>, dims: usize) -> PyResult<Bound<'_, PyList>> {
    let list: PyResult<Vec<_>> =
        rows.iter().map(|(rank, region)| Ok((*rank, boxes(py, region.boxes(), dims)?))).collect();
    PyList::new(py, list?)
}

impl Discovery {
    /// Runs a step of the engine that must not stop half-way.
    ///
    /// # Errors
    /// This call or an earlier one was interrupted.
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

    /// Makes the engine process the tasks that were submitted again.
    fn take_repeated(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.repeated.is_empty() { Ok(()) } else { self.whole(py, |_| ()) }
    }

    /// Returns the name of the schedule of a read's messages, which is proved on first use. The sends and receipts of
    /// this rank are compared with its part of that schedule, so its commands are that part.
    fn proved(&mut self, py: Python<'_>, plan: &Arc<ReadPlan>, buffer: BufferId) -> PyResult<Option<Py<PyString>>> {
        let element_bytes = self.engine.buffers().nth(buffer.index()).map_or(1, |b| b.element_bytes);
        let key = (Arc::as_ptr(plan).addr(), element_bytes);
        if let Some(known) = self.proved.get(&key) {
            return Ok(known.name.as_ref().map(|name| name.clone_ref(py)));
        }
        let (engine, proofs) = (&self.engine, &mut self.proofs);
        let Some(rank) = engine.options().rank else { return Ok(None) };
        let made = detached(py, || {
            let exchange = DirectExchange::of_pushed(&plan.pushed, engine.sides(), Some(rank));
            let part = proofs.part(&exchange, engine.options().nodes, element_bytes, rank)?;
            let same = |rows: &[(u32, Arc<Region>)], part: &[(u32, Vec<Box3>)]| {
                rows.iter().map(|(k, region)| (*k, region.boxes())).eq(part.iter().map(|(k, boxes)| (*k, &boxes[..])))
            };
            if !same(&plan.pushes, &part.sends) || !same(&plan.awaits, &part.receives) {
                let what = format!("what rank {rank} sends and awaits is not its part of the schedule");
                return Err(DiscoverError::Unproved(what));
            }
            Ok(exchange.complete.then(|| exchange.lengths.name(element_bytes)))
        })?;
        let name = made.map_err(refused)?.map(|name| PyString::new(py, &name).unbind());
        if self.proved.len() >= MOST_KEPT {
            self.proved.clear();
        }
        let kept = name.as_ref().map(|name| name.clone_ref(py));
        self.proved.insert(key, ProvedRead { name: kept, _plan: plan.clone() });
        Ok(name)
    }

    fn dims(&self, buffer: BufferId) -> usize {
        self.engine.buffers().nth(buffer.index()).map_or(3, |b| b.dims)
    }

    fn chunk(&mut self, py: Python<'_>, chunk: &Box3, dims: usize) -> PyResult<(Py<PyTuple>, Py<PyTuple>)> {
        if let Some((low, high)) = self.chunks.get(&(*chunk, dims)) {
            return Ok((low.clone_ref(py), high.clone_ref(py)));
        }
        if self.chunks.len() >= MOST_KEPT {
            self.chunks.clear();
        }
        let corner = |p: &[i64; 3]| Ok::<_, PyErr>(PyTuple::new(py, &p[..dims])?.unbind());
        let (low, high) = (corner(&chunk.min)?, corner(&chunk.max)?);
        self.chunks.insert((*chunk, dims), (low.clone_ref(py), high.clone_ref(py)));
        Ok((low, high))
    }

    fn region(&mut self, py: Python<'_>, region: &Arc<Region>, buffer: BufferId) -> PyResult<Py<PyTuple>> {
        let key = (Arc::as_ptr(region).addr(), self.dims(buffer));
        if let Some((_, known)) = self.regions.get(&key) {
            return Ok(known.clone_ref(py));
        }
        if self.regions.len() >= MOST_KEPT {
            self.regions.clear();
        }
        let made = boxes(py, region.boxes(), key.1)?.unbind();
        self.regions.insert(key, (region.clone(), made.clone_ref(py)));
        Ok(made)
    }

    pub(crate) fn operation(
        &mut self,
        py: Python<'_>,
        operation: &Arc<Found>,
        buffer: BufferId,
    ) -> PyResult<Py<Operation>> {
        let key = Arc::as_ptr(operation).addr();
        if let Some((_, known)) = self.operations.get(&key) {
            return Ok(known.clone_ref(py));
        }
        if self.operations.len() >= MOST_KEPT {
            self.operations.clear();
        }
        let made = Py::new(py, Operation { found: operation.clone(), dims: self.dims(buffer) })?;
        self.operations.insert(key, (operation.clone(), made.clone_ref(py)));
        Ok(made)
    }
}
