//! Programs as they are submitted, and what becomes of them.
//!
//! Every rank submits the same buffers and tasks, and each computes the same forwards and operations in the same order,
//! without a message. For its own rank it also computes the commands: pushes, awaited pushes, its part in collectives,
//! and kernels.
//!
//! **Why the rate does not fall with the number of ranks.** What a read decides depends on the role of the reader and on
//! the pieces that it meets: their places, writers' roles, and who holds copies. The numbers of tasks matter only by
//! their order. So a plan is found by a key of just that, and a loop meets few keys. A new key costs arithmetic on sides;
//! ranks are walked only where each gets another answer, such as a message of its own.
//!
//! **Order.** Tasks are taken in the order of submission, buffers and producers by id. Nothing iterates over a hash map.
//!
//! **Look-ahead.** Under the full rules the last few tasks wait in a window, so that a read can see who reads the same
//! contents next. What waits is settled by `flush`, which all ranks must call at the same place.

use std::{collections::VecDeque, sync::Arc};

use rustc_hash::FxHashMap;
use unisono_base::{BufferId, CommandId, TaskId, mix};

use crate::{
    chain::{Chain, digest_of},
    error::DiscoverError,
    exchange::{Group, Operation, Piece},
    hazards::{Hazards, Waits},
    mapper::Mapper,
    moved::{Moved, moves},
    pattern::Pattern,
    plan::{ReadPlan, Traffic, group_number, plan},
    region_map::RegionMap,
    role::{RoleId, Roles},
    rules::{Read, Rules, Tables},
    shape::{Played, Setting, Shape, Shapes},
    side::{SideId, Sides},
    space::{Box3, Region},
    split::Geometry,
    task::{Access, Buffer, Mode, Task},
};

/// A forward task: data on its way from the task that wrote it to one that reads it.
#[derive(Clone, PartialEq, Debug)]
pub struct Forward {
    pub after: TaskId,
    pub before: TaskId,
    pub buffer: BufferId,
    pub region: Arc<Region>,
    /// None where it does not materialise and messages between pairs of ranks follow, or nothing.
    pub pattern: Option<Pattern>,
    /// Forwards that one operation serves have one number.
    pub group: Option<u32>,
}

/// What one rank does for one step.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// One message to one rank. Messages between two ranks come in the order of their commands.
    Push { buffer: BufferId, to: u32, region: Arc<Region> },
    /// The messages of one read, by source.
    AwaitPush { buffer: BufferId, from: Arc<[(u32, Arc<Region>)]> },
    /// A collective; groups are issued in ascending order on every rank.
    Collective { buffer: BufferId, group: u32, operation: Arc<Operation>, given: Arc<Region>, received: Arc<Region> },
    /// The task's kernel on this rank's part of its range.
    Execute { chunk: Box3 },
}

#[derive(Clone, PartialEq, Debug)]
pub struct Command {
    pub id: CommandId,
    /// The task that is executed, or that the data is for.
    pub task: TaskId,
    pub action: Action,
    pub waits: Waits,
}

/// How programs are read.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of ranks.
    pub nodes: u32,
    /// Whose commands are wanted.
    pub rank: Option<u32>,
    pub rules: Rules,
    /// How many tasks wait for what follows them; only the full rules look ahead.
    pub window: usize,
    /// Whether a range may have fewer dimensions than a buffer, whose other dimensions then are whole.
    pub rows: bool,
    /// Whether to keep forwards and count the traffic of all ranks, which walks them once for each new plan.
    pub report: bool,
}

impl Options {
    /// Tasks that wait by default: more than a loop's body has in most programs, and few enough to start early.
    pub const WINDOW: usize = 16;
    /// More ranks than this are refused.
    pub const MOST_NODES: u32 = 1 << 20;

    /// The report of a program on so many ranks.
    pub fn report(nodes: u32, rules: Rules) -> Self {
        Self { nodes, rank: None, rules, window: Self::WINDOW, rows: false, report: true }
    }

    /// The commands of one rank.
    pub fn commands(nodes: u32, rank: u32, rules: Rules) -> Self {
        Self { nodes, rank: Some(rank), rules, window: Self::WINDOW, rows: false, report: false }
    }
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Absent,
    /// The same on every rank from the start.
    Host,
    Written,
    Partial,
}

/// What is known of a point of a buffer.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Content {
    state: State,
    forwarded: bool,
    task: u32,
    role: u32,
    /// A row of the table of lists of sides.
    holders: u32,
    promised: Option<(SideId, Pattern, u32)>,
}

impl Content {
    fn bare(state: State) -> Self {
        Self { state, forwarded: false, task: NONE, role: NONE, holders: 0, promised: None }
    }
}

struct Held {
    about: Buffer,
    content: RegionMap<Content>,
    /// Points that something has written, by the tasks submitted.
    defined: Region,
    hazards: Hazards,
    /// Accesses of tasks that wait.
    pending: VecDeque<Pending>,
    /// Its place in the chain.
    submission: u64,
}

#[derive(Clone, Copy)]
struct Pending {
    task: u32,
    read: Option<RoleId>,
    broadcasts: bool,
    changes: bool,
}

/// Reads of a buffer by tasks of one name that go by one plan.
struct Moving {
    first: TaskId,
    buffer: BufferId,
    plan: Arc<ReadPlan>,
    count: u64,
}

/// Lists of sides, each once; row 0 is the empty one.
struct HolderLists {
    rows: Vec<Vec<SideId>>,
    ids: FxHashMap<Vec<SideId>, u32>,
}

impl HolderLists {
    fn intern(&mut self, list: &[SideId]) -> u32 {
        if let Some(&id) = self.ids.get(list) {
            return id;
        }
        let id = u32::try_from(self.rows.len()).expect("fewer than 2^32 lists");
        self.rows.push(list.to_vec());
        self.ids.insert(list.to_vec(), id);
        id
    }
}

/// More plans than this are forgotten and made again when needed, which changes no result.
const MOST_PLANS: usize = 1 << 16;

/// A program under way.
pub struct Discovery {
    options: Options,
    buffers: Vec<Held>,
    sides: Sides,
    roles: Roles,
    shapes: Shapes,
    holders: HolderLists,
    plans: FxHashMap<Box<[u64]>, Arc<ReadPlan>>,
    /// Shape and name of every task.
    tasks: Vec<(u32, u32)>,
    names: Vec<String>,
    name_ids: FxHashMap<String, u32>,
    /// Tasks before this one have their commands.
    settled: usize,
    forwards: Vec<Forward>,
    /// Of each read that moves something, where a report is wanted: tasks of one name that go by one plan once.
    moving: Vec<Moving>,
    moving_ids: FxHashMap<(u32, BufferId, usize), usize>,
    commands: Vec<Command>,
    next_command: u32,
    next_group: u32,
    traffic: Traffic,
    bytes: (u64, u64),
    chain: Chain,
    scratch: Scratch,
}

/// Space that is used again for every read.
#[derive(Default)]
struct Scratch {
    met: Vec<(Box3, Content)>,
    producers: Vec<u32>,
    promised: Vec<u32>,
    key: Vec<u64>,
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
        let numbers = buffer.shape.max.iter().map(|&n| n as u64).chain([buffer.dims as u64, buffer.element_bytes]);
        let digest = numbers.fold(digest_of(&buffer.name), |h, n| mix(h ^ n).wrapping_add(1));
        self.chain.push(mix(digest ^ u64::from(buffer.initialized)));
        let submission = self.chain.len() - 1;
        let state = if buffer.initialized { State::Host } else { State::Absent };
        self.buffers.push(Held {
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
        self.buffers.iter().map(|held| &held.about)
    }

    pub fn task_name(&self, task: TaskId) -> &str {
        &self.names[self.tasks[task.index()].1 as usize]
    }

    /// The same, if there is such a task.
    pub fn find_task(&self, task: TaskId) -> Option<&str> {
        self.tasks.get(task.index()).map(|row| self.names[row.1 as usize].as_str())
    }

    /// How many dimensions a task's range has.
    pub fn range_dims(&self, task: TaskId) -> usize {
        self.shapes.get(self.tasks[task.index()].0).dims()
    }

    /// Tasks with the same number touch the same.
    pub fn shape_number(&self, task: TaskId) -> u32 {
        self.tasks[task.index()].0
    }

    /// For each access of a task, what this rank's part of the range touches; nothing where the rank has no part.
    pub fn views(&self, task: TaskId) -> Vec<Region> {
        self.shapes.get(self.tasks[task.index()].0).views.clone()
    }

    /// For each access of a task, its buffer.
    pub fn accessed(&self, task: TaskId) -> Vec<BufferId> {
        self.shapes.get(self.tasks[task.index()].0).buffers().collect()
    }

    /// What the chain's link `number` was for, as `task 'step'` or `buffer 'A'`.
    pub fn submission(&self, number: u64) -> String {
        let before = self.buffers.partition_point(|held| held.submission < number);
        if let Some(held) = self.buffers.get(before).filter(|held| held.submission == number) {
            return format!("buffer '{}'", held.about.name);
        }
        let task = usize::try_from(number).ok().and_then(|n| self.tasks.get(n - before));
        task.map_or_else(|| "nothing".to_owned(), |row| format!("task '{}'", self.names[row.1 as usize]))
    }

    pub fn sides(&self) -> &Sides {
        &self.sides
    }

    /// The hash chain over all submissions, buffers and tasks alike.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    pub fn chain_mut(&mut self) -> &mut Chain {
        &mut self.chain
    }

    /// Submits a task. A refused one leaves everything as it was.
    pub fn submit(&mut self, task: &Task<'_>) -> Result<TaskId, DiscoverError> {
        if self.tasks.len() >= NONE as usize {
            return Err(DiscoverError::Input(format!("a program has at most {NONE} tasks")));
        }
        let setting = Setting {
            nodes: self.options.nodes,
            rank: self.options.rank,
            rows: self.options.rows,
            sides: &mut self.sides,
            roles: &mut self.roles,
        };
        let buffers = &self.buffers;
        let number = self.shapes.intern(setting, task, |id| buffers.get(id.index()).map(|held| &held.about))?;
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
        self.chain.push(shape.digest ^ digest_of(task.name));
        let id = TaskId::new(self.tasks.len());
        self.tasks.push((number, name));
        let ahead = self.options.rules == Rules::Full && self.options.nodes > 1 && self.options.window > 0;
        if !ahead {
            self.settle(&shape);
            return Ok(id);
        }
        for &(buffer, read, broadcasts, changes) in &shape.touched {
            self.buffers[buffer.index()].pending.push_back(Pending { task: id.0, read, broadcasts, changes });
        }
        while self.tasks.len() - self.settled > self.options.window {
            let shape = self.shapes.get(self.tasks[self.settled].0);
            self.settle(&shape);
        }
        Ok(id)
    }

    /// A task on every rank, each of which reads the same box of a buffer: what a fence needs.
    pub fn fence(&mut self, name: &str, buffer: BufferId, window: Box3) -> Result<TaskId, DiscoverError> {
        let accesses = [Access::new(buffer, Mode::Read, Mapper::Fixed(window))];
        let geometry = Geometry::of(&[i64::from(self.options.nodes)]);
        let id = self.submit(&Task { name, geometry, accesses: &accesses })?;
        self.flush();
        Ok(id)
    }

    /// Settles all that was submitted. All ranks call it at the same places.
    pub fn flush(&mut self) {
        while self.settled < self.tasks.len() {
            let shape = self.shapes.get(self.tasks[self.settled].0);
            self.settle(&shape);
        }
    }

    /// Takes the forwards since last time.
    pub fn take_forwards(&mut self) -> Vec<Forward> {
        std::mem::take(&mut self.forwards)
    }

    /// Takes this rank's commands since last time.
    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// The commands that nobody took yet.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Forgets commands and forwards, which keeps the space for the next ones.
    pub fn drop_output(&mut self) {
        self.forwards.clear();
        self.commands.clear();
    }

    /// Messages and elements of all ranks so far, and bytes: pushed, and by collectives.
    pub fn traffic(&self) -> (Traffic, (u64, u64)) {
        (self.traffic, self.bytes)
    }

    /// What was moved so far, in the order in which it came up first.
    pub fn moved(&self) -> Vec<Moved> {
        let mut rows: Vec<Moved> = Vec::new();
        for moving in &self.moving {
            for what in moves(&moving.plan, &self.sides) {
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
        let (held, role) = (&self.buffers[read.buffer.index()], &self.roles[read.role]);
        if held.defined.contains(&role.image) {
            return Ok(());
        }
        let missing = role.image.minus(&held.defined);
        let rank = self.sides[role.side].touching(&missing).first();
        let own = rank.map_or_else(|| missing.clone(), |k| self.sides[role.side].at(k).intersect(&missing));
        Err(DiscoverError::Access {
            task: task.name.to_owned(),
            buffer: held.about.name.clone(),
            rank,
            what: format!(
                "it reads {}, which nothing has written; give the buffer contents, or write it first",
                own.text(held.about.dims)
            ),
        })
    }

    /// The next task's exchanges and its kernel.
    fn settle(&mut self, shape: &Shape) {
        let task = self.settled as u32;
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
            // One chunk's partial result is the result.
            let state = if reduces && role.chunks > 1 { State::Partial } else { State::Written };
            let content = Content { task, role: write.role.0, ..Content::bare(state) };
            let map = &mut self.buffers[write.buffer.index()].content;
            role.image.boxes().iter().for_each(|b| map.set(b, content));
        }
    }

    fn push_command(&mut self, task: u32, action: Action, mut waits: Waits) {
        waits.sort();
        self.commands.push(Command { id: CommandId(self.next_command), task: TaskId(task), action, waits });
        self.next_command += 1;
    }

    /// Who reads the same contents later, and will have all ranks need everything.
    fn later(&self, task: u32, read: &Played) -> Option<RoleId> {
        let mut after = self.buffers[read.buffer.index()].pending.iter().filter(|p| p.task >= task);
        if after.next().is_some_and(|own| own.changes) {
            return None;
        }
        for next in after {
            if let Some(role) = next.read.filter(|_| next.broadcasts) {
                let differs = self.roles[role].side != self.roles[read.role].side;
                return differs.then_some(role);
            }
            if next.changes {
                return None;
            }
        }
        None
    }

    /// The exchange before one read.
    fn read(&mut self, task: u32, read: &Played) {
        let later = self.later(task, read);
        let Some((plan, producers, earlier)) = self.plan_of(read, later) else { return };
        let next_group = self.next_group;
        if self.options.report {
            for (listing, region) in &plan.listed {
                self.forwards.push(Forward {
                    after: TaskId(producers[listing.producer]),
                    before: TaskId(task),
                    buffer: read.buffer,
                    region: region.clone(),
                    pattern: listing.pattern,
                    group: group_number(listing.group, next_group, &earlier),
                });
            }
            if !plan.operations.is_empty() || !plan.pushed.parts.is_empty() {
                // What is kept keeps its address.
                let key = (self.tasks[task as usize].1, read.buffer, Arc::as_ptr(&plan).addr());
                let next = self.moving.len();
                match *self.moving_ids.entry(key).or_insert(next) {
                    known if known < next => self.moving[known].count += 1,
                    _ => {
                        let (first, buffer, plan) = (TaskId(task), read.buffer, plan.clone());
                        self.moving.push(Moving { first, buffer, plan, count: 1 });
                    }
                }
            }
            let bytes = self.buffers[read.buffer.index()].about.element_bytes;
            self.traffic.pushes += plan.traffic.pushes;
            self.traffic.pushed_elements += plan.traffic.pushed_elements;
            self.traffic.collectives += plan.traffic.collectives;
            self.traffic.collective_elements += plan.traffic.collective_elements;
            self.bytes.0 += plan.traffic.pushed_elements.saturating_mul(bytes);
            self.bytes.1 += plan.traffic.collective_elements.saturating_mul(bytes);
        }
        self.next_group += plan.groups as u32;
        let buffer = read.buffer;
        for share in &plan.shares {
            let (id, mut waits) = (CommandId(self.next_command), Waits::default());
            let hazards = &mut self.buffers[buffer.index()].hazards;
            hazards.read(id, &share.given, &mut waits);
            hazards.write(id, &share.received, &mut waits);
            let (group, operation) = (next_group + share.group as u32, share.operation.clone());
            let (given, received) = (share.given.clone(), share.received.clone());
            self.push_command(task, Action::Collective { buffer, group, operation, given, received }, waits);
        }
        for (to, region) in &plan.pushes {
            let (id, mut waits) = (CommandId(self.next_command), Waits::default());
            self.buffers[buffer.index()].hazards.read(id, region, &mut waits);
            self.push_command(task, Action::Push { buffer, to: *to, region: region.clone() }, waits);
        }
        if !plan.awaits.is_empty() {
            let (id, mut waits) = (CommandId(self.next_command), Waits::default());
            self.buffers[buffer.index()].hazards.write(id, &plan.awaited, &mut waits);
            self.push_command(task, Action::AwaitPush { buffer, from: plan.awaits.clone() }, waits);
        }
        for piece in &plan.after {
            let promised = piece.promised.map(|(side, pattern, group)| {
                let group = group_number(Some(group), next_group, &earlier).unwrap_or(NONE);
                (side, pattern, group)
            });
            let content = Content {
                state: if piece.partial { State::Partial } else { State::Written },
                forwarded: piece.forwarded,
                task: producers[piece.producer],
                role: piece.owner.0,
                holders: self.holders.intern(&piece.holders),
                promised,
            };
            let map = &mut self.buffers[buffer.index()].content;
            piece.region.boxes().iter().for_each(|b| map.set(b, content));
        }
        (self.scratch.producers, self.scratch.promised) = (producers, earlier);
    }

    /// The plan of a read, with the tasks and the groups that it numbers; none where there is nothing to exchange.
    fn plan_of(&mut self, read: &Played, later: Option<RoleId>) -> Option<(Arc<ReadPlan>, Vec<u32>, Vec<u32>)> {
        let scratch = &mut self.scratch;
        let held = &self.buffers[read.buffer.index()];
        scratch.met.clear();
        let image = &self.roles[read.role].image;
        let mut later = later;
        let wide = later.map(|role| image.union(&self.roles[role].image));
        for window in wide.as_ref().unwrap_or(image).boxes() {
            held.content.query(window, |b, content| scratch.met.push((b, content)));
        }
        if wide.is_some() && scratch.met.iter().any(|(_, c)| c.state == State::Absent) {
            // What is still to be written will make another piece.
            later = None;
            scratch.met.clear();
            for window in image.boxes() {
                held.content.query(window, |b, content| scratch.met.push((b, content)));
            }
        }
        scratch.met.retain(|(_, content)| matches!(content.state, State::Written | State::Partial));
        if scratch.met.is_empty() {
            return None;
        }
        let (mut producers, mut earlier) =
            (std::mem::take(&mut scratch.producers), std::mem::take(&mut scratch.promised));
        producers.clear();
        producers.extend(scratch.met.iter().map(|(_, c)| c.task));
        earlier.clear();
        earlier.extend(scratch.met.iter().filter_map(|(_, c)| c.promised.map(|p| p.2)));
        for list in [&mut producers, &mut earlier] {
            list.sort_unstable();
            list.dedup();
        }
        let place = |list: &[u32], id: u32| list.binary_search(&id).unwrap_or(0);
        scratch.key.clear();
        scratch.key.extend([u64::from(read.role.0), later.map_or(u64::MAX, |role| u64::from(role.0))]);
        for (b, content) in &scratch.met {
            scratch.key.extend(b.min.iter().chain(&b.max).map(|&x| x as u64));
            let flags = u64::from(content.state == State::Partial) | u64::from(content.forwarded) << 1;
            scratch.key.push(u64::from(content.role) << 32 | u64::from(content.holders));
            scratch.key.push((place(&producers, content.task) as u64) << 2 | flags);
            scratch.key.push(content.promised.map_or(u64::MAX, |(side, pattern, group)| {
                u64::from(side.0) << 32 | (place(&earlier, group) as u64) << 8 | pattern as u64
            }));
        }
        if let Some(plan) = self.plans.get(&scratch.key[..]) {
            return Some((plan.clone(), producers, earlier));
        }
        let mut pieces: Vec<Piece> = Vec::new();
        for (b, content) in &scratch.met {
            let piece = Piece {
                region: (*b).into(),
                producer: place(&producers, content.task),
                owner: RoleId(content.role),
                owner_side: self.roles[RoleId(content.role)].side,
                partial: content.state == State::Partial,
                holders: self.holders.rows[content.holders as usize].clone(),
                forwarded: content.forwarded,
                promised: content
                    .promised
                    .map(|(side, pattern, g)| (side, pattern, Group::Earlier(place(&earlier, g)))),
            };
            match pieces.iter_mut().find(|p| p.is_like(&piece)) {
                Some(same) => same.region = same.region.union(&piece.region),
                None => pieces.push(piece),
            }
        }
        pieces.sort_by(|a, b| (a.producer, &a.region).cmp(&(b.producer, &b.region)));
        let about = Read {
            reader: read.role,
            wanted: image.clone(),
            later,
            buffer: held.about.shape,
            nodes: self.options.nodes,
        };
        let mut tables = Tables { sides: &mut self.sides, roles: &mut self.roles };
        let made = plan(self.options.rules, &mut tables, &about, pieces, self.options.rank, self.options.report);
        let made = Arc::new(made);
        if self.plans.len() >= MOST_PLANS {
            self.plans.clear();
        }
        self.plans.insert(self.scratch.key.clone().into_boxed_slice(), made.clone());
        Some((made, producers, earlier))
    }
}
