//! A cache of the Python objects of regions, operations and views, so that a loop returns the same objects in each
//! iteration.

use std::sync::Arc;

use pyo3::{prelude::*, types::PyTuple};
use rustc_hash::FxHashMap;
use unisono_base::{BufferId, TaskId};
use unisono_discover::{Box3, Discovery as Engine, Operation as Found, Region};

/// The largest number of cached objects of each kind. A full cache is emptied.
const MOST_KEPT: usize = 1 << 16;

/// The cached objects. Regions and operations are found by the address of their Rust value. The cache keeps the value
/// alive, so that no other value gets its address.
#[derive(Default)]
pub struct Converted {
    regions: FxHashMap<(usize, usize), (Arc<Region>, Py<PyTuple>)>,
    operations: FxHashMap<usize, (Arc<Found>, Py<Operation>)>,
    /// The corners of chunks, by box and number of dimensions.
    chunks: FxHashMap<(Box3, usize), (Py<PyTuple>, Py<PyTuple>)>,
    /// The results of `views`, by the number of the task's shape in the engine.
    views: FxHashMap<u32, Py<PyTuple>>,
}

/// A collective among some ranks.
#[pyclass(frozen, module = "unisono")]
pub struct Operation(Arc<Found>);

#[pymethods]
impl Operation {
    #[getter]
    fn pattern(&self) -> &'static str {
        self.0.pattern.name()
    }

    /// The participating ranks, in ascending order.
    #[getter]
    fn participants(&self) -> Vec<u32> {
        self.0.participants.iter().collect()
    }

    #[getter]
    fn root(&self) -> Option<u32> {
        self.0.root
    }
}

pub(crate) fn boxes<'py>(py: Python<'py>, region: &[Box3], dims: usize) -> PyResult<Bound<'py, PyTuple>> {
    let pairs: PyResult<Vec<_>> = region.iter().map(|part| corners(py, part, dims)).collect();
    PyTuple::new(py, pairs?)
}

type CornerTuples<'py> = (Bound<'py, PyTuple>, Bound<'py, PyTuple>);

fn corners<'py>(py: Python<'py>, part: &Box3, dims: usize) -> PyResult<CornerTuples<'py>> {
    Ok((PyTuple::new(py, &part.min[..dims])?, PyTuple::new(py, &part.max[..dims])?))
}

fn dims(engine: &Engine, buffer: BufferId) -> usize {
    engine.buffers().nth(buffer.index()).map_or(3, |b| b.dims)
}

/// Returns the bounding box and the boxes of a region, in the dimensions of the buffer.
pub fn view<'py>(
    py: Python<'py>,
    engine: &Engine,
    buffer: BufferId,
    region: &Region,
) -> PyResult<(CornerTuples<'py>, Bound<'py, PyTuple>)> {
    let dims = dims(engine, buffer);
    Ok((corners(py, &region.bounds(), dims)?, boxes(py, region.boxes(), dims)?))
}

impl Converted {
    pub fn views<'py>(&mut self, py: Python<'py>, engine: &Engine, task: TaskId) -> PyResult<Bound<'py, PyTuple>> {
        let shape = engine.shape_number(task);
        if let Some(known) = self.views.get(&shape) {
            return Ok(known.bind(py).clone());
        }
        let accesses = engine.views(task).into_iter().zip(engine.accessed(task));
        let made = accesses.map(|(region, buffer)| view(py, engine, buffer, &region));
        let made = PyTuple::new(py, made.collect::<PyResult<Vec<_>>>()?)?;
        if self.views.len() >= MOST_KEPT {
            self.views.clear();
        }
        self.views.insert(shape, made.clone().unbind());
        Ok(made)
    }

    pub fn chunk(&mut self, py: Python<'_>, chunk: &Box3, dims: usize) -> PyResult<(Py<PyTuple>, Py<PyTuple>)> {
        if let Some((low, high)) = self.chunks.get(&(*chunk, dims)) {
            return Ok((low.clone_ref(py), high.clone_ref(py)));
        }
        if self.chunks.len() >= MOST_KEPT {
            self.chunks.clear();
        }
        let (low, high) = corners(py, chunk, dims)?;
        let (low, high) = (low.unbind(), high.unbind());
        self.chunks.insert((*chunk, dims), (low.clone_ref(py), high.clone_ref(py)));
        Ok((low, high))
    }

    pub fn region(
        &mut self,
        py: Python<'_>,
        engine: &Engine,
        region: &Arc<Region>,
        buffer: BufferId,
    ) -> PyResult<Py<PyTuple>> {
        let key = (Arc::as_ptr(region).addr(), dims(engine, buffer));
        if let Some((_, known)) = self.regions.get(&key) {
            return Ok(known.clone_ref(py));
        }
        if self.regions.len() >= MOST_KEPT {
            self.regions.clear();
        }
        let made = boxes(py, region.boxes(), key.1)?.unbind();
        self.regions.insert(key, (region.clone(), made.clone_ref(py)));
        Ok(made)
    }

    pub fn operation(&mut self, py: Python<'_>, operation: &Arc<Found>) -> PyResult<Py<Operation>> {
        let key = Arc::as_ptr(operation).addr();
        if let Some((_, known)) = self.operations.get(&key) {
            return Ok(known.clone_ref(py));
        }
        if self.operations.len() >= MOST_KEPT {
            self.operations.clear();
        }
        let made = Py::new(py, Operation(operation.clone()))?;
        self.operations.insert(key, (operation.clone(), made.clone_ref(py)));
        Ok(made)
    }
}
