//! Simulated runs: a common result and common options for the simulators of all kinds of machines.

use unisono_base::{limits::OverLimit, rounded};
use unisono_cost::endpoint::TICKS_PER_NS;
use unisono_lower::{VerifiedFile, tasks::TaskError, wafer::LowerError};
use unisono_machine::MachineError;
use unisono_sim::{
    collective_engine::{self, EngineError},
    endpoint::{self, Noise, TraceRequest},
    fabric, network,
};

use crate::{PlanError, targets::kind_of};

/// The options of a simulated run. A kind of machine refuses options that do not apply to it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunOptions {
    /// Among ranks: the model that prices messages; `None` for the machine's own.
    pub model: Option<String>,
    /// Among ranks: the time at which each rank starts, in nanoseconds.
    pub start_ns: Option<Vec<f64>>,
    /// Among ranks: random delays of the work of CPUs, in nanoseconds.
    pub noise: Option<Noise>,
    /// On a wafer: the number of wavelets that a router queues for each color and input; `None` for the machine's own.
    pub queue_depth: Option<u32>,
    /// On a wafer: the probability that a PE idles in a cycle.
    pub noop_probability: f64,
    pub seed: u64,
    /// The nodes whose operations are recorded.
    pub traced: Vec<u32>,
}

impl RunOptions {
    pub(crate) fn for_wafers(&self) -> bool {
        self.queue_depth.is_some() || self.noop_probability != 0.0
    }

    pub(crate) fn for_ranks(&self) -> bool {
        self.model.is_some() || self.start_ns.is_some() || self.noise.is_some()
    }

    /// Returns the options for the endpoint simulator, with a clock of `ticks_per_ns`.
    ///
    /// # Errors
    /// Returns an error if a start is negative, later than a day, or not a number.
    pub fn of_ranks(&self, ticks_per_ns: f64) -> Result<endpoint::Options, RunError> {
        let start = self.start_ns.as_deref().unwrap_or_default();
        if let Some(&found) = start.iter().find(|t| !(0.0..=8.64e13).contains(*t)) {
            return Err(RunError::Start { found });
        }
        let mut ranks = self.traced.clone();
        ranks.sort_unstable();
        ranks.dedup();
        Ok(endpoint::Options {
            start: start.iter().map(|t| rounded(t * ticks_per_ns)).collect(),
            noise: self.noise.map(|noise| noise.scaled(ticks_per_ns)),
            seed: self.seed,
            trace: TraceRequest { ranks },
            ..endpoint::Options::default()
        })
    }

    pub(crate) fn in_ticks(&self) -> Result<endpoint::Options, RunError> {
        self.of_ranks(TICKS_PER_NS)
    }
}

/// Runs a proved schedule with the simulator of its machine.
///
/// # Errors
/// Returns an error if the schedule has no machine, the kind of machine refuses an option, or the run gets stuck.
pub fn simulate(proven: &VerifiedFile, options: &RunOptions) -> Result<Run, RunError> {
    let machine = proven.file().machine.as_ref().ok_or(PlanError::NoMachine)?;
    (kind_of(machine).simulate)(proven, options)
}

/// Runs proved schedules together on one machine, each on its placement. All schedules start at the same time.
///
/// # Errors
///
/// Returns the errors of [`simulate`], or an error if the schedules are on different machines or the simulator runs
/// only one schedule.
pub fn simulate_beside(proven: &[VerifiedFile]) -> Result<Vec<Run>, RunError> {
    let machine = |file: &VerifiedFile| file.file().machine.clone().ok_or(PlanError::NoMachine);
    let Some(first) = proven.first() else { return Ok(Vec::new()) };
    let first = machine(first)?;
    for (at, file) in proven.iter().enumerate() {
        let other = machine(file)?;
        if other != first {
            let (first, other) = (first.name().to_owned(), other.name().to_owned());
            return Err(RunError::OtherMachine { at: at + 1, first, other });
        }
    }
    let kind = kind_of(&first);
    let run =
        kind.simulate_beside.ok_or_else(|| RunError::Beside { machine: first.name().to_owned(), kind: kind.name })?;
    run(proven)
}

/// The reason why a run was refused or did not finish.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Lower(#[from] LowerError),
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error(transparent)]
    Fabric(#[from] fabric::SimError),
    #[error(transparent)]
    Messages(#[from] endpoint::SimError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    OverLimit(#[from] OverLimit),
    #[error("{0}")]
    Options(&'static str),
    #[error(
        "schedules that start at the same time run in switches that reduce, and {machine} is a machine of kind {kind}; run \
         one schedule at a time"
    )]
    Beside { machine: String, kind: &'static str },
    #[error(
        "schedule {at} is on another machine than the first: {other}, and {first}; schedules that start at the same time \
         need one machine with the same description"
    )]
    OtherMachine { at: usize, first: String, other: String },
    #[error("noop_probability is {found}; accepted are 0 to below 1")]
    Probability { found: f64 },
    #[error("a rank begins at {found} ns; accepted are numbers from 0 to 8.64e13, a day")]
    Start { found: f64 },
    #[error("a trace of {found} PEs was asked for; at most {most} are recorded: name some of them, or every n-th")]
    Traced { found: usize, most: usize },
    #[error("PE {found} does not exist; accepted are 0 to {last}")]
    NoSuchPe { found: u32, last: usize },
}

impl RunError {
    /// Returns true if the schedule needs a function that the machine or the simulator does not have.
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Lower(e) => !matches!(e, LowerError::Wrong(_) | LowerError::OverLimit(_)),
            Self::Fabric(e) => matches!(e, fabric::SimError::Unsupported { .. }),
            _ => false,
        }
    }

    /// Returns the operations that wait forever, if a run got stuck. Returns an empty list if a run on a wafer failed
    /// for another reason, and `None` in all other cases: the run did not begin, or failed on another kind of machine.
    pub fn stuck(&self) -> Option<Vec<String>> {
        match self {
            Self::Fabric(fabric::SimError::Deadlock { stuck, .. }) => {
                Some(stuck.iter().map(ToString::to_string).collect())
            }
            Self::Fabric(fabric::SimError::OverLimit(_) | fabric::SimError::Unsupported { .. }) => None,
            Self::Fabric(_) => Some(Vec::new()),
            Self::Messages(endpoint::SimError::Deadlock { stuck, .. }) => {
                Some(stuck.iter().map(ToString::to_string).collect())
            }
            Self::Messages(endpoint::SimError::Jammed { stuck, .. }) => Some(stuck.clone()),
            _ => None,
        }
    }
}

/// A simulator of schedules.
#[derive(Debug)]
pub struct Simulator {
    /// The name that `--sim` accepts.
    pub name: &'static str,
    pub summary: &'static str,
    /// True if a run can choose the model that prices messages.
    pub takes_model: bool,
    pub records: Records,
}

unisono_base::named! {
    /// The nodes whose operations a simulator can record.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Records {
        Nothing = "nothing",
        Pes = "pes",
        Ranks = "ranks",
    }
}

pub(crate) const COLLECTIVE_ENGINE: Simulator = Simulator {
    name: "collective-engine",
    summary: "packets in switches that reduce",
    takes_model: false,
    records: Records::Nothing,
};
pub(crate) const ENDPOINT: Simulator = Simulator {
    name: "endpoint",
    summary: "messages among ranks, with the times of a model",
    takes_model: true,
    records: Records::Ranks,
};
pub(crate) const FABRIC: Simulator =
    Simulator { name: "fabric", summary: "a wafer, wavelet by wavelet", takes_model: false, records: Records::Pes };
pub(crate) const NETWORK: Simulator = Simulator {
    name: "network",
    summary: "messages among ranks, as packets",
    takes_model: false,
    records: Records::Ranks,
};

#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Count(u64),
    Number(f64),
    Counts(Vec<u64>),
    Text(String),
}

/// The time at which each node finishes.
#[derive(Clone, PartialEq, Debug)]
pub enum Finish {
    Cycles(Vec<u32>),
    Nanoseconds(Vec<f64>),
}

/// The recorded operations of the traced nodes.
#[derive(Clone, Debug)]
pub enum Trace {
    None,
    Pes { events: Vec<fabric::TraceEvent>, phases: Vec<String> },
    Ranks { events: Vec<endpoint::TraceEvent>, ticks_per_ns: f64 },
}

/// The comparison of a run's outputs with plain arithmetic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    /// The number of elements, from the first on, whose outputs were compared.
    pub elements: u32,
    pub correct: bool,
    /// A description of the first output that differs.
    pub mismatch: Option<String>,
}

impl Checked {
    /// Returns the comparison; `None` for a run without data, which checks no output.
    fn of(elements: u32, correct: bool, mismatch: Option<String>) -> Option<Self> {
        (elements > 0).then_some(Self { elements, correct, mismatch })
    }
}

/// The result of a simulation on a machine of any kind. Values that the simulator does not report are `None`.
#[derive(Clone, Debug)]
pub struct Run {
    /// The name that `--sim` accepts.
    pub simulator: &'static str,
    pub cycles: Option<u64>,
    pub seconds: f64,
    /// The time of the run, in units of the simulator's clock converted to nanoseconds.
    pub nanoseconds: f64,
    pub finish: Finish,
    pub events: u64,
    /// The number of cycles for which wavelets waited at routers.
    pub stalls: Option<u64>,
    /// The comparison of the outputs with plain arithmetic; `None` if the run had no data.
    pub checked: Option<Checked>,
    /// Further results of the simulator: name, value, unit.
    pub metrics: Vec<(&'static str, Value, &'static str)>,
    pub trace: Trace,
    pub wall_seconds: f64,
}

impl Run {
    pub fn on_fabric(run: fabric::Run, elements: u32, clock_mhz: f64, phases: Vec<String>, wall_seconds: f64) -> Self {
        Self {
            simulator: FABRIC.name,
            cycles: Some(run.cycles),
            seconds: run.cycles as f64 / (clock_mhz * 1e6),
            nanoseconds: run.cycles as f64 * 1e3 / clock_mhz,
            finish: Finish::Cycles(run.finish),
            events: run.events,
            stalls: Some(run.stalls),
            checked: Checked::of(elements, run.result_correct, run.mismatch),
            metrics: vec![
                ("hops", Value::Count(run.hops), "wavelets over links"),
                ("stalled_cycles", Value::Count(run.stalls), "cycles"),
            ],
            trace: Trace::Pes { events: run.trace, phases },
            wall_seconds,
        }
    }

    /// Returns the result of a run among ranks, whose clock has `ticks_per_ns`.
    pub fn among_ranks(run: endpoint::Run, ticks_per_ns: f64, wall_seconds: f64) -> Self {
        let nanoseconds = run.makespan as f64 / ticks_per_ns;
        Self {
            simulator: ENDPOINT.name,
            cycles: None,
            seconds: nanoseconds / 1e9,
            nanoseconds,
            finish: Finish::Nanoseconds(run.finish.iter().map(|&t| t as f64 / ticks_per_ns).collect()),
            events: run.events,
            stalls: None,
            checked: None,
            metrics: vec![
                ("messages", Value::Count(run.sends), "messages"),
                ("unreceived_messages", Value::Count(run.left_over), "messages"),
            ],
            trace: Trace::Ranks { events: run.trace, ticks_per_ns },
            wall_seconds,
        }
    }

    /// Returns the result of a run on a network that simulated one of `planes` equal planes.
    pub fn on_network(run: network::Run, ticks_per_ns: f64, planes: u32, wall_seconds: f64) -> Self {
        let mut made = Self::among_ranks(run.hosts, ticks_per_ns, wall_seconds);
        made.simulator = NETWORK.name;
        made.events = run.events;
        let of_planes = if planes == 1 { "plane" } else { "equal planes, of which one was simulated" };
        made.metrics.extend([
            ("planes", Value::Count(planes.into()), of_planes),
            ("packets", Value::Count(run.packets), "packets of one plane"),
            ("hops", Value::Count(run.hops), "packets over links of one plane"),
            ("link_packets", Value::Counts(run.link_packets), "packets over each link of one plane"),
        ]);
        made
    }

    pub fn in_switches(run: collective_engine::Run, wall_seconds: f64) -> Self {
        let nanoseconds = run.picoseconds as f64 / 1e3;
        Self {
            simulator: COLLECTIVE_ENGINE.name,
            cycles: None,
            seconds: nanoseconds / 1e9,
            nanoseconds,
            finish: Finish::Nanoseconds(run.finish.iter().map(|&t| t as f64 / 1e3).collect()),
            events: run.events,
            stalls: None,
            checked: Checked::of(run.data.elements, run.data.result_correct, run.data.mismatch),
            metrics: vec![
                ("latency", Value::Number(run.latency as f64 / 1e3), "ns until the first element is everywhere"),
                ("embeddings", Value::Count(run.embeddings as u64), "embeddings"),
                ("packets", Value::Count(run.packets), "packets of all embeddings"),
                ("computed_events", Value::Count(run.computed), "events"),
                ("link_loads", Value::Counts(run.link_loads), "links with 1, 2, ... logical edges"),
                ("elements_flowed", Value::Count(run.data.elements.into()), "elements, the first of each embedding"),
                (
                    "digest",
                    Value::Text(format!("{:016x}", run.data.digest)),
                    "hash of the bits of the outputs of elements_flowed",
                ),
            ],
            trace: Trace::None,
            wall_seconds,
        }
    }
}
