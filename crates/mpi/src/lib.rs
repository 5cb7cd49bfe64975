//! MPICH, the MPI 5 standard ABI and Open MPI behind one transport.
//!
//! Nothing is linked. Handles are machine words. Functions are found by name in the MPI library that the process has
//! loaded, and a small table for each ABI holds the necessary constants ([`Abi`]). `docs/unsafe_page.py` lists every
//! unsafe block.

mod abi;
mod call;
mod communicators;
mod conditions;
mod datatypes;
mod fortran;
mod functions;
mod home;
#[doc(hidden)]
pub mod internals;
mod kernels;
mod learned;
mod library;
mod messages;
mod parts;
mod patience;
mod pause;
mod planned;
mod port;
mod progress;
mod requests;
mod route;
mod rows;
mod shared;
mod switch;
mod symbols;
mod watch;

pub use abi::{Abi, Constants, Element, Number, Op};
pub use call::{Call, Reduction};
pub use conditions::{Conditions, TUNED};
pub use fortran::Fortran;
pub use home::{Agreement, Home, Joined};
pub use kernels::combine;
pub use library::{Comm, Datatype, Failed, Library, OpHandle, Outcome, ThreadLevel, int, library};
pub use messages::{Begun, Collective, Function, Shares};
pub use parts::{Corners, Layout, Parts};
pub use patience::{Awaited, Patience, Tell};
pub use planned::Planned;
pub use requests::{GeneralRequest, PersistentRequest};
pub use rows::{Rows, Unserved};
pub use switch::{OF_PROGRAMS, REPORTED, is_first, is_on, longest_wait, unknown_variables};
pub use watch::{CallNotes, noted_length};
