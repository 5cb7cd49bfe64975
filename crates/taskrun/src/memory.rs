//! The arrays of a program in the memory of a rank, and the messages that read and write these arrays.

use std::{
    any::Any,
    ffi::c_int,
    sync::{Arc, Mutex},
};

use rustc_hash::FxHashMap;
use unisono_discover::{Box3, Region};
use unisono_mpi::{Corners, Layout, Outcome, Parts};

use crate::{error::RunError, layer::MessageLayer, lock};

/// The maximum number of entries of each of the two caches of byte ranges. A cache that is full is emptied.
const MOST_KEPT: usize = 1 << 16;

/// An array in memory, with all its elements.
pub struct Array {
    address: usize,
    pub layout: Layout,
    /// The host's object, which keeps the memory alive at its address.
    _object: Box<dyn Any + Send + Sync>,
}

impl Array {
    /// Describes memory of an array of the host; `object` keeps the memory alive.
    ///
    /// # Safety
    /// The memory must have the bytes of the layout, and must stay valid at its address while `object` lives.
    pub unsafe fn new(address: *mut u8, layout: Layout, object: Box<dyn Any + Send + Sync>) -> Self {
        Self { address: address.expose_provenance(), layout, _object: object }
    }

    /// Returns the address of the byte at an offset.
    pub fn at(&self, byte: usize) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address + byte)
    }
}

/// Uninitialized memory for packed data.
#[derive(Default)]
pub struct Room(Vec<u128>);

impl Room {
    pub fn new(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes.div_ceil(size_of::<u128>())))
    }

    pub fn address(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// A started message: true if this rank sends it, the other rank, and the number of bytes.
type Logged = (bool, u32, usize);
/// The other rank of each message, and the parts of an array that this rank sends to it or receives from it.
pub type Rows = Arc<[(u32, Arc<Parts>)]>;

#[derive(Default)]
struct Inner {
    arrays: Vec<Arc<Array>>,
    /// By array index, an array with the operator's code for each element, for arrays whose tasks have several
    /// operators.
    codes: FxHashMap<usize, Arc<Array>>,
    /// The byte ranges of regions, by address of the region and array index. The stored region keeps its address in
    /// use.
    regions: FxHashMap<(usize, usize), (Arc<Region>, Arc<Parts>)>,
    rows: FxHashMap<(usize, usize), (AwaitedRegions, Rows)>,
    log: Option<Vec<Logged>>,
}

type AwaitedRegions = Arc<[(u32, Arc<Region>)]>;

/// The arrays of a program, and the layer of its messages.
pub struct Memory<L> {
    pub layer: L,
    /// The length of the longest message in bytes. Longer data are sent in several messages.
    pub(crate) largest: usize,
    inner: Mutex<Inner>,
}

impl<L: MessageLayer> Memory<L> {
    /// # Errors
    /// Returns an error if the length of the longest message is 0.
    pub fn new(layer: L, largest: usize) -> Result<Self, RunError> {
        match largest {
            0 => Err(RunError::input("the longest message has 0 bytes; accepted are 1 and more")),
            _ => Ok(Self { layer, largest, inner: Mutex::default() }),
        }
    }

    /// Adds an array, which gets the next index.
    pub fn hold(&self, array: Array) {
        lock(&self.inner).arrays.push(Arc::new(array));
    }

    /// Sets the codes of the operators of an array's elements, one byte each.
    pub fn hold_codes(&self, number: usize, codes: Array) {
        lock(&self.inner).codes.insert(number, Arc::new(codes));
    }

    pub(crate) fn codes(&self, number: usize) -> Option<Arc<Array>> {
        lock(&self.inner).codes.get(&number).cloned()
    }

    /// Returns the messages started since the previous call: true if this rank sends it, the other rank, and its bytes.
    /// A message that is sent in pieces counts as one. The first call returns none and starts recording.
    pub fn begun(&self) -> Vec<Logged> {
        lock(&self.inner).log.replace(Vec::new()).unwrap_or_default()
    }

    /// # Errors
    /// Returns an error if there is no such array.
    pub fn array(&self, number: usize) -> Result<Arc<Array>, RunError> {
        let found = lock(&self.inner).arrays.get(number).cloned();
        found.ok_or_else(|| RunError::input(format!("there is no array {number} in memory")))
    }

    /// Returns the byte ranges of a region in an array.
    pub(crate) fn parts(&self, region: &Arc<Region>, array: usize) -> Result<Arc<Parts>, RunError> {
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

    /// Returns the byte ranges of the regions that other ranks push, by the sending rank.
    pub(crate) fn rows(&self, from: &AwaitedRegions, array: usize) -> Result<Rows, RunError> {
        let key = (Arc::as_ptr(from).addr(), array);
        if let Some((_, rows)) = lock(&self.inner).rows.get(&key) {
            return Ok(rows.clone());
        }
        let made = from.iter().map(|(rank, region)| Ok((*rank, self.parts(region, array)?)));
        let rows: Rows = made.collect::<Result<Vec<_>, RunError>>()?.into();
        let mut inner = lock(&self.inner);
        if inner.rows.len() >= MOST_KEPT {
            inner.rows.clear();
        }
        inner.rows.insert(key, (from.clone(), rows.clone()));
        Ok(rows)
    }

    /// Starts to send memory, in pieces of at most `largest` bytes, and adds their requests to `begun`. Without bytes
    /// no message is sent.
    ///
    /// # Safety
    /// The memory must be valid and unchanged until all pieces are sent.
    pub unsafe fn send(
        &self,
        from: *const u8,
        bytes: usize,
        to: u32,
        tag: c_int,
        begun: &mut Vec<L::Request>,
    ) -> Outcome {
        self.log(true, to, bytes);
        for first in (0..bytes).step_by(self.largest) {
            let piece = (bytes - first).min(self.largest);
            // SAFETY: a part of the memory that the caller guarantees.
            begun.push(unsafe { self.layer.send(from.wrapping_add(first), piece, to, tag) }?);
        }
        Ok(())
    }

    /// Starts to receive into memory, in the pieces of [`Self::send`], and adds their requests to `begun`.
    ///
    /// # Safety
    /// The memory must be valid, and nothing else may read or write it, until all pieces are received.
    pub unsafe fn receive(
        &self,
        into: *mut u8,
        bytes: usize,
        from: u32,
        tag: c_int,
        begun: &mut Vec<L::Request>,
    ) -> Outcome {
        self.log(false, from, bytes);
        for first in (0..bytes).step_by(self.largest) {
            let piece = (bytes - first).min(self.largest);
            // SAFETY: a part of the memory that the caller guarantees.
            begun.push(unsafe { self.layer.receive(into.wrapping_add(first), piece, from, tag) }?);
        }
        Ok(())
    }

    fn log(&self, sent: bool, rank: u32, bytes: usize) {
        if let Some(log) = &mut lock(&self.inner).log {
            log.push((sent, rank, bytes));
        }
    }
}

/// Returns the layout of an array of at most three dimensions.
///
/// # Errors
/// Returns an error if the array has more dimensions.
pub fn layout(shape: &[usize], element_bytes: usize) -> Result<Layout, RunError> {
    let mut full = [1; 3];
    if shape.len() > full.len() {
        return Err(RunError::input(format!("an array has {} dimensions; accepted are 1 to 3", shape.len())));
    }
    full[..shape.len()].copy_from_slice(shape);
    Ok(Layout { shape: full, element_bytes })
}

pub fn parts_of(layout: &Layout, boxes: &[Box3]) -> Result<Parts, RunError> {
    let corners: Option<Vec<Corners>> = boxes.iter().map(corners).collect();
    corners.and_then(|corners| Parts::of_region(layout, corners.into_iter())).ok_or(RunError::Region)
}

pub fn corners(part: &Box3) -> Option<Corners> {
    let point = |p: [i64; 3]| {
        let mut found = [0; 3];
        for (to, at) in found.iter_mut().zip(p) {
            *to = usize::try_from(at).ok()?;
        }
        Some(found)
    };
    Some([point(part.min)?, point(part.max)?])
}
