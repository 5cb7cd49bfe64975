//! The arrays of a program in the memory of a rank, and the communicator of its messages.

use std::{
    ffi::c_int,
    mem,
    sync::{Arc, Mutex},
};

use pyo3::{buffer::PyUntypedBuffer, prelude::*};
use rustc_hash::FxHashMap;
use unisono_discover::{Box3, Region};
use unisono_mpi::{Begun, Comm, Corners, Layout, Library, Outcome, Parts, ThreadLevel, library};

use crate::{
    errors::{Error, input},
    mpi::{NOT_RUNNING, lock, mpi_error, refused},
};

/// The most regions whose places are cached. A full cache is emptied.
const MOST_KEPT: usize = 1 << 16;

/// An array in memory, with all its elements.
pub struct Held {
    /// Keeps the buffer alive at its address.
    _buffer: PyUntypedBuffer,
    pub address: usize,
    pub layout: Layout,
}

/// Uninitialized memory for packed data.
pub struct Room(Vec<u128>);

impl Room {
    pub fn new(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes.div_ceil(size_of::<u128>())))
    }

    pub fn address(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// A message that was begun: whether this rank sends it, the other rank, the bytes.
type Logged = (bool, u32, usize);
/// The parts of an array by the rank that sends or receives them.
pub type Rows = Arc<[(u32, Arc<Parts>)]>;

#[derive(Default)]
struct Inner {
    arrays: Vec<Arc<Held>>,
    /// The regions by address and array. The value keeps the object alive, so its address stays in use.
    regions: FxHashMap<(usize, usize), (Arc<Region>, Arc<Parts>)>,
    rows: FxHashMap<(usize, usize), (AwaitedRegions, Rows)>,
    log: Option<Vec<Logged>>,
}

type AwaitedRegions = Arc<[(u32, Arc<Region>)]>;

/// The arrays of a program, and a communicator on which nothing else uses the same tags.
#[pyclass(frozen, module = "unisono")]
pub struct TaskMemory {
    pub(super) library: &'static Library,
    pub(super) level: ThreadLevel,
    comm: Comm,
    /// The longest message in bytes.
    largest: usize,
    inner: Mutex<Inner>,
}

#[pymethods]
impl TaskMemory {
    #[new]
    fn new(comm: usize, largest: usize) -> PyResult<Self> {
        let Some(library) = library() else { return Err(input("no MPI library is loaded in this process")) };
        if !library.is_running() {
            return Err(refused(NOT_RUNNING));
        }
        if largest == 0 {
            return Err(input("the longest message has 0 bytes; accepted are 1 and more"));
        }
        let (level, comm) = (library.thread_level().map_err(mpi_error)?, library.constants.handle(comm));
        Ok(Self { library, level, comm, largest, inner: Mutex::default() })
    }

    /// Adds the next array: its bytes, in one dimension, and its shape in elements.
    fn hold(&self, data: &Bound<'_, PyAny>, shape: Vec<usize>, element_bytes: usize) -> PyResult<()> {
        let buffer = PyUntypedBuffer::get(data)?;
        let layout = layout(&shape, element_bytes)?;
        if !buffer.is_c_contiguous() || buffer.readonly() || Some(buffer.len_bytes()) != layout.bytes() {
            return Err(input("an array has to be contiguous, writable, and of as many bytes as its shape holds"));
        }
        let held = Held { address: buffer.buf_ptr().expose_provenance(), _buffer: buffer, layout };
        lock(&self.inner).arrays.push(Arc::new(held));
        Ok(())
    }

    /// Returns the messages begun since the last call, `(sent, rank, bytes)`. The first call starts the list.
    fn begun(&self) -> Vec<Logged> {
        lock(&self.inner).log.replace(Vec::new()).unwrap_or_default()
    }
}

impl TaskMemory {
    pub fn array(&self, number: usize) -> PyResult<Arc<Held>> {
        let found = lock(&self.inner).arrays.get(number).cloned();
        found.ok_or_else(|| input(format!("there is no array {number} in memory")))
    }

    /// Returns the places of a region of an array.
    pub fn parts(&self, region: &Arc<Region>, array: usize) -> PyResult<Arc<Parts>> {
        let key = (Arc::as_ptr(region).addr(), array);
        if let Some((_, parts)) = lock(&self.inner).regions.get(&key) {
            return Ok(parts.clone());
        }
        let parts = Arc::new(parts_of(&self.array(array)?.layout, region.boxes())?);
        let mut inner = lock(&self.inner);
        if inner.regions.len() >= MOST_KEPT {
            inner.regions.clear();
        }
        inner.regions.insert(key, (region.clone(), parts.clone()));
        Ok(parts)
    }

    /// Returns the places of the regions that ranks push.
    pub fn rows(&self, from: &AwaitedRegions, array: usize) -> PyResult<Rows> {
        let key = (Arc::as_ptr(from).addr(), array);
        if let Some((_, rows)) = lock(&self.inner).rows.get(&key) {
            return Ok(rows.clone());
        }
        let made = from.iter().map(|(rank, region)| Ok((*rank, self.parts(region, array)?)));
        let rows: Rows = made.collect::<PyResult<Vec<_>>>()?.into();
        let mut inner = lock(&self.inner);
        if inner.rows.len() >= MOST_KEPT {
            inner.rows.clear();
        }
        inner.rows.insert(key, (from.clone(), rows.clone()));
        Ok(rows)
    }

    /// Begins to send memory, in pieces of at most the longest message.
    ///
    /// # Safety
    /// The memory must be valid and unchanged until all pieces are sent.
    pub unsafe fn send(&self, at: usize, bytes: usize, to: u32, tag: c_int, begun: &mut Vec<Begun>) -> Outcome {
        self.log(true, to, bytes);
        for first in (0..bytes).step_by(self.largest) {
            let piece = (bytes - first).min(self.largest);
            let from = std::ptr::with_exposed_provenance(at + first);
            // SAFETY: a part of the memory that the caller guarantees.
            begun.push(unsafe { self.library.begin_send(from, piece, to, tag, self.comm) }?);
        }
        Ok(())
    }

    /// Begins to receive into memory, in the pieces of [`Self::send`].
    ///
    /// # Safety
    /// The memory must be valid, and nothing else may read or write it, until all pieces are received.
    pub unsafe fn receive(&self, at: usize, bytes: usize, from: u32, tag: c_int, begun: &mut Vec<Begun>) -> Outcome {
        self.log(false, from, bytes);
        for first in (0..bytes).step_by(self.largest) {
            let piece = (bytes - first).min(self.largest);
            let into = std::ptr::with_exposed_provenance_mut(at + first);
            // SAFETY: a part of the memory that the caller guarantees.
            begun.push(unsafe { self.library.begin_receive(into, piece, from, tag, self.comm) }?);
        }
        Ok(())
    }

    fn log(&self, sent: bool, rank: u32, bytes: usize) {
        if let Some(log) = &mut lock(&self.inner).log {
            log.push((sent, rank, bytes));
        }
    }
}

/// Returns the layout of an array of one to three dimensions.
pub fn layout(shape: &[usize], element_bytes: usize) -> PyResult<Layout> {
    let mut full = [1; 3];
    if shape.len() > full.len() {
        return Err(input(format!("an array has {} dimensions; accepted are 1 to 3", shape.len())));
    }
    full[..shape.len()].copy_from_slice(shape);
    Ok(Layout { shape: full, element_bytes })
}

pub fn parts_of(layout: &Layout, boxes: &[Box3]) -> PyResult<Parts> {
    let corners: Option<Vec<Corners>> = boxes.iter().map(corners).collect();
    let parts = corners.and_then(|corners| Parts::of_region(layout, corners.into_iter()));
    parts.ok_or_else(|| Error::new_err("a region is not in its array, please report it"))
}

fn corners(part: &Box3) -> Option<Corners> {
    let point = |p: [i64; 3]| {
        let mut found = [0; 3];
        for (to, at) in found.iter_mut().zip(p) {
            *to = usize::try_from(at).ok()?;
        }
        Some(found)
    };
    Some([point(part.min)?, point(part.max)?])
}

/// Leaks a value whose memory MPI may still use.
pub fn keep_for_good<T>(kept: T) {
    mem::forget(kept);
}
