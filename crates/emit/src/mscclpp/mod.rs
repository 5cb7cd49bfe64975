//! Execution plans of MSCCL++ (JSON): read, checked without data and as a schedule, and imported.
//!
//! The checks come in this order: references and sizes ([`resolve`], [`layout`]), what the runtime holds ([`limits`]), a
//! run without data for deadlocks and unmatched signals ([`run`]), the order of all accesses for races ([`knowledge`],
//! [`race`]), and the proof of the schedule ([`import`]) for its contents.

mod assemble;
mod emit;
mod export;
mod fault;
mod import;
mod knowledge;
mod layout;
mod limits;
mod meaning;
mod plan;
mod program;
mod race;
mod resolve;
mod run;
mod stuck;
mod unit;

pub use fault::Fault;
pub use unit::{Checked, MscclPp, Options, check, is_plan};
