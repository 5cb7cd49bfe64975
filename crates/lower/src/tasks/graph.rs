//! The tables of a task graph: a task is 16 bytes, an edge 4.

use std::ops::Range;

use unisono_base::{TaskId, narrow};

/// Any source, or any tag.
pub const ANY: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    Send,
    Receive,
    /// Computes for so many ticks of the simulator's clock.
    Calc,
    /// Reduces so many bytes, at the machine's price.
    Reduce,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Send => "send",
            Kind::Receive => "recv",
            Kind::Calc => "calc",
            Kind::Reduce => "reduce",
        }
    }
}

/// One task, as the tables hold it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    pub kind: Kind,
    /// The other rank of a message, or [`ANY`] for a receive that takes it from any; 0 where there is none.
    pub peer: u32,
    /// Messages match receives of the same tag; [`ANY`] matches all.
    pub tag: u32,
    /// Bytes, or ticks of a calc.
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

/// A task packed; an amount of 32 bits or more lies in the table of wide amounts, at `amount`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Row {
    peer: u32,
    tag: u32,
    amount: u32,
    kind: Kind,
    wide: bool,
    cpu: u8,
    nic: u8,
}

/// An edge in the table: the task that waits, and in the top bit whether for the start only.
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

/// Tasks in the order of their ranks, with their edges. [`super::Builder`] makes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskGraph {
    pub(super) rows: Vec<Row>,
    pub(super) wide: Vec<u64>,
    /// First task of each rank, and one past the last.
    pub(super) rank_rows: Vec<u32>,
    /// First edge of each task, and one past the last.
    pub(super) edge_rows: Vec<u32>,
    /// By the task waited for: those that wait for its start first, each kind in the order of their making.
    pub(super) edges: Vec<Edge>,
    pub(super) cpus: u32,
    pub(super) nics: u32,
}

impl TaskGraph {
    pub(super) fn pack(&mut self, task: Task) {
        let wide = task.amount > u64::from(u32::MAX);
        let amount = if wide { narrow(self.wide.len()) } else { narrow(task.amount) };
        if wide {
            self.wide.push(task.amount);
        }
        let Task { kind, peer, tag, cpu, nic, .. } = task;
        self.rows.push(Row { peer, tag, amount, kind, wide, cpu, nic });
    }

    pub fn rank_count(&self) -> u32 {
        narrow::<u32>(self.rank_rows.len()) - 1
    }

    pub fn task_count(&self) -> usize {
        self.rows.len()
    }

    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// CPUs of each rank: one more than the greatest number in use.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Network interfaces of each rank: one more than the greatest number in use.
    pub fn nics(&self) -> u32 {
        self.nics
    }

    #[inline]
    pub fn task(&self, id: TaskId) -> Task {
        let Row { peer, tag, amount, kind, wide, cpu, nic } = self.rows[id.index()];
        let amount = if wide { self.wide[amount as usize] } else { u64::from(amount) };
        Task { kind, peer, tag, amount, cpu, nic }
    }

    /// Reads where [`TaskGraph::task`] and [`TaskGraph::waiting`] will read, so that the cache has it by then. The
    /// value depends on all that was read, and means nothing.
    #[inline]
    pub fn read_ahead(&self, id: TaskId) -> u32 {
        let first = self.edge_rows[id.index()];
        self.rows[id.index()].peer ^ self.edges.get(first as usize).map_or(0, |edge| edge.0)
    }

    /// The tasks of a rank, by id.
    pub fn tasks(&self, rank: u32) -> Range<u32> {
        self.rank_rows[rank as usize]..self.rank_rows[rank as usize + 1]
    }

    /// The tasks that wait for the start of `id` (`true`) or for its end, in the order in which they are let go.
    #[inline]
    pub fn waiting(&self, id: TaskId) -> impl Iterator<Item = (TaskId, bool)> + '_ {
        let edges = self.edge_rows[id.index()] as usize..self.edge_rows[id.index() + 1] as usize;
        self.edges[edges].iter().map(|e| (TaskId(e.0 & !Edge::STARTED), e.started()))
    }
}
