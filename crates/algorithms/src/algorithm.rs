//! The trait [`Algorithm`], and the cases for which algorithms build schedules.

use std::fmt;

use serde::Serialize;
use unisono_base::Wavelets;
use unisono_collective::{Collective, Kind};
use unisono_lower::{Estimate, Exchange, Placed, Round, Trees, switches::Configured};
use unisono_machine::Grid;
use unisono_synthesis::Fabric;

use crate::{AlgorithmError, Formula, Params, line::LineTree, ranks::Extents, switches::Site};

unisono_base::named! {
    /// A means of communication that machines offer and algorithms need.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Means {
        /// A grid of PEs whose routers forward and multicast streams along colors.
        Grid = "grid",
        /// Messages between any two ranks.
        Messages = "messages",
        /// The links of a network, each of which is known to the algorithm.
        Links = "links",
        /// Switches that reduce and multicast.
        ReducingSwitches = "reducing-switches",
    }
}

impl Means {
    /// Returns the phrase that error messages use.
    pub fn phrase(self) -> &'static str {
        match self {
            Means::Grid => "a grid of PEs (a wafer)",
            Means::Messages => "messages between ranks",
            Means::Links => "the links of a network",
            Means::ReducingSwitches => "switches that reduce",
        }
    }
}

/// The facts of an algorithm that do not depend on a case, as listings have them.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Info {
    pub name: &'static str,
    pub summary: &'static str,
    /// The publication that describes the algorithm.
    pub reference: &'static str,
    pub collectives: &'static [Kind],
    pub params: &'static [Param],
    /// Formulas of the algorithm's times, for listings; may be empty.
    pub formulas: &'static [Formula],
    /// The means of communication that the algorithm can use; a machine must offer at least one of them.
    #[serde(skip)]
    pub needs: &'static [Means],
    /// Pairs of a collective and the collectives that the algorithm runs in sequence to implement it.
    #[serde(skip)]
    pub sequences: &'static [(Kind, &'static [Kind])],
    /// True if parameters of the algorithm name other algorithms that it runs. Listings of other algorithms omit the
    /// field.
    #[serde(skip)]
    pub composed: bool,
}

impl Info {
    /// Defaults for algorithms on a grid of PEs.
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
    /// Defaults for reduces that are trees on a line of PEs.
    pub const ON_LINE: Info = Info { collectives: &[Kind::Reduce], ..Info::ON_GRID };
    /// Defaults for algorithms among ranks.
    pub const AMONG_RANKS: Info = Info { needs: &[Means::Messages], ..Info::ON_GRID };

    /// Returns the collectives that the algorithm runs in sequence to implement `kind`; `None` without a sequence. Of
    /// several sequences, this is the one with the most collectives for which `params` has a parameter; of equal ones,
    /// the first.
    pub fn sequence(&self, kind: Kind, params: &Params) -> Option<&'static [Kind]> {
        let of_kind = || self.sequences.iter().filter(|(of, _)| *of == kind).map(|(_, parts)| *parts);
        let given = |parts: &&[Kind]| parts.iter().filter(|part| params.get(part.name()).is_some()).count();
        let most = of_kind().map(|parts| given(&parts)).max()?;
        of_kind().find(|parts| given(parts) == most)
    }

    /// Returns the performance guideline for collective `kind` that the algorithm guarantees because it runs other
    /// collectives in sequence, such as `broadcast <= scatter + allgather`; `None` without such a sequence. Source:
    /// Träff, Gropp, Thakur, "Self-consistent MPI performance guidelines", IEEE TPDS 2010.
    pub fn guideline(&self, kind: Kind, params: &Params) -> Option<String> {
        let parts: Vec<&str> = self.sequence(kind, params)?.iter().map(|part| part.name()).collect();
        Some(format!("{kind} <= {}", parts.join(" + ")))
    }

    /// Returns whether the algorithm implements collective `kind` and can use one of the `offered` means.
    pub fn serves(&self, kind: Kind, offered: &[Means]) -> bool {
        self.needs.iter().any(|means| offered.contains(means)) && self.collectives.contains(&kind)
    }
}

/// A collective and the machine part that runs its schedule.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub collective: Collective,
    pub place: Place<'a>,
}

/// The facts of a machine on which an algorithm's shape depends.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// PEs of a wafer; rank `k` is PE `k`, row-major. Each message on the longest chain of dependent messages costs
    /// `depth_cycles`: down the ramp, one operation, up the ramp. Algorithms use this cost to choose their shape.
    Grid { grid: Grid, depth_cycles: f64 },
    /// Ranks that send messages to any other rank.
    Ranks(Ranks),
    /// Ranks that send messages to any other rank, on a machine that knows the times of each length.
    Priced { ranks: Ranks, messages: &'a dyn Messages },
    /// Ranks that send messages to any other rank, over known links.
    Network { ranks: Ranks, fabric: &'a Fabric },
    /// The cores of the ranks, each with a switch that reduces and multicasts.
    Switches(&'a Site),
}

/// The prices (times) of messages among ranks, for algorithms that choose their shape by cost: m messages of n bytes
/// take `latency_ns + m * (issue_ns + n * ns_per_byte)`, and the reduction of each message takes `n *
/// reduce_ns_per_byte`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Ranks {
    pub latency_ns: f64,
    pub issue_ns: f64,
    /// The part of the latency from the arrival of a message until the receiver notices the message.
    pub signal_ns: f64,
    pub ns_per_byte: f64,
    pub reduce_ns_per_byte: f64,
    /// The number of ranks per node, if the ranks of a node are consecutive; algorithms keep early stages inside a
    /// node.
    pub node_ranks: Option<u32>,
    /// The number of ranks per node, if ranks are assigned to nodes round-robin, so that consecutive ranks are on
    /// consecutive nodes.
    pub dealt_node_ranks: Option<u32>,
    /// The number of ranks along each dimension of a network, for algorithms that follow the dimensions; `None` on
    /// machines without a network.
    pub extents: Option<Extents>,
}

/// The times of a message among ranks, in ns.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Message {
    /// The times for which a send occupies the CPU and the interface of the sender.
    pub send_cpu: f64,
    pub send_nic: f64,
    /// The time from the start of the send until the message arrives at the receiver.
    pub flight: f64,
    /// The times for which a receive occupies the CPU and the interface of the receiver.
    pub receive_cpu: f64,
    pub receive_nic: f64,
    /// The time of the reduction of the message with another vector.
    pub reduce: f64,
    /// True if messages occupy CPUs. If false, messages occupy interfaces only, and `receive_cpu` is a delay.
    pub uses_cpus: bool,
    /// The time by which an interface may send or receive earlier than the gaps between its messages allow.
    pub slack: f64,
}

impl Message {
    /// Returns the time from the start of a send until the receiver has the message and, if `reduces`, has reduced it.
    pub fn arrival_ns(&self, reduces: bool) -> f64 {
        self.flight + self.receive_cpu + if reduces { self.reduce } else { 0.0 }
    }

    /// Returns the time for which one message in each direction occupies the CPU of a rank, with the reduction if
    /// `reduces`.
    pub fn hold_ns(&self, reduces: bool) -> f64 {
        if self.uses_cpus {
            self.send_cpu + self.arrival_ns(reduces) - self.flight
        } else if reduces {
            self.reduce
        } else {
            0.0
        }
    }

    /// Returns the time for which one message in each direction occupies the interface of a rank.
    pub fn gap_ns(&self) -> f64 {
        self.send_nic.max(self.receive_nic)
    }

    /// Returns the time of consecutive rounds. Each round is `(messages, message)`: a rank sends and receives
    /// `messages` equal messages, and reduces them if `reduces`. At the start of a round, the interfaces may still be
    /// occupied by messages of earlier rounds.
    pub fn rounds_ns(rounds: impl IntoIterator<Item = (u32, Message)>, reduces: bool) -> f64 {
        let (mut now, mut sends, mut receives) = (0.0_f64, 0.0_f64, 0.0_f64);
        for (messages, m) in rounds.into_iter().filter(|round| round.0 > 0) {
            let (count, more) = (f64::from(messages), f64::from(messages - 1));
            (sends, receives) = (sends.max(now), receives.max(now + m.flight));
            let sent = (now + more * m.send_cpu).max(sends + more * m.send_nic - m.slack);
            let received = (now + m.flight + more * m.receive_cpu).max(receives + more * m.receive_nic - m.slack);
            let arrived = (sent + m.flight).max(received) + m.receive_cpu;
            let reduced = if reduces { count * m.reduce } else { 0.0 };
            now = arrived.max(now + count * m.hold_ns(false)) + reduced;
            (sends, receives) = (sends + count * m.send_nic, receives + count * m.receive_nic);
        }
        now
    }
}

/// A machine that gives the times of a message of any length.
pub trait Messages: fmt::Debug + Sync {
    fn message(&self, bytes: u64) -> Message;
}

impl<'a> Case<'a> {
    pub fn on_grid(collective: Collective, grid: Grid, depth_cycles: f64) -> Self {
        Self { collective, place: Place::Grid { grid, depth_cycles } }
    }

    pub fn on_ranks(collective: Collective, ranks: Ranks) -> Self {
        Self { collective, place: Place::Ranks(ranks) }
    }

    pub fn on_priced_ranks(collective: Collective, ranks: Ranks, messages: &'a dyn Messages) -> Self {
        Self { collective, place: Place::Priced { ranks, messages } }
    }

    pub fn on_network(collective: Collective, ranks: Ranks, fabric: &'a Fabric) -> Self {
        Self { collective, place: Place::Network { ranks, fabric } }
    }

    pub fn on_switches(collective: Collective, site: &'a Site) -> Self {
        Self { collective, place: Place::Switches(site) }
    }

    /// Returns the means of communication that the machine offers.
    pub fn offers(&self) -> &'static [Means] {
        match self.place {
            Place::Grid { .. } => &[Means::Grid],
            Place::Ranks(_) | Place::Priced { .. } => &[Means::Messages],
            Place::Network { fabric, .. } if fabric.switches().are_plain() => &[Means::Messages, Means::Links],
            Place::Network { .. } => &[Means::Messages, Means::Links, Means::ReducingSwitches],
            Place::Switches(_) => &[Means::ReducingSwitches],
        }
    }

    /// Returns the grid, or one row of the ranks if there is no grid.
    pub fn grid(&self) -> Grid {
        match self.place {
            Place::Grid { grid, .. } => grid,
            _ => Grid::new(1, self.collective.ranks),
        }
    }

    pub fn depth_cycles(&self) -> f64 {
        match self.place {
            Place::Grid { depth_cycles, .. } => depth_cycles,
            _ => 0.0,
        }
    }

    /// Returns the prices of messages among ranks; all prices are zero on grids and in switches.
    pub fn ranks(&self) -> Ranks {
        match self.place {
            Place::Grid { .. } | Place::Switches(_) => Ranks::default(),
            Place::Ranks(ranks) | Place::Priced { ranks, .. } | Place::Network { ranks, .. } => ranks,
        }
    }

    /// Returns the links of the network, if they are known.
    pub fn fabric(&self) -> Option<&'a Fabric> {
        match self.place {
            Place::Network { fabric, .. } => Some(fabric),
            _ => None,
        }
    }

    /// Returns the times of a message of `bytes` bytes between ranks. On machines without exact times, they follow from
    /// [`Case::ranks`].
    pub fn message(&self, bytes: u64) -> Message {
        if let Place::Priced { messages, .. } = self.place {
            return messages.message(bytes);
        }
        let ranks = self.ranks();
        let busy = ranks.issue_ns + bytes as f64 * ranks.ns_per_byte;
        let reduce = bytes as f64 * ranks.reduce_ns_per_byte;
        let flight = ranks.latency_ns + busy;
        Message { send_nic: busy, flight, receive_nic: busy, reduce, ..Message::default() }
    }

    /// Returns B, the number of wavelets of the whole vector.
    pub fn wavelets(&self) -> u64 {
        Wavelets::of(u64::from(self.collective.elements), self.collective.element_bytes()).0
    }

    /// Returns the bytes of `elements` elements.
    pub fn bytes(&self, elements: u32) -> u64 {
        u64::from(elements) * self.collective.element_bytes()
    }

    /// Returns the case with another kind of collective and another root.
    #[must_use]
    pub fn with(&self, kind: Kind, root: u32) -> Case<'a> {
        Case { collective: Collective { kind, root, ..self.collective }, ..*self }
    }
}

/// A parameter of an algorithm, as listings show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Param {
    pub name: &'static str,
    /// Accepted values, and the default.
    pub values: &'static str,
}

/// The cost of a case in closed form. Plans rank cases by it without building a schedule. Tests compare each closed
/// form with the schedule or its simulation.
#[derive(Clone, Debug)]
pub enum Profile {
    /// The cost terms of each phase, on a grid.
    Terms(Estimate),
    /// Rounds in which all ranks send and reduce equal amounts, among ranks with equal prices.
    Rounds(Vec<Round>),
    /// The sizes, senders and receivers of messages, among ranks on a network.
    Exchanges(Vec<Exchange>),
    /// The times of trees whose messages share the links of a network.
    Trees(Trees),
    /// The registers of switches to which the schedule is lowered.
    Registers(Configured),
}

/// The estimated effort of building the schedule of a case, and of computing its profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Size {
    /// An upper bound of the instructions of the schedule; `None` if only a build of the schedule shows their number.
    pub instructions: Option<u64>,
    /// True if the algorithm makes instructions in the order of nodes and lanes, with few streams. The build then needs
    /// less memory.
    pub in_order: bool,
    /// A lower bound of the messages that the busiest rank sends.
    pub sends: u64,
    /// The number of elementary steps of [`Algorithm::profile`]. A step takes about 1 ns, as measured. 0 if the profile
    /// takes only a moment.
    pub profile_steps: u128,
}

/// A generator of schedules. A new algorithm is a file in `catalog/` and a line in [`crate::ALGORITHMS`].
pub trait Algorithm: Sync {
    fn info(&self) -> &'static Info;

    /// Checks that the algorithm has a schedule for a case.
    ///
    /// # Errors
    /// Returns an error if the case has no schedule or a parameter is wrong; the message states which.
    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError>;

    /// Builds the schedule, with a placement if the machine needs one. Called on supported cases only.
    ///
    /// # Errors
    /// Returns an error if the tables cannot hold the schedule, or if the machine has too few engines or identifiers.
    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError>;

    /// Returns the cost in closed form, if there is one. Called on supported cases only.
    fn profile(&self, _case: &Case, _params: &Params) -> Option<Profile> {
        None
    }

    fn size(&self, _case: &Case, _params: &Params) -> Size {
        Size::default()
    }

    /// Returns the values of the parameters that a plan compares for a case. The planner drops values that
    /// [`Algorithm::supports`] refuses.
    fn candidates(&self, _case: &Case) -> Vec<Params> {
        vec![Params::new()]
    }

    /// Returns the parameters that a plan compares if the user names the algorithm, among them some that take long to
    /// find or to time.
    fn candidates_if_named(&self, case: &Case) -> Vec<Params> {
        self.candidates(case)
    }

    /// Returns the parameters for pieces of about half the length, and for pieces of twice the length. `None` if the
    /// algorithm has no such parameter or the length is at its limit. A plan starts from its best candidate and changes
    /// the length in one direction as long as the time falls.
    fn recut(&self, _case: &Case, _params: &Params) -> [Option<Params>; 2] {
        [None, None]
    }

    /// Returns true if `params` states all parameters, so that a plan needs no candidates.
    fn is_whole(&self, params: &Params) -> bool {
        params.has_all(self.info().params.iter().map(|param| param.name))
    }

    /// Returns whether an allreduce gives all ranks the same bits, which decides between candidates with equal times.
    fn gives_equal_bits(&self, _case: &Case, _params: &Params) -> bool {
        true
    }

    /// Adds the parameters that the algorithm chooses itself, so that a plan states all of them. Called on supported
    /// cases only.
    fn chosen(&self, _case: &Case, params: &Params) -> Params {
        params.clone()
    }

    /// Returns the algorithm as a [`LineTree`] if it is a tree on a line, so that other algorithms can use it for their
    /// lines.
    fn line_tree(&self) -> Option<&dyn LineTree> {
        None
    }
}

impl<'a> dyn Algorithm + 'a {
    pub fn name(&self) -> &'static str {
        self.info().name
    }
}
