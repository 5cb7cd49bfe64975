//! A program's buffers and tasks, from which each rank's discovery can be repeated.

use unisono_base::{BufferId, TaskId};

use crate::{
    discovery::Discovery,
    error::DiscoverError,
    space::Box3,
    split::Geometry,
    task::{Access, Buffer, Task},
};

#[derive(Clone, Debug, Default)]
pub struct TaskList {
    /// True if arrays may have more dimensions than ranges. A point of a range then covers whole rows
    /// ([`crate::Options::rows`]).
    pub rows: bool,
    pub buffers: Vec<Buffer>,
    pub tasks: Vec<ListedTask>,
}

/// A task with its name, or a fence.
#[derive(Clone, Debug)]
pub struct ListedTask {
    pub name: String,
    /// The number of arithmetic operations for a point of the range, which discovery does not use.
    pub operations: Option<f64>,
    /// True if the task's kernel runs on the host even if processes have devices.
    pub on_host: bool,
    pub submitted: Submitted,
}

#[derive(Clone, Debug)]
pub enum Submitted {
    Task {
        geometry: Geometry,
        accesses: Vec<Access>,
    },
    /// Every rank reads a box of a buffer, and no kernel runs.
    Fence {
        buffer: BufferId,
        window: Box3,
    },
}

impl TaskList {
    /// Declares all buffers, submits all tasks, and settles the waiting ones ([`Discovery::flush`]).
    ///
    /// # Errors
    /// Returns an error if the discovery refuses a task.
    pub fn submit(&self, to: &mut Discovery) -> Result<(), DiscoverError> {
        for buffer in &self.buffers {
            to.buffer(buffer.clone());
        }
        for ListedTask { name, submitted, .. } in &self.tasks {
            match submitted {
                Submitted::Task { geometry, accesses } => {
                    to.submit(&Task { name, geometry: *geometry, accesses })?;
                }
                Submitted::Fence { buffer, window } => {
                    to.fence(name, *buffer, *window)?;
                }
            }
        }
        to.flush();
        Ok(())
    }

    /// # Panics
    /// Panics if there is no such task.
    pub fn task(&self, task: TaskId) -> &ListedTask {
        &self.tasks[task.index()]
    }
}

impl ListedTask {
    /// Checks the number of operations.
    ///
    /// # Errors
    /// Returns an error if the number is not from 0 to 1e30.
    pub fn check_operations(name: &str, operations: Option<f64>) -> Result<(), DiscoverError> {
        match operations.filter(|n| !(0.0..=1e30).contains(n)) {
            None => Ok(()),
            Some(wrong) => {
                let accepted = "accepted are 0 to 1e30 for a point of the range";
                Err(DiscoverError::Input(format!("task '{name}': operations is {wrong}; {accepted}")))
            }
        }
    }
}
