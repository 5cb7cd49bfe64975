//! Execution plans of MSCCL++ (JSON): read, checked without data and as a schedule, and imported.
//!
//! The checks run in this order: references and sizes ([`connect`], [`resolve`], [`layout`]), limits of the runtime
//! ([`limits`], [`bytes`]), a run without data for deadlocks and unmatched signals ([`run`]), the order of all accesses
//! for races ([`knowledge`], [`race`]), the proof of the schedule ([`import`]) for its contents, several launches
//! ([`launches`]), and the same at other sizes ([`sizes`]).

mod alias;
mod assemble;
mod behind_switches;
mod bytes;
mod check;
mod connect;
mod emit;
mod exchange;
mod export;
mod fault;
mod format;
mod import;
mod knowledge;
mod launches;
mod layout;
mod limits;
mod meaning;
mod moves;
mod pieces;
mod plan;
mod program;
mod race;
mod resolve;
mod run;
mod shared;
mod sized;
mod sizes;
mod step;
mod stuck;
mod together;

pub use check::{Checked, check, is_plan};
pub use fault::Fault;
pub use format::MscclPp;
pub use sizes::Sizes;

const NAME: &str = "mscclpp";
