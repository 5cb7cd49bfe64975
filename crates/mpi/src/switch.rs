//! The environment variables of this project, such as `UNISONO_PLAN`, and the values of its switches.

use std::{env, ffi::OsStr, fmt::Write, time::Duration};

/// The variables that the library for MPI programs reads.
pub const OF_PROGRAMS: [&str; 10] = [
    "UNISONO_PLAN",
    "UNISONO_REPORT",
    "UNISONO_CHECK",
    "UNISONO_SAFE_OPS",
    "UNISONO_OFF",
    "UNISONO_UNLIKE_BITS",
    "UNISONO_NONBLOCKING",
    "UNISONO_ANYWHERE",
    "UNISONO_PATIENCE",
    "UNISONO_PROGRAM_TIME",
];
/// The variables that the Python package and its shell completion read.
const OF_PYTHON: [&str; 5] =
    ["UNISONO_POINT_TO_POINT", "UNISONO_PROGRESS", "UNISONO_TRACE", "UNISONO_CHECK_READS", "_UNISONO_COMPLETE"];
/// The variables of the tests and benchmarks of this repository.
const OF_TESTS: [&str; 11] = [
    "UNISONO_BENCH_JOBS",
    "UNISONO_FUZZ_PART",
    "UNISONO_JUDGE_COUNT",
    "UNISONO_JUDGE_SEED",
    "UNISONO_LEVELS_COUNT",
    "UNISONO_LEVELS_WIDE",
    "UNISONO_NCCL_TUNER",
    "UNISONO_RECORD",
    "UNISONO_SOAK",
    "UNISONO_TESTS_FOLDER",
    "UNISONO_TESTS_TUNER_H",
];
/// The variable that holds the sentence of [`unknown_variables`] once printed, so that child processes do not repeat
/// it.
pub const REPORTED: &str = "_UNISONO_REPORTED";
/// The variable with the time in seconds for which a call may wait without progress before it is reported.
const PATIENCE: &str = "UNISONO_PATIENCE";
/// The time if [`PATIENCE`] is empty, invalid or not set.
const DEFAULT_PATIENCE: Duration = Duration::from_secs(30);
/// The maximum number of names in the sentence of [`unknown_variables`].
const MOST_NAMES: usize = 3;
/// The maximum number of characters of a name in that sentence; further characters are cut off.
const MOST_CHARACTERS: usize = 60;

/// Returns a sentence on the variables of this process that begin with `UNISONO_`, in any case and after any
/// underscores, and that nothing reads.
///
/// Only the first rank of a launcher returns a sentence, and only if [`REPORTED`] does not hold the same sentence.
pub fn unknown_variables() -> Option<String> {
    let names = env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let sentence = unknown(names).filter(|_| is_first())?;
    (env::var_os(REPORTED).as_deref() != Some(OsStr::new(&sentence))).then_some(sentence)
}

pub fn unknown(names: impl Iterator<Item = String>) -> Option<String> {
    let known = || OF_PROGRAMS.iter().chain(&OF_PYTHON).chain(&OF_TESTS).copied().chain([REPORTED]);
    let is_ours = |name: &str| name.to_ascii_uppercase().trim_start_matches('_').starts_with("UNISONO_");
    let mut found: Vec<String> = names.filter(|name| is_ours(name) && known().all(|one| one != name)).collect();
    found.sort();
    let mut sentence = String::new();
    for name in found.iter().take(MOST_NAMES) {
        let short: String = name.chars().take(MOST_CHARACTERS).collect();
        let near = OF_PROGRAMS.iter().chain(&OF_PYTHON).min_by_key(|one| distance(&short.to_ascii_uppercase(), one))?;
        let before = if sentence.is_empty() { "nothing reads " } else { ", and " };
        let _ = write!(sentence, "{before}{} (the nearest name is {near})", short.escape_debug());
    }
    if found.len() > MOST_NAMES {
        let _ = write!(sentence, ", and {} more", found.len() - MOST_NAMES);
    }
    (!sentence.is_empty()).then_some(sentence)
}

/// Returns the edit distance of two names: the least number of characters to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (at, from) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = at + 1;
        for (j, to) in b.chars().enumerate() {
            let replaced = corner + usize::from(from != to);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.chars().count()]
}

/// Returns whether this process is rank 0, by the variables that launchers set before MPI is initialised; true if no
/// launcher has set one.
pub fn is_first() -> bool {
    ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"]
        .iter()
        .find_map(env::var_os)
        .is_none_or(|rank| rank == "0")
}

/// Returns the time that `UNISONO_PATIENCE` states, and 30 s if the variable is empty, invalid or not set. `complain`
/// receives a line about an invalid value.
pub fn longest_wait(complain: impl FnOnce(&str)) -> Duration {
    let Some(value) = env::var_os(PATIENCE).filter(|value| !value.is_empty()) else { return DEFAULT_PATIENCE };
    let seconds = value.to_str().and_then(|text| text.trim().parse::<f64>().ok());
    if let Some(seconds) = seconds.filter(|seconds| *seconds >= 0.0) {
        return Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    }
    let counts = DEFAULT_PATIENCE.as_secs();
    complain(&format!("{PATIENCE} is {value:?}, and {counts} counts; accepted are seconds, from 0 on, and inf"));
    DEFAULT_PATIENCE
}

/// Returns whether a switch is on in the environment of this process.
///
/// A value that means neither on nor off counts as on. `complain` then receives a line that names the accepted values.
pub fn is_on(name: &str, complain: impl FnOnce(&str)) -> bool {
    env::var_os(name).is_some_and(|value| is_on_value(name, &value, complain))
}

pub fn is_on_value(name: &str, value: &OsStr, complain: impl FnOnce(&str)) -> bool {
    let known = match value.to_str().map(str::to_ascii_lowercase).as_deref() {
        Some("" | "0" | "false" | "off") => Some(false),
        Some("1" | "true" | "on") => Some(true),
        _ => None,
    };
    known.unwrap_or_else(|| {
        complain(&format!("{name} is {value:?}, which counts as 1; accepted are 0, 1, false, true, off and on"));
        true
    })
}
