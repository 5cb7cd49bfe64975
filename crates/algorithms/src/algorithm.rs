//! The trait of algorithms, and the cases and places that it works on.

use unisono_base::Wavelets;
use unisono_collective::{Collective, Kind};
use unisono_lower::{Estimate, Exchange, Placed, Round, Trees, switches::Configured};
use unisono_machine::Grid;
use unisono_synthesis::Fabric;

use crate::{AlgorithmError, Formula, Params, line::LineTree, ranks::Extents, switches::Site};

/// A means of communication that machines offer and algorithms need.
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
    /// The publication that describes it.
    pub reference: &'static str,
    pub collectives: &'static [Kind],
    pub params: &'static [Param],
    /// Its times in closed form; may be empty.
    pub formulas: &'static [Formula],
    /// Any one of these means suffices.
    pub needs: &'static [Means],
    /// For a collective: the collectives that the algorithm runs one after the other in its place.
    pub sequences: &'static [(Kind, &'static [Kind])],
    /// True if the algorithm is composed of others that its parameters name; listings of plain algorithms leave it out.
    pub composed: bool,
}

impl Info {
    /// Base facts of algorithms on a grid of PEs.
    pub const ON_GRID: Info = Info {
        name: "",
        summary: "",
        reference: "",
        collectives: &[],
        params: &[],
        formulas: &[],
        needs: &[Means::Grid],
        sequences: &[],
        composed: false,
    };
    /// Base facts of reduces that are trees on a line of PEs.
    pub const ON_LINE: Info = Info { collectives: &[Kind::Reduce], ..Info::ON_GRID };
    /// Base facts of algorithms among ranks.
    pub const AMONG_RANKS: Info = Info { needs: &[Means::Messages], ..Info::ON_GRID };

    /// Returns the performance guideline that the algorithm makes true by running collectives in sequence, such as
    /// `broadcast <= scatter + allgather`. Source: Träff, Gropp, Thakur, "Self-consistent MPI performance guidelines",
    /// IEEE TPDS 2010.
    pub fn guideline(&self, kind: Kind) -> Option<String> {
        let (_, parts) = self.sequences.iter().find(|(of, _)| *of == kind)?;
        let parts: Vec<&str> = parts.iter().map(|part| part.name()).collect();
        Some(format!("{kind} <= {}", parts.join(" + ")))
    }

    /// Returns whether the algorithm implements a collective with one of the offered means.
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

/// The facts of a machine on which an algorithm's shape depends.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// PEs of a wafer; rank `k` is PE `k`, row-major. One step of the depth costs `depth_cycles` (2 T_R + 1);
    /// algorithms that choose their shape by the model use this cost.
    Grid { grid: Grid, depth_cycles: f64 },
    /// Ranks that all reach each other by messages.
    Ranks(Ranks),
    /// Ranks that reach each other by messages over known links.
    Network { ranks: Ranks, fabric: &'a Fabric },
    /// Cores whose switches reduce.
    Switches(&'a Site),
}

/// The cost of a stage of messages among ranks, for algorithms that choose their shape by cost: `messages` of `bytes`
/// each take `latency_ns + messages * (issue_ns + bytes * ns_per_byte)`, and their reduction `bytes *
/// reduce_ns_per_byte` each.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Ranks {
    pub latency_ns: f64,
    pub issue_ns: f64,
    /// The part of the latency between the arrival of a message and the moment at which the receiver notices it.
    pub signal_ns: f64,
    pub ns_per_byte: f64,
    pub reduce_ns_per_byte: f64,
    /// Ranks per node, if the machine has nodes of consecutive ranks; algorithms keep early stages inside a node.
    pub node_ranks: Option<u32>,
    /// Ranks per node, if ranks are dealt out to nodes in turn, so that consecutive ranks are on consecutive nodes.
    pub dealt_node_ranks: Option<u32>,
    /// The extents of the ranks on a network, for algorithms that follow its dimensions.
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

    /// Returns the grid, or one row of the ranks if there is no grid.
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

    /// Returns the cost of stages among ranks; all costs are zero on grids and in switches.
    pub fn ranks(&self) -> Ranks {
        match self.place {
            Place::Grid { .. } | Place::Switches(_) => Ranks::default(),
            Place::Ranks(ranks) | Place::Network { ranks, .. } => ranks,
        }
    }

    /// Returns the links, if they are known.
    pub fn fabric(&self) -> Option<&'a Fabric> {
        match self.place {
            Place::Network { fabric, .. } => Some(fabric),
            Place::Grid { .. } | Place::Ranks(_) | Place::Switches(_) => None,
        }
    }

    /// Returns B, the wavelets of the whole vector.
    pub fn wavelets(&self) -> u64 {
        Wavelets::of(u64::from(self.collective.elements), self.collective.element_bytes()).0
    }

    /// Returns the bytes of `elements` elements.
    pub fn bytes(&self, elements: u32) -> u64 {
        u64::from(elements) * self.collective.element_bytes()
    }

    /// Returns the same place with another collective.
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

/// The cost of a case in closed form, with which cases are ranked without building a schedule. Tests compare each form
/// with the schedule or its simulation.
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

/// The estimated effort of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Size {
    /// An upper bound of the instructions of the schedule; `None` if only building the schedule yields it.
    pub instructions: Option<u64>,
    /// Elementary steps of [`Algorithm::profile`], if it may take more than a moment. They are measured: one takes
    /// about a nanosecond.
    pub profile_steps: u128,
}

/// A generator of schedules. A new algorithm is a file in `catalog/` and a line in [`crate::ALGORITHMS`].
pub trait Algorithm: Sync {
    fn info(&self) -> &'static Info;

    /// Checks that the algorithm has a schedule for a case.
    ///
    /// # Errors
    /// The reason why there is no schedule, or the parameter that is wrong.
    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError>;

    /// Builds the schedule, with its placement if it depends on one. Only called on cases that [`Algorithm::supports`]
    /// accepts.
    ///
    /// # Errors
    /// The tables cannot hold the schedule, or the machine's engines or identifiers do not suffice.
    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError>;

    /// Returns the cost in closed form, if there is one. Only called on cases that [`Algorithm::supports`] accepts.
    fn profile(&self, _case: &Case, _params: &Params) -> Option<Profile> {
        None
    }

    fn size(&self, _case: &Case, _params: &Params) -> Size {
        Size::default()
    }

    /// Returns the parameters that are ranked for a case. The planner drops those that are not supported.
    fn candidates(&self, _case: &Case) -> Vec<Params> {
        vec![Params::new()]
    }

    /// Adds the parameters that the algorithm chooses itself, so that a plan states all of them. Only called on cases
    /// that [`Algorithm::supports`] accepts.
    fn chosen(&self, _case: &Case, params: &Params) -> Params {
        params.clone()
    }

    /// Returns the algorithm as a tree on a line if it is one, so that other algorithms can use it as a part.
    fn line_tree(&self) -> Option<&dyn LineTree> {
        None
    }
}

impl<'a> dyn Algorithm + 'a {
    pub fn name(&self) -> &'static str {
        self.info().name
    }
}
