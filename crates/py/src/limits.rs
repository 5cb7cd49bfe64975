//! The limits of the process on memory and steps, and the memory that is free on the machine.

use std::{
    cell::Cell,
    ffi::CString,
    fs::read_to_string,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use pyo3::{
    exceptions::{PyKeyboardInterrupt, PyUserWarning},
    prelude::*,
};
use rustix::process::{Resource, getrlimit};
use unisono_base::{
    limits::{self, DEFAULT_STEPS},
    parallel,
};

use crate::errors::input;

/// The least time between two readings of the free memory.
const PERIOD: Duration = Duration::from_secs(1);

/// True if the limit on memory follows the free memory. False if the user has set the limit.
static FOLLOWS: AtomicBool = AtomicBool::new(true);

thread_local! {
    /// The time of the last reading of free memory, and the number of bytes, if known.
    static READ: Cell<Option<(Instant, Option<u64>)>> = const { Cell::new(None) };
}

/// Sets the limit on memory to 80 % of the free memory, unless the user has set a limit. The machine, the control
/// groups and the address space bound the free memory. If none of them states a bound, there is no limit.
pub fn refresh() {
    if !FOLLOWS.load(Relaxed) {
        return;
    }
    let known = READ.get().filter(|(read, _)| read.elapsed() < PERIOD);
    let (_, shared) = known.unwrap_or_else(|| (Instant::now(), shared()));
    if known.is_none() {
        READ.set(Some((Instant::now(), shared)));
    }
    // The limit on the address space is read each time, because the process may change it at any time.
    let bytes = [shared, address_space()].into_iter().flatten().min().map_or(u64::MAX, |free| free / 5 * 4);
    limits::set(bytes, limits::get().1);
}

/// Returns the smaller of the machine's free memory and the memory that the process's control groups still allow, in
/// bytes. Returns None if neither is known.
fn shared() -> Option<u64> {
    [available(), unclaimed_by_groups()].into_iter().flatten().min()
}

fn number(path: &str) -> Option<u64> {
    read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns the number after `key` in the first line that begins with it; `None` if there is none.
fn value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().next()?.parse().ok()
}

fn available() -> Option<u64> {
    value(&read_to_string("/proc/meminfo").ok()?, "MemAvailable:").map(|kib| kib * 1024)
}

/// Returns the bytes that the process's control groups (version 2, and the memory controller of version 1) still allow:
/// the least of all groups. `None` without a limit.
fn unclaimed_by_groups() -> Option<u64> {
    let listed = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of = |prefix: &str| listed.lines().find_map(|line| line.split_once(prefix)).map_or("/", |(_, path)| path);
    let groups = |root: &'static str, path: &str| -> Vec<String> {
        // Inside a container the path may be that of the host, and only the root folder exists in the container.
        let inner = path.trim_matches('/').split('/').filter(|part| !part.is_empty() && *part != "..");
        let mut all = vec![root.to_owned()];
        inner.for_each(|part| all.push(format!("{}/{part}", all[all.len() - 1])));
        all
    };
    let left = |folder: String, most: &str, used: &str, cache: &str| {
        let most = number(&format!("{folder}/{most}"))?;
        let used = number(&format!("{folder}/{used}"))?;
        // Inactive file pages count as free, because the kernel reclaims them.
        let cached = read_to_string(format!("{folder}/memory.stat")).ok().and_then(|stat| value(&stat, cache));
        Some(most.saturating_sub(used.saturating_sub(cached.unwrap_or(0))))
    };
    let second = groups("/sys/fs/cgroup", of("0::")).into_iter();
    let second = second.filter_map(|folder| left(folder, "memory.max", "memory.current", "inactive_file "));
    let first = groups("/sys/fs/cgroup/memory", of(":memory:")).into_iter();
    let first = first
        .filter_map(|folder| left(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "));
    second.chain(first).min()
}

/// Returns the bytes that the limit on the process's address space leaves; None without a limit.
///
/// Every call of the library reads this limit. It is not read from a file of `/proc`, which would take 10 µs.
fn address_space() -> Option<u64> {
    let most = getrlimit(Resource::As).current?;
    let used = value(&read_to_string("/proc/self/status").ok()?, "VmSize:")? * 1024;
    Some(most.saturating_sub(used))
}

/// Returns the limits in force: bytes and steps, each None if unlimited.
#[pyfunction]
pub fn limits_now() -> (Option<u64>, Option<u64>) {
    refresh();
    let finite = |limit: u64| (limit < u64::MAX).then_some(limit);
    let (bytes, steps) = limits::get();
    (finite(bytes), finite(steps))
}

/// Returns true if the limit on memory follows the free memory.
#[pyfunction]
pub fn limits_follow() -> bool {
    FOLLOWS.load(Relaxed)
}

/// Sets the limits in bytes and in steps, None for no limit. With `follow`, the limit in bytes follows the free memory
/// instead.
#[pyfunction]
#[pyo3(signature = (bytes, steps, follow))]
pub fn set_limits(bytes: Option<u64>, steps: Option<u64>, follow: bool) {
    FOLLOWS.store(follow, Relaxed);
    limits::set(bytes.unwrap_or(u64::MAX), steps.unwrap_or(u64::MAX));
    READ.set(None);
    refresh();
}

/// Makes Unisono issue a Python warning for each important sentence for which there is no receiver
/// ([`note_large_work`]).
pub fn warn_in_python() {
    limits::set_warn(|sentence| {
        // If a filter turns the warning into an error, the error is dropped, so that the work continues.
        Python::attach(|py| {
            let text = CString::new(sentence.replace('\0', " ")).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1).unwrap_or_default();
        });
    });
}

/// Registers `note`, which receives all warnings, and a sentence about each large computation that is admitted. None
/// removes the receiver.
#[pyfunction]
#[pyo3(signature = (note))]
pub fn note_large_work(note: Option<Py<PyAny>>) {
    limits::set_note(note.map(|note| -> limits::Note {
        Box::new(move |sentence| {
            Python::attach(|py| {
                // An exception of `note` is dropped, and the work continues. A keyboard interrupt is raised again at
                // the next poll.
                if let Err(error) = note.call1(py, (sentence,))
                    && error.is_instance_of::<PyKeyboardInterrupt>(py)
                {
                    let again = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
                    again.map(drop).unwrap_or_default();
                }
            });
        })
    }));
}

/// Returns the steps of the last counted call of this thread: the sum of the admitted estimates and of the steps spent.
#[pyfunction]
pub fn steps_counted() -> u64 {
    limits::last_counted()
}

/// Returns an error if a sweep of `points` points exceeds a limit. `steps` is the sum of the known estimates. Each
/// point adds 4 KiB of memory and 2^20 steps.
#[pyfunction]
#[pyo3(signature = (points, steps))]
pub fn admit_sweep(points: u64, steps: u64) -> PyResult<()> {
    /// The bytes of a point's result.
    const BYTES: u128 = 4096;
    const STEPS: u128 = 1 << 20;
    refresh();
    let (points, steps) = (u128::from(points), u128::from(steps));
    limits::admit("the sweep", BYTES * points, STEPS * points + steps).map_err(input)
}

/// Sets the number of cores that all calls of this package use together, at least one, and returns the previous number.
#[pyfunction]
pub fn set_cores(count: usize) -> usize {
    let before = parallel::cores();
    parallel::set_cores(count);
    before
}

#[pyfunction]
pub fn default_steps() -> u64 {
    DEFAULT_STEPS
}
