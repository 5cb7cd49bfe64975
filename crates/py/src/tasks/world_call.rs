//! `WorldCall`, a collective on an array that a plan of a `World` performs.

use std::sync::Arc;

use pyo3::{buffer::PyUntypedBuffer, prelude::*};
use unisono_taskrun::{Array, WorldCall as Engine};

use crate::errors::input;

/// A collective of all ranks, and the array that holds its data.
#[pyclass(frozen, module = "unisono")]
pub struct WorldCall {
    pub(super) call: Arc<Engine>,
    pub(super) array: Arc<Array>,
}

#[pymethods]
impl WorldCall {
    #[getter]
    fn collective(&self) -> &'static str {
        self.call.kind.name()
    }

    /// The number of elements of one rank's part or of the vector. If the call does not combine, the number of bytes.
    #[getter]
    fn count(&self) -> usize {
        self.call.count
    }

    /// True if the call combines elements of the array.
    #[getter]
    fn combines(&self) -> bool {
        self.call.combines
    }

    #[getter]
    fn root(&self) -> u32 {
        self.call.root
    }

    /// The bytes of this rank's input.
    #[getter]
    fn bytes(&self) -> usize {
        self.call.bytes()
    }

    /// The bytes of the result; None if the result replaces the input.
    #[getter]
    fn result_bytes(&self) -> Option<usize> {
        self.call.result_bytes()
    }

    /// The offset of the input in the array, in bytes, if the call reads the input from the array.
    #[getter]
    fn at(&self) -> Option<usize> {
        self.call.at()
    }

    /// The offset of the result in the array, in bytes, if the call may write the result to the array while nothing
    /// else accesses the array.
    #[getter]
    fn in_place(&self) -> Option<usize> {
        self.call.in_place()
    }

    /// Packs this rank's input into an array of `bytes` bytes.
    fn pack(&self, py: Python<'_>, into: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = octets(into, self.call.bytes(), true)?;
        let address = buffer.buf_ptr().expose_provenance();
        // SAFETY: the array has this number of bytes, and the caller has made it for this call alone.
        py.detach(|| unsafe { self.call.pack(&self.array, std::ptr::with_exposed_provenance_mut(address)) });
        Ok(())
    }

    /// Unpacks the result from an array of bytes to its regions in the array of the call.
    fn unpack(&self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = octets(result, self.call.result_bytes().unwrap_or(self.call.bytes()), false)?;
        let address = buffer.buf_ptr().expose_provenance();
        // SAFETY: the array has this number of bytes. The call is over, so nothing writes the array.
        py.detach(|| unsafe { self.call.unpack(&self.array, std::ptr::with_exposed_provenance(address)) });
        Ok(())
    }
}

fn octets(data: &Bound<'_, PyAny>, bytes: usize, writes: bool) -> PyResult<PyUntypedBuffer> {
    let buffer = PyUntypedBuffer::get(data)?;
    if !buffer.is_c_contiguous() || (writes && buffer.readonly()) || buffer.len_bytes() != bytes {
        return Err(input(format!("the array of a call has to be contiguous, writable, and {bytes} bytes long")));
    }
    Ok(buffer)
}
