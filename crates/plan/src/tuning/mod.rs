//! Schedules for MPI programs: the algorithms that a machine's model proposes, the sizes that share a plan, and the
//! contender that serves each size by measurements.

mod choice;
mod proposals;
mod table;

pub use choice::{CLEARLY, Contender, Times, between, boundary, choose, deciding};
pub use proposals::{SizeClass, proposals, propose, settings, worthwhile};
pub use table::{Cell, Family, Measured, Region, chosen};
