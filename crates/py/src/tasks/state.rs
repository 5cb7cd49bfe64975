//! The commands of a rank, those under way, and the ways of their collectives.

use std::{collections::VecDeque, sync::Arc};

use pyo3::{
    prelude::*,
    types::{PyList, PyTuple},
};
use unisono_base::BufferId;
use unisono_discover::{Action, Command as Engine, Operation};
use unisono_mpi::Parts;

use super::{
    exchange::{Departure, Exchange},
    memory::{Rows, TaskMemory},
    order::Order,
    ways::{LibraryCollective, LibraryWay, PairMessages},
};

pub enum Act {
    Execute,
    Push { to: u32, parts: Arc<Parts> },
    Await { rows: Rows },
    Collective { way: usize },
}

pub struct Command {
    pub number: u32,
    pub task: u32,
    pub array: usize,
    pub on: Vec<u32>,
    pub until: Option<u32>,
    pub act: Act,
    /// The Python tuple of the command, for traces and devices.
    pub tuple: Option<Py<PyTuple>>,
}

/// A way to carry out a collective.
pub struct Way {
    pub route: Py<PyAny>,
    pub kind: Kind,
    pub in_place: bool,
}

#[derive(Clone)]
pub enum Kind {
    Library(Arc<LibraryWay>),
    Messages(Rows, Rows),
    /// A Python function begins the collective.
    Python,
}

/// An exchange that was begun here or by Python.
pub enum Pending {
    Here(Exchange),
    Python { pending: Py<PyAny>, poll: Py<PyAny> },
}

pub struct UnderWay {
    pub command: Command,
    pub pending: Pending,
    pub event: Option<Py<PyAny>>,
}

pub struct State {
    pub order: Order,
    pub kernels: VecDeque<Command>,
    pub others: VecDeque<Command>,
    pub under_way: Vec<UnderWay>,
    pub departures: VecDeque<Departure>,
    /// The distinct collectives, and their ways.
    pub operations: Vec<(Arc<Operation>, BufferId)>,
    pub ways: Vec<Way>,
    /// Arrays that are reserved for one exchange.
    pub taken: Vec<usize>,
    /// True if a kernel runs.
    pub running: bool,
    /// True if a way sends through Python.
    pub sends_elsewhere: bool,
}

impl Command {
    pub fn of(command: Engine, memory: &TaskMemory, way: Option<usize>, tuple: Option<Py<PyTuple>>) -> PyResult<Self> {
        let on = command.waits.on.iter().map(|id| id.0).collect();
        let until = command.waits.all_until.map(|id| id.0);
        let (array, act) = match &command.action {
            Action::Execute { .. } => (0, Act::Execute),
            Action::Push { buffer, to, region, .. } => {
                (buffer.index(), Act::Push { to: *to, parts: memory.parts(region, buffer.index())? })
            }
            Action::AwaitPush { buffer, from, .. } => {
                (buffer.index(), Act::Await { rows: memory.rows(from, buffer.index())? })
            }
            Action::Collective { buffer, .. } => (buffer.index(), Act::Collective { way: way.unwrap_or_default() }),
        };
        Ok(Self { number: command.id.0, task: command.task.0, array, on, until, act, tuple })
    }
}

impl Way {
    /// Returns the way that `exchanges` chooses for an operation on an array. All ranks call this together.
    pub fn of<T>(exchanges: &Bound<'_, PyAny>, operation: T, array: u32, held: &Py<PyList>) -> PyResult<Self>
    where
        T: for<'py> IntoPyObject<'py>,
    {
        let py = exchanges.py();
        let route = exchanges.call_method1("route", (operation, array, held.bind(py).get_item(array as usize)?))?;
        let here = route.getattr("here")?;
        let kind = if let Ok(library) = here.cast::<LibraryCollective>() {
            Kind::Library(library.get().0.clone())
        } else if let Ok(pairs) = here.cast::<PairMessages>() {
            Kind::Messages(pairs.get().sends.clone(), pairs.get().receives.clone())
        } else {
            Kind::Python
        };
        Ok(Self { in_place: route.getattr("in_place")?.extract()?, route: route.unbind(), kind })
    }
}

impl State {
    pub fn is_ready(&self, command: &Command) -> bool {
        self.order.are_done(&command.on, command.until)
    }

    /// Returns the next kernel, if it may run.
    pub fn take_kernel(&mut self) -> Option<Command> {
        let next = self.kernels.front()?;
        if !self.is_ready(next) {
            return None;
        }
        self.running = true;
        self.kernels.pop_front()
    }

    /// Returns whether no kernel runs before the exchange is over, and no other exchange of its array is under way.
    pub fn is_alone(&self, command: &Command) -> bool {
        let next = self.kernels.front().is_some_and(|kernel| kernel.on.contains(&command.number));
        !self.running && next && self.under_way.iter().all(|other| other.command.array != command.array)
    }
}
