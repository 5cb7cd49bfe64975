//! Messages among endpoints: a task graph, priced by any model of `cost::endpoint`.
//!
//! The rules are those of LogGOPSim ("LogGOPSim", Hoefler, Schneider, Lumsdaine, 2010), with a stable order of
//! operations that become free at the same time. [`unisono_cost::endpoint::Prices`] documents the prices of a model;
//! the rules below define their effects. For each CPU of a rank, and for each network interface in both directions, the
//! simulator keeps the time at which it is free.
//!
//! * Events are ordered by (time, stamp). A task gets its stamp when it is free, a message when its send starts. An
//!   event that must wait is queued again later with its old stamp.
//! * All ranks begin with the tasks that wait for nothing. Whenever tasks of a rank become free, they are stamped in
//!   the order: sends, receives, others; within each kind, in the order in which they became free. They are due when
//!   their CPU is free, sends when their interface is too.
//! * A calc, a reduce, a send and a message wait until their CPU is free, sends and messages also for their interface;
//!   then they hold them for their prices. A message waits at its receiver, for the CPU and interface *of the numbers
//!   that its send named*.
//! * A receive waits for no CPU. It takes the first message that has arrived and matches, or waits in a list; a message
//!   takes the first receive of the list that matches, or waits for one.
//! * A send is done when it starts, unless its message is longer than the model's eager bytes: then it is done when it
//!   is matched (a message that finds a receive counts its own bytes, a receive that finds a message those of the
//!   receive), and CPU and interface of the sender are busy until then. Sends of [`Options::leaving`] that are not
//!   longer are done when their message has left; their CPU and interface are free as for other sends. With
//!   [`Options::blocking`] their CPU begins no work that takes time until then, except that it takes messages that
//!   arrive.
//! * Under LogfP an interface may run ahead of its gaps: it is free once it owes less than the slack.
//! * The finish of a rank is the time at which its last CPU is free.
//! * A task that waits for a task on another CPU of its rank starts when that task is over. (LogGOPSim, whose CPUs have
//!   independent clocks, checks its own CPU only; so does [`unisono_cost::endpoint::Goal`].)
//!
//! Ticks are the unit of the prices: picoseconds for machines, nanoseconds for [`unisono_cost::endpoint::Goal`]. The
//! calcs of a graph use the same unit.

mod blocked;
pub(crate) mod carrier;
pub(crate) mod engine;
mod error;
mod link;
mod matching;
mod noise;
mod outcome;
pub(crate) mod parts;
mod progress;
mod resources;
mod rules;
mod trace;

use unisono_base::TaskId;
use unisono_cost::endpoint::Prices;
use unisono_lower::tasks::TaskGraph;

pub use error::{SimError, Stuck};
pub use noise::Noise;
pub use trace::{TraceEvent, TraceRequest};

/// The most tasks that the report of a deadlock names.
pub const STUCK_KEPT: usize = 32;

/// Disturbances and recordings of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Options {
    /// Ticks after which each rank begins; empty if all begin at once.
    pub start: Vec<u64>,
    pub noise: Option<Noise>,
    /// Seed of the noise.
    pub seed: u64,
    pub trace: TraceRequest,
    /// Calcs and reduces, ascending, whose ends are recorded.
    pub watch: Vec<TaskId>,
    /// Sends, ascending, that are done when their messages have left, and not when they start.
    pub leaving: Vec<TaskId>,
    /// True if the CPU of such a send begins no other send, calc or reduce before its message has left.
    pub blocking: bool,
}

/// The results of a run. Times are ticks of the prices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Time at which each rank's last CPU is free.
    pub finish: Vec<u64>,
    /// The greatest of them.
    pub makespan: u64,
    /// Tasks, and a message for each send.
    pub events: u64,
    pub sends: u64,
    pub receives: u64,
    pub calcs: u64,
    pub reduces: u64,
    /// Messages without a receive.
    pub left_over: u64,
    pub trace: Vec<TraceEvent>,
    /// End times of the tasks of [`Options::watch`].
    pub watched: Vec<u64>,
    /// Times at which the messages of [`Options::leaving`] began to leave and had left: the CPU and the interface of
    /// their sender are free of them; on a network their last packet is on its first link.
    pub sent: Vec<[u64; 2]>,
}

/// Runs a task graph.
///
/// # Errors
/// A deadlock, with the tasks that are never done; options that do not fit the graph.
pub fn run<P: Prices>(graph: &TaskGraph, prices: &P, options: &Options) -> Result<Run, SimError> {
    engine::run(graph, prices, options)
}
