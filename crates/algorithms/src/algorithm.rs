//! What every algorithm answers.

use unisono_base::Wavelets;
use unisono_collective::{Collective, Kind};
use unisono_lower::{Estimate, Exchange, Placed, Round, Trees, switches::Configured};
use unisono_machine::Grid;
use unisono_synthesis::Fabric;

use crate::{AlgorithmError, Formula, Params, line::LineTree, ranks::Extents, switches::Site};

/// A way of communicating that machines offer and algorithms need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Means {
    /// A grid of PEs whose routers forward and multicast streams along colors.
    Grid,
    /// Messages between any two ranks.
    Messages,
    /// The links of a network, known one by one.
    Links,
    /// Switches that reduce and multicast.
    ReducingSwitches,
}

impl Means {
    pub const ALL: [Self; 4] = [Self::Grid, Self::Messages, Self::Links, Self::ReducingSwitches];

    pub fn name(self) -> &'static str {
        match self {
            Means::Grid => "grid",
            Means::Messages => "messages",
            Means::Links => "links",
            Means::ReducingSwitches => "reducing-switches",
        }
    }

    /// The phrase of error messages.
    pub fn phrase(self) -> &'static str {
        match self {
            Means::Grid => "a grid of PEs (a wafer)",
            Means::Messages => "messages between ranks",
            Means::Links => "the links of a network",
            Means::ReducingSwitches => "switches that reduce",
        }
    }
}

/// The facts of an algorithm that do not depend on a case.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    pub name: &'static str,
    pub summary: &'static str,
    /// Where it is described.
    pub reference: &'static str,
    pub collectives: &'static [Kind],
    pub params: &'static [Param],
    /// Its times in closed form, if there are any.
    pub formulas: &'static [Formula],
    /// One of these is enough.
    pub needs: &'static [Means],
    /// Whether it is made of other algorithms that its parameters name; listings of plain algorithms leave it out.
    pub composed: bool,
    /// The best of the settings that it lists, by their times, is taken where parameters are not given.
    pub best_of_listed: bool,
}

impl Info {
    /// Base of the facts of an algorithm on a grid of PEs.
    pub const ON_GRID: Info = Info {
        name: "",
        summary: "",
        reference: "",
        collectives: &[],
        params: &[],
        formulas: &[],
        needs: &[Means::Grid],
        composed: false,
        best_of_listed: false,
    };
    /// Base of the facts of a reduce that is a tree on a line of PEs.
    pub const ON_LINE: Info = Info { collectives: &[Kind::Reduce], ..Info::ON_GRID };
    /// Base of the facts of an algorithm among ranks.
    pub const AMONG_RANKS: Info = Info { needs: &[Means::Messages], ..Info::ON_GRID };

    /// Returns whether the algorithm makes a collective where a means is offered.
    pub fn serves(&self, kind: Kind, offered: &[Means]) -> bool {
        self.needs.iter().any(|means| offered.contains(means)) && self.collectives.contains(&kind)
    }
}

/// A collective and the place where its schedule will run.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub collective: Collective,
    pub place: Place<'a>,
}

/// The facts of a machine that an algorithm's shape depends on.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// PEs of a wafer; rank `k` is PE `k`, row-major. One step of the depth costs `depth_cycles` (2 T_R + 1), for
    /// algorithms that choose their shape by the model.
    Grid { grid: Grid, depth_cycles: f64 },
    /// Ranks that all reach each other by messages.
    Ranks(Ranks),
    /// Ranks that reach each other by messages over links that are known.
    Network { ranks: Ranks, fabric: &'a Fabric },
    /// Cores whose switches reduce.
    Switches(&'a Site),
}

/// What a stage of messages costs among ranks, for algorithms that choose their shape by it: `messages` of `bytes` each
/// take `latency_ns + messages * (issue_ns + bytes * ns_per_byte)`, and their reduction `bytes * reduce_ns_per_byte`
/// each.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Ranks {
    pub latency_ns: f64,
    pub issue_ns: f64,
    /// The part of the latency in which the receiver of a message learns that it is there.
    pub signal_ns: f64,
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

impl<'a> Case<'a> {
    pub fn on_grid(collective: Collective, grid: Grid, depth_cycles: f64) -> Self {
        Self { collective, place: Place::Grid { grid, depth_cycles } }
    }

    pub fn on_ranks(collective: Collective, ranks: Ranks) -> Self {
        Self { collective, place: Place::Ranks(ranks) }
    }

    pub fn on_network(collective: Collective, ranks: Ranks, fabric: &'a Fabric) -> Self {
        Self { collective, place: Place::Network { ranks, fabric } }
    }

    pub fn on_switches(collective: Collective, site: &'a Site) -> Self {
        Self { collective, place: Place::Switches(site) }
    }

    /// The means that the place offers.
    pub fn offers(&self) -> &'static [Means] {
        match self.place {
            Place::Grid { .. } => &[Means::Grid],
            Place::Ranks(_) => &[Means::Messages],
            Place::Network { fabric, .. } if fabric.switches().are_plain() => &[Means::Messages, Means::Links],
            Place::Network { .. } => &[Means::Messages, Means::Links, Means::ReducingSwitches],
            Place::Switches(_) => &[Means::ReducingSwitches],
        }
    }

    /// The grid; where there is none, the ranks in a row.
    pub fn grid(&self) -> Grid {
        match self.place {
            Place::Grid { grid, .. } => grid,
            Place::Ranks(_) | Place::Network { .. } | Place::Switches(_) => Grid::new(1, self.collective.ranks),
        }
    }

    pub fn depth_cycles(&self) -> f64 {
        match self.place {
            Place::Grid { depth_cycles, .. } => depth_cycles,
            Place::Ranks(_) | Place::Network { .. } | Place::Switches(_) => 0.0,
        }
    }

    /// What stages cost among ranks; on a grid nothing.
    pub fn ranks(&self) -> Ranks {
        match self.place {
            Place::Grid { .. } | Place::Switches(_) => Ranks::default(),
            Place::Ranks(ranks) | Place::Network { ranks, .. } => ranks,
        }
    }

    /// The links, where they are known.
    pub fn fabric(&self) -> Option<&'a Fabric> {
        match self.place {
            Place::Network { fabric, .. } => Some(fabric),
            Place::Grid { .. } | Place::Ranks(_) | Place::Switches(_) => None,
        }
    }

    /// B: wavelets of the whole vector.
    pub fn wavelets(&self) -> u64 {
        Wavelets::of(u64::from(self.collective.elements), self.collective.element_bytes()).0
    }

    /// Bytes of `elements`.
    pub fn bytes(&self, elements: u32) -> u64 {
        u64::from(elements) * self.collective.element_bytes()
    }

    /// The same place with another collective.
    #[must_use]
    pub fn with(&self, kind: Kind, root: u32) -> Case<'a> {
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

/// The cost of a case in closed form, so that ranking need not build a schedule. Tests compare each form with the
/// schedule or its simulation.
#[derive(Clone, Debug)]
pub enum Profile {
    /// On a grid: the cost terms of each phase.
    Terms(Estimate),
    /// Among ranks at one price: rounds in which all ranks do the same.
    Rounds(Vec<Round>),
    /// Among ranks on a network: the sizes, senders and receivers of messages.
    Exchanges(Vec<Exchange>),
    /// On the links of a network: trees that fill them.
    Trees(Trees),
    /// In switches: the registers that the schedule stands for.
    Registers(Configured),
}

/// The effort that a case takes, as far as it is known before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Size {
    /// The most instructions that the schedule may have; `None` where only building it tells.
    pub instructions: Option<u64>,
    /// Elementary steps of [`Algorithm::profile`], where it may take more than a moment. Measured; one takes about a
    /// nanosecond.
    pub profile_steps: u128,
}

/// A generator of schedules. A new one is a file in `catalog/` and its line in [`crate::ALGORITHMS`].
pub trait Algorithm: Sync {
    fn info(&self) -> &'static Info;

    /// # Errors
    /// The reason why there is no schedule for this case, or which parameter is wrong.
    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError>;

    /// Builds the schedule, with its placement where it does not run anywhere. Only called on cases that
    /// [`Algorithm::supports`] accepts.
    ///
    /// # Errors
    /// The schedule is larger than its tables can hold; the machine's engines or identifiers do not suffice.
    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError>;

    /// Returns the cost in closed form, where there is one. Only called on cases that [`Algorithm::supports`] accepts.
    ///
    /// # Errors
    /// As [`Algorithm::build`].
    fn profile(&self, _case: &Case, _params: &Params) -> Option<Profile> {
        None
    }

    fn size(&self, _case: &Case, _params: &Params) -> Size {
        Size::default()
    }

    /// Parameters worth ranking for a case. The planner drops those that are not supported.
    fn candidates(&self, _case: &Case) -> Vec<Params> {
        vec![Params::new()]
    }

    /// Adds the parameters that the algorithm chooses itself, so that a plan names them all. Only called on cases that
    /// [`Algorithm::supports`] accepts.
    fn chosen(&self, _case: &Case, params: &Params) -> Params {
        params.clone()
    }

    /// The unit as a tree on a line, if it is one: then it can be a part of others.
    fn line_tree(&self) -> Option<&dyn LineTree> {
        None
    }
}

impl<'a> dyn Algorithm + 'a {
    pub fn name(&self) -> &'static str {
        self.info().name
    }
}
