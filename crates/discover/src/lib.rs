//! Collectives found in programs of data-parallel tasks, without a network and without data.
//!
//! A program declares buffers and submits tasks; a task has a range, which is split among ranks, and accesses, each of
//! which maps a part of the range to a part of a buffer. From these every rank derives the exchanges of all ranks, and
//! finds the collectives among them in the same order. Source: "Automatic Discovery of Collective Communication
//! Patterns in Parallelized Task Graphs" (Knorr, Salzmann, Thoman, Fahringer, 2024), with `papers/discovery/errata.md`.

// Numbers that do not fit are refused when they are read; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod chain;
mod devices;
mod direct;
mod discovery;
mod error;
mod examples;
mod exchange;
mod hazards;
#[doc(hidden)]
pub mod internals;
mod mapper;
mod moved;
mod pattern;
mod plan;
mod program;
mod region_map;
mod report;
mod role;
mod rules;
mod shape;
mod side;
mod space;
mod split;
mod task;
mod task_list;
mod traced;

pub use chain::Chain;
pub use devices::{DeviceMoved, DeviceOperation, DeviceReport, Devices, Moment, device_report};
pub use direct::{
    Cell, Direct, DirectExchange, DirectSchedule, MOST_MESSAGES, Message, Piece, Proofs, ProvedReads, RankPart,
    whole_elements,
};
pub use discovery::{Action, Command, Discovery, Forward, Options, PartAccess};
pub use error::DiscoverError;
pub use examples::Example;
pub use exchange::{MOST_COUNTED, Operation};
pub use hazards::Waits;
pub use mapper::{Mapper, UserMapper};
pub use moved::{Extremes, Moved, What};
pub use pattern::Pattern;
pub use plan::{Pushed, ReadPlan, Traffic};
pub use program::Program;
pub use report::{ForwardReport, Messages, Report, report, report_of};
pub use rules::Rules;
pub use side::{Ranks, Side, Sides};
pub use space::{Box3, Point, Region};
pub use split::{Axis, Geometry, Layout, Split};
pub use task::{Access, Buffer, Mode, Task, sizes3};
pub use task_list::{ListedTask, Submitted, TaskList};
pub use traced::{LinearForm, SymbolicBox, Traced};
