//! `Moved`: what a program of tasks exchanges, for those who put a price on it.

use pyo3::prelude::*;
use unisono_discover::{DirectSchedule, Discovery, Extremes, Moved as Row, whole_elements};

use crate::{
    discover::refused,
    errors::{detached, input},
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
    fn buffer_index(&self) -> u32 {
        self.row.buffer.0
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

    /// Whether messages between pairs serve it, and neither a plan nor a library does, whatever its elements are.
    #[getter]
    fn by_messages(&self) -> bool {
        self.row.what.by_messages
    }

    /// The name of its schedule by messages, which is equal where these are; none of a collective that is served otherwise.
    /// `extra_bytes` go with each element.
    #[pyo3(signature = (extra_bytes=0))]
    fn digest(&self, extra_bytes: u64) -> Option<String> {
        self.row.what.direct().map(|direct| named(direct.digest(self.element_bytes + extra_bytes)))
    }

    /// Its messages as a schedule among all nodes; of a reduction each partial result goes straight to whom it is for.
    #[pyo3(signature = (extra_bytes=0))]
    fn schedule(&self, py: Python<'_>, extra_bytes: u64) -> PyResult<Schedule> {
        let none = || input(format!("the {} of '{}' is not served by messages", self.pattern(), self.buffer));
        let (nodes, bytes) = (self.nodes, self.element_bytes + extra_bytes);
        let made = detached(py, || {
            let direct = self.row.what.direct();
            direct.map(|direct| DirectSchedule::new(&direct, nodes, bytes))
        })?;
        let DirectSchedule { schedule, expected } = made.ok_or_else(none)?.map_err(refused)?;
        Ok(Schedule::of_messages(schedule, expected))
    }
}

/// The name of a schedule by messages.
pub fn named(digest: u64) -> String {
    format!("messages-{digest:016x}")
}
