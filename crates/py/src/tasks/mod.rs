//! Programs of tasks under MPI: the loop that carries out a rank's commands.
//!
//! Kernels run in Python. Messages between pairs and the collectives of the MPI library are packed, begun, polled and
//! unpacked here. Any other way to carry out a collective (a plan, sums by messages) is a Python object with a function
//! that polls it.
//!
//! Lifetimes: MPI may use the memory of an exchange until it is over. The buffer protocol holds the arrays
//! ([`memory::TaskMemory`]), and packed data belongs to the exchange. If a schedule is dropped with an exchange under
//! way, which happens only after an error that ends all ranks, its memory is never freed.
//!
//! Locks: the program's thread and the thread that advances exchanges while a kernel runs alternate. The thread that
//! works takes the state out of its mutex; the other thread then finds no state.

mod exchange;
mod memory;
mod order;
mod schedule;
mod state;
mod ways;

pub use memory::TaskMemory;
pub use schedule::TaskSchedule;
pub use ways::{LibraryCollective, PairMessages};
