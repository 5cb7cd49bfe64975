//! What every algorithm answers.

use unisono_base::Wavelets;
use unisono_collective::{Collective, Kind};
use unisono_lower::{Estimate, Exchange, Placed, Round, switches::Configured};
use unisono_machine::Grid;
use unisono_schedule::Schedule;

use crate::{AlgorithmError, Params, line::LineTree, ranks::Extents, switches::Site};

/// What a schedule is wanted for, and on what.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Case {
    pub collective: Collective,
    pub place: Place,
}

/// What the ranks run on, as far as an algorithm's shape depends on it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Place {
    /// PEs of a wafer; rank `k` is PE `k`, row-major. One step of the depth costs `depth_cycles` (2 T_R + 1), for
    /// algorithms that choose their shape by the model.
    Grid { grid: Grid, depth_cycles: f64 },
    /// Ranks that all reach each other by messages.
    Ranks(Ranks),
    /// Cores whose switches reduce; which ones, a [`Site`] says.
    Switches,
}

/// What a stage of messages costs among ranks, for algorithms that choose their shape by it: `messages` of `bytes` each
/// take `latency_ns + messages * (issue_ns + bytes * ns_per_byte)`, and their reduction `bytes * reduce_ns_per_byte` each.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Ranks {
    pub latency_ns: f64,
    pub issue_ns: f64,
    pub ns_per_byte: f64,
    pub reduce_ns_per_byte: f64,
    /// Ranks that a node of the machine holds, where it has such a level: consecutive ones, so algorithms keep early
    /// stages inside.
    pub node_ranks: Option<u32>,
    /// The same where ranks are dealt out to nodes in turn, so that consecutive ones lie on consecutive nodes.
    pub dealt_node_ranks: Option<u32>,
    /// On a network: how the ranks lie, for algorithms that follow its dimensions.
    pub extents: Option<Extents>,
}

/// The kinds of [`Place`], by the kinds of machines users know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlaceKind {
    Wafer,
    Endpoint,
    Network,
    InNetwork,
}

impl PlaceKind {
    /// What algorithms among ranks run on.
    pub const RANKS: &[PlaceKind] = &[PlaceKind::Endpoint, PlaceKind::Network];
}

impl PlaceKind {
    pub fn name(self) -> &'static str {
        match self {
            PlaceKind::Wafer => "wafer",
            PlaceKind::Endpoint => "endpoint",
            PlaceKind::Network => "network",
            PlaceKind::InNetwork => "in-network",
        }
    }
}

impl Case {
    pub fn on_grid(collective: Collective, grid: Grid, depth_cycles: f64) -> Self {
        Self { collective, place: Place::Grid { grid, depth_cycles } }
    }

    pub fn on_ranks(collective: Collective, ranks: Ranks) -> Self {
        Self { collective, place: Place::Ranks(ranks) }
    }

    pub fn on_switches(collective: Collective) -> Self {
        Self { collective, place: Place::Switches }
    }

    pub fn kind(&self) -> PlaceKind {
        match self.place {
            Place::Grid { .. } => PlaceKind::Wafer,
            Place::Ranks(Ranks { extents: None, .. }) => PlaceKind::Endpoint,
            Place::Ranks(_) => PlaceKind::Network,
            Place::Switches => PlaceKind::InNetwork,
        }
    }

    /// The grid; where there is none, the ranks in a row.
    pub fn grid(&self) -> Grid {
        match self.place {
            Place::Grid { grid, .. } => grid,
            Place::Ranks(_) | Place::Switches => Grid::new(1, self.collective.ranks),
        }
    }

    pub fn depth_cycles(&self) -> f64 {
        match self.place {
            Place::Grid { depth_cycles, .. } => depth_cycles,
            Place::Ranks(_) | Place::Switches => 0.0,
        }
    }

    /// What stages cost among ranks; on a grid nothing.
    pub fn ranks(&self) -> Ranks {
        match self.place {
            Place::Grid { .. } | Place::Switches => Ranks::default(),
            Place::Ranks(ranks) => ranks,
        }
    }

    /// B: wavelets of the whole vector.
    pub fn wavelets(&self) -> u64 {
        Wavelets::of(u64::from(self.collective.elements), self.collective.dtype.bytes()).0
    }

    /// Bytes of `elements`.
    pub fn bytes(&self, elements: u32) -> u64 {
        u64::from(elements) * self.collective.dtype.bytes()
    }

    /// The same place with another collective.
    #[must_use]
    pub fn with(&self, kind: Kind, root: u32) -> Case {
        Case { collective: Collective { kind, root, ..self.collective }, ..*self }
    }
}

/// A parameter of an algorithm, for listings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Param {
    pub name: &'static str,
    /// Accepted values, and the default.
    pub values: &'static str,
}

pub trait Algorithm: Sync {
    fn name(&self) -> &'static str;
    fn summary(&self) -> &'static str;
    /// Where it is described.
    fn reference(&self) -> &'static str;
    fn collectives(&self) -> &'static [Kind];

    fn params(&self) -> &'static [Param] {
        &[]
    }

    /// The kinds of machines it runs on.
    fn runs_on(&self) -> &'static [PlaceKind] {
        &[PlaceKind::Wafer]
    }

    /// # Errors
    /// The reason why there is no schedule for this case, or which parameter is wrong.
    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError>;

    /// On a grid: the schedule with its placement. Only called on what [`Algorithm::supports`] accepts.
    ///
    /// # Errors
    /// The schedule is larger than its tables can hold.
    fn build(&self, _case: &Case, _params: &Params) -> Result<Placed, AlgorithmError> {
        Err(AlgorithmError::Unsupported { algorithm: self.name(), reason: "it is not for a wafer".to_owned() })
    }

    /// Among ranks: the schedule. Only called on what [`Algorithm::supports`] accepts.
    ///
    /// # Errors
    /// The schedule is too large to build.
    fn schedule(&self, _case: &Case, _params: &Params) -> Result<Schedule, AlgorithmError> {
        Err(AlgorithmError::Unsupported { algorithm: self.name(), reason: "it is for wafers only".to_owned() })
    }

    /// On switches that reduce: their registers. Only called on what [`Algorithm::supports`] accepts.
    ///
    /// # Errors
    /// The machine's engines or identifiers do not do for it.
    fn embed(&self, _case: &Case, _params: &Params, _site: &Site) -> Result<Configured, AlgorithmError> {
        Err(AlgorithmError::Unsupported { algorithm: self.name(), reason: "it does not run in switches".to_owned() })
    }

    /// Among ranks: the rounds of an algorithm in which all ranks do the same, so that a case too large to build can be
    /// timed. Tests compare it with a simulation.
    fn rounds(&self, _case: &Case, _params: &Params) -> Option<Vec<Round>> {
        None
    }

    /// Among ranks: who sends how much to whom, where all do alike, so that a network can be timed without the schedule.
    /// Tests compare it with the schedule.
    fn exchanges(&self, _case: &Case, _params: &Params) -> Option<Vec<Exchange>> {
        None
    }

    /// Among ranks: so many instructions its schedule has at most; `None` where that is not known before it is built.
    fn instructions(&self, _case: &Case, _params: &Params) -> Option<u64> {
        None
    }

    /// On a grid: the cost terms in closed form, so that ranking need not build; `None`: they are computed from the schedule.
    /// Tests compare both. Only called on what [`Algorithm::supports`] accepts.
    fn estimate(&self, _case: &Case, _params: &Params) -> Option<Estimate> {
        None
    }

    /// On a grid: elementary steps that [`Algorithm::estimate`] takes, where it may take more than a moment. Measured; one
    /// takes about a nanosecond.
    fn estimate_steps(&self, _case: &Case, _params: &Params) -> u128 {
        0
    }

    /// Parameters worth ranking for a case. The planner drops those that are not supported.
    fn candidates(&self, _case: &Case) -> Vec<Params> {
        vec![Params::new()]
    }

    /// The parameters with those that it chooses itself where they say nothing, so that a plan says what it means. Only
    /// called on what [`Algorithm::supports`] accepts.
    fn chosen(&self, _case: &Case, params: &Params) -> Params {
        params.clone()
    }

    /// Whether it is made of other algorithms that its parameters name; listings of plain algorithms leave it out.
    fn composed(&self) -> bool {
        false
    }

    /// The unit as a tree on a line, if it is one: then it can be a part of others.
    fn line_tree(&self) -> Option<&dyn LineTree> {
        None
    }
}
