//! Task graphs: the sends, receives and computations of each rank, and their dependencies. Task graphs contain no data.
//! Schedules are lowered to task graphs for the simulators of messages; GOAL files and traffic patterns are task
//! graphs.
//!
//! A rank has CPUs and network interfaces, numbered from 0. A task waits for tasks of its own rank: until those that it
//! *requires* are done, and until those that it *irequires* have started (the terms of GOAL; "LogGOPSim", Hoefler,
//! Schneider, Lumsdaine, 2010).

mod blocks;
mod builder;
mod crossings;
mod error;
mod graph;
mod lower;
pub mod pattern;

use builder::MOST_TASKS;

pub use blocks::Passes;
pub use builder::Builder;
pub use crossings::crossings;
pub use error::TaskError;
pub use graph::{ANY, Kind, Task, TaskGraph};
pub use lower::{
    Among, Charges, Subgraph, draft, draft_with_switches, from_schedule, with_switches, with_thread_blocks,
};
