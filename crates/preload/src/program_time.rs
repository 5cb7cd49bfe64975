//! Measures the time of a rank between the end of `MPI_Init` and the start of `MPI_Finalize`, in seconds.
//!
//! With `UNISONO_PROGRAM_TIME=FILE` each rank appends a line to a file, also with `UNISONO_OFF`.

use std::{env::var_os, fs::OpenOptions, io::Write, os::unix::fs::OpenOptionsExt, sync::OnceLock, time::Instant};

use crate::settings::{NONBLOCK, say};

const VARIABLE: &str = "UNISONO_PROGRAM_TIME";

static BEGUN: OnceLock<Instant> = OnceLock::new();

/// Stores the time at the end of `MPI_Init`.
pub fn begin() {
    BEGUN.get_or_init(Instant::now);
}

/// Appends the time since the end of `MPI_Init` to the file that the environment names.
pub fn end() {
    let Some((begun, path)) = BEGUN.get().zip(var_os(VARIABLE).filter(|path| !path.is_empty())) else { return };
    // One write appends the short line, so that lines of other ranks cannot divide it.
    let line = format!("{:.6}\n", begun.elapsed().as_secs_f64());
    let file = OpenOptions::new().append(true).create(true).custom_flags(NONBLOCK).open(&path);
    if let Err(e) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        say(&format!("the time of the program cannot be written to '{}': {e}", path.display()));
    }
}
