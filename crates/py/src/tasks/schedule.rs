//! The order in which a rank carries out its commands.
//!
//! Exchanges begin in the order of commands, which is the same on all ranks, and kernels run in this order. An exchange
//! does not wait for kernels on which it does not depend: it begins as soon as its data is ready, and proceeds while
//! they run. So commands cannot wait in a cycle: on every rank the first incomplete command is under way or can begin,
//! and the other ranks have begun all that it needs before.
//!
//! While a kernel runs, its command is open. Every command that would write data that the kernel touches, or read data
//! that it writes, waits for the kernel, directly or through other commands (`Waits` of the commands). So all other
//! exchanges that begin, end or unpack meanwhile touch other memory, and may do so in another thread.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    thread,
};

use pyo3::{
    prelude::*,
    types::{PyList, PyString},
};
use rustc_hash::FxHashMap;
use unisono_discover::Action;

use super::{
    exchange::{Exchange, PUSH, exchange, push, receive},
    memory::{Held, TaskMemory},
    order::Order,
    state::{Act, Command, Kind, Pending, State, UnderWay, Way},
};
use crate::{
    discover::Discovery,
    mpi::{enter, lock, mpi_error},
};

/// Polls without progress before each further poll yields to other threads and ranks of this core.
const SPINS: u32 = 32;
/// The smallest copy, in bytes, that is made without Python's lock.
const LONG: usize = 1 << 16;

/// The commands of a rank that have not begun, and those under way.
#[pyclass(frozen, module = "unisono")]
pub struct TaskSchedule {
    memory: Py<TaskMemory>,
    /// The Python object that finds ways of collectives and sends data itself.
    exchanges: Py<PyAny>,
    /// The Python objects of the arrays.
    held: Py<PyList>,
    trace: Option<Py<PyAny>>,
    /// None while a thread works with it.
    state: Mutex<Option<Box<State>>>,
}

/// The state while one thread works with it. Dropping this value puts the state back.
struct Work<'a> {
    schedule: &'a TaskSchedule,
    state: Option<Box<State>>,
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        *lock(&self.schedule.state) = self.state.take();
    }
}

impl Work<'_> {
    fn state(&mut self) -> &mut State {
        self.state.as_mut().expect("it goes back only when this is dropped")
    }
}

#[pymethods]
impl TaskSchedule {
    /// Takes this rank's commands since the last call, with proved messages. `detailed` adds the details that devices
    /// and traces need.
    #[new]
    fn new(
        py: Python<'_>,
        discovery: &Bound<'_, Discovery>,
        memory: Py<TaskMemory>,
        exchanges: Py<PyAny>,
        held: Py<PyList>,
        trace: Option<Py<PyAny>>,
        detailed: bool,
    ) -> PyResult<Self> {
        let detailed = detailed || trace.is_some();
        let (mut operations, mut known) = (Vec::new(), FxHashMap::default());
        let (mut kernels, mut others) = (VecDeque::new(), VecDeque::new());
        let listed = discovery.borrow_mut().take(py, true)?;
        let (first, count) = (listed.first().map_or(0, |row| row.0.id.0), listed.len());
        for (command, name) in listed {
            let tuple = match detailed {
                true => Some(discovery.borrow_mut().tuple(py, &command, name.as_ref())?.unbind()),
                false => None,
            };
            let way = match &command.action {
                Action::Collective { buffer, operation, .. } => {
                    let key = (Arc::as_ptr(operation).addr(), buffer.0);
                    Some(*known.entry(key).or_insert_with(|| {
                        operations.push((operation.clone(), *buffer));
                        operations.len() - 1
                    }))
                }
                _ => None,
            };
            let row = Command::of(command, memory.get(), way, tuple)?;
            if matches!(row.act, Act::Execute) { kernels.push_back(row) } else { others.push_back(row) }
        }
        let state = State {
            order: Order::new(first, count),
            kernels,
            others,
            under_way: Vec::new(),
            departures: VecDeque::new(),
            operations,
            ways: Vec::new(),
            taken: Vec::new(),
            running: false,
            sends_elsewhere: false,
        };
        Ok(Self { memory, exchanges, held, trace, state: Mutex::new(Some(Box::new(state))) })
    }

    /// Finds a way for each collective. All ranks call this together.
    ///
    /// This makes communicators and plans schedules, for which ranks wait for each other. Nothing is under way and the
    /// order is the same on all ranks, so exchanges that begin later never wait.
    fn prepare(&self, py: Python<'_>, discovery: &Bound<'_, Discovery>) -> PyResult<()> {
        let Some(mut work) = self.work() else { return Ok(()) };
        let state = work.state();
        for (operation, buffer) in &state.operations {
            let operation = discovery.borrow_mut().operation(py, operation, *buffer)?;
            state.ways.push(Way::of(self.exchanges.bind(py), operation, buffer.0, &self.held)?);
        }
        state.sends_elsewhere = state.ways.iter().any(|way| matches!(way.kind, Kind::Python));
        Ok(())
    }

    /// True if nothing is under way. Then nothing can begin before the next kernel has ended.
    #[getter]
    fn idle(&self, py: Python<'_>) -> PyResult<bool> {
        match self.work() {
            Some(mut work) => self.is_idle(py, work.state()),
            None => Ok(false),
        }
    }

    /// The number of exchanges that have not begun.
    #[getter]
    fn waiting(&self) -> usize {
        self.work().map_or(0, |mut work| work.state().others.len())
    }

    /// Completes the exchanges that are over, begins those that may begin, and returns whether there were any. It never
    /// waits.
    fn advance(&self, py: Python<'_>) -> PyResult<bool> {
        let memory = self.memory.get();
        let _inside = enter(memory.library, memory.level)?;
        match self.work() {
            Some(mut work) => self.advance_state(py, work.state(), true),
            None => Ok(false),
        }
    }

    /// Carries out all commands, after [`Self::prepare`] found ways. `execute` runs the kernel of a task, given its
    /// number and, with details, its command. The kernel runs within `attendant` while exchanges are under way. Returns
    /// when all data was sent.
    fn carry_out(&self, py: Python<'_>, execute: &Bound<'_, PyAny>, attendant: &Bound<'_, PyAny>) -> PyResult<()> {
        let memory = self.memory.get();
        let mut polls = 0u32;
        loop {
            let inside = enter(memory.library, memory.level)?;
            let Some(mut work) = self.work() else { return Ok(()) };
            let state = work.state();
            if !state.order.is_open() && state.departures.is_empty() {
                return Ok(());
            }
            let moved = self.advance_state(py, state, false)?;
            let Some(kernel) = state.take_kernel() else {
                drop(work);
                polls = if moved { 0 } else { polls.saturating_add(1) };
                if polls > SPINS {
                    py.check_signals()?;
                    py.detach(thread::yield_now);
                }
                continue;
            };
            polls = 0;
            let alone = self.is_idle(py, state)?;
            drop(work);
            drop(inside);
            let tuple = kernel.tuple.as_ref().map(|tuple| tuple.bind(py));
            if alone {
                execute.call1((kernel.task, tuple))?;
            } else {
                attendant.call_method0("__enter__")?;
                let ran = execute.call1((kernel.task, tuple));
                attendant.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
                ran?;
            }
            if let Some(mut work) = self.work() {
                let state = work.state();
                state.running = false;
                state.order.close(kernel.number);
            }
        }
    }
}

impl TaskSchedule {
    /// Takes the state; None while another thread works with it.
    fn work(&self) -> Option<Work<'_>> {
        let state = lock(&self.state).take()?;
        Some(Work { schedule: self, state: Some(state) })
    }

    fn is_idle(&self, py: Python<'_>, state: &State) -> PyResult<bool> {
        if !state.under_way.is_empty() || !state.departures.is_empty() {
            return Ok(false);
        }
        Ok(!state.sends_elsewhere || !self.exchanges.bind(py).getattr("sending")?.extract::<bool>()?)
    }

    /// Completes and begins exchanges. `apart`: a kernel runs meanwhile, so copies and calls of MPI release Python's
    /// lock.
    fn advance_state(&self, py: Python<'_>, state: &mut State, apart: bool) -> PyResult<bool> {
        let memory = self.memory.get();
        let mut moved = false;
        if !state.departures.is_empty() {
            free(py, apart, || {
                while let Some(first) = state.departures.front_mut() {
                    if !first.is_over(memory.library)? {
                        break;
                    }
                    state.departures.pop_front();
                }
                Ok(())
            })
            .map_err(mpi_error)?;
        }
        if state.sends_elsewhere && self.exchanges.bind(py).getattr("sending")?.extract()? {
            self.exchanges.call_method0(py, "carry_sends")?;
        }
        let mut at = 0;
        while at < state.under_way.len() {
            let over = match &mut state.under_way[at].pending {
                Pending::Here(exchange) => free(py, apart, || exchange.is_over(memory.library)).map_err(mpi_error)?,
                Pending::Python { poll, .. } => poll.call0(py)?.extract(py)?,
            };
            if over {
                let done = state.under_way.remove(at);
                self.end(py, state, done, apart)?;
                moved = true;
            } else {
                at += 1;
            }
        }
        while let Some(next) = state.others.front() {
            if !state.is_ready(next) || !self.can_begin(py, state, next)? {
                break;
            }
            if let Some(command) = state.others.pop_front() {
                self.begin(py, state, command, apart)?;
                moved = true;
            }
        }
        Ok(moved)
    }

    fn end(&self, py: Python<'_>, state: &mut State, done: UnderWay, apart: bool) -> PyResult<()> {
        let UnderWay { command, mut pending, event } = done;
        let served = match &mut pending {
            Pending::Here(exchange) => {
                free(py, apart || exchange.bytes_apart() >= LONG, || exchange.finish());
                PyString::new(py, if exchange.way.is_some() { "library" } else { "messages" }).into_any().unbind()
            }
            Pending::Python { pending, .. } => {
                pending.call_method0(py, "finish")?;
                pending.getattr(py, "served")?
            }
        };
        if let Some(tuple) = &command.tuple {
            let held = self.held.bind(py).get_item(command.array)?;
            held.call_method1("host_wrote_by", (tuple,))?;
            self.traced(py, state, &command, event, served)?;
        }
        state.taken.retain(|&array| array != command.array);
        state.order.close(command.number);
        Ok(())
    }

    /// Records in the trace, if there is one, that a command is complete.
    fn traced(
        &self,
        py: Python<'_>,
        state: &State,
        command: &Command,
        event: Option<Py<PyAny>>,
        served: Py<PyAny>,
    ) -> PyResult<()> {
        let (Some(trace), Some(event), Some(tuple)) = (&self.trace, event, &command.tuple) else { return Ok(()) };
        let (bytes, name) = match &command.act {
            Act::Collective { way } => {
                let route = state.ways[*way].route.bind(py);
                (route.getattr("bytes")?.extract()?, route.getattr("schedule")?)
            }
            act => {
                let bytes = match act {
                    Act::Push { parts, .. } => parts.packed_bytes(),
                    Act::Await { rows } => rows.iter().map(|(_, parts)| parts.packed_bytes()).sum(),
                    _ => 0,
                };
                (bytes, tuple.bind(py).get_item(tuple.bind(py).len() - 1)?)
            }
        };
        trace.call_method1(py, "end", (event, tuple, served, bytes, name))?;
        Ok(())
    }

    /// Returns whether a command that is ready may begin without waiting.
    fn can_begin(&self, py: Python<'_>, state: &State, command: &Command) -> PyResult<bool> {
        if state.taken.contains(&command.array) {
            return Ok(false);
        }
        match &command.act {
            Act::Collective { way } if matches!(state.ways[*way].kind, Kind::Python) => {
                let route = &state.ways[*way].route;
                self.exchanges.call_method1(py, "can_begin", (route,))?.extract(py)
            }
            _ => Ok(true),
        }
    }

    /// Begins a command. A push is complete at once, since its data is copied.
    fn begin(&self, py: Python<'_>, state: &mut State, command: Command, apart: bool) -> PyResult<()> {
        let memory = self.memory.get();
        let array = memory.array(command.array)?;
        let mut event = None;
        if let Some(tuple) = &command.tuple {
            event = self.trace.as_ref().map(|trace| trace.call_method1(py, "begin", (tuple,))).transpose()?;
            self.held.bind(py).get_item(command.array)?.call_method1("to_host_for", (tuple,))?;
        }
        let pending = match &command.act {
            Act::Execute => return Ok(()),
            Act::Push { to, parts } => {
                let sent = free(py, apart || parts.packed_bytes() >= LONG, || push(memory, &array, *to, parts));
                state.departures.push_back(sent.map_err(mpi_error)?);
                let served = PyString::new(py, "messages").into_any().unbind();
                self.traced(py, state, &command, event, served)?;
                state.order.close(command.number);
                return Ok(());
            }
            Act::Await { rows } => {
                let made = free(py, apart, || {
                    let mut made = Exchange::on(array);
                    receive(memory, &mut made, rows, PUSH).map(|()| made)
                });
                Pending::Here(made.map_err(mpi_error)?)
            }
            Act::Collective { way } => {
                let way = &state.ways[*way];
                let in_place = way.in_place && state.is_alone(&command);
                let pending = match way.kind.clone() {
                    Kind::Library(library) => {
                        let made = free(py, apart || in_long(&array), || library.begin(memory, array, in_place));
                        Pending::Here(made.map_err(mpi_error)?)
                    }
                    Kind::Messages(sends, receives) => {
                        let made = free(py, apart || in_long(&array), || exchange(memory, array, &sends, &receives));
                        Pending::Here(made.map_err(mpi_error)?)
                    }
                    Kind::Python => {
                        let begin = if in_place { "begin_in_place" } else { "begin" };
                        let held = self.held.bind(py).get_item(command.array)?;
                        let pending = way.route.call_method1(py, begin, (held,))?;
                        Pending::Python { poll: pending.getattr(py, "poll")?, pending }
                    }
                };
                if in_place {
                    state.taken.push(command.array);
                }
                pending
            }
        };
        state.under_way.push(UnderWay { command, pending, event });
        Ok(())
    }
}

/// Runs a function without Python's lock if `worth` is true.
fn free<R: Send>(py: Python<'_>, worth: bool, act: impl FnOnce() -> R + Send) -> R {
    if worth { py.detach(act) } else { act() }
}

fn in_long(array: &Held) -> bool {
    array.layout.bytes().is_none_or(|bytes| bytes >= LONG)
}
