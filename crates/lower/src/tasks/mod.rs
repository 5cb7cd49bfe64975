//! Task graphs: what each rank sends, receives and computes, and what waits for what. There is no data in them: a
//! schedule is lowered to one for the simulators of messages, and GOAL files and traffic patterns are nothing else.
//!
//! A rank has CPUs and network interfaces, numbered from 0. A task waits for the tasks of its own rank that it
//! *requires* until they are done, and for those that it *irequires* until they have started (the words of GOAL;
//! "LogGOPSim", Hoefler, Schneider, Lumsdaine, 2010).

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
