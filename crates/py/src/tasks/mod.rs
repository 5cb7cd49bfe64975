//! Programs of tasks under MPI: conversions between Python and `unisono_taskrun`.

mod host;
mod memory;
mod schedule;
mod world_call;

pub use host::Raised;
pub use memory::{Reducing, TaskMemory};
pub use schedule::TaskSchedule;
pub use world_call::WorldCall;
