//! The arrays of a program, and the routes of its collectives.

use std::{
    mem,
    sync::{Arc, Mutex},
};

use pyo3::{buffer::PyUntypedBuffer, prelude::*};
use unisono_taskrun::{Array, Memory, Mpi, MpiReduction, Reducing as Engine, Routes, layout};

use crate::{
    errors::input,
    mpi::{lock, run_error},
};

/// The arrays of a program of tasks, and a communicator on which no other code uses the same tags.
#[pyclass(frozen, module = "unisono")]
pub struct TaskMemory {
    pub(super) memory: Arc<Memory<Mpi>>,
    routes: Mutex<Routes>,
}

#[pymethods]
impl TaskMemory {
    /// Makes a memory without arrays. `largest` is the length of the longest message in bytes. With `by_messages`,
    /// messages between pairs replace all collectives.
    #[new]
    fn new(comm: usize, largest: usize, by_messages: bool) -> PyResult<Self> {
        let memory = Mpi::on(comm).and_then(|layer| Memory::new(layer, largest)).map_err(run_error)?;
        Ok(Self { memory: Arc::new(memory), routes: Mutex::new(Routes::new(by_messages)) })
    }

    /// Adds the array with the next index: its bytes as a one-dimensional buffer, and its shape in elements.
    fn hold(&self, data: &Bound<'_, PyAny>, shape: Vec<usize>, element_bytes: usize) -> PyResult<()> {
        self.memory.hold(array(data, &shape, element_bytes)?);
        Ok(())
    }

    /// Returns the messages that began since the last call, as `(sent, other rank, bytes)`. The first call returns no
    /// messages and starts the recording.
    fn begun(&self) -> Vec<(bool, u32, usize)> {
        self.memory.begun()
    }

    /// Returns the distinct routes of the collectives so far, sorted, each as `PATTERN:WAY`.
    fn routes(&self) -> Vec<String> {
        lock(&self.routes).names()
    }

    /// Sets the codes, one byte each, of the operators of the elements of array `number`.
    fn hold_codes(&self, number: usize, codes: &Bound<'_, PyAny>, shape: Vec<usize>) -> PyResult<()> {
        self.memory.hold_codes(number, array(codes, &shape, 1)?);
        Ok(())
    }
}

impl TaskMemory {
    /// Takes the routes out of the memory until the result is dropped. No lock is held in the meantime, because
    /// functions of Python run.
    pub(super) fn take_routes(&self) -> TakenRoutes<'_> {
        TakenRoutes { home: &self.routes, routes: mem::take(&mut *lock(&self.routes)) }
    }
}

/// The routes taken from a memory. They return to the memory on drop, also after a panic.
pub(super) struct TakenRoutes<'a> {
    home: &'a Mutex<Routes>,
    pub(super) routes: Routes,
}

impl Drop for TakenRoutes<'_> {
    fn drop(&mut self) {
        *lock(self.home) = mem::take(&mut self.routes);
    }
}

fn array(data: &Bound<'_, PyAny>, shape: &[usize], element_bytes: usize) -> PyResult<Array> {
    let buffer = PyUntypedBuffer::get(data)?;
    let layout = layout(shape, element_bytes).map_err(run_error)?;
    if !buffer.is_c_contiguous() || buffer.readonly() || Some(buffer.len_bytes()) != layout.bytes() {
        return Err(input("an array has to be contiguous, writable, and of as many bytes as its shape holds"));
    }
    // SAFETY: the buffer has the bytes of the layout, and keeps them at their address.
    Ok(unsafe { Array::new(buffer.buf_ptr().cast(), layout, Box::new(buffer)) })
}

/// The operator that combines an array's partial results: `operator` is the code of the operator, or None if elements
/// have several operators. `datatype` and `op` are handles of MPI, or None if MPI does not combine the elements.
#[pyclass(frozen, module = "unisono")]
pub struct Reducing(pub Engine);

#[pymethods]
impl Reducing {
    #[new]
    #[pyo3(signature = (operator, *, datatype=None, op=None, neutral=None, exact=false))]
    fn new(
        operator: Option<u32>,
        datatype: Option<usize>,
        op: Option<usize>,
        neutral: Option<Vec<u8>>,
        exact: bool,
    ) -> Self {
        let mpi = datatype.zip(op).zip(neutral);
        let mpi = mpi.map(|((datatype, op), neutral)| MpiReduction { datatype, op, neutral, exact });
        Self(Engine { operator, mpi })
    }
}
