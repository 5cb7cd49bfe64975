//! Messages among endpoints: a task graph, priced by any model of `cost::endpoint`.
//!
//! The rules are those of LogGOPSim ("LogGOPSim", Hoefler, Schneider, Lumsdaine, 2010), with a stable order of
//! operations that become free at the same time. [`unisono_cost::endpoint::Prices`] documents the prices of a model;
//! the rules below define their effects. For each CPU of a rank, and for each network interface in both directions, the
//! simulator keeps the time at which it is free.
//!
//! * Events are ordered by (time, stamp). A task gets its stamp when it becomes free, a message when its send starts.
//!   An event that must wait is queued again for a later time with its old stamp.
//! * All ranks begin with the tasks that wait for no other task. Tasks of a rank that become free together are stamped
//!   in the order: sends, receives, others; within each kind, in the order in which they became free. A task is due
//!   when its CPU is free; a send also waits for its interface.
//! * A calc, a reduce, a send and a message wait until their CPU is free, sends and messages also for their interface;
//!   then they occupy both for their prices. A message waits at its receiver for the CPU and the interface *whose
//!   numbers its send named*.
//! * If the messages of a model occupy no CPU (Hockney), sends and messages wait for their interface only, and the
//!   message is received when its price on the CPU has passed.
//! * A receive waits for no CPU. It takes the first arrived message that matches, or waits in a list; a message takes
//!   the first waiting receive that matches, or waits in a list.
//! * A send is done when it starts, unless its message is longer than the model's eager limit. A longer send is done
//!   when its message is matched, and CPU and interface of the sender are busy until then. (Of message and receive, the
//!   one that comes second compares its own size with the limit.) Eager sends of [`Options::leaving`] are done when
//!   their message has left; their CPU and interface become free as for other sends. With [`Options::blocking`], the
//!   CPU of such a send begins no work that takes time until the message has left, but still takes arriving messages.
//! * Under LogfP an interface may run ahead of its gaps: it is free as soon as its remaining gap is at most the slack.
//! * The finish of a rank is the time at which all its CPUs are free.
//! * A task that waits for a task on another CPU of its rank starts when that task is over. (LogGOPSim, whose CPUs have
//!   independent clocks, checks only the task's own CPU; so does [`unisono_cost::endpoint::Goal`].)
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

/// Greatest number of tasks or packets that the report of a deadlock names.
pub const STUCK_KEPT: usize = 32;

/// Starting times, noise and recordings of a run, and the sends that end only when their message has left.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Options {
    /// The delay of each rank's start, in ticks. Empty if all ranks start at time 0.
    pub start: Vec<u64>,
    pub noise: Option<Noise>,
    /// Seed of the noise.
    pub seed: u64,
    pub trace: TraceRequest,
    /// Calcs and reduces whose end times are recorded, in ascending order.
    pub watch: Vec<TaskId>,
    /// The sends, in ascending order, whose departures are recorded. Eager sends in this list are done when their
    /// messages have left, not when they start.
    pub leaving: Vec<TaskId>,
    /// True if the CPU of a send in `leaving` begins no other send, and no calc or reduce that takes time, before the
    /// message of the send has left.
    pub blocking: bool,
    /// The run fails as soon as some rank is known to finish after this time. Ignored if prices may be negative.
    pub most: Option<u64>,
}

/// Results of a run. Times are ticks of the prices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Time at which each rank's last CPU is free.
    pub finish: Vec<u64>,
    /// Greatest entry of `finish`.
    pub makespan: u64,
    /// The number of tasks plus the number of messages. Each send has one message.
    pub events: u64,
    pub sends: u64,
    pub receives: u64,
    pub calcs: u64,
    pub reduces: u64,
    /// The number of messages that no receive took.
    pub left_over: u64,
    pub trace: Vec<TraceEvent>,
    /// End times of the tasks in [`Options::watch`].
    pub watched: Vec<u64>,
    /// For each send of [`Options::leaving`], the time at which its message began to leave and the time at which it had
    /// left. It has left when CPU and interface of the sender have completed it; on a network, when its last packet is
    /// on its first link.
    pub sent: Vec<[u64; 2]>,
}

/// Runs a task graph.
///
/// # Errors
/// Returns an error on a deadlock, with the tasks that are never done, if the options do not fit the graph, if the run
/// would exceed a limit of memory or steps, or if a time overflows.
pub fn run<P: Prices>(graph: &TaskGraph, prices: &P, options: &Options) -> Result<Run, SimError> {
    engine::run(graph, prices, options)
}
