//! The commands of a rank, the exchanges under way, and the routes of collectives.

use std::{collections::VecDeque, sync::Arc};

use unisono_base::BufferId;
use unisono_discover::{Action, Command as Found, Operation};
use unisono_mpi::Parts;

use crate::{
    error::RunError,
    exchange::{Departure, Exchange},
    host::Objects,
    layer::MessageLayer,
    memory::{Memory, Rows},
    order::Order,
    ways::Route,
};

pub enum Act {
    Execute,
    Push {
        to: u32,
        parts: Arc<Parts>,
    },
    Await {
        rows: Rows,
    },
    /// A collective, by the index of its route.
    Collective {
        route: usize,
    },
}

pub struct Command<O: Objects> {
    pub number: u32,
    pub task: u32,
    pub array: usize,
    pub on: Vec<u32>,
    pub until: Option<u32>,
    pub act: Act,
    pub details: Option<O::Details>,
}

/// An exchange that this crate executes, or a plan of the host.
pub enum Pending<O: Objects, L: MessageLayer> {
    Here(Exchange<L>),
    Planned(O::Planned),
}

pub struct UnderWay<O: Objects, L: MessageLayer> {
    pub command: Command<O>,
    pub pending: Pending<O, L>,
}

pub struct State<O: Objects, L: MessageLayer> {
    pub order: Order,
    pub kernels: VecDeque<Command<O>>,
    pub others: VecDeque<Command<O>>,
    pub under_way: Vec<UnderWay<O, L>>,
    pub departures: VecDeque<Departure<L>>,
    /// The distinct collectives, each with its buffer.
    pub operations: Vec<(Arc<Operation>, BufferId)>,
    /// The route of each distinct collective, in the order of `operations`.
    pub routes: Vec<Route>,
    /// The arrays in whose memory a collective runs, so that no other exchange of them may start.
    pub taken: Vec<usize>,
    /// True if a kernel runs.
    pub running: bool,
}

impl<O: Objects> Command<O> {
    pub fn of<L: MessageLayer>(
        command: &Found,
        memory: &Memory<L>,
        route: usize,
        details: Option<O::Details>,
    ) -> Result<Self, RunError> {
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
            Action::Collective { buffer, .. } => (buffer.index(), Act::Collective { route }),
        };
        Ok(Self { number: command.id.0, task: command.task.0, array, on, until, act, details })
    }

    /// Returns the bytes of the command's messages; 0 for a kernel or a collective.
    pub fn message_bytes(&self) -> usize {
        match &self.act {
            Act::Push { parts, .. } => parts.packed_bytes(),
            Act::Await { rows } => rows.iter().map(|(_, parts)| parts.packed_bytes()).sum(),
            Act::Execute | Act::Collective { .. } => 0,
        }
    }
}

impl<O: Objects, L: MessageLayer> State<O, L> {
    pub fn is_ready(&self, command: &Command<O>) -> bool {
        self.order.are_done(&command.on, command.until)
    }

    /// Returns whether no exchange and no sent copy is under way; a kernel may run.
    pub fn is_idle(&self) -> bool {
        self.under_way.is_empty() && self.departures.is_empty()
    }

    /// Removes and returns the next kernel, which then counts as running; `None` if no kernel is left or the next one's
    /// dependencies are not complete.
    pub fn take_kernel(&mut self) -> Option<Command<O>> {
        let next = self.kernels.front()?;
        if !self.is_ready(next) {
            return None;
        }
        self.running = true;
        self.kernels.pop_front()
    }

    /// Returns true if three conditions hold: no kernel runs, the next kernel waits for this exchange, and no other
    /// exchange of its array is under way. No kernel can then run before the exchange is complete.
    pub fn is_alone(&self, command: &Command<O>) -> bool {
        let next = self.kernels.front().is_some_and(|kernel| kernel.on.contains(&command.number));
        !self.running && next && self.under_way.iter().all(|other| other.command.array != command.array)
    }
}
