//! Prints lines about blocking planned calls that wait longer than `UNISONO_PATIENCE`: the ranks for which they wait,
//! and when they continue.

use std::{
    fmt::Write,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use unisono_mpi::{Awaited, Call, Patience, is_first, library, longest_wait};

use crate::settings::{say, settings};

/// The largest number of lines that a process prints.
const MOST_LINES: u32 = 8;
/// The largest number of senders, and of receivers, that a line names.
const MOST_RANKS: usize = 8;

/// Returns the time that the environment states. The first rank reports an invalid value.
pub fn limit() -> Duration {
    longest_wait(|line| {
        if is_first() {
            say(line);
        }
    })
}

/// Returns the [`Patience`] that reports waits of a communicator's blocking calls.
pub fn patience() -> Patience {
    Patience::new(settings().patience, tell)
}

fn tell(call: &Call, waited: Duration, awaited: &[Awaited]) {
    static LINES: AtomicU32 = AtomicU32::new(0);
    if LINES.fetch_add(1, Ordering::Relaxed) < MOST_LINES {
        say(&line(own(), call, waited, awaited));
    }
}

/// Returns the name of this rank with its host, for the start of a line.
fn own() -> &'static str {
    static OWN: OnceLock<String> = OnceLock::new();
    OWN.get_or_init(|| {
        let rank = library().and_then(|library| library.rank(library.constants.comm_world).ok()).unwrap_or(0);
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        if host.trim().is_empty() { format!("rank {rank}") } else { format!("rank {rank} on {}", host.trim()) }
    })
}

fn line(own: &str, call: &Call, waited: Duration, awaited: &[Awaited]) -> String {
    let (name, bytes, seconds) = (call.kind.name(), call.bytes(), waited.as_secs_f64());
    let called = format!("{name} of {bytes} bytes");
    if awaited.is_empty() {
        return format!("{own}: the {called} continues after {seconds:.1} s");
    }
    let mut text = format!("{own} has waited {seconds:.1} s in a planned {called}");
    for (arrives, words) in [(true, "for a message of"), (false, "until a message is taken by")] {
        let ranks: Vec<String> =
            awaited.iter().filter(|one| one.arrives == arrives).map(|one| one.rank.to_string()).collect();
        let (shown, more) = (ranks.len().min(MOST_RANKS), ranks.len().saturating_sub(MOST_RANKS));
        if shown > 0 {
            let and = if text.contains(" for a message of ") { " and" } else { "" };
            let _ = write!(text, "{and} {words} rank {}", ranks[..shown].join(", "));
        }
        if more > 0 {
            let _ = write!(text, " and {more} more");
        }
    }
    text
}
