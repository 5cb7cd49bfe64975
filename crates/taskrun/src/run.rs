//! The order in which a rank executes its commands.
//!
//! Exchanges start in the order of commands, which is the same on all ranks, and kernels run in this order. An exchange
//! does not wait for kernels on which it does not depend: it starts as soon as its data is ready and the earlier
//! exchanges have started, and proceeds while kernels run. Commands therefore cannot wait in a cycle: on every rank the
//! first incomplete command is under way or can start, and the other ranks have started all commands that this command
//! needs.
//!
//! While a kernel runs, its command is incomplete. Every command that would write data that the kernel touches, or read
//! data that it writes, waits for the kernel, directly or through other commands (`Waits` of the commands). All
//! exchanges that start, end or unpack during the kernel therefore touch other memory, and may run in another thread.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use rustc_hash::FxHashMap;
use unisono_base::BufferId;
use unisono_discover::{Action, Command as Found, Operation};

use crate::{
    error::RunError,
    exchange::{exchange, push, receive_pushed},
    host::{Host, Objects, Served},
    layer::MessageLayer,
    lock,
    memory::{Array, Memory},
    order::Order,
    state::{Act, Command, Pending, State, UnderWay},
    ways::{Route, Way},
};

/// The number of steps without progress before the first call of [`Host::idle`]. After this number, each further step
/// without progress calls `idle`, and lets other threads and ranks use this core.
const SPINS: u32 = 32;
/// The minimum number of bytes of a copy, or of the array of a collective, for which packing and unpacking releases the
/// host's lock, so that other threads of the host may run meanwhile.
const LONG: usize = 1 << 16;

/// The result of one step of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// An exchange started or ended, or a kernel ran.
    Moved,
    /// Nothing can be done before a message or a plan progresses.
    Waits,
    /// Another thread works with the run.
    Busy,
    /// All commands are complete, and all data have been sent.
    Finished,
}

/// The commands of a rank that have not started, and those under way.
pub struct Run<O: Objects, L: MessageLayer> {
    memory: Arc<Memory<L>>,
    /// The state; `None` while a thread works with it.
    state: Mutex<Option<Box<State<O, L>>>>,
}

/// The state while one thread works with it. Dropping this value returns the state to the run.
struct Work<'a, O: Objects, L: MessageLayer> {
    run: &'a Run<O, L>,
    state: Option<Box<State<O, L>>>,
}

impl<O: Objects, L: MessageLayer> Drop for Work<'_, O, L> {
    fn drop(&mut self) {
        *lock(&self.run.state) = self.state.take();
    }
}

impl<O: Objects, L: MessageLayer> Work<'_, O, L> {
    fn state(&mut self) -> &mut State<O, L> {
        self.state.as_mut().expect("it goes back only when this is dropped")
    }
}

impl<O: Objects, L: MessageLayer> Run<O, L> {
    /// Converts this rank's commands, whose numbers ascend without gaps, with the details that traces and devices need.
    ///
    /// # Errors
    /// Returns an error if a region is not in its array.
    pub fn new(memory: Arc<Memory<L>>, listed: Vec<(Found, Option<O::Details>)>) -> Result<Self, RunError> {
        let (mut operations, mut known) = (Vec::new(), FxHashMap::default());
        let (mut kernels, mut others) = (VecDeque::new(), VecDeque::new());
        let (first, count) = (listed.first().map_or(0, |row| row.0.id.0), listed.len());
        for (command, details) in listed {
            let route = match &command.action {
                Action::Collective { buffer, operation, .. } => {
                    *known.entry((Arc::as_ptr(operation).addr(), buffer.0)).or_insert_with(|| {
                        operations.push((operation.clone(), *buffer));
                        operations.len() - 1
                    })
                }
                _ => 0,
            };
            let row = Command::of(&command, &memory, route, details)?;
            if matches!(row.act, Act::Execute) { kernels.push_back(row) } else { others.push_back(row) }
        }
        let state = State {
            order: Order::new(first, count),
            kernels,
            others,
            under_way: Vec::new(),
            departures: VecDeque::new(),
            operations,
            routes: Vec::new(),
            taken: Vec::new(),
            running: false,
        };
        Ok(Self { memory, state: Mutex::new(Some(Box::new(state))) })
    }

    pub fn memory(&self) -> &Arc<Memory<L>> {
        &self.memory
    }

    /// Finds the [`Route`] of each distinct collective by `find`, and returns true; returns false without a call of
    /// `find` if another thread works with the run. All ranks must call this together, before the first step.
    ///
    /// This function creates communicators and plans schedules, for which ranks wait for each other. No exchange is
    /// under way, and the order is the same on all ranks. Exchanges that start later do not need to wait for other
    /// ranks.
    ///
    /// # Errors
    /// Returns the errors of `find`.
    pub fn prepare<E>(&self, mut find: impl FnMut(&Arc<Operation>, BufferId) -> Result<Route, E>) -> Result<bool, E> {
        let Some(mut work) = self.work() else { return Ok(false) };
        let state = work.state();
        for (operation, buffer) in &state.operations {
            state.routes.push(find(operation, *buffer)?);
        }
        Ok(true)
    }

    /// Returns whether no exchange is under way; false while another thread works with the run. If this function
    /// returns true after [`Self::advance`] returned false, no exchange can start before the next kernel has ended.
    pub fn is_idle(&self) -> bool {
        self.work().is_some_and(|mut work| work.state().is_idle())
    }

    /// Returns the number of exchanges that have not started; 0 while another thread works with the run.
    pub fn waiting(&self) -> usize {
        self.work().map_or(0, |mut work| work.state().others.len())
    }

    /// Finishes completed exchanges and starts exchanges that may start. Returns whether any exchange started or
    /// finished; returns false while another thread works with the run. It never waits. A kernel may run meanwhile, in
    /// another thread.
    ///
    /// # Errors
    /// Returns the errors of the message layer and of the host.
    pub fn advance<H: Host<Objects = O>>(&self, host: &H) -> Result<bool, H::Error> {
        let _inside = self.memory.layer.enter()?;
        self.work().map_or(Ok(false), |mut work| self.advance_state(host, work.state(), true))
    }

    /// Executes all commands, after [`Self::prepare`] found routes. Returns when all data have been sent, or if another
    /// thread works with the run.
    ///
    /// # Errors
    /// Returns the errors of the message layer and of the host.
    pub fn carry_out<H: Host<Objects = O>>(&self, host: &H) -> Result<(), H::Error> {
        let mut still = 0u32;
        loop {
            match self.step(host)? {
                Step::Finished | Step::Busy => return Ok(()),
                Step::Moved => still = 0,
                Step::Waits => still = still.saturating_add(1),
            }
            if still > SPINS {
                host.idle()?;
            }
        }
    }

    /// Advances the exchanges, and runs the next kernel if it is ready.
    ///
    /// # Errors
    /// Returns the errors of the message layer and of the host.
    pub fn step<H: Host<Objects = O>>(&self, host: &H) -> Result<Step, H::Error> {
        let inside = self.memory.layer.enter()?;
        let Some(mut work) = self.work() else { return Ok(Step::Busy) };
        let state = work.state();
        if !state.order.is_open() && state.departures.is_empty() {
            return Ok(Step::Finished);
        }
        let moved = self.advance_state(host, state, false)?;
        let Some(kernel) = state.take_kernel() else { return Ok(if moved { Step::Moved } else { Step::Waits }) };
        let alone = state.is_idle();
        drop(work);
        drop(inside);
        host.execute(&kernel, alone)?;
        if let Some(mut work) = self.work() {
            let state = work.state();
            state.running = false;
            state.order.close(kernel.number);
        }
        Ok(Step::Moved)
    }

    /// Takes the state; `None` while another thread works with it.
    fn work(&self) -> Option<Work<'_, O, L>> {
        let state = lock(&self.state).take()?;
        Some(Work { run: self, state: Some(state) })
    }

    /// Finishes and starts exchanges. If `apart` is true, a kernel runs at the same time, so copies and calls of MPI
    /// are made without the host's lock ([`Host::unlocked`]).
    fn advance_state<H>(&self, host: &H, state: &mut State<O, L>, apart: bool) -> Result<bool, H::Error>
    where
        H: Host<Objects = O>,
    {
        let layer = &self.memory.layer;
        let mut moved = false;
        if !state.departures.is_empty() {
            let departures = &mut state.departures;
            unlocked(host, apart, || {
                while let Some(first) = departures.front_mut() {
                    if !first.is_over(layer)? {
                        break;
                    }
                    departures.pop_front();
                }
                Ok::<_, RunError>(())
            })?;
        }
        let mut at = 0;
        while at < state.under_way.len() {
            let over = match &mut state.under_way[at].pending {
                Pending::Here(exchange) => unlocked(host, apart, || exchange.is_over(layer)).map_err(RunError::from)?,
                Pending::Planned(planned) => host.is_over(planned)?,
            };
            if over {
                let done = state.under_way.remove(at);
                end(host, state, done, apart)?;
                moved = true;
            } else {
                at += 1;
            }
        }
        while let Some(next) = state.others.front() {
            if !state.is_ready(next) || !can_begin(host, state, next)? {
                break;
            }
            if let Some(command) = state.others.pop_front() {
                self.begin(host, state, command, apart)?;
                moved = true;
            }
        }
        Ok(moved)
    }

    /// Starts a command. A push is complete immediately, since its data are copied.
    fn begin<H>(&self, host: &H, state: &mut State<O, L>, command: Command<O>, apart: bool) -> Result<(), H::Error>
    where
        H: Host<Objects = O>,
    {
        let (mut command, memory) = (command, &*self.memory);
        let array = memory.array(command.array)?;
        host.begins(&mut command)?;
        let long = apart || is_long(&array);
        let made = match &command.act {
            Act::Execute => return Ok(()),
            Act::Push { to, parts } => {
                let long = apart || parts.packed_bytes() >= LONG;
                let sent = unlocked(host, long, || push(memory, &array, *to, parts));
                state.departures.push_back(sent.map_err(RunError::from)?);
                host.ended(&mut command, None, Served::Messages)?;
                state.order.close(command.number);
                return Ok(());
            }
            Act::Await { rows } => unlocked(host, apart, || receive_pushed(memory, array, rows)),
            Act::Collective { route } => {
                let way = state.routes[*route].way.clone();
                let in_place = way.is_in_place() && state.is_alone(&command);
                if in_place {
                    state.taken.push(command.array);
                }
                match way {
                    Way::Library(call) => unlocked(host, long, || call.begin(memory, array, in_place)),
                    Way::Pairs(sends, receives) => unlocked(host, long, || exchange(memory, array, &sends, &receives)),
                    Way::Sums(sums) => {
                        let codes = memory.codes(command.array);
                        let made = unlocked(host, long, || sums.begin(memory, array, codes.as_deref()));
                        made.map(|(made, sent)| {
                            state.departures.extend(sent);
                            made
                        })
                    }
                    Way::World(call) => {
                        let pending = Pending::Planned(host.start(&call, command.array, in_place)?);
                        state.under_way.push(UnderWay { command, pending });
                        return Ok(());
                    }
                }
            }
        };
        let pending = Pending::Here(made.map_err(RunError::from)?);
        state.under_way.push(UnderWay { command, pending });
        Ok(())
    }
}

fn end<H: Host, L: MessageLayer>(
    host: &H,
    state: &mut State<H::Objects, L>,
    done: UnderWay<H::Objects, L>,
    apart: bool,
) -> Result<(), H::Error> {
    let UnderWay { mut command, mut pending } = done;
    let served = match &mut pending {
        Pending::Here(exchange) => {
            let long = apart || exchange.bytes_apart() >= LONG;
            unlocked(host, long, || exchange.finish());
            if let Some(sums) = exchange.sums.take() {
                sums.combine(host, command.array, &exchange.array, &mut exchange.contributions)?;
            }
            if exchange.call.is_some() { Served::Library } else { Served::Messages }
        }
        Pending::Planned(planned) => {
            host.finish(planned)?;
            Served::Planned(&*planned)
        }
    };
    let route = match &command.act {
        Act::Collective { route } => state.routes.get(*route),
        _ => None,
    };
    host.ended(&mut command, route, served)?;
    state.taken.retain(|&array| array != command.array);
    state.order.close(command.number);
    Ok(())
}

/// Returns whether a command whose dependencies are complete may start: no collective runs in the memory of its array
/// and, if the host has a plan for it, the host can start it without waiting.
fn can_begin<H: Host, L: MessageLayer>(
    host: &H,
    state: &State<H::Objects, L>,
    command: &Command<H::Objects>,
) -> Result<bool, H::Error> {
    match &command.act {
        _ if state.taken.contains(&command.array) => Ok(false),
        Act::Collective { route } if matches!(state.routes[*route].way, Way::World(_)) => host.can_start(),
        _ => Ok(true),
    }
}

/// Runs a function. If `worth` is true, the function runs without the host's lock.
fn unlocked<H: Host, R: Send>(host: &H, worth: bool, act: impl FnOnce() -> R + Send) -> R {
    if worth { host.unlocked(act) } else { act() }
}

fn is_long(array: &Array) -> bool {
    array.layout.bytes().is_none_or(|bytes| bytes >= LONG)
}
