//! The tables of a task graph. A task takes 16.25 bytes. These bytes include the task's edges if it has one edge, to a
//! task less than 64 tasks ahead, or two edges, where the first is to a task at most 8 ahead and the second to a task
//! at most 8 further. Other edges take 4 bytes each, plus 4 bytes for each task that has such edges.

use std::ops::Range;

use unisono_base::{TaskId, narrow};

/// Matches any source as a peer, and any tag as a tag.
pub const ANY: u32 = u32::MAX;

unisono_base::named! {
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum Kind {
        Send = "send",
        Receive = "recv",
        /// Computes for a number of ticks of the simulator's clock.
        Calc = "calc",
        /// Reduces a number of bytes, at the machine's time per byte.
        Reduce = "reduce",
    }
}

/// A task, unpacked from the tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    pub kind: Kind,
    /// The other rank of a message, or [`ANY`] for a receive from any rank; 0 for other tasks.
    pub peer: u32,
    /// Messages match receives of the same tag; [`ANY`] matches all.
    pub tag: u32,
    /// Bytes, or ticks of the simulator's clock for [`Kind::Calc`].
    pub amount: u64,
    pub cpu: u8,
    pub nic: u8,
}

impl Task {
    pub fn send(to: u32, bytes: u64, tag: u32) -> Self {
        Self { kind: Kind::Send, peer: to, tag, amount: bytes, cpu: 0, nic: 0 }
    }

    pub fn receive(from: u32, bytes: u64, tag: u32) -> Self {
        Self { kind: Kind::Receive, peer: from, tag, amount: bytes, cpu: 0, nic: 0 }
    }

    pub fn calc(ticks: u64) -> Self {
        Self { kind: Kind::Calc, peer: 0, tag: 0, amount: ticks, cpu: 0, nic: 0 }
    }

    pub fn reduce(bytes: u64) -> Self {
        Self { kind: Kind::Reduce, ..Self::calc(bytes) }
    }

    #[must_use]
    pub fn on(self, cpu: u8, nic: u8) -> Self {
        Self { cpu, nic, ..self }
    }
}

/// A packed task. If the amount does not fit 32 bits, `amount` is its index in the table of wide amounts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Row {
    peer: u32,
    tag: u32,
    amount: u32,
    kind: Kind,
    /// The bit [`WIDE`], and one of these values in the other bits: 0 for a task without edges; [`FAR`] if the edges
    /// are in the tables; the distance to the only waiting task; or [`PAIR`] with two distances, from this task to the
    /// first waiting task and from that task to the second. Each of the two distances is stored as the distance minus
    /// one, in three bits.
    flags: u8,
    cpu: u8,
    nic: u8,
}

/// The flag of a task whose amount is in the table of wide amounts.
const WIDE: u8 = 1 << 7;
/// The bits of [`Row::flags`] for a task whose edges are in the tables.
const FAR: u8 = WIDE - 1;

/// The flag of a row with two near edges.
const PAIR: u32 = 1 << 6;

impl Row {
    fn is_far(self) -> bool {
        self.flags & FAR == FAR
    }

    /// Returns the distances to the tasks of near edges, in the order in which they are released; 0 stands for no task.
    fn near(self) -> [u32; 2] {
        let edges = u32::from(self.flags & FAR);
        if edges < PAIR {
            return [edges, 0];
        }
        let first = (edges >> 3 & 7) + 1;
        if self.is_far() { [0, 0] } else { [first, first + (edges & 7) + 1] }
    }
}

/// Returns the bits of [`Row::flags`] for the edges of a task; `None` if the edges must be stored in the tables.
fn near_flags(task: u32, edges: &[(u32, Edge)]) -> Option<u32> {
    // The flag of an edge that waits for a start is its top bit. It makes the distance too large for a near edge.
    let ahead = |at: usize| edges[at].1.0.wrapping_sub(task).wrapping_sub(1);
    let (first, between) = match edges.len() {
        1 => return (ahead(0) < PAIR - 1).then(|| ahead(0) + 1),
        2 => (ahead(0), ahead(1).wrapping_sub(ahead(0)).wrapping_sub(1)),
        _ => return None,
    };
    let flags = PAIR | (first & 7) << 3 | between & 7;
    (first < 8 && between < 8 && flags < u32::from(FAR)).then_some(flags)
}

/// A block of 64 tasks: one bit for each task that has edges in the tables, and the number of such tasks before the
/// block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct FarTasks {
    tasks: u64,
    before: u32,
}

/// An edge in the table: the task that waits; the top bit is set if it waits only for the start of the other task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Edge(u32);

impl Edge {
    const STARTED: u32 = 1 << 31;

    pub(super) fn new(later: u32, started: bool) -> Self {
        Self(later | if started { Self::STARTED } else { 0 })
    }

    pub(super) fn started(self) -> bool {
        self.0 & Self::STARTED != 0
    }
}

/// A task graph: tasks in the order of their ranks, with their edges. [`super::Builder`] builds it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskGraph {
    pub(super) rows: Vec<Row>,
    pub(super) wide: Vec<u64>,
    /// The index of the first task of each rank, then the number of all tasks.
    pub(super) rank_rows: Vec<u32>,
    far: Vec<FarTasks>,
    /// The index in `edges` of the first edge of each task that has edges there. A task's edges end where those of the
    /// next entry begin.
    edge_rows: Vec<u32>,
    /// The edges, sorted by the task that is waited for; for each task, edges that wait for its start come first.
    edges: Vec<Edge>,
    near_edges: usize,
    pub(super) cpus: u32,
    pub(super) nics: u32,
}

impl TaskGraph {
    #[inline]
    pub(super) fn pack(&mut self, task: Task) {
        let wide = task.amount > u64::from(u32::MAX);
        let amount = if wide { narrow(self.wide.len()) } else { narrow(task.amount) };
        if wide {
            self.wide.push(task.amount);
        }
        let Task { kind, peer, tag, cpu, nic, .. } = task;
        let flags = if wide { WIDE } else { 0 };
        self.rows.push(Row { peer, tag, amount, kind, flags, cpu, nic });
    }

    pub(super) fn reserve(&mut self, ranks: usize, tasks: usize) {
        self.rank_rows.reserve(ranks + 1);
        self.rows.reserve(tasks);
        self.far.reserve(tasks.div_ceil(64));
    }

    /// Adds all edges of a task, one or more, in order. Calls must have ascending tasks.
    pub(super) fn add_edges(&mut self, edges: &[(u32, Edge)]) {
        let task = edges[0].0;
        let row = &mut self.rows[task as usize];
        if let Some(flags) = near_flags(task, edges) {
            row.flags |= narrow::<u8>(flags);
            self.near_edges += edges.len();
        } else {
            row.flags |= FAR;
            let block = task as usize / 64;
            let before = narrow(self.edge_rows.len());
            self.far.resize(self.far.len().max(block + 1), FarTasks { tasks: 0, before });
            self.far[block].tasks |= 1 << (task % 64);
            self.edge_rows.push(narrow(self.edges.len()));
            self.edges.extend(edges.iter().map(|&(_, edge)| edge));
        }
    }

    fn far_edges(&self, id: TaskId) -> &[Edge] {
        let FarTasks { tasks, before } = self.far[id.index() / 64];
        let earlier = tasks & ((1 << (id.0 % 64)) - 1);
        let row = before as usize + earlier.count_ones() as usize;
        let last = self.edge_rows.get(row + 1).map_or(self.edges.len(), |&last| last as usize);
        &self.edges[self.edge_rows[row] as usize..last]
    }

    pub(super) fn far_edge_count(&self) -> usize {
        self.edges.len()
    }

    pub fn rank_count(&self) -> u32 {
        narrow::<u32>(self.rank_rows.len()) - 1
    }

    pub fn task_count(&self) -> usize {
        self.rows.len()
    }

    pub fn edge_count(&self) -> usize {
        self.edges.len() + self.near_edges
    }

    /// Returns the number of CPUs of each rank: one more than the greatest index that a task of any rank has.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Returns the number of network interfaces of each rank: one more than the greatest index that a task of any rank
    /// has.
    pub fn nics(&self) -> u32 {
        self.nics
    }

    #[inline]
    pub fn task(&self, id: TaskId) -> Task {
        let Row { peer, tag, amount, kind, flags, cpu, nic } = self.rows[id.index()];
        let amount = if flags & WIDE != 0 { self.wide[amount as usize] } else { u64::from(amount) };
        Task { kind, peer, tag, amount, cpu, nic }
    }

    /// Reads the row of a task to load it into the cache before [`TaskGraph::task`] reads it (prefetch). The result is
    /// only used to keep the compiler from removing the read.
    #[inline]
    pub fn read_ahead(&self, id: TaskId) -> u32 {
        self.rows[id.index()].peer
    }

    pub fn tasks(&self, rank: u32) -> Range<u32> {
        self.rank_rows[rank as usize]..self.rank_rows[rank as usize + 1]
    }

    /// Returns whether a task waits for the start of `id`.
    #[inline]
    pub fn is_start_awaited(&self, id: TaskId) -> bool {
        // Edges that wait for the start are in the tables, and come first.
        self.rows[id.index()].is_far() && self.far_edges(id)[0].started()
    }

    /// Returns the tasks that wait for `id`, in the order in which `id` releases them, with `true` for those that wait
    /// for its start only.
    #[inline]
    pub fn waiting(&self, id: TaskId) -> impl Iterator<Item = (TaskId, bool)> + '_ {
        let row = self.rows[id.index()];
        let near = row.near().into_iter().filter(|&ahead| ahead > 0).map(move |ahead| (TaskId(id.0 + ahead), false));
        let far = if row.is_far() { self.far_edges(id) } else { &[] };
        near.chain(far.iter().map(|e| (TaskId(e.0 & !Edge::STARTED), e.started())))
    }
}
