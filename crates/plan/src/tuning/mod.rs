//! Schedules for MPI programs: which algorithms a machine's model proposes, which sizes share a plan, and which
//! contender serves each size after a measurement.

mod choice;
mod proposals;
mod table;

pub use choice::{CLEARLY, Contender, Times, between, boundary, choose, deciding};
pub use proposals::{SizeClass, proposals, propose, worthwhile};
pub use table::{Cell, Family, Measured, Region, chosen};
