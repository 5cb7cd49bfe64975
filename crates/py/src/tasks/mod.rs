//! Programs of tasks under MPI: the loop that carries out a rank's commands.
//!
//! Kernels run in Python; messages between pairs and the collectives of the MPI library are packed, begun, polled and
//! unpacked here. Whatever else serves a collective (a plan, sums by messages) is an object of Python with a function
//! that polls it.
//!
//! Lifetimes: MPI may use the memory of an exchange until it is over. Arrays are held by the buffer protocol
//! ([`memory::TaskMemory`]), and packed data belongs to the exchange. Where a schedule is dropped with an exchange
//! under way, which happens only after an error that ends all ranks, its memory is never freed.
//!
//! Locks: the program's thread and the thread that carries exchanges on while a kernel runs take turns. The one that
//! works takes the state out of its mutex, and the other finds none there.

mod exchange;
mod memory;
mod order;
mod schedule;
mod state;
mod ways;

pub use memory::TaskMemory;
pub use schedule::TaskSchedule;
pub use ways::{LibraryCollective, PairMessages};
