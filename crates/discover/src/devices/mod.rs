//! The copies between the memories of a process with several devices.
//!
//! A process of a program has a host memory and the memories of its devices. The rules that split a task's range among
//! processes also split a process's part of the range among its devices. Messages and collectives read and write the
//! host memory. [`Devices`] follows the commands of one process and lists the copies that keep the memories coherent:
//! data that a device lacks is copied to it before a kernel, and data that the host lacks before an exchange. After an
//! all-gather, a broadcast or an allreduce for a kernel on devices, a broadcast from the host updates all devices.
//! Source: "Automatic Discovery of Collective Communication Patterns in Parallelized Task Graphs", sections 1.5, 1.6
//! and 3.3. Memory 0 is the host's, memory d + 1 that of device d.

pub(crate) mod memories;
mod report;

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use unisono_base::{BufferId, TaskId, interrupt::poll, narrow};

use self::memories::{Brought, HOST, Memories};
pub use self::report::{DeviceOperation, DeviceReport, device_report};
use crate::{
    direct::{Cell, Message},
    discovery::{Action, Command, Discovery, PartAccess},
    error::DiscoverError,
    moved::{Extremes, Moved, What},
    pattern::Pattern,
    side::Ranks,
    space::Region,
    task::Mode,
};

unisono_base::named! {
    /// The time of an operation's copies, relative to a kernel or an exchange.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Moment {
        BeforeKernel = "before-kernel",
        /// The moment after the kernel of a reduction, for partial results of several devices.
        AfterKernel = "after-kernel",
        BeforeExchange = "before-exchange",
        AfterExchange = "after-exchange",
    }
}

/// One distinct operation among the memories of the process.
#[derive(Clone, PartialEq, Debug)]
pub struct DeviceMoved {
    pub moment: Moment,
    pub moved: Moved,
    /// The number of copies of one occurrence that would be needed if each received message was copied separately.
    pub updates: u64,
}

/// The memories of one process, updated by each command.
pub struct Devices {
    count: u32,
    /// The tasks that run on the host.
    on_host: BTreeSet<u32>,
    buffers: Vec<Memories>,
    /// The accesses of each device, by [`Discovery::shape_number`].
    parts: FxHashMap<u32, Vec<Vec<PartAccess>>>,
    rows: Vec<DeviceMoved>,
}

impl Devices {
    /// The largest accepted number of devices.
    pub const MOST: u32 = 256;

    /// Creates the memories of a process with `count` devices before the first command. Tasks in `on_host`, which may
    /// include fences, access the host memory.
    ///
    /// # Errors
    /// Returns an error if the number of devices is out of range.
    pub fn new(count: u32, on_host: BTreeSet<u32>) -> Result<Self, DiscoverError> {
        if count == 0 || count > Self::MOST {
            let most = Self::MOST;
            return Err(DiscoverError::Input(format!("the number of devices is {count}; accepted are 1 to {most}")));
        }
        Ok(Self { count, on_host, buffers: Vec::new(), parts: FxHashMap::default(), rows: Vec::new() })
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    /// Processes the next commands of the process.
    ///
    /// # Errors
    /// Returns an error if two devices would write the same element, or a mapper fails.
    pub fn follow(&mut self, engine: &Discovery, commands: &[Command]) -> Result<(), DiscoverError> {
        for about in engine.buffers().skip(self.buffers.len()) {
            let contents = if about.initialized { about.shape.into() } else { Region::empty() };
            self.buffers.push(Memories::new(self.count, contents));
        }
        for command in commands {
            poll();
            self.command(engine, command)?;
        }
        Ok(())
    }

    /// Returns the operations so far, in the order of their first occurrence.
    pub fn rows(&self) -> &[DeviceMoved] {
        &self.rows
    }

    fn command(&mut self, engine: &Discovery, command: &Command) -> Result<(), DiscoverError> {
        let task = command.task;
        match &command.action {
            Action::Execute { .. } if self.on_host.contains(&task.0) => self.on_host(engine, task),
            Action::Execute { .. } => self.on_devices(engine, task)?,
            Action::Push { buffer, region, .. } => {
                self.bring(engine, task, *buffer, Moment::BeforeExchange, &[(HOST, (**region).clone())]);
            }
            Action::AwaitPush { buffer, from, .. } => {
                for (_, region) in from.iter() {
                    self.buffers[buffer.index()].arrived(region);
                }
            }
            Action::Collective { buffer, operation, given, received, .. } => {
                self.bring(engine, task, *buffer, Moment::BeforeExchange, &[(HOST, (**given).clone())]);
                let memories = &mut self.buffers[buffer.index()];
                memories.arrived(received);
                let to_all = matches!(operation.pattern, Pattern::Allgather | Pattern::Broadcast | Pattern::Allreduce);
                if to_all && !self.on_host.contains(&task.0) {
                    let elements = memories.broadcast(&given.union(received));
                    self.add(engine, task, *buffer, Moment::AfterExchange, broadcast(self.count, elements), 1);
                }
            }
        }
        Ok(())
    }

    fn on_host(&mut self, engine: &Discovery, task: TaskId) {
        let accesses = engine.whole_part(task);
        for PartAccess { buffer, mode, region } in &accesses {
            if mode.reads() {
                self.bring(engine, task, *buffer, Moment::BeforeKernel, &[(HOST, region.clone())]);
            }
        }
        for PartAccess { buffer, mode, region } in &accesses {
            if *mode != Mode::Read {
                self.buffers[buffer.index()].wrote(HOST, region);
            }
        }
    }

    fn on_devices(&mut self, engine: &Discovery, task: TaskId) -> Result<(), DiscoverError> {
        let shape = engine.shape_number(task);
        if !self.parts.contains_key(&shape) {
            self.parts.insert(shape, engine.parts(task, self.count)?);
        }
        let parts = self.parts[&shape].clone();
        let of = |wanted: fn(Mode) -> bool| {
            let mut rows: Vec<(BufferId, Vec<(u32, Region)>)> = Vec::new();
            for (device, accesses) in (1u32..).zip(&parts) {
                for PartAccess { buffer, region, .. } in accesses.iter().filter(|a| wanted(a.mode)) {
                    let place = rows.iter().position(|row| row.0 == *buffer).unwrap_or_else(|| {
                        rows.push((*buffer, Vec::new()));
                        rows.len() - 1
                    });
                    match rows[place].1.last_mut() {
                        Some(last) if last.0 == device => last.1 = last.1.union(region),
                        _ => rows[place].1.push((device, region.clone())),
                    }
                }
            }
            rows.sort_by_key(|row| row.0);
            rows
        };
        for (buffer, wanted) in of(Mode::reads) {
            self.bring(engine, task, buffer, Moment::BeforeKernel, &wanted);
        }
        let (written, reduced) = (of(Mode::writes), of(|mode| mode == Mode::Reduce));
        // If no device contributes, the process still contributes neutral elements from the host.
        for PartAccess { buffer, mode, region } in engine.whole_part(task) {
            if mode == Mode::Reduce {
                self.buffers[buffer.index()].wrote(HOST, &region);
            }
        }
        for (buffer, rows) in written {
            for (device, region) in rows {
                self.buffers[buffer.index()].wrote(device, &region);
            }
        }
        for (buffer, rows) in reduced {
            let cells = self.buffers[buffer.index()].reduced(&rows);
            if !cells.is_empty() {
                let updates = cells.iter().map(|cell| u64::from(cell.givers.len())).sum();
                self.add(engine, task, buffer, Moment::AfterKernel, reduction(cells), updates);
            }
        }
        Ok(())
    }

    /// Copies to each memory the part of its wanted region that it lacks.
    fn bring(&mut self, engine: &Discovery, task: TaskId, buffer: BufferId, moment: Moment, wanted: &[(u32, Region)]) {
        let Brought { messages, updates } = self.buffers[buffer.index()].bring(wanted);
        if !messages.is_empty() {
            self.add(engine, task, buffer, moment, copies(&messages), updates);
        }
    }

    /// Adds an operation, or increments the count of an equal earlier one.
    fn add(&mut self, engine: &Discovery, task: TaskId, buffer: BufferId, moment: Moment, what: What, updates: u64) {
        if what.elements == 0 {
            return;
        }
        let name = engine.task_name(task);
        let same = |row: &&mut DeviceMoved| {
            (row.moment, row.moved.buffer, row.updates) == (moment, buffer, updates)
                && engine.task_name(row.moved.before) == name
                && row.moved.what == what
        };
        match self.rows.iter_mut().find(same) {
            Some(row) => row.moved.count += 1,
            None => {
                let moved = Moved { before: task, buffer, count: 1, what };
                self.rows.push(DeviceMoved { moment, moved, updates });
            }
        }
    }
}

fn copies(messages: &[Message]) -> What {
    let last = messages.iter().map(|m| m.from.max(m.to)).max().unwrap_or(0);
    let sum = |of: fn(&Message) -> u32, memory: u32| -> u64 {
        messages.iter().filter(|m| of(m) == memory).map(|m| m.elements).sum()
    };
    let takes_part: Vec<u32> = (0..=last).filter(|&k| messages.iter().any(|m| m.from == k || m.to == k)).collect();
    What {
        pattern: None,
        participants: Ranks::of(takes_part.iter().map(|&k| (k, k + 1)).collect()),
        root: None,
        part: Extremes::of(messages.iter().map(|m| m.elements)),
        gives: Extremes::of(takes_part.iter().map(|&k| sum(|m| m.from, k))),
        gets: Extremes::of(takes_part.iter().map(|&k| sum(|m| m.to, k))),
        elements: messages.iter().map(|m| m.elements).sum(),
        messages: messages.iter().map(|m| (m.from, m.to, m.elements)).collect(),
        cells: Vec::new(),
        by_messages: true,
    }
}

fn broadcast(devices: u32, elements: u64) -> What {
    What {
        pattern: Some(Pattern::Broadcast),
        participants: Ranks::below(devices + 1),
        root: Some(HOST),
        part: Extremes::of([elements]),
        gives: Extremes::of([elements, 0]),
        gets: Extremes::of([0, elements]),
        elements: elements * u64::from(devices),
        messages: Vec::new(),
        cells: Vec::new(),
        by_messages: false,
    }
}

/// Returns the record of a reduction of devices' partial results on the host.
fn reduction(cells: Vec<Cell>) -> What {
    let givers = cells.iter().fold(Ranks::one(HOST), |all, cell| all.union(&cell.givers));
    let given = |k: u32| cells.iter().filter(|c| c.givers.has(k)).map(|c| c.elements).sum();
    let result: u64 = cells.iter().map(|c| c.elements).sum();
    What {
        pattern: Some(Pattern::Reduce),
        part: Extremes::of([result]),
        root: Some(HOST),
        gives: Extremes::of(givers.iter().map(given)),
        gets: Extremes::of([0, result]),
        elements: givers.iter().map(given).sum(),
        messages: Vec::new(),
        participants: givers,
        cells,
        by_messages: true,
    }
}

/// Returns the number of memories, with the host's.
pub(crate) fn memories(devices: u32) -> u32 {
    narrow(u64::from(devices) + 1)
}
