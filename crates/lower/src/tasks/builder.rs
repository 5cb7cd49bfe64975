//! Builds a task graph rank by rank. Unsorted edges are in memory for the current rank only.

use unisono_base::{TaskId, interrupt::poll, narrow};

use super::{
    ANY, Kind, Task, TaskError, TaskGraph,
    graph::{Edge, Row},
};

/// The maximum number of tasks: simulators number tasks and their messages in 30 bits.
pub(super) const MOST_TASKS: u64 = (1 << 30) - 1;
/// The maximum number of edges: simulators count the tasks that one task waits for in 30 bits.
const MOST_EDGES: u64 = (1 << 30) - 256;

/// Builds a task graph. Errors are kept until [`Builder::finish`], so that loops need not check them.
#[derive(Default)]
pub struct Builder {
    graph: TaskGraph,
    /// The edges of the current rank as `(task waited for, edge)`, in the order of insertion.
    edges: Vec<(u32, Edge)>,
    greatest_peer: Option<(Kind, u32)>,
    error: Option<TaskError>,
}

impl Builder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Reserves memory for about `ranks` ranks and `tasks` tasks.
    pub fn reserve(&mut self, ranks: usize, tasks: usize) {
        self.graph.reserve(ranks, tasks);
    }

    pub fn rank(&mut self) {
        self.end_rank();
        if self.graph.rank_rows.len() as u64 >= u64::from(ANY) {
            self.fail(TaskError::TooMany { what: "ranks", found: u64::from(ANY), most: u64::from(ANY - 1) });
            return;
        }
        self.graph.rank_rows.push(narrow(self.graph.rows.len()));
    }

    /// Adds a task to the current rank. Tasks that become free at one time start in this order: sends, receives,
    /// others; and within each kind in the order in which the tasks were added.
    #[inline]
    pub fn task(&mut self, task: Task) -> TaskId {
        let count = self.graph.rows.len() as u64;
        if count.is_multiple_of(64) {
            poll();
        }
        if self.graph.rank_rows.is_empty() {
            self.fail(TaskError::NoRank);
            return TaskId(0);
        }
        if count >= MOST_TASKS {
            self.fail(TaskError::TooMany { what: "tasks", found: count + 1, most: MOST_TASKS });
            return TaskId(0);
        }
        let names_peer = match task.kind {
            Kind::Send => true,
            Kind::Receive => task.peer != ANY,
            Kind::Calc | Kind::Reduce => false,
        };
        if names_peer && self.greatest_peer.is_none_or(|(_, peer)| peer < task.peer) {
            self.greatest_peer = Some((task.kind, task.peer));
        }
        self.graph.cpus = self.graph.cpus.max(u32::from(task.cpu) + 1);
        self.graph.nics = self.graph.nics.max(u32::from(task.nic) + 1);
        self.graph.pack(task);
        TaskId(narrow(count))
    }

    /// Makes `later` wait until `earlier` is done.
    #[inline]
    pub fn requires(&mut self, later: TaskId, earlier: TaskId) {
        self.edge(later, earlier, false);
    }

    /// Makes `later` wait until `earlier` has started.
    pub fn irequires(&mut self, later: TaskId, earlier: TaskId) {
        self.edge(later, earlier, true);
    }

    #[inline]
    fn edge(&mut self, later: TaskId, earlier: TaskId, started: bool) {
        let first = self.graph.rank_rows.last().copied().unwrap_or(0);
        for task in [later, earlier] {
            if task.0 < first || task.index() >= self.graph.rows.len() {
                self.fail(TaskError::OtherRank { task });
                return;
            }
        }
        self.edges.push((earlier.0, Edge::new(later.0, started)));
    }

    fn end_rank(&mut self) {
        let edges = (self.graph.far_edge_count() + self.edges.len()) as u64;
        if edges > MOST_EDGES {
            self.fail(TaskError::TooMany { what: "edges", found: edges, most: MOST_EDGES });
            self.edges.clear();
        }
        // The sort is stable, so edges to the same task and of the same kind keep their order.
        let key = |&(earlier, edge): &(u32, Edge)| (earlier, !edge.started());
        if !self.edges.is_sorted_by_key(key) {
            self.edges.sort_by_key(key);
        }
        poll();
        for edges in self.edges.chunk_by(|a, b| a.0 == b.0) {
            self.graph.add_edges(edges);
        }
        self.edges.clear();
    }

    #[cold]
    pub(super) fn fail(&mut self, error: TaskError) {
        self.error.get_or_insert(error);
    }

    /// # Errors
    /// Returns the first error: a value that the tables cannot hold, a task or an edge outside the current rank, or a
    /// peer that does not exist.
    pub fn finish(mut self) -> Result<TaskGraph, TaskError> {
        self.end_rank();
        self.graph.rank_rows.push(narrow(self.graph.rows.len()));
        let ranks = self.graph.rank_count();
        if let Some((kind, peer)) = self.greatest_peer
            && peer >= ranks
        {
            self.fail(TaskError::NoPeer { kind: kind.name(), peer, ranks });
        }
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.graph),
        }
    }
}

const _: () = assert!(size_of::<Row>() == 16 && size_of::<Edge>() == 4);
