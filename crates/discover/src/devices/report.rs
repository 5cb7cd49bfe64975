//! The report of the copies among the memories of one process.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{DeviceMoved, Devices};
use crate::{
    discovery::{Discovery, Options},
    error::DiscoverError,
    rules::Rules,
    task_list::{Submitted, TaskList},
};

/// One distinct operation, with the names of its task and buffer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DeviceOperation {
    pub moment: &'static str,
    pub task: String,
    pub task_index: u32,
    pub buffer: String,
    /// `copies`, `broadcast` or `reduce`.
    pub kind: &'static str,
    pub count: u64,
    /// The bytes that one occurrence copies, counted once for each receiver.
    pub bytes: u64,
    /// The messages, each as `[from, to, bytes]`; memory 0 is the host's. Empty for a broadcast.
    pub messages: Vec<Vec<u64>>,
    /// The number of copies of one occurrence; a broadcast counts as one.
    pub copies: u64,
    /// The number [`DeviceMoved::updates`].
    pub updates: u64,
}

/// The copies between the memories of a process with devices.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename = "DeviceCopies")]
pub struct DeviceReport {
    pub count: u32,
    pub rank: u32,
    pub operations: Vec<DeviceOperation>,
    /// The number of copies by all occurrences of all operations. `updates`, `broadcasts` and `bytes` are also sums
    /// over all occurrences.
    pub copies: u64,
    pub updates: u64,
    pub broadcasts: u64,
    pub bytes: u64,
}

impl Devices {
    pub fn report(&self, engine: &Discovery, rank: u32) -> DeviceReport {
        let buffers: Vec<_> = engine.buffers().collect();
        let operation = |row: &DeviceMoved| {
            let (moved, about) = (&row.moved, buffers[row.moved.buffer.index()]);
            let bytes = |elements: u64| elements.saturating_mul(about.element_bytes);
            let direct = moved.what.direct().map_or_else(Vec::new, |direct| direct.messages());
            DeviceOperation {
                moment: row.moment.name(),
                task: engine.task_name(moved.before).to_owned(),
                task_index: moved.before.0,
                buffer: about.name.clone(),
                kind: moved.what.pattern.map_or("copies", |pattern| pattern.name()),
                count: moved.count,
                bytes: bytes(moved.what.elements),
                copies: (direct.len() as u64).max(1),
                messages: direct.iter().map(|m| vec![m.from.into(), m.to.into(), bytes(m.elements)]).collect(),
                updates: row.updates,
            }
        };
        let operations: Vec<_> = self.rows().iter().map(operation).collect();
        let sum = |of: fn(&DeviceOperation) -> u64| {
            operations.iter().fold(0u64, |all, row| all.saturating_add(of(row).saturating_mul(row.count)))
        };
        DeviceReport {
            count: self.count(),
            rank,
            copies: sum(|row| row.copies),
            updates: sum(|row| row.updates),
            broadcasts: sum(|row| u64::from(row.kind == "broadcast")),
            bytes: sum(|row| row.bytes),
            operations,
        }
    }
}

/// Reports the copies of process `rank` of `nodes` processes, with `devices` devices each, in a program.
///
/// # Errors
/// Returns an error if the discovery refuses a task, or two devices would write the same element.
pub fn device_report(
    list: &TaskList,
    nodes: u32,
    rules: Rules,
    rank: u32,
    devices: u32,
) -> Result<(Discovery, Devices, DeviceReport), DiscoverError> {
    let on_host: BTreeSet<u32> = (0u32..)
        .zip(&list.tasks)
        .filter(|(_, task)| task.on_host || matches!(task.submitted, Submitted::Fence { .. }))
        .map(|(k, _)| k)
        .collect();
    let mut followed = Devices::new(devices, on_host)?;
    let options = Options { rows: list.rows, ..Options::commands(nodes, rank, rules) };
    let mut discovery = Discovery::new(options)?;
    list.submit(&mut discovery)?;
    let commands = discovery.take_commands();
    followed.follow(&discovery, &commands)?;
    let report = followed.report(&discovery, rank);
    Ok((discovery, followed, report))
}
