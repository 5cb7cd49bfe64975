//! Schedules as lists of rows that are easy to change.

use unisono_base::{InstrId, NodeId};
use unisono_collective::Collective;
use unisono_schedule::{Builder, Operand, Schedule};

#[derive(Clone)]
pub struct DraftStream {
    pub source: u32,
    pub sinks: Vec<u32>,
    pub capacity: Option<u32>,
}

#[derive(Clone)]
pub struct DraftRow {
    /// The id by which `after` of other rows names this row.
    pub id: usize,
    pub node: u32,
    pub lane: u32,
    pub len: u32,
    pub sources: Vec<Operand>,
    pub sinks: Vec<Operand>,
    pub after: Vec<usize>,
}

/// A schedule that is easy to change. Rows of a lane run in the order of the list.
#[derive(Clone)]
pub struct Draft {
    pub collective: Collective,
    pub scratch: Vec<u32>,
    pub streams: Vec<DraftStream>,
    pub rows: Vec<DraftRow>,
}

impl Draft {
    /// Returns the schedule; `None` if it does not fit into the tables.
    pub fn build(&self) -> Option<Schedule> {
        let mut b = Builder::new(self.collective);
        b.keep_unused_streams();
        for _ in self.collective.ranks as usize..self.scratch.len() {
            b.switch();
        }
        for (node, &elements) in self.scratch.iter().enumerate() {
            b.scratch(NodeId::new(node), elements);
        }
        let mut sinks: Vec<NodeId> = Vec::with_capacity(4);
        for s in &self.streams {
            sinks.clear();
            sinks.extend(s.sinks.iter().map(|&n| NodeId(n)));
            let id = b.stream(NodeId(s.source), &sinks);
            if let Some(capacity) = s.capacity {
                b.capacity(id, capacity);
            }
        }
        let mut ids: Vec<Option<InstrId>> = vec![None; self.rows.iter().map(|r| r.id + 1).max().unwrap_or(0)];
        for row in &self.rows {
            let id = b.combine(NodeId(row.node), row.lane, row.len, &row.sources, &row.sinks);
            ids[row.id] = (row.len > 0).then_some(id);
        }
        for row in &self.rows {
            for &earlier in &row.after {
                if let (Some(id), Some(Some(earlier))) = (ids[row.id], ids.get(earlier)) {
                    b.after(id, *earlier);
                }
            }
        }
        b.finish().ok()
    }
}
