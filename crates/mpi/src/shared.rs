//! Memory that the processes of one machine share: a file in `/dev/shm` that is unlinked once all processes have it.

use std::{
    collections::hash_map::RandomState,
    ffi::{c_int, c_void},
    fs::{File, OpenOptions, remove_file},
    hash::BuildHasher,
    io::{Error, Result},
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::PathBuf,
    ptr,
    sync::atomic::AtomicU64,
};

unsafe extern "C" {
    fn mmap(at: *mut c_void, bytes: usize, protection: c_int, flags: c_int, file: c_int, offset: i64) -> *mut c_void;
}

const PROT_READ_AND_WRITE: c_int = 3;
const MAP_SHARED: c_int = 1;

/// A file in `/dev/shm` as shared memory. The process that made the file removes it on drop.
pub struct Shared {
    file: File,
    name: [c_int; 2],
    bytes: usize,
    is_ours: bool,
}

pub fn path([high, low]: [c_int; 2]) -> PathBuf {
    PathBuf::from(format!("/dev/shm/unisono-{high:08x}{low:08x}"))
}

impl Shared {
    /// Makes zeroed memory under an unpredictable name.
    ///
    /// # Errors
    /// Returns an error if the system does not provide the memory.
    pub fn create(bytes: usize) -> Result<Self> {
        let drawn = RandomState::new().hash_one(std::process::id());
        let name = [(drawn >> 32) as c_int, drawn as c_int];
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path(name))?;
        let made = Self { file, name, bytes, is_ours: true };
        made.file.set_len(bytes as u64)?;
        Ok(made)
    }

    /// Opens the memory that another process made.
    ///
    /// # Errors
    /// Returns an error if the file is inaccessible or has another size.
    pub fn open(name: [c_int; 2], bytes: usize) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path(name))?;
        match file.metadata()?.len() == bytes as u64 {
            true => Ok(Self { file, name, bytes, is_ours: false }),
            false => Err(Error::other("another size")),
        }
    }

    pub fn name(&self) -> [c_int; 2] {
        self.name
    }

    /// Maps the memory until the process ends, and returns the address of its first word.
    ///
    /// # Errors
    /// Returns an error if the system cannot map the file.
    pub fn map(&self) -> Result<*const AtomicU64> {
        let file = self.file.as_raw_fd();
        // SAFETY: a new mapping of an open file, at an address that the system chooses.
        let at = unsafe { mmap(ptr::null_mut(), self.bytes, PROT_READ_AND_WRITE, MAP_SHARED, file, 0) };
        // MAP_FAILED is -1.
        if at.addr() == usize::MAX { Err(Error::last_os_error()) } else { Ok(at.cast_const().cast()) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.is_ours {
            // Without its name the memory exists as long as a process has it open or mapped.
            let _ = remove_file(path(self.name));
        }
    }
}
