//! The preload library: runs an MPI program's collectives by a stored plan (`UNISONO_PLAN`).
//!
//! The library replaces the MPI library's `MPI_` functions and calls its `PMPI_` functions. A collective that the plan
//! serves runs as messages on a private communicator. All other calls reach the MPI library unchanged. The decision to
//! serve a call depends only on properties that MPI requires to be equal on all ranks: the communicator, the
//! collective, its operator, its root, and the bytes of its signature.
//!
//! Environment: `UNISONO_PLAN=FILE`; `UNISONO_REPORT=FILE|stderr`, reports the calls made; `UNISONO_CHECK=1`, runs both
//! and compares; `UNISONO_OFF=1`, disables the library; `UNISONO_SAFE_OPS=1`, permits the program's own operators;
//! `UNISONO_PROGRAM_TIME=FILE`, appends the time of each rank between `MPI_Init` and `MPI_Finalize`;
//! `UNISONO_PATIENCE=SECONDS`, after which a blocking planned call names the ranks for which it waits. No panic unwinds
//! into the program: before the first message of a planned call the MPI library makes the call instead; after it the
//! program is ended, because the other ranks would wait for ever.

mod arguments;
mod begun;
mod check;
mod comms;
mod count_types;
mod exports;
mod fortran;
mod home;
mod intercept;
mod memory;
mod original;
mod passed_on;
mod persistent;
mod probe;
mod program_time;
mod reasons;
mod report;
mod settings;
mod unserved;
mod vectors;
mod waits;
