//! Conversion of this rank's commands to Python.

use std::sync::Arc;

use pyo3::{intern, prelude::*, types::PyTuple};
use unisono_discover::{Action, Command, Waits};

use super::{Discovery, refused};
use crate::errors::detached;

impl Discovery {
    /// Returns this rank's commands since the last call, each with the name of the schedule of its messages, if there
    /// is one. See `Discovery.commands` of Python.
    pub fn take(&mut self, py: Python<'_>, prove: bool) -> PyResult<Vec<(Command, Option<Arc<str>>)>> {
        self.take_repeated(py)?;
        let (reads, commands) = (self.engine.take_reads(), self.engine.take_commands());
        let named = |command: Command| {
            let name = match &command.action {
                Action::Push { buffer, read, .. } | Action::AwaitPush { buffer, read, .. } if prove => {
                    let (engine, proved) = (&self.engine, &mut self.proved);
                    detached(py, || proved.name(engine, &reads[*read as usize], *buffer))?.map_err(refused)?
                }
                _ => None,
            };
            Ok((command, name))
        };
        commands.into_iter().map(named).collect()
    }

    pub fn tuple<'py>(
        &mut self,
        py: Python<'py>,
        command: &Command,
        name: Option<&str>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (id, task, waits) = (command.id.0, command.task.0, waits_of(&command.waits));
        match &command.action {
            Action::Push { buffer, to, region, .. } => {
                let region = self.converted.region(py, &self.engine, region, *buffer)?;
                (intern!(py, "push"), id, task, waits, buffer.0, to, region, name).into_pyobject(py)
            }
            Action::AwaitPush { buffer, from, .. } => {
                let rows: PyResult<Vec<_>> = from
                    .iter()
                    .map(|(rank, region)| Ok((*rank, self.converted.region(py, &self.engine, region, *buffer)?)))
                    .collect();
                let rows = PyTuple::new(py, rows?)?;
                (intern!(py, "await"), id, task, waits, buffer.0, rows, name).into_pyobject(py)
            }
            Action::Collective { buffer, group, operation, given, received } => {
                let mut region = |region| self.converted.region(py, &self.engine, region, *buffer);
                let (given, received) = (region(given)?, region(received)?);
                let operation = self.converted.operation(py, operation)?;
                let kind = intern!(py, "collective");
                (kind, id, task, waits, buffer.0, group, operation, given, received).into_pyobject(py)
            }
            Action::Execute { chunk } => {
                let dims = self.engine.range_dims(command.task);
                let (low, high) = self.converted.chunk(py, chunk, dims)?;
                (intern!(py, "execute"), id, task, waits, low, high).into_pyobject(py)
            }
        }
    }
}

fn waits_of(waits: &Waits) -> (Vec<u32>, Option<u32>) {
    (waits.on.iter().map(|id| id.0).collect(), waits.all_until.map(|id| id.0))
}
