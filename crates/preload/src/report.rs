//! `UNISONO_REPORT`: counts calls by collective, size, ranks and algorithm. Rank 0 writes the report when MPI ends.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::OpenOptions,
    io::Write as _,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::{Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use unisono_collective::Kind;
use unisono_mpi::{Home, Library};

use crate::{
    check, passed_on,
    reasons::{self, Reason},
    settings::{NONBLOCK, Report, say, settings},
};

/// The properties by which the report groups calls: the index of a call's kind (plus [`BEGUN`] for a nonblocking call),
/// the class of its bytes ([`count`]), the number of ranks, the row of the plan plus 1 (0 for a call by the library),
/// and the number of the [`Reason`] of a call by the library.
type Key = (usize, u32, u32, usize, u64);

static RAN: Mutex<BTreeMap<Key, (u64, u64)>> = Mutex::new(BTreeMap::new());

/// The number added to the index of a kind for nonblocking calls.
const BEGUN: usize = Kind::ALL.len();

/// Counts a planned call. Class `k` has `2^(k-1)` to `2^k - 1` bytes, and class 0 has 0.
pub fn count(kind: Kind, bytes: u64, ranks: u32, row: usize, took: Duration) {
    add(kind as usize, bytes, ranks, Ok(row), took);
}

pub fn count_unplanned(kind: Kind, bytes: u64, ranks: u32, why: Reason, took: Duration) {
    add(kind as usize, bytes, ranks, Err(why), took);
}

/// Counts a planned nonblocking call; `took` is the time from its start to its completion.
pub fn count_begun(kind: Kind, bytes: u64, ranks: u32, row: usize, took: Duration) {
    add(kind as usize + BEGUN, bytes, ranks, Ok(row), took);
}

fn add(kind: usize, bytes: u64, ranks: u32, row: Result<usize, Reason>, took: Duration) {
    if settings().report.is_none() {
        return;
    }
    let class = u64::BITS - bytes.leading_zeros();
    let mut ran = RAN.lock().unwrap_or_else(PoisonError::into_inner);
    let (row, why) = row.map_or_else(|why| (0, why as u64), |row| (row + 1, 0));
    let entry = ran.entry((kind, class, ranks, row, why)).or_default();
    entry.0 += 1;
    entry.1 = entry.1.saturating_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
}

/// Returns the algorithm of a plan's row, with its parameters.
pub fn name_of(row: usize) -> String {
    let plan = settings().plan.as_ref();
    let name =
        plan.and_then(|plan| plan.table().rows().get(row)).map_or_else(String::new, |row| row.choice.to_string());
    // A user's schedule may have no name; `library` is not the name of a schedule.
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// The number of words of a row that ranks send: the key, the calls, and their nanoseconds.
const ROW: usize = 7;

/// Gathers the counts on rank 0, which writes the report. All ranks of the program take part if any rank wants a report
/// or a check.
pub fn finish(library: &Library, home: &Home) {
    // The environment may differ between ranks, but all must take part.
    if home.wanted() == 0 {
        return;
    }
    let world = home.comm();
    let mut mine = vec![check::COMPARED.load(Ordering::Relaxed), check::DIFFERENT.load(Ordering::Relaxed)];
    mine.extend(passed_on::counts());
    let ran = RAN.lock().unwrap_or_else(PoisonError::into_inner);
    for (&(kind, class, ranks, row, why), &(calls, nanoseconds)) in ran.iter() {
        mine.extend([kind as u64, u64::from(class), u64::from(ranks), row as u64, why, calls, nanoseconds]);
    }
    let Ok(all) = library.gather(&mine, world) else { return };
    // Words of an unexpected number come from a rank with another version of this library; then there is no report.
    if all.is_empty() || all.iter().any(|words| words.len() < 2 + passed_on::NAMES.len()) {
        return;
    }
    let compared: u64 = all.iter().map(|words| words[0]).max().unwrap_or(0);
    let different: u64 = all.iter().map(|words| words[1]).sum();
    if settings().check {
        say(&format!("check: {compared} planned calls compared with the library's, {different} differences"));
    }
    let Some(target) = &settings().report else { return };
    let text = text(library, &all, compared, different);
    match target {
        Report::Stderr => text.lines().for_each(say),
        Report::File(path) => {
            if let Err(e) = write(path, &text) {
                say(&format!("the report '{}' cannot be written: {e}", path.display()));
            }
        }
    }
}

/// Writes a file. For a FIFO without a reader it returns an error, while a plain open would wait for ever.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).custom_flags(NONBLOCK).open(path)?;
    file.write_all(text.as_bytes())
}

/// Returns the key in a row that a rank sent; None if the row is invalid.
fn key(row: &[u64]) -> Option<Key> {
    let (kind, class) = (usize::try_from(row[0]).ok()?, u32::try_from(row[1]).ok()?);
    let (ranks, number) = (u32::try_from(row[2]).ok()?, usize::try_from(row[3]).ok()?);
    (kind < 2 * BEGUN && class <= u64::BITS).then_some((kind, class, ranks, number, row[4]))
}

fn text(library: &Library, all: &[Vec<u64>], compared: u64, different: u64) -> String {
    let passed = passed_on::NAMES.len();
    let mut rows: BTreeMap<Key, (u64, u64)> = BTreeMap::new();
    let mut others = vec![0u64; passed];
    for words in all {
        for (other, &count) in others.iter_mut().zip(&words[2..2 + passed]) {
            *other = count.max(*other);
        }
        for row in words[2 + passed..].chunks_exact(ROW) {
            let Some(key) = key(row) else { continue };
            let entry = rows.entry(key).or_default();
            // Ranks of one communicator count the same calls, so counts are not added. Several communicators of this
            // size may have made calls: the largest count and time of any rank are reported.
            *entry = (entry.0.max(row[5]), entry.1.max(row[6]));
        }
    }
    let mut text = format!("unisono report: {} ranks", all.len());
    match &settings().plan {
        Some(plan) => {
            let _ = writeln!(text, ", plan {:016x}", plan.digest()[0]);
        }
        None => text.push_str(", no plan\n"),
    }
    let _ = writeln!(
        text,
        "{:<14} {:>24} {:>6} {:>9} {:>12}  algorithm",
        "collective", "bytes", "ranks", "calls", "seconds"
    );
    for ((kind, class, ranks, row, why), (calls, nanoseconds)) in rows {
        let bytes = match class {
            0 => "0".to_owned(),
            1 => "1".to_owned(),
            _ => format!("{}-{}", 1u64 << (class - 1), u64::MAX >> (u64::BITS - class)),
        };
        let algorithm = if row == 0 { format!("library{}", note(reasons::text(why))) } else { name_of(row - 1) };
        let seconds = nanoseconds as f64 / 1e9;
        let (name, i) = (Kind::ALL[kind % BEGUN].name(), if kind < BEGUN { "" } else { "i" });
        let name = format!("{i}{name}");
        let _ = writeln!(text, "{name:<14} {bytes:>24} {ranks:>6} {calls:>9} {seconds:>12.6}  {algorithm}");
    }
    for (place, calls) in others.into_iter().enumerate().filter(|(_, calls)| *calls > 0) {
        let (name, why) = (passed_on::NAMES[place], note(reasons::of_passed(place, library)));
        let _ = writeln!(text, "{name:<46} {calls:>9} {:>12}  passed through{why}", "");
    }
    if settings().check {
        let _ = writeln!(text, "checked {compared} planned calls: {different} differences");
    }
    text
}

/// Returns a reason in parentheses, to follow an entry of the report; empty without a reason.
fn note(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(" ({reason})") }
}
