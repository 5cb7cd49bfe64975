//! The report of a program on a machine. Its keys are those of the command line's JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use unisono_workload::{Accelerator, Compute, Queues, Work, WorkloadGraph};

use super::{
    super::{
        Iteration, Phase, WorkloadError,
        program::WORKLOAD_FORMAT,
        spans::Spans,
        timeline::{Communicated, ROUNDING},
    },
    Clock, Interval, Level, PricedCommunication, ProgramPrices,
    flows::flow,
    opinion::{OpinionRow, second_opinion},
    prices::PricedMessages,
    reported::reported,
    simulate::simulate,
};
use crate::{BoundReport, PlanError, RunError};

/// One distinct collective, with its times in seconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename = "StepCollective")]
pub struct CollectiveRow {
    pub kind: &'static str,
    /// The number of ranks in a group.
    pub group: u32,
    /// The number of groups that perform the collective at once.
    pub groups: usize,
    pub bytes: u64,
    /// The number of times that a rank performs the collective in a step.
    pub count: u64,
    pub algorithm: String,
    pub params: BTreeMap<String, String>,
    /// The mean time of one execution. A send lasts until its message has left, a receive until its message has
    /// arrived.
    pub seconds: f64,
    /// The time of the slowest execution.
    pub slowest_seconds: f64,
    /// The time during which at least one execution is under way.
    pub total_seconds: f64,
    /// The part of `total_seconds` during which no compute runs.
    pub exposed_seconds: f64,
    /// `total_seconds` divided by the time of the step.
    pub share: f64,
    pub bound: Option<f64>,
    pub lower_bound: Option<BoundReport>,
    pub ratio: Option<f64>,
}

/// The report of one step of a program, as it runs on one of the ranks that end last.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GraphReport {
    pub workload: String,
    pub machine: String,
    pub accelerators: u32,
    /// The source that a workload file names.
    pub reference: String,
    pub level: &'static str,
    pub overlap: bool,
    /// The number of images on a node, for workloads on switches that reduce.
    pub minibatch: Option<u32>,
    pub algorithm: Option<&'static str>,
    pub format: &'static str,
    pub classes: usize,
    /// The rank whose times are reported.
    pub rank: u32,
    pub model: &'static str,
    #[serde(flatten)]
    pub iteration: Iteration,
    /// The collectives by total time, longest first.
    pub collectives: Vec<CollectiveRow>,
    pub second_opinion: Vec<OpinionRow>,
    /// The operations of unknown time, with their numbers of occurrences.
    pub unknown: BTreeMap<String, u64>,
    /// Sentences on values that the reader assumed, and on costs that the times omit.
    pub notes: Vec<String>,
    /// The simulated packets; `None` at levels without packets.
    pub packets: Option<u64>,
    pub events: Option<u64>,
}

/// The times of the nodes of the reported rank.
pub(super) struct NodeTimes {
    pub rank: u32,
    pub class: usize,
    /// The start and end of each node. With packets, a communication begins when the last rank of its group reaches it.
    pub times: Vec<Interval>,
    /// The end of the program.
    pub seconds: f64,
    /// The number of packets on one plane of a network, if packets are simulated.
    pub packets: Option<u64>,
    /// The simulated events; `None` at the level of the model.
    pub events: Option<u64>,
}

/// Returns the compute time of each rank of a class: the sum over its nodes that compute. `seconds(class, node)`
/// returns the time of such a node.
pub(super) fn computed_seconds(graph: &WorkloadGraph, class: usize, seconds: impl Fn(usize, usize) -> f64) -> f64 {
    let nodes = graph.classes[class].nodes.iter().enumerate();
    nodes.filter(|(_, node)| node.work.is_compute()).map(|(n, _)| seconds(class, n)).sum()
}

/// The options for timing one step: prices, accelerator, overlap and level of detail.
pub struct Step<'a> {
    pub prices: ProgramPrices<'a>,
    /// The accelerator's rates, for programs with counted operations.
    pub accelerator: Option<Accelerator>,
    /// True if compute and communication have separate queues.
    pub overlap: bool,
    pub level: Level,
}

impl Step<'_> {
    /// Times the step.
    ///
    /// # Errors
    /// Returns an error if no algorithm performs a collective, ranks wait in a cycle, counted operations have no
    /// accelerator, or the level takes more memory or time than a limit.
    pub fn report(self) -> Result<GraphReport, RunError> {
        let Self { mut prices, accelerator, overlap, level } = self;
        let graph = prices.graph();
        if accelerator.is_none() && graph.counts_operations() {
            return Err(PlanError::from(WorkloadError::NoAccelerator(graph.name.clone())).into());
        }
        prices.look_ahead();
        let mut rows: Vec<Vec<Option<usize>>> = Vec::with_capacity(graph.classes.len());
        for class in &graph.classes {
            let rank = class.ranks.first().copied().unwrap_or(0);
            rows.push(class.nodes.iter().map(|node| prices.row(rank, node)).collect::<Result<_, _>>()?);
        }
        prices.check_names()?;
        prices.settle(&rows)?;
        let reduction = prices.reduction();
        let seconds = |class: usize, node: usize| match (rows[class][node], graph.classes[class].nodes[node].work) {
            (Some(row), _) => prices.rows()[row].seconds,
            (None, Work::Compute(Compute::Measured { seconds })) => seconds,
            (None, Work::Compute(Compute::Reduced { bytes, .. })) => reduction.seconds(bytes),
            (None, Work::Compute(compute)) => accelerator.map_or(0.0, |accelerator| accelerator.seconds(&compute)),
            (None, _) => 0.0,
        };
        // The clock finds classes that wait in a cycle before anything is simulated.
        let clock = Clock::with_messages(graph, overlap, seconds, &PricedMessages { prices: &prices, rows: &rows })
            .map_err(|e| PlanError::from(WorkloadError::Waits(graph.name.clone(), e)))?;
        let NodeTimes { rank, class, times, seconds: end, packets, events } = match level {
            Level::Model => {
                let ends: Vec<f64> = (0..graph.classes.len()).map(|class| clock.end(class)).collect();
                let class = reported(&ends, |class| computed_seconds(graph, class, seconds));
                let rank = graph.classes.get(class).and_then(|class| class.ranks.first()).copied().unwrap_or(0);
                let (times, seconds) = (clock.0[class].clone(), ends.into_iter().fold(0.0, f64::max));
                NodeTimes { rank, class, times, seconds, packets: None, events: None }
            }
            Level::Flow => flow(&prices, &rows, overlap, seconds)?,
            Level::Packet => simulate(&prices, &rows, overlap, seconds)?,
        };
        // A send ends before its message arrives, and a receive waits for its message, so the length of neither is the
        // price of the message.
        let lengths = graph.classes[class].nodes.iter().enumerate().map(|(number, node)| match rows[class][number] {
            Some(_) if level != Level::Model || node.work.is_message() => times[number].end - times[number].begin,
            _ => seconds(class, number),
        });
        let lengths: Vec<f64> = lengths.collect();
        let priced = prices.rows().to_vec();
        let is_simulated = level != Level::Model;
        let seen = Seen { graph, class, times: &times, lengths, rows: &rows[class], priced: &priced, is_simulated };
        let iteration = seen.iteration(end);
        let collectives = seen.collectives(iteration.seconds);
        let second_opinion = second_opinion(graph, &mut prices)?;
        let has_messages = graph.classes.iter().flat_map(|class| &class.nodes).any(|node| node.work.is_message());
        let launched = prices.network().filter(|network| has_messages && network.launch_ns > 0.0);
        let not_launched = launched.map(|network| {
            let (name, launch) = (&network.name, network.launch_ns);
            format!(
                "messages do not include the start of a kernel, as collectives do: {launch} ns on {name} (launch_ns)"
            )
        });
        Ok(GraphReport {
            workload: graph.name.clone(),
            machine: prices.machine().name().to_owned(),
            accelerators: graph.ranks,
            reference: String::new(),
            level: level.name(),
            overlap,
            minibatch: None,
            algorithm: None,
            format: graph.format,
            classes: graph.classes.len(),
            rank,
            model: prices.model(),
            collectives,
            second_opinion,
            iteration,
            unknown: graph.unknown.clone(),
            notes: graph
                .notes
                .iter()
                .cloned()
                .chain(not_launched)
                .chain(prices.machine().notes(u64::MAX, Some(prices.model())))
                .collect(),
            packets,
            events,
        })
    }
}

/// The nodes of the reported class, with the start and the end of each.
struct Seen<'a> {
    graph: &'a WorkloadGraph,
    class: usize,
    times: &'a [Interval],
    /// The exact seconds of each node. Differences of times would be rounded.
    lengths: Vec<f64>,
    rows: &'a [Option<usize>],
    priced: &'a [PricedCommunication],
    is_simulated: bool,
}

impl Seen<'_> {
    /// Returns the iteration. A phase is compute without gaps, and the communication that begins after it in program
    /// order. In a workload file each step is a phase.
    fn iteration(&self, seconds: f64) -> Iteration {
        let nodes = &self.graph.classes[self.class].nodes;
        let exposed = self.exposed();
        let (mut phases, mut ended) = (Vec::<Phase>::new(), 0.0);
        let has_steps = self.graph.format == WORKLOAD_FORMAT;
        for n in self.order() {
            let (node, time) = (&nodes[n], &self.times[n]);
            let continues =
                !has_steps && phases.last().is_some_and(|phase| phase.communication.is_empty() && time.begin <= ended);
            let Some(row) = self.rows[n].map(|row| &self.priced[row]) else {
                if !continues {
                    phases.push(Phase::begun(&node.name, time.begin, time.begin - ended));
                }
                let phase = phases.last_mut().expect("one was pushed");
                phase.compute_seconds += self.lengths[n];
                ended = time.end;
                continue;
            };
            if phases.is_empty() {
                phases.push(Phase::begun(&node.name, 0.0, 0.0));
            }
            phases.last_mut().expect("one was pushed").communicate(Communicated {
                collective: row.kind,
                bytes: row.bytes,
                ranks: row.ranks,
                blocking: exposed[n] > 0.0,
                algorithm: row.algorithm.clone(),
                params: row.params.clone(),
                begin: time.begin,
                end: time.end,
            });
        }
        let computed = self
            .lengths
            .iter()
            .zip(self.rows)
            .filter(|(_, row)| row.is_none())
            .fold(0.0, |sum, (length, _)| sum + length);
        Iteration::new(seconds, computed, phases)
    }

    /// Returns the nodes in program order if queues take them in this order, otherwise in the order in which they
    /// begin.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.times.len()).collect();
        if self.graph.queues == Queues::AsReady {
            order.sort_by(|&a, &b| self.times[a].begin.total_cmp(&self.times[b].begin));
        }
        order
    }

    /// Returns the seconds of each node's communication during which the rank does not compute.
    fn exposed(&self) -> Vec<f64> {
        let order = self.order();
        let computed: Vec<Interval> =
            order.iter().filter(|&&n| self.rows[n].is_none()).map(|&n| self.times[n]).collect();
        let mut first = 0;
        let mut exposed = vec![0.0; self.times.len()];
        // Both lists are sorted by time.
        for n in order.into_iter().filter(|&n| self.rows[n].is_some()) {
            let time = self.times[n];
            while computed.get(first).is_some_and(|compute| compute.end <= time.begin) {
                first += 1;
            }
            let meets = computed[first..].iter().take_while(|compute| compute.begin < time.end);
            let hidden: f64 = meets.map(|c| (c.end.min(time.end) - c.begin.max(time.begin)).max(0.0)).sum();
            exposed[n] = (time.end - time.begin - hidden).max(0.0);
        }
        exposed
    }

    fn collectives(&self, step_seconds: f64) -> Vec<CollectiveRow> {
        // A message has two rows: one for sends, one for receives.
        let mut of_rows: Vec<[Vec<usize>; 2]> = vec![Default::default(); self.priced.len()];
        let nodes = &self.graph.classes[self.class].nodes;
        for (node, row) in self.rows.iter().enumerate() {
            if let Some(row) = row {
                of_rows[*row][usize::from(matches!(nodes[node].work, Work::Receive { .. }))].push(node);
            }
        }
        let spans = |nodes: &mut dyn Iterator<Item = usize>| Spans::new(nodes.map(|node| self.times[node]));
        let computed = spans(&mut (0..self.times.len()).filter(|&node| self.rows[node].is_none()));
        let row = |(of, priced): (&Vec<usize>, &PricedCommunication)| {
            let kind = match nodes[of[0]].work {
                Work::Send { .. } => "send",
                Work::Receive { .. } => "receive",
                _ => priced.kind,
            };
            // By the model, all executions of a row take the same time, so the exact time is used instead of a rounded
            // mean.
            let count = of.len() as f64;
            let lengths = || of.iter().map(|&node| self.lengths[node]);
            let [seconds, slowest_seconds] = if self.is_simulated || nodes[of[0]].work.is_message() {
                [lengths().sum::<f64>() / count, lengths().fold(0.0, f64::max)]
            } else {
                [priced.seconds; 2]
            };
            let covered = spans(&mut of.iter().copied());
            // The sum of intervals is rounded too. If it agrees with the product, the product is used.
            let is_sum = (covered.seconds() - seconds * count).abs() <= ROUNDING * covered.seconds();
            let total_seconds = if is_sum { seconds * count } else { covered.seconds() };
            // The bound of a message is a bound of its arrival. A receive may begin when its message is already under
            // way, so its time may be below the bound.
            let ratio = priced.ratio(seconds).filter(|&ratio| match kind {
                "send" => false,
                "receive" => ratio >= 1.0 - ROUNDING,
                _ => true,
            });
            let bound = priced.bound.clone().filter(|_| ratio.is_some());
            CollectiveRow {
                kind,
                group: priced.ranks,
                groups: priced.groups,
                bytes: priced.bytes,
                count: of.len() as u64,
                algorithm: priced.algorithm.clone(),
                params: priced.params.clone(),
                seconds,
                slowest_seconds,
                total_seconds,
                exposed_seconds: (covered.seconds() - covered.shared_with(&computed)).max(0.0),
                share: if step_seconds > 0.0 { total_seconds / step_seconds } else { 0.0 },
                bound: bound.as_ref().map(|bound| bound.seconds),
                lower_bound: bound,
                ratio,
            }
        };
        let both = of_rows.iter().zip(self.priced).flat_map(|(of, priced)| of.iter().map(move |of| (of, priced)));
        let made = both.filter(|(of, _)| !of.is_empty());
        let mut rows: Vec<_> = made.map(row).collect();
        rows.sort_by(|a, b| b.total_seconds.total_cmp(&a.total_seconds));
        rows
    }
}
