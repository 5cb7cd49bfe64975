//! Runs an input under limits of CPU time and memory.
//!
//! A watchdog thread reads the CPU time of the process. If an input exceeds its limit, the watchdog interrupts it
//! ([`unisono_base::interrupt`]). If the input does not stop within the same time again and one second more, the
//! watchdog ends the process, which `unisono-fuzz` counts as a hang.

use std::{
    cell::RefCell,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Once,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use unisono_base::{interrupt, limits};

use crate::{FuzzTarget, memory};

#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub cpu_seconds: u64,
    /// Number of bytes that any input may use; each byte of the input permits `factor` more.
    pub base_bytes: usize,
    pub factor: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { cpu_seconds: 10, base_bytes: 512 << 20, factor: 1 << 10 }
    }
}

impl Bounds {
    fn bytes(&self, input: &[u8]) -> usize {
        self.base_bytes + self.factor * input.len()
    }
}

/// Reason why an input failed. Similar faults have the same `kind`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub kind: String,
    pub message: String,
}

/// Line on standard error about an input that did not stop.
pub const HANG: &str = "fuzz: the input does not stop";

thread_local! {
    /// Source location and message of the last panic of this thread while an input ran.
    static PANIC: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}
/// Number of starts and ends of inputs so far. The number is odd while an input runs.
static BEATS: AtomicU64 = AtomicU64::new(0);
static BOUND_TICKS: AtomicU64 = AtomicU64::new(u64::MAX);
static STOP: AtomicBool = AtomicBool::new(false);
static STARTED: Once = Once::new();

/// Linux counts CPU time in hundredths of a second.
const TICKS_A_SECOND: u64 = 100;

fn cpu_ticks() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may contain spaces. Fields 14 and 15 are user and system time.
    let after = text.rsplit_once(')').map_or("", |(_, after)| after);
    after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn watch() {
    let (mut beat, mut begin) = (0, 0);
    loop {
        thread::sleep(Duration::from_millis(100));
        let now = BEATS.load(Relaxed);
        if now != beat || now.is_multiple_of(2) {
            (beat, begin) = (now, cpu_ticks());
            continue;
        }
        let (ran, bound) = (cpu_ticks() - begin, BOUND_TICKS.load(Relaxed));
        if ran > bound {
            STOP.store(true, Relaxed);
        }
        if ran > bound.saturating_mul(2).saturating_add(TICKS_A_SECOND) && BEATS.load(Relaxed) == now {
            let _ = writeln!(std::io::stderr(), "{HANG}");
            std::process::abort();
        }
    }
}

/// Starts the watchdog, and stores panics for [`run`] instead of printing them. Sets the library's own limits to half
/// of `base_bytes` and to 2^30 steps: work that the library accepts must stay within `bounds`.
pub fn start(bounds: &Bounds) {
    BOUND_TICKS.store(bounds.cpu_seconds * TICKS_A_SECOND, Relaxed);
    limits::set(bounds.base_bytes as u64 / 2, 1 << 30);
    STARTED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if BEATS.load(Relaxed).is_multiple_of(2) {
                return before(info);
            }
            let place = info.location().map_or_else(String::new, |l| format!("{}:{}", l.file(), l.line()));
            let message = text_of(info.payload());
            PANIC.set(Some((place, message)));
        }));
        thread::spawn(watch);
    });
}

/// Runs one input; returns true if it is accepted.
///
/// # Errors
/// Returns an error if the input panicked, or exceeded its limit of CPU time or memory.
pub fn run(target: &FuzzTarget, input: &[u8], bounds: &Bounds) -> Result<bool, Fault> {
    STOP.store(false, Relaxed);
    let most = bounds.bytes(input);
    BEATS.fetch_add(1, Relaxed);
    // The library's limits use estimates; the limit of the process also covers wrong estimates.
    let live = memory::start(most.saturating_mul(2));
    let stop = Box::new(|| STOP.load(Relaxed));
    let done = catch_unwind(AssertUnwindSafe(|| interrupt::watch(stop, || (target.run)(input))));
    let peak = memory::stop(live);
    BEATS.fetch_add(1, Relaxed);
    let fault = |kind: &str, message: String| Err(Fault { kind: kind.to_owned(), message });
    match done {
        Err(payload) if payload.is::<interrupt::Interrupted>() => {
            fault("slow", format!("it takes more than {} s of CPU time", bounds.cpu_seconds))
        }
        Err(_) => {
            let (place, message) = PANIC.take().unwrap_or_default();
            let place = place.rsplit_once("/crates/").map_or(place.clone(), |(_, inside)| format!("crates/{inside}"));
            fault(&format!("panic-{}", plain(&place)), format!("panicked at {place}: {message}"))
        }
        Ok(_) if STOP.load(Relaxed) => {
            fault("slow", format!("it takes more than {} s of CPU time", bounds.cpu_seconds))
        }
        Ok(_) if peak > most => fault("memory", format!("it takes {peak} bytes; the bound is {most}")),
        Ok(accepted) => Ok(accepted),
    }
}

/// Converts a text to a word that is usable in file names.
fn plain(text: &str) -> String {
    let word: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    word.trim_start_matches("crates-").to_owned()
}
/// Returns the message of a panic, or a substitute if it is not text.
fn text_of(payload: &dyn std::any::Any) -> String {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a payload without text").to_owned()
}
