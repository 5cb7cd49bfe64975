//! The settings of this library, read once from the environment.

use std::{
    ffi::OsString,
    fs::OpenOptions,
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    panic::catch_unwind,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use unisono_collective::Choice;
pub use unisono_mpi::is_first;
use unisono_mpi::{is_on, unknown_variables};
use unisono_schedule::plan_file::{MOST_BYTES, PlanFile};

use crate::waits;

pub enum Report {
    Stderr,
    File(PathBuf),
}

#[derive(Default)]
pub struct Settings {
    pub check: bool,
    /// True if plans may serve calls with the program's own operators.
    pub safe_ops: bool,
    /// True if an allreduce may be served by schedules that leave different bits of a rounded result on different
    /// ranks.
    pub unlike_bits: bool,
    /// True if plans may serve nonblocking and persistent calls.
    pub nonblocking: bool,
    /// True if rows also serve under conditions other than those of their measurement.
    pub anywhere: bool,
    /// The time after which a blocking planned call reports the ranks for which it waits.
    pub patience: Duration,
    pub report: Option<Report>,
    pub plan: Option<Arc<PlanFile>>,
    /// The reason why a named plan is not used.
    pub complaint: Option<String>,
}

pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(Settings::read)
}

/// `O_NONBLOCK` of Linux: opening a FIFO does not wait for its other end.
pub const NONBLOCK: i32 = 0o4000;

impl Settings {
    fn read() -> Self {
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        // The environments of ranks may differ, so a rank that is off takes part as one without a plan.
        if flag("UNISONO_OFF") {
            return Self::default();
        }
        if let Some(sentence) = unknown_variables() {
            say(&sentence);
        }
        let report = named("UNISONO_REPORT").map(|value| match value {
            value if value == "stderr" => Report::Stderr,
            value => Report::File(value.into()),
        });
        let read = named("UNISONO_PLAN").map(read_plan).transpose();
        let (plan, complaint) = match read {
            Ok(plan) => (plan.map(Arc::new), None),
            Err(complaint) => (None, Some(complaint)),
        };
        Self {
            check: flag("UNISONO_CHECK"),
            safe_ops: flag("UNISONO_SAFE_OPS"),
            unlike_bits: flag("UNISONO_UNLIKE_BITS"),
            nonblocking: flag("UNISONO_NONBLOCKING"),
            anywhere: flag("UNISONO_ANYWHERE"),
            patience: waits::limit(),
            report,
            plan,
            complaint,
        }
    }

    /// Returns whether a row of the plan permits ranks to end with different bits.
    pub fn permits_unlike_bits(&self, row: usize) -> bool {
        let row = self.plan.as_ref().and_then(|plan| plan.table().rows().get(row));
        row.is_some_and(|row| match &row.choice {
            Choice::Algorithm { params, .. } => params.iter().any(|(key, value)| key == "bits" && value == "unlike"),
            Choice::Library => false,
        })
    }
}

/// Returns whether a switch of the environment is on. The first rank reports a value that means neither on nor off.
fn flag(name: &str) -> bool {
    is_on(name, |line| {
        if is_first() {
            say(line);
        }
    })
}

/// Returns the numbers of ranks that launchers state in this process's environment; nested launchers state several.
pub fn sizes_by_launchers() -> Vec<u32> {
    let names = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];
    names.iter().filter_map(|name| std::env::var(name).ok()?.parse().ok()).collect()
}

fn read_plan(path: OsString) -> Result<PlanFile, String> {
    let path = PathBuf::from(path);
    let bytes = read_regular(&path).map_err(|e| format!("plan '{}' cannot be read: {e}", path.display()))?;
    let read = catch_unwind(|| PlanFile::read(bytes).map_err(|e| e.to_string()));
    let read = read.unwrap_or_else(|_| Err("reading it failed inside; please report it with the file".to_owned()));
    read.map_err(|e| format!("plan '{}': {e}", path.display()))
}

/// Reads a regular file. Reading a device may never end, and reading a FIFO may never begin.
fn read_regular(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let size = found.len();
    if size > MOST_BYTES {
        let problem = format!("it has {size} bytes, and plans are read up to {MOST_BYTES} bytes");
        return Err(std::io::Error::other(problem));
    }
    let mut bytes = Vec::new();
    // The file may grow meanwhile.
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Prints a line to standard error, and ignores errors. The line is one write, so that launchers, which forward a short
/// write as a whole, do not mix lines of ranks.
pub fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("unisono: {text}\n").as_bytes());
}
