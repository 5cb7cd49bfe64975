//! The time of each distinct communication of a program on a machine.
//!
//! A collective of one group is planned like a request. If several groups communicate at once on a network, or the
//! group is large, algorithms are timed by their exchanges in all groups together ([`SharedNetwork`]). A collective of
//! a workload file is timed by exchanges first, and planned if its time matters ([`ProgramPrices::settle`]). The lower
//! bound is the larger of two bounds: that of the first group alone, which also holds for all groups together, and that
//! of the links that all groups share. For a collective of a workload file without a plan, only the second bound is
//! computed.

mod messages;
mod worth;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use rustc_hash::{FxHashMap, FxHashSet};
use unisono_algorithms::{Means, Params, ranks::Extents};
use unisono_base::{interrupt::check, parallel};
use unisono_collective::Kind;
use unisono_cost::{
    endpoint::{LevelPrices, Prices},
    network::NetworkPart,
};
use unisono_discover::whole_elements;
use unisono_lower::tasks::Charges;
use unisono_machine::{
    Machine, Shape,
    network::{Network, Switches},
};
use unisono_workload::{Collected, Groups, Work, WorkNode, WorkloadGraph};

use super::{
    super::{
        WorkloadError,
        shared::{InGroups, SharedNetwork},
    },
    Chosen, Messages, Ports,
    apart::Apart,
    reduction::Reduction,
};
use crate::{
    BoundReport, Part, PlanError, Problem, Request, Root, Target, Timed, plan_best,
    report::{map, tightest_report},
    targets::require,
};

/// The most ranks of a planned group. Larger groups use exchanges in closed form.
pub(super) const MOST_PLANNED: u32 = 1024;

/// A distinct communication with its time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Communication {
    pub kind: &'static str,
    /// The number of ranks in a group. If groups have several sizes, this is the size of the slowest group.
    pub ranks: u32,
    pub groups: usize,
    pub bytes: u64,
    pub algorithm: String,
    pub params: BTreeMap<String, String>,
    pub seconds: f64,
    pub bound: Option<BoundReport>,
    /// For messages between pairs, the part of the time that does not depend on their length.
    pub latency_seconds: f64,
    /// For messages between pairs, the parts of the latency in the hosts of sender and receiver.
    pub overhead_seconds: [f64; 2],
}

/// The prices of a program's communications.
pub struct ProgramPrices<'a> {
    graph: &'a WorkloadGraph,
    machine: &'a Machine,
    target: Arc<dyn Target>,
    /// The targets of groups, by their ranks, which cache forests of earlier collectives.
    targets: Mutex<FxHashMap<Vec<u32>, Arc<dyn Target>>>,
    /// The links that groups share, if the machine is a network.
    shared: Option<SharedNetwork>,
    /// The algorithm requested for each kind of collective. Other kinds use the algorithm that the workload file names,
    /// or else the fastest algorithm.
    algorithms: BTreeMap<&'static str, String>,
    /// The collectives of a workload file that are planned instead of being timed by exchanges
    /// ([`ProgramPrices::settle`]).
    settled: FxHashSet<Collected>,
    known: FxHashMap<Key, usize>,
    /// The collectives that were timed before their row was requested.
    ahead: FxHashMap<Collected, Result<(Communication, Vec<Chosen>), PlanError>>,
    rows: Vec<Communication>,
    /// For each row, the algorithms that its groups use: one entry for each size of groups.
    chosen: Vec<Vec<Chosen>>,
    /// The row of messages between pairs, by their bytes and, on a network, the bits of their seconds.
    messages: FxHashMap<(u64, Option<u64>), usize>,
    /// For each sender and receiver on a network, the ports of their messages.
    ports: FxHashMap<(u32, u32), Ports>,
}

/// The messages of a program with their prices. `rows` has the row of each node's communication, by class.
pub(super) struct PricedMessages<'a> {
    pub prices: &'a ProgramPrices<'a>,
    pub rows: &'a [Vec<Option<usize>>],
}

impl Messages for PricedMessages<'_> {
    fn latency_seconds(&self, class: usize, node: usize) -> f64 {
        self.rows[class][node].map_or(0.0, |row| self.prices.rows[row].latency_seconds)
    }

    fn overhead_seconds(&self, class: usize, node: usize) -> [f64; 2] {
        self.rows[class][node].map_or([0.0; 2], |row| self.prices.rows[row].overhead_seconds)
    }

    fn ports(&self, class: usize, node: usize) -> Option<&Ports> {
        let class = &self.prices.graph.classes[class];
        let Work::Send { to, .. } = class.nodes[node].work else { return None };
        self.prices.ports.get(&(*class.ranks.first()?, to))
    }

    /// Returns true on a network, because hosts post messages to an interface.
    fn are_posted(&self) -> bool {
        self.prices.shared.is_some()
    }

    fn machines(&self) -> Option<u32> {
        self.prices.shared.as_ref().map_or(Some(1), SharedNetwork::send_machines)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Collective(Collected),
    Permute { bytes: u64, receivers: u32 },
    Message { from: u32, to: u32, bytes: u64 },
}

impl<'a> ProgramPrices<'a> {
    /// Places the ranks of a program on the first ranks of a machine, or on `part`, which must have the same number of
    /// ranks.
    ///
    /// # Errors
    ///
    /// Returns an error if the machine is too small, its ranks exchange no messages, or it has no prices of messages.
    pub fn new(graph: &'a WorkloadGraph, machine: &'a Machine, part: &Part) -> Result<Self, PlanError> {
        require(machine, Means::Messages, "programs are timed on")?;
        let line = Part::Shape(Shape::line(graph.ranks));
        let open =
            |part: Part| Ok::<_, PlanError>(Problem::new(&Request::new(Kind::Barrier, machine, part, 0))?.target);
        let target = match part {
            Part::All => open(line)?,
            part => open(part.clone())?,
        };
        if target.ranks() != graph.ranks {
            let (name, ranks, found) = (graph.name.clone(), graph.ranks, target.ranks());
            return Err(WorkloadError::Ranks { name, ranks, found }.into());
        }
        let places = target.part().downcast_ref().map(|part: &NetworkPart| part.model.places().to_vec());
        let on_network = machine.get::<Network>().zip(places);
        let shared = on_network.map(|(network, places)| SharedNetwork::new(network, places)).transpose()?;
        let prices = Self {
            graph,
            machine,
            target,
            targets: Mutex::default(),
            shared,
            algorithms: BTreeMap::new(),
            settled: FxHashSet::default(),
            known: FxHashMap::default(),
            ahead: FxHashMap::default(),
            rows: Vec::new(),
            chosen: Vec::new(),
            messages: FxHashMap::default(),
            ports: FxHashMap::default(),
        };
        if prices.shared.is_none() {
            prices.of_messages()?;
        }
        Ok(prices)
    }

    /// Sets the algorithms that collectives of the given kinds use.
    #[must_use]
    pub fn by(self, algorithms: BTreeMap<&'static str, String>) -> Self {
        Self { algorithms, ..self }
    }

    /// Returns the accelerator of each rank on a network; an empty slice on other machines.
    pub fn places(&self) -> &[u32] {
        self.shared.as_ref().map_or(&[], SharedNetwork::places)
    }

    /// Returns the sums and copies that the switches of a network make.
    pub fn computing(&self) -> Switches {
        self.shared.as_ref().map_or_else(Switches::default, |shared| shared.computing().clone())
    }

    pub fn charges(&self) -> Charges {
        self.shared.as_ref().map_or_else(Charges::default, SharedNetwork::charges)
    }

    /// Returns the number of links of a network's plane; 0 on other machines.
    pub fn link_count(&self) -> usize {
        self.shared.as_ref().map_or(0, SharedNetwork::link_count)
    }

    pub(super) fn shared(&self) -> Option<&SharedNetwork> {
        self.shared.as_ref()
    }

    /// Returns the index in [`WorkloadGraph::receivers`] of a row's messages, if all of them are sent at once.
    pub(super) fn receivers_of(&self, row: usize) -> Option<u32> {
        self.known.iter().find_map(|(key, &known)| match *key {
            Key::Permute { receivers, .. } if known == row => Some(receivers),
            _ => None,
        })
    }

    /// Returns the prices of messages on a machine that is not a network.
    ///
    /// # Errors
    /// Returns an error if the machine has none.
    pub(super) fn of_messages(&self) -> Result<&dyn Prices, PlanError> {
        let (machine, kind) = (self.machine.name(), self.machine.kind());
        let missing = || WorkloadError::NoPrices { machine: machine.to_owned(), kind }.into();
        self.prices().ok_or_else(missing)
    }

    /// Checks that the program has every kind of collective for which an algorithm is named. All nodes of the program
    /// must have rows.
    ///
    /// # Errors
    ///
    /// Returns an error if the program lacks a kind.
    pub(super) fn prices(&self) -> Option<&dyn Prices> {
        self.target.part().downcast_ref().map(|prices: &LevelPrices| prices as &dyn Prices)
    }

    pub(super) fn network(&self) -> Option<&'a Network> {
        self.machine.get()
    }

    pub fn graph(&self) -> &'a WorkloadGraph {
        self.graph
    }

    /// Checks that the program has every kind of collective for which an algorithm is named. All of its nodes must have
    /// rows.
    ///
    /// # Errors
    /// Returns an error if the program lacks a kind.
    pub(super) fn check_names(&self) -> Result<(), PlanError> {
        let made: BTreeSet<&str> = self
            .known
            .iter()
            .filter_map(|(key, &row)| match key {
                Key::Collective(_) => Some(self.rows[row].kind),
                _ => None,
            })
            .collect();
        let Some(kind) = self.algorithms.keys().find(|kind| !made.contains(**kind)) else { return Ok(()) };
        let made =
            if made.is_empty() { "programs with collectives".to_owned() } else { Vec::from_iter(made).join(", ") };
        Err(WorkloadError::Unused { program: self.graph.name.clone(), kind: (*kind).to_owned(), made }.into())
    }

    /// Returns the time of a sum on a rank.
    pub(super) fn reduction(&self) -> Reduction {
        Reduction::new(self.network(), self.prices())
    }

    /// Returns the name of the model that times communications.
    pub fn model(&self) -> &'static str {
        self.target.model()
    }

    pub fn machine(&self) -> &Machine {
        self.machine
    }

    /// Returns the distinct communications, in the order in which they were first requested.
    pub fn rows(&self) -> &[Communication] {
        &self.rows
    }

    /// Returns the algorithms that the groups of each row of [`ProgramPrices::rows`] use; empty for messages.
    pub fn chosen(&self) -> &[Vec<Chosen>] {
        &self.chosen
    }

    /// Returns the index in [`ProgramPrices::rows`] of the communication of a rank's node; `None` for compute.
    ///
    /// # Errors
    /// Returns an error if no algorithm performs the collective on the machine.
    pub fn row(&mut self, rank: u32, node: &WorkNode) -> Result<Option<usize>, PlanError> {
        let key = match node.work {
            Work::Compute(_) => return Ok(None),
            Work::Collective(collected) => Key::Collective(collected),
            Work::Permute { bytes, receivers } => Key::Permute { bytes, receivers },
            Work::Send { to, bytes, .. } => Key::Message { from: rank, to, bytes },
            Work::Receive { from, bytes, .. } => Key::Message { from, to: rank, bytes },
        };
        self.numbered(key).map(Some)
    }

    /// Returns a communication of the program's groups, even if no node has it; `None` for compute.
    ///
    /// # Errors
    /// Returns an error if no algorithm performs it on the machine.
    pub fn of(&mut self, work: Work) -> Result<Option<Communication>, PlanError> {
        let row = self.row(0, &WorkNode::new("", work, Vec::new()))?;
        Ok(row.map(|row| self.rows[row].clone()))
    }

    fn numbered(&mut self, key: Key) -> Result<usize, PlanError> {
        if let Some(&row) = self.known.get(&key) {
            return Ok(row);
        }
        check();
        let (priced, chosen) = match key {
            Key::Collective(collected) => match self.ahead.remove(&collected) {
                Some(timed) => timed?,
                None => self.collective(&collected)?,
            },
            Key::Permute { bytes, receivers } => (self.permute(bytes, receivers)?, Vec::new()),
            Key::Message { from, to, bytes } => return self.message(key, [from, to], bytes),
        };
        Ok(self.keep(key, priced, chosen))
    }

    /// Times the collectives of all nodes in parallel, for [`ProgramPrices::row`], up to the first that fails.
    pub(super) fn look_ahead(&mut self) {
        let mut distinct = FxHashSet::default();
        let nodes = self.graph.classes.iter().flat_map(|class| &class.nodes);
        let made = nodes.filter_map(|node| if let Work::Collective(made) = node.work { Some(made) } else { None });
        let made: Vec<Collected> = made.filter(|&made| distinct.insert(made)).collect();
        let mut has_failed = false;
        let timed = parallel::map(&made, |collected| self.collective(collected));
        let timed = timed.take_while(|timed| !std::mem::replace(&mut has_failed, timed.is_err()));
        let ahead = made.iter().copied().zip(timed).collect();
        self.ahead = ahead;
    }

    fn keep(&mut self, key: Key, priced: Communication, chosen: Vec<Chosen>) -> usize {
        self.rows.push(priced);
        self.chosen.push(chosen);
        self.known.insert(key, self.rows.len() - 1);
        self.rows.len() - 1
    }

    fn collective(&self, collected: &Collected) -> Result<(Communication, Vec<Chosen>), PlanError> {
        let groups = &self.graph.groups[collected.groups as usize];
        let (mut slowest, mut all) = (None::<Communication>, Vec::new());
        for size in groups.sizes() {
            let (priced, chosen) = self.among(collected, &Arc::new(groups.of_size(size)), size)?;
            if slowest.as_ref().is_none_or(|slowest| priced.seconds > slowest.seconds) {
                slowest = Some(priced);
            }
            all.extend(chosen);
        }
        Ok((slowest.unwrap_or_else(|| Communication::nothing(collected.kind, collected.bytes)), all))
    }

    /// Returns the collective of a group, on the group's target.
    fn problem(&self, group: &[u32], request: &Request) -> Result<Problem, PlanError> {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(target) = targets.get(group) {
            return Problem::on(Arc::clone(target), request);
        }
        let problem = Problem::new(request)?;
        targets.insert(group.to_vec(), Arc::clone(&problem.target));
        Ok(problem)
    }

    /// Times a collective of groups of one size.
    fn among(
        &self,
        collected: &Collected,
        groups: &Arc<Groups>,
        size: u32,
    ) -> Result<(Communication, Vec<Chosen>), PlanError> {
        let nothing = Communication::nothing(collected.kind, collected.bytes);
        if size < 2 || collected.bytes == 0 && collected.kind != Kind::Barrier {
            return Ok((Communication { ranks: size, groups: groups.len(), ..nothing }, Vec::new()));
        }
        let element_bytes = u64::from(collected.element_bytes.max(1));
        let (dtype, elements) = whole_elements(element_bytes, collected.bytes.div_ceil(element_bytes));
        // If a group is so small that the root is outside it, the first rank is the root.
        let root = if collected.root < size { u64::from(collected.root) } else { 0 };
        let problem = |group: &[u32]| {
            let request = Request::new(collected.kind, self.machine, self.target.among(group).0, elements);
            self.problem(group, &Request { dtype, root: Root::Rank(root), ..request })
        };
        let first = || problem(groups.group(0));
        let common = Communication { ranks: size, groups: groups.len(), ..nothing };
        let choice = self.graph.choices.get(collected.groups as usize);
        let asked_for = self.algorithms.get(collected.kind.name());
        let (named, wanted) = match choice {
            Some(choice) if asked_for.is_none() => {
                let wanted = choice.params.iter().fold(Params::new(), |all, (key, value)| all.with(key, value));
                (choice.algorithm.as_deref(), wanted)
            }
            _ => (asked_for.map(String::as_str), Params::new()),
        };
        let planned = || {
            let first = first()?;
            let bound = tightest_report(&first);
            let plan = plan_best(first, named, &wanted)?;
            let priced = Communication { bound, ..common.clone() }.by(plan.best());
            Ok((priced, vec![Chosen::planned(plan, Arc::clone(groups))]))
        };
        let is_open = self.is_open(collected);
        let is_together = groups.len() > 1 || size > MOST_PLANNED || is_open;
        let Some(shared) = self.shared.as_ref().filter(|_| is_together) else { return planned() };
        let is_whole = |sides: &[u32; 2]| sides[0].checked_mul(sides[1]) == Some(size);
        let sides = choice.and_then(|choice| choice.shape).filter(is_whole);
        let extents = sides.map_or_else(|| Extents::new(&[size]), |sides| Extents::new(&sides));
        let extents = extents.expect("a group has a rank");
        let case = shared.case(collected.kind, root, (dtype, elements), extents)?;
        // The bounds of a single group may take as long to compute as its plan, so they are omitted if the collective
        // is not planned yet.
        let alone = if is_open { None } else { tightest_report(&first()?) };
        let bound_seconds = alone.as_ref().map_or(0.0, |bound| bound.seconds);
        let bound = larger(alone, shared.groups_bound(&case.collective, groups));
        let request = InGroups { case, groups: Arc::clone(groups), algorithm: named, wanted: wanted.clone() };
        let taken = match shared.collective(&request) {
            // Only plans can use algorithms in switches.
            Err(_) if is_open => return planned(),
            taken => taken?,
        };
        // Only groups without a stated algorithm may use schedules of their own. Workload files state how groups are
        // arranged, and use algorithms in closed form.
        let is_free = named.is_none() && choice.is_none();
        let apart = if is_free { self.apart(groups, [taken.seconds, bound_seconds], problem) } else { None };
        let common = Communication { bound, ..common.clone() };
        if let Some(Apart { chosen, slowest }) = apart {
            return Ok((common.by(&slowest), chosen));
        }
        let chosen = Chosen::by_name(request.case, Arc::clone(groups), &taken);
        let (algorithm, params, seconds) = (taken.algorithm, map(&taken.given), taken.seconds);
        Ok((Communication { algorithm, params, seconds, ..common }, vec![chosen]))
    }
}

/// Returns the bound with the longer time.
fn larger(a: Option<BoundReport>, b: Option<BoundReport>) -> Option<BoundReport> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.seconds > a.seconds { b } else { a }),
        (a, b) => a.or(b),
    }
}

impl Communication {
    fn nothing(kind: Kind, bytes: u64) -> Self {
        Self { kind: kind.name(), ranks: 1, bytes, algorithm: "none".to_owned(), ..Self::default() }
    }

    /// Sets algorithm, parameters and time to those of a candidate.
    fn by(self, best: &Timed) -> Self {
        let (algorithm, seconds) = (best.algorithm.name().to_owned(), best.time.seconds);
        Self { algorithm, params: map(&best.params), seconds, ..self }
    }

    /// Returns a time divided by the bound; `None` if there is no bound above 0.
    pub fn ratio(&self, seconds: f64) -> Option<f64> {
        self.bound.as_ref().filter(|bound| bound.seconds > 0.0).map(|bound| seconds / bound.seconds)
    }
}
