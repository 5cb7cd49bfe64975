//! `Moved`: what a program of tasks exchanges, for those who put a price on it.

use std::hash::{Hash, Hasher};

use pyo3::prelude::*;
use rustc_hash::FxHasher;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_discover::{Discovery, Extremes, Moved as Row};
use unisono_lower::File;
use unisono_plan::exchange::{Message, direct_reduction, messages_schedule, whole_elements};

use crate::{
    errors::{detached, input, plan_error},
    schedule::Schedule,
};

/// A collective, or the messages of one read; `count` tasks of one name wait for one like it.
#[pyclass(frozen, module = "unisono")]
pub struct Moved {
    row: Row,
    task: String,
    buffer: String,
    element_bytes: u64,
    nodes: u32,
}

impl Moved {
    /// Everything that a discovery came across so far.
    pub fn all(discovery: &Discovery) -> Vec<Self> {
        let buffers: Vec<_> = discovery.buffers().collect();
        let named = |row: Row| {
            let (task, buffer) = (discovery.task_name(row.before).to_owned(), buffers[row.buffer.index()]);
            let (name, element_bytes) = (buffer.name.clone(), buffer.element_bytes);
            Self { row, task, buffer: name, element_bytes, nodes: discovery.options().nodes }
        };
        discovery.moved().into_iter().map(named).collect()
    }

    fn bytes(&self, of: Extremes) -> (u64, u64) {
        (of.least.saturating_mul(self.element_bytes), of.most.saturating_mul(self.element_bytes))
    }
}

#[pymethods]
impl Moved {
    /// The tasks that it is for.
    #[getter]
    fn task(&self) -> &str {
        &self.task
    }

    /// The first of them.
    #[getter]
    fn task_index(&self) -> u32 {
        self.row.before.0
    }

    #[getter]
    fn buffer(&self) -> &str {
        &self.buffer
    }

    #[getter]
    fn count(&self) -> u64 {
        self.row.count
    }

    /// `point-to-point` where no pattern was found.
    #[getter]
    fn pattern(&self) -> &'static str {
        self.row.what.pattern.map_or("point-to-point", |pattern| pattern.name())
    }

    /// Whether it is messages between pairs, not a collective.
    #[getter]
    fn is_messages(&self) -> bool {
        !self.row.what.messages.is_empty()
    }

    /// Ranks that take part, ascending.
    #[getter]
    fn participants(&self) -> Vec<u32> {
        self.row.what.participants.iter().collect()
    }

    /// The same as intervals `[first, last]`.
    #[getter]
    fn intervals(&self) -> Vec<(u32, u32)> {
        self.row.what.participants.intervals().iter().map(|(first, end)| (*first, end - 1)).collect()
    }

    #[getter]
    fn root(&self) -> Option<u32> {
        self.row.what.root
    }

    /// What an algorithm counts as its vector, or block: the least and the most bytes of those that take part.
    #[getter]
    fn part(&self) -> (u64, u64) {
        self.bytes(self.row.what.part)
    }

    /// The most as elements of `dtype`.
    #[getter]
    fn elements(&self) -> u64 {
        whole_elements(self.element_bytes, self.row.what.part.most).1
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        whole_elements(self.element_bytes, 0).0.name()
    }

    /// The least and the most bytes that one rank gives.
    #[getter]
    fn gives(&self) -> (u64, u64) {
        self.bytes(self.row.what.gives)
    }

    #[getter]
    fn gets(&self) -> (u64, u64) {
        self.bytes(self.row.what.gets)
    }

    /// Bytes that ranks receive from others.
    #[getter]
    fn bytes_moved(&self) -> u64 {
        self.row.what.elements.saturating_mul(self.element_bytes)
    }

    /// How many messages; none of a collective.
    #[getter]
    fn messages(&self) -> usize {
        self.row.what.messages.len()
    }

    /// `(from, to, elements)` of each message.
    fn message_list(&self) -> Vec<(u32, u32, u64)> {
        self.row.what.messages.clone()
    }

    /// A number that is equal where the messages are.
    #[getter]
    fn digest(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (&self.row.what.messages, self.element_bytes).hash(&mut hasher);
        hasher.finish()
    }

    /// Its messages as a schedule among all nodes; of a reduction, in which each partial result goes straight to whom it
    /// is for, among the ranks that take part.
    fn schedule(&self, py: Python<'_>) -> PyResult<Schedule> {
        let what = &self.row.what;
        if self.is_messages() {
            let elements = |count| whole_elements(self.element_bytes, count);
            let message = |&(from, to, count)| Message { from, to, elements: elements(count).1 };
            let messages: Vec<Message> = what.messages.iter().map(message).collect();
            let made = detached(py, || messages_schedule(self.nodes, elements(0).0, &messages))?;
            let (schedule, required) = made.map_err(plan_error)?;
            return Ok(Schedule::of_messages(schedule, required));
        }
        let (dtype, elements): (Dtype, u64) = whole_elements(self.element_bytes, what.part.most);
        let kind: Kind = self.pattern().parse().map_err(input)?;
        let at = |root| what.participants.iter().take_while(|&k| k < root).count() as u64;
        let (ranks, root) = (what.participants.len(), what.root.map_or(0, at));
        let collective = Collective::new(kind, ranks, elements, root, Operator::Sum, dtype).map_err(input)?;
        let schedule = detached(py, || direct_reduction(collective))?.map_err(plan_error)?;
        Ok(Schedule::new(File { schedule, placement: None, machine: None }))
    }
}
