//! Discovery of the exchanges of a program, as its tasks are submitted.
//!
//! Every rank submits the same buffers and tasks, and each computes the same forwards and operations in the same order,
//! without communication. For its own rank it also computes the commands: pushes, awaited pushes, its part in
//! collectives, and kernels.
//!
//! **Why the rate does not fall with the number of ranks.** The decision about a read depends on the role of the reader
//! and on the pieces that it reads: their regions, writers' roles, and the ranks with copies. Task numbers matter only
//! by their order. A plan is therefore stored under a key of exactly these facts, and a loop has few distinct keys. A
//! new key costs arithmetic on `Side`s. Ranks are visited one by one only if each rank has a different result, such as
//! its own message.
//!
//! **Order.** Tasks are handled in the order of submission, buffers and producers by id. No result depends on the order
//! of a hash map.
//!
//! **Look-ahead.** With the full rules, the latest tasks wait in a window of a few tasks, so that a read can find later
//! readers of the same contents. A task is settled when its exchanges and its kernel are computed. `flush` settles the
//! waiting tasks; all ranks must call it after the same submissions.

mod commands;
mod contents;
mod options;
mod parts;
mod reading;

use std::{collections::VecDeque, sync::Arc};

use rustc_hash::FxHashMap;
use unisono_base::{BufferId, CommandId, TaskId, mix, narrow};

pub use commands::{Action, Command, Forward};
use contents::{BufferState, Content, HolderLists, Moving, NONE, Pending, State};
pub use options::Options;
pub use parts::PartAccess;
use reading::Scratch;

use crate::{
    chain::{Chain, digest_of},
    error::DiscoverError,
    hazards::{Hazards, Waits},
    mapper::Mapper,
    moved::{Moved, moves},
    plan::{ReadPlan, Traffic},
    region_map::RegionMap,
    role::Roles,
    rules::Rules,
    shape::{Played, Setting, Shape, Shapes},
    side::Sides,
    space::{Box3, Region},
    split::Geometry,
    task::{Access, Buffer, Mode, Task},
};

/// A program, while its tasks are submitted.
pub struct Discovery {
    options: Options,
    buffers: Vec<BufferState>,
    sides: Sides,
    roles: Roles,
    shapes: Shapes,
    holders: HolderLists,
    plans: FxHashMap<Box<[u64]>, Arc<ReadPlan>>,
    /// The indices of the shape and of the name of every task.
    tasks: Vec<(u32, u32)>,
    names: Vec<String>,
    name_ids: FxHashMap<String, u32>,
    /// The number of settled tasks, whose commands are computed.
    settled: usize,
    forwards: Vec<Forward>,
    /// The reads that move data, if a report is requested. Tasks of one name with one plan share a row.
    moving: Vec<Moving>,
    moving_ids: FxHashMap<(u32, BufferId, usize), usize>,
    commands: Vec<Command>,
    /// The plans of the reads whose messages are in `commands`.
    reads: Vec<Arc<ReadPlan>>,
    next_command: u32,
    next_group: u32,
    traffic: Traffic,
    bytes: (u64, u64),
    chain: Chain,
    scratch: Scratch,
}

impl Discovery {
    pub fn new(options: Options) -> Result<Self, DiscoverError> {
        let Options { nodes, rank, .. } = options;
        if nodes == 0 || nodes > Options::MOST_NODES {
            let most = Options::MOST_NODES;
            return Err(DiscoverError::Input(format!("the number of nodes is {nodes}; accepted are 1 to {most}")));
        }
        if let Some(rank) = rank.filter(|&rank| rank >= nodes) {
            return Err(DiscoverError::Input(format!("the rank is {rank}; accepted are 0 to {}", nodes - 1)));
        }
        Ok(Self {
            options,
            buffers: Vec::new(),
            sides: Sides::default(),
            roles: Roles::default(),
            shapes: Shapes::default(),
            holders: HolderLists { rows: vec![Vec::new()], ids: FxHashMap::from_iter([(Vec::new(), 0)]) },
            plans: FxHashMap::default(),
            tasks: Vec::new(),
            names: Vec::new(),
            name_ids: FxHashMap::default(),
            settled: 0,
            forwards: Vec::new(),
            moving: Vec::new(),
            moving_ids: FxHashMap::default(),
            commands: Vec::new(),
            reads: Vec::new(),
            next_command: 0,
            next_group: 0,
            traffic: Traffic::default(),
            bytes: (0, 0),
            chain: Chain::default(),
            scratch: Scratch::default(),
        })
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    pub fn buffer(&mut self, buffer: Buffer) -> BufferId {
        let numbers =
            buffer.shape.max.iter().map(|&n| n.cast_unsigned()).chain([buffer.dims as u64, buffer.element_bytes]);
        let digest = numbers.fold(digest_of(&buffer.name), |h, n| mix(h ^ n).wrapping_add(1));
        self.chain.push(mix(digest ^ u64::from(buffer.initialized)));
        let submission = self.chain.len() - 1;
        let state = if buffer.initialized { State::Host } else { State::Absent };
        self.buffers.push(BufferState {
            content: RegionMap::new(buffer.shape, Content::bare(state)),
            defined: if buffer.initialized { buffer.shape.into() } else { Region::empty() },
            hazards: Hazards::new(buffer.shape),
            pending: VecDeque::new(),
            submission,
            about: buffer,
        });
        BufferId::new(self.buffers.len() - 1)
    }

    pub fn buffers(&self) -> impl ExactSizeIterator<Item = &Buffer> {
        self.buffers.iter().map(|state| &state.about)
    }

    pub fn task_count(&self) -> usize {
        self.tasks.len()
    }

    pub fn task_name(&self, task: TaskId) -> &str {
        &self.names[self.tasks[task.index()].1 as usize]
    }

    /// Returns the name of a task, or `None` if there is no such task.
    pub fn find_task(&self, task: TaskId) -> Option<&str> {
        self.tasks.get(task.index()).map(|row| self.names[row.1 as usize].as_str())
    }

    pub fn range_dims(&self, task: TaskId) -> usize {
        self.shapes.get(self.tasks[task.index()].0).dims()
    }

    /// Returns the number of a task's shape. Two tasks have the same number if and only if they have the same
    /// [`Geometry`] and the same accesses. Two tasks with the same number access the same regions.
    pub fn shape_number(&self, task: TaskId) -> u32 {
        self.tasks[task.index()].0
    }

    /// Returns the region that each access touches in this rank's part of the range; empty if the rank has no part.
    pub fn views(&self, task: TaskId) -> Vec<Region> {
        self.shapes.get(self.tasks[task.index()].0).views.clone()
    }

    pub fn accessed(&self, task: TaskId) -> Vec<BufferId> {
        self.shapes.get(self.tasks[task.index()].0).buffers().collect()
    }

    /// Returns a description of submission `number` in the hash chain, such as `task 'step'` or `buffer 'A'`.
    pub fn submission(&self, number: u64) -> String {
        let before = self.buffers.partition_point(|state| state.submission < number);
        if let Some(state) = self.buffers.get(before).filter(|state| state.submission == number) {
            return format!("buffer '{}'", state.about.name);
        }
        let task = usize::try_from(number).ok().and_then(|n| self.tasks.get(n - before));
        task.map_or_else(|| "nothing".to_owned(), |row| format!("task '{}'", self.names[row.1 as usize]))
    }

    pub fn sides(&self) -> &Sides {
        &self.sides
    }

    /// Returns the hash chain of all submissions of buffers and tasks.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    pub fn chain_mut(&mut self) -> &mut Chain {
        &mut self.chain
    }

    /// Submits a task. A refused task changes nothing.
    pub fn submit(&mut self, task: &Task<'_>) -> Result<TaskId, DiscoverError> {
        if self.tasks.len() >= NONE as usize {
            return Err(DiscoverError::Input(format!("a program has at most {NONE} tasks")));
        }
        let setting = Setting {
            nodes: self.options.nodes,
            rank: self.options.rank,
            rows: self.options.rows,
            merges: self.options.rules != Rules::Paper,
            sides: &mut self.sides,
            roles: &mut self.roles,
        };
        let buffers = &self.buffers;
        let number = self.shapes.intern(setting, task, |id| buffers.get(id.index()).map(|state| &state.about))?;
        let shape = self.shapes.get(number);
        for read in &shape.reads {
            self.check_defined(task, read)?;
        }
        for write in shape.writes.iter().chain(&shape.reductions) {
            let (defined, image) = (&mut self.buffers[write.buffer.index()].defined, &self.roles[write.role].image);
            if !defined.contains(image) {
                *defined = defined.union(image);
            }
        }
        let name = match self.name_ids.get(task.name) {
            Some(&id) => id,
            None => {
                let id = u32::try_from(self.names.len()).expect("fewer names than tasks");
                self.names.push(task.name.to_owned());
                self.name_ids.insert(task.name.to_owned(), id);
                id
            }
        };
        Ok(self.take_in(number, name, &shape, digest_of(task.name)))
    }

    /// Submits a task again. Its reads need no check, because defined points remain defined.
    pub fn again(&mut self, task: TaskId) -> Result<TaskId, DiscoverError> {
        let Some(&(number, name)) = self.tasks.get(task.index()) else {
            return Err(DiscoverError::Input(format!("there is no task {}", task.0)));
        };
        if self.tasks.len() >= NONE as usize {
            return Err(DiscoverError::Input(format!("a program has at most {NONE} tasks")));
        }
        let (shape, digest) = (self.shapes.get(number), digest_of(&self.names[name as usize]));
        Ok(self.take_in(number, name, &shape, digest))
    }

    /// Adds a checked task, and settles tasks that leave the window.
    fn take_in(&mut self, number: u32, name: u32, shape: &Arc<Shape>, digest: u64) -> TaskId {
        self.chain.push(shape.digest ^ digest);
        let id = TaskId::new(self.tasks.len());
        self.tasks.push((number, name));
        let ahead = self.options.rules == Rules::Full && self.options.nodes > 1 && self.options.window > 0;
        if !ahead {
            self.settle(shape);
            return id;
        }
        for &(buffer, read, broadcasts, changes) in &shape.touched {
            self.buffers[buffer.index()].pending.push_back(Pending { task: id.0, read, broadcasts, changes });
        }
        while self.tasks.len() - self.settled > self.options.window {
            let shape = self.shapes.get(self.tasks[self.settled].0);
            self.settle(&shape);
        }
        id
    }

    /// Submits a task in which every rank reads the same box of a buffer, and settles all tasks ([`Self::flush`]).
    pub fn fence(&mut self, name: &str, buffer: BufferId, window: Box3) -> Result<TaskId, DiscoverError> {
        let accesses = [Access::new(buffer, Mode::Read, Mapper::Fixed(window))];
        let geometry = Geometry::of(&[i64::from(self.options.nodes)]);
        let id = self.submit(&Task { name, geometry, accesses: &accesses })?;
        self.flush();
        Ok(id)
    }

    /// Computes the exchanges and kernels of all tasks that still wait in the look-ahead window. All ranks must call it
    /// after the same submissions.
    pub fn flush(&mut self) {
        while self.settled < self.tasks.len() {
            let shape = self.shapes.get(self.tasks[self.settled].0);
            self.settle(&shape);
        }
    }

    /// Returns and removes the forwards since the previous call; none without
    /// [`Options::report`](field@Options::report).
    pub fn take_forwards(&mut self) -> Vec<Forward> {
        std::mem::take(&mut self.forwards)
    }

    /// Returns and removes the plans of the reads whose messages are among the commands since the previous call.
    pub fn take_reads(&mut self) -> Vec<Arc<ReadPlan>> {
        std::mem::take(&mut self.reads)
    }

    /// Returns and removes this rank's commands since the previous call. Commands refer to the result of
    /// [`Self::take_reads`] by index, so callers must call both functions equally often.
    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// Returns the commands that were not yet taken.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Discards commands, forwards and plans of reads, but not their allocations.
    pub fn drop_output(&mut self) {
        self.forwards.clear();
        self.commands.clear();
        self.reads.clear();
    }

    /// Returns the messages and elements of all ranks so far, and the bytes of pushes and of collectives; all 0 without
    /// [`Options::report`](field@Options::report).
    pub fn traffic(&self) -> (Traffic, (u64, u64)) {
        (self.traffic, self.bytes)
    }

    /// Returns the data moved so far, in the order of first occurrence; empty without
    /// [`Options::report`](field@Options::report).
    pub fn moved(&self) -> Vec<Moved> {
        let mut rows: Vec<Moved> = Vec::new();
        for moving in &self.moving {
            let element_bytes = self.buffers[moving.buffer.index()].about.element_bytes;
            for what in moves(&moving.plan, &self.sides, element_bytes) {
                let name = |task: TaskId| self.tasks[task.index()].1;
                let (before, buffer, count) = (moving.first, moving.buffer, moving.count);
                let same =
                    |row: &&mut Moved| row.buffer == buffer && name(row.before) == name(before) && row.what == what;
                match rows.iter_mut().find(same) {
                    Some(row) => row.count += count,
                    None => rows.push(Moved { before, buffer, count, what }),
                }
            }
        }
        rows
    }

    fn check_defined(&self, task: &Task<'_>, read: &Played) -> Result<(), DiscoverError> {
        let (state, role) = (&self.buffers[read.buffer.index()], &self.roles[read.role]);
        if state.defined.contains(&role.image) {
            return Ok(());
        }
        let missing = role.image.minus(&state.defined);
        let rank = self.sides[role.side].touching(&missing).first();
        let own = rank.map_or_else(|| missing.clone(), |k| self.sides[role.side].at(k).intersect(&missing));
        Err(DiscoverError::Access {
            task: task.name.to_owned(),
            buffer: state.about.name.clone(),
            rank,
            what: format!(
                "it reads {}, which nothing has written; give the buffer contents, or write it first",
                own.text(state.about.dims)
            ),
        })
    }

    /// Computes the next task's exchanges and its kernel.
    fn settle(&mut self, shape: &Shape) {
        let task = narrow(self.settled);
        self.settled += 1;
        for read in &shape.reads {
            self.read(task, read);
        }
        for &(buffer, ..) in &shape.touched {
            let pending = &mut self.buffers[buffer.index()].pending;
            while pending.front().is_some_and(|p| p.task <= task) {
                pending.pop_front();
            }
        }
        if let Some(chunk) = shape.chunk {
            let id = CommandId(self.next_command);
            let mut waits = Waits::default();
            for read in &shape.reads {
                self.buffers[read.buffer.index()].hazards.read(id, &read.local, &mut waits);
            }
            for write in shape.writes.iter().chain(&shape.reductions) {
                self.buffers[write.buffer.index()].hazards.write(id, &write.local, &mut waits);
            }
            self.push_command(task, Action::Execute { chunk }, waits);
        }
        for (write, reduces) in
            shape.writes.iter().map(|w| (w, false)).chain(shape.reductions.iter().map(|r| (r, true)))
        {
            let role = &self.roles[write.role];
            // If only one chunk contributes, its partial result is the result.
            let state = if reduces && role.chunks > 1 { State::Partial } else { State::Written };
            let content = Content { task, role: write.role.0, ..Content::bare(state) };
            let map = &mut self.buffers[write.buffer.index()].content;
            role.image.boxes().iter().for_each(|b| map.set(b, content));
        }
    }

    fn push_command(&mut self, task: u32, action: Action, mut waits: Waits) {
        waits.sort();
        let (id, task) = (CommandId(self.next_command), TaskId(task));
        self.commands.push(Command { id, task, action, waits });
        self.next_command += 1;
    }
}
