//! The times of a program whose messages are all simulated: as packets on a network, otherwise at prices among ranks.

use unisono_base::narrow;
use unisono_sim::{
    endpoint,
    network::{Interconnect, Options, run},
};
use unisono_workload::{Work, WorkloadGraph};

use super::{
    Interval, ProgramPrices,
    occurrences::{Occurrence, Occurrences},
    report::{NodeTimes, computed_seconds},
    reported::reported,
    tasks::{ProgramTasks, Scheduled, program_tasks},
};
use crate::RunError;

/// Simulates all messages of a program. `rows` holds the row in the prices of each node's communication, by class;
/// `seconds` returns the time of a node that computes.
///
/// # Errors
/// Returns the errors of [`program_tasks`], or an error if the run gets stuck.
pub(super) fn simulate(
    prices: &ProgramPrices,
    rows: &[Vec<Option<usize>>],
    overlap: bool,
    seconds: impl Fn(usize, usize) -> f64,
) -> Result<NodeTimes, RunError> {
    let graph = prices.graph();
    let occurrences = Occurrences::new(graph);
    let computing = prices.computing();
    let (chosen, places, charges) = (prices.chosen(), prices.places(), prices.charges());
    let on = Scheduled { graph, chosen, rows, places, computing: &computing, charges, overlap };
    let tasks = program_tasks(&on, &occurrences, &seconds)?;
    let hosts = endpoint::Options {
        watch: tasks.watch.clone(),
        leaving: tasks.leaving.clone(),
        blocking: !overlap,
        ..endpoint::Options::default()
    };
    let (hosts, packets, events) = if let Some(network) = prices.network() {
        let interconnect = Interconnect::new(network)?;
        let options = Options { hosts, places: tasks.places.clone(), ..Options::default() };
        let done = run(&tasks.graph, &interconnect, &options)?;
        (done.hosts, Some(done.packets), done.events)
    } else {
        let done = endpoint::run(&tasks.graph, &prices.of_messages()?, &hosts)?;
        let events = done.events;
        (done, None, events)
    };
    let ends: Vec<f64> = hosts.finish[..graph.ranks as usize].iter().map(|&ps| seconds_of(ps)).collect();
    let computed: Vec<f64> = (0..graph.classes.len()).map(|class| computed_seconds(graph, class, &seconds)).collect();
    let rank = reported(&ends, |rank| computed[occurrences.class_of[rank]]);
    let seen = Seen { graph, occurrences: &occurrences, tasks: &tasks, hosts: &hosts };
    Ok(NodeTimes {
        rank: narrow(rank),
        class: occurrences.class_of[rank],
        times: seen.times(narrow(rank)),
        seconds: seconds_of(hosts.makespan),
        packets,
        events: Some(events),
    })
}

fn seconds_of(ps: u64) -> f64 {
    ps as f64 * 1e-12
}

/// A finished run of a program, from which the times of its nodes follow.
struct Seen<'a> {
    graph: &'a WorkloadGraph,
    occurrences: &'a Occurrences,
    tasks: &'a ProgramTasks,
    hosts: &'a endpoint::Run,
}

impl Seen<'_> {
    /// Returns the times of the nodes of a rank. A send lasts from the time at which its host begins the message until
    /// the message has left.
    fn times(&self, rank: u32) -> Vec<Interval> {
        let class = self.occurrences.class_of[rank as usize];
        let mut sent = self.hosts.sent.iter().skip(self.tasks.first_leaving(rank));
        let nodes = self.graph.classes[class].nodes.iter().enumerate();
        let time = |(number, node): (usize, &unisono_workload::WorkNode)| {
            let [_, end] = self.tasks.watched(rank, class, number, node.work.is_compute());
            let end = self.hosts.watched[end];
            if let Work::Send { .. } = node.work
                && let Some(&[begin, left]) = sent.next()
            {
                return Interval { begin: seconds_of(begin), end: seconds_of(left) };
            }
            let (begin, end) = match (&node.work, self.occurrences.of[class][number]) {
                (Work::Compute(_), _) | (_, None) => (end.saturating_sub(self.tasks.ticks(rank, class, number)), end),
                (work, Some(occurrence)) => self.met(work, rank, occurrence, end),
            };
            Interval { begin: seconds_of(begin), end: seconds_of(end) }
        };
        nodes.map(time).collect()
    }

    /// Returns the time of a communication whose part on a rank ends at `end`. The communication begins when the last
    /// of the ranks that communicate with this rank reaches it. A collective ends with the last rank of its group: a
    /// root that only sends would otherwise end as soon as it has handed over its messages.
    fn met(&self, work: &Work, rank: u32, occurrence: Occurrence, end: u64) -> (u64, u64) {
        let group = |groups: u32| self.graph.groups[groups as usize].of(rank).map_or(&[][..], |(group, _)| group);
        let others: Vec<u32> = match *work {
            Work::Collective(c) => group(c.groups).to_vec(),
            Work::Permute { receivers, .. } => {
                let own = self.graph.pairs(receivers).filter(|&(from, to)| from == rank || to == rank);
                own.flat_map(|(from, to)| [from, to]).collect()
            }
            Work::Receive { from, .. } => vec![from],
            Work::Compute(_) | Work::Send { .. } => Vec::new(),
        };
        let times = |&other: &u32| {
            let class = self.occurrences.class_of[other as usize];
            let node = *self.occurrences.nodes[class].get(&occurrence)?;
            Some(self.tasks.watched(other, class, node, false).map(|task| self.hosts.watched[task]))
        };
        let last = |at: usize| others.iter().chain([&rank]).filter_map(times).map(|times| times[at]).max().unwrap_or(0);
        let end = if matches!(work, Work::Collective(_)) { last(1).max(end) } else { end };
        (last(0).min(end), end)
    }
}
