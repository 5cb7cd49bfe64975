//! A program with every message simulated: as packets on a network, at the prices of the model among ranks.

use unisono_cost::endpoint::LevelPrices;
use unisono_machine::{Endpoint, network::Network};
use unisono_sim::{
    endpoint,
    network::{Interconnect, Options, run},
};
use unisono_workload::{Work, WorkloadGraph};

use super::{
    Interval, Prices,
    occurrences::{Occurrence, Occurrences},
    tasks::{ProgramTasks, program_tasks, senders},
};
use crate::RunError;

/// The times of the nodes of the rank that ends last.
pub(super) struct Simulated {
    pub class: usize,
    /// A communication begins when the last rank of its group comes to it.
    pub times: Vec<Interval>,
    /// The end of the program.
    pub seconds: f64,
    /// Of one plane of a network.
    pub packets: Option<u64>,
    pub events: u64,
}

/// Simulates every message of a program. `rows` is the number of each node's communication in the prices, by class; `seconds`
/// is the time of a node that computes.
///
/// # Errors
/// As [`program_tasks`]; a run that gets stuck.
pub(super) fn simulate(
    prices: &Prices,
    rows: &[Vec<Option<usize>>],
    overlap: bool,
    seconds: impl Fn(usize, usize) -> f64,
) -> Result<Simulated, RunError> {
    let graph = prices.graph();
    let occurrences = Occurrences::new(graph);
    let tasks = program_tasks(prices, rows, &occurrences, overlap, seconds)?;
    let hosts = endpoint::Options { watch: tasks.watch.clone(), ..endpoint::Options::default() };
    let machine = prices.machine();
    let (hosts, packets, events) = if let Some(network) = machine.get::<Network>() {
        let interconnect = Interconnect::new(network)?;
        let options = Options { hosts, places: tasks.places.clone(), ..Options::default() };
        let done = run(&tasks.graph, &interconnect, &options)?;
        (done.hosts, Some(done.packets), done.events)
    } else {
        let of_ranks: &Endpoint = machine.get().expect("programs are timed among ranks and on networks");
        let at = LevelPrices::new(of_ranks, of_ranks.model, graph.ranks).map_err(crate::PlanError::from)?;
        let done = endpoint::run(&tasks.graph, &at, &hosts)?;
        let events = done.events;
        (done, None, events)
    };
    let last = |best: usize, rank: usize| if hosts.finish[rank] > hosts.finish[best] { rank } else { best };
    let rank = unisono_base::narrow::<u32>((0..graph.ranks as usize).fold(0, last));
    let seen = Seen { graph, occurrences: &occurrences, tasks: &tasks, watched: &hosts.watched };
    let (class, times) = (occurrences.class_of[rank as usize], seen.times(rank));
    Ok(Simulated { class, times, seconds: seconds_of(hosts.makespan), packets, events })
}

fn seconds_of(ps: u64) -> f64 {
    ps as f64 * 1e-12
}

/// A finished run.
struct Seen<'a> {
    graph: &'a WorkloadGraph,
    occurrences: &'a Occurrences,
    tasks: &'a ProgramTasks,
    watched: &'a [u64],
}

impl Seen<'_> {
    /// The times of the nodes of a rank.
    fn times(&self, rank: u32) -> Vec<Interval> {
        let class = self.occurrences.class_of[rank as usize];
        let nodes = self.graph.classes[class].nodes.iter().enumerate();
        let time = |(number, node): (usize, &unisono_workload::WorkNode)| {
            let [_, end] = self.tasks.watched(rank, class, number, node.work.is_compute());
            let end = self.watched[end];
            let begin = match (&node.work, self.occurrences.of[class][number]) {
                (Work::Compute(_), _) | (_, None) => end.saturating_sub(self.tasks.ticks(rank, class, number)),
                (work, Some(occurrence)) => self.met(work, rank, occurrence).min(end),
            };
            Interval { begin: seconds_of(begin), end: seconds_of(end) }
        };
        nodes.map(time).collect()
    }

    /// When the last of the ranks that communicate with a rank comes to a communication.
    fn met(&self, work: &Work, rank: u32, occurrence: Occurrence) -> u64 {
        let others: Vec<u32> = match *work {
            Work::Collective(c) => {
                self.graph.groups[c.groups as usize].of(rank).map_or_else(Vec::new, |(group, _)| group.to_vec())
            }
            Work::Permute { receivers, .. } => {
                let table = &self.graph.receivers[receivers as usize];
                let sends = [table[rank as usize]];
                senders(table)[rank as usize].iter().copied().chain(sends).collect()
            }
            Work::Receive { from, .. } => vec![from],
            Work::Compute(_) | Work::Send { .. } => Vec::new(),
        };
        let came = |&other: &u32| {
            let class = self.occurrences.class_of[other as usize];
            let node = *self.occurrences.nodes[class].get(&occurrence)?;
            Some(self.watched[self.tasks.watched(other, class, node, false)[0]])
        };
        others.iter().chain([&rank]).filter_map(came).max().unwrap_or(0)
    }
}
