//! Loaded before an MPI program, this library runs its collectives by a stored plan (`UNISONO_PLAN`).
//!
//! It stands before the MPI library's `MPI_` functions and calls that library's `PMPI_` ones. A collective that the
//! plan serves runs over messages on a private duplicate of the communicator; every other call goes on as it came.
//! Whether a call is served depends only on what MPI requires to be equal on all ranks: the communicator, the
//! collective, its operator, its root, and the bytes of its signature.
//!
//! Environment: `UNISONO_PLAN=FILE`; `UNISONO_REPORT=FILE|stderr`, what ran; `UNISONO_CHECK=1`, runs both and compares;
//! `UNISONO_OFF=1`, stands aside; `UNISONO_SAFE_OPS=1`, the program's own operators may be served too. No panic leaves
//! it: before the first message of a call the library serves the call instead, after it the program is ended, as the
//! other ranks would wait for ever.

mod arguments;
mod begun;
mod check;
mod comms;
mod exports;
mod forms;
mod fortran;
mod home;
mod intercept;
mod left;
mod memory;
mod original;
mod passed;
mod persistent;
mod probe;
mod reasons;
mod report;
mod settings;
mod vectors;
