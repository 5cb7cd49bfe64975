//! The report of a program on a machine, with the keys of the command line's JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use unisono_workload::{Accelerator, Compute, Queues, Work, WorkloadGraph};

use super::{
    super::{Iteration, Phase, WorkloadError, timeline::Communicated},
    Clock, Interval, PricedCommunication, Prices,
};
use crate::{BoundReport, PlanError};

/// One distinct collective.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CollectiveRow {
    pub kind: &'static str,
    /// Ranks of a group.
    pub group: u32,
    /// Groups that make it at the same time.
    pub groups: usize,
    pub bytes: u64,
    /// The number of times that a rank makes it in a step.
    pub count: u64,
    pub algorithm: String,
    pub params: BTreeMap<String, String>,
    pub seconds: f64,
    pub total_seconds: f64,
    /// Of the total, the part during which no compute runs.
    pub exposed_seconds: f64,
    /// The total divided by the time of the step.
    pub share: f64,
    pub bound: Option<f64>,
    pub lower_bound: Option<BoundReport>,
    pub ratio: Option<f64>,
}

/// A collective of which ranks use only their own part, and the cheaper one that suffices.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OpinionRow {
    pub name: String,
    pub kind: &'static str,
    pub suffices: &'static str,
    pub group: u32,
    pub count: u64,
    pub bytes: u64,
    pub suffices_bytes: u64,
    pub seconds: f64,
    pub suffices_seconds: f64,
    /// Of all times that it is made.
    pub saved_seconds: f64,
}

/// One step of a program, seen from the class of ranks that ends last.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GraphReport {
    pub workload: String,
    pub machine: String,
    pub accelerators: u32,
    pub reference: &'static str,
    pub level: &'static str,
    pub overlap: bool,
    /// Of workloads on switches that reduce.
    pub minibatch: Option<u32>,
    pub algorithm: Option<&'static str>,
    pub format: &'static str,
    pub classes: usize,
    pub model: &'static str,
    /// Communication that compute hides.
    pub hidden_seconds: f64,
    #[serde(flatten)]
    pub iteration: Iteration,
    /// By total time, longest first.
    pub collectives: Vec<CollectiveRow>,
    pub second_opinion: Vec<OpinionRow>,
    /// Operations whose time the reader does not know, with their number.
    pub unknown: BTreeMap<String, u64>,
    /// Of levels that simulate.
    pub packets: Option<u64>,
    pub events: Option<u64>,
}

/// Times one step of a program. `accelerator` is needed if the program counts operations.
///
/// # Errors
/// A collective that no algorithm makes, ranks that wait in a circle, no accelerator for counted operations.
pub fn graph_report(
    graph: &WorkloadGraph,
    mut prices: Prices,
    accelerator: Option<Accelerator>,
    overlap: bool,
) -> Result<GraphReport, PlanError> {
    if accelerator.is_none() && graph.counts_operations() {
        return Err(WorkloadError::NoAccelerator(graph.name.clone()).into());
    }
    let mut rows: Vec<Vec<Option<usize>>> = Vec::with_capacity(graph.classes.len());
    for class in &graph.classes {
        let rank = class.ranks.first().copied().unwrap_or(0);
        rows.push(class.nodes.iter().map(|node| prices.row(rank, node)).collect::<Result<_, _>>()?);
    }
    let seconds = |class: usize, node: usize| match (rows[class][node], graph.classes[class].nodes[node].work) {
        (Some(row), _) => prices.rows()[row].seconds,
        (None, Work::Compute(Compute::Measured { seconds })) => seconds,
        (None, Work::Compute(compute)) => accelerator.map_or(0.0, |accelerator| accelerator.seconds(&compute)),
        (None, _) => 0.0,
    };
    let clock = Clock::new(graph, overlap, seconds).map_err(|e| WorkloadError::Waits(graph.name.clone(), e))?;
    let last = |best: usize, class: usize| if clock.end(class) > clock.end(best) { class } else { best };
    let class = (0..graph.classes.len()).fold(0, last);
    let lengths = (0..graph.classes[class].nodes.len()).map(|node| seconds(class, node)).collect();
    let step = Step { graph, class, times: &clock.0[class], lengths, rows: &rows[class], priced: prices.rows() };
    let iteration = step.iteration(clock.end(class));
    let hidden_seconds = (iteration.communication_seconds - iteration.exposed_seconds).max(0.0);
    let collectives = step.collectives(iteration.seconds);
    let second_opinion = second_opinion(graph, &mut prices)?;
    Ok(GraphReport {
        workload: graph.name.clone(),
        machine: prices.machine_name().to_owned(),
        accelerators: graph.ranks,
        reference: "",
        level: "model",
        overlap,
        minibatch: None,
        algorithm: None,
        format: graph.format,
        classes: graph.classes.len(),
        model: prices.model(),
        hidden_seconds,
        collectives,
        second_opinion,
        iteration,
        unknown: graph.unknown.clone(),
        packets: None,
        events: None,
    })
}

/// The findings of the reader that save time, those that save most first.
fn second_opinion(graph: &WorkloadGraph, prices: &mut Prices) -> Result<Vec<OpinionRow>, PlanError> {
    let mut rows = Vec::new();
    for finding in &graph.findings {
        let (found, suffices) = (prices.of(finding.found)?, prices.of(finding.suffices)?);
        let saved = (found.seconds - suffices.seconds) * finding.count as f64;
        if saved > 0.0 {
            rows.push(OpinionRow {
                name: finding.name.clone(),
                kind: found.kind,
                suffices: suffices.kind,
                group: found.ranks,
                count: finding.count,
                bytes: found.bytes,
                suffices_bytes: suffices.bytes,
                seconds: found.seconds,
                suffices_seconds: suffices.seconds,
                saved_seconds: saved,
            });
        }
    }
    rows.sort_by(|a, b| b.saved_seconds.total_cmp(&a.saved_seconds));
    Ok(rows)
}

/// The nodes of one class on the clock.
struct Step<'a> {
    graph: &'a WorkloadGraph,
    class: usize,
    times: &'a [Interval],
    /// Seconds of each node; the differences of its times are rounded.
    lengths: Vec<f64>,
    rows: &'a [Option<usize>],
    priced: &'a [PricedCommunication],
}

impl Step<'_> {
    /// Compute without gaps, and the communication that begins after it in program order, are one phase.
    fn iteration(&self, seconds: f64) -> Iteration {
        let nodes = &self.graph.classes[self.class].nodes;
        let exposed = self.exposed();
        let (mut phases, mut ended) = (Vec::<Phase>::new(), 0.0);
        for n in self.order() {
            let (node, time) = (&nodes[n], &self.times[n]);
            let continues = phases.last().is_some_and(|phase| phase.communication.is_empty() && time.begin <= ended);
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
        let computed =
            self.lengths.iter().zip(self.rows).filter(|(_, row)| row.is_none()).map(|(length, _)| length).sum();
        Iteration::new(seconds, computed, phases)
    }

    /// The nodes in program order, in which queues take them, or else in the order in which they begin.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.times.len()).collect();
        if self.graph.queues == Queues::AsReady {
            order.sort_by(|&a, &b| self.times[a].begin.total_cmp(&self.times[b].begin));
        }
        order
    }

    /// Of each node, the seconds of communication during which nothing is computed.
    fn exposed(&self) -> Vec<f64> {
        let order = self.order();
        let computed: Vec<Interval> =
            order.iter().filter(|&&n| self.rows[n].is_none()).map(|&n| self.times[n]).collect();
        let mut first = 0;
        let mut exposed = vec![0.0; self.times.len()];
        // Both lists are in the order of time.
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
        let (mut counts, mut shown) = (vec![0_u64; self.priced.len()], vec![0.0; self.priced.len()]);
        for (row, exposed) in self.rows.iter().zip(self.exposed()).filter_map(|(row, e)| Some(((*row)?, e))) {
            counts[row] += 1;
            shown[row] += exposed;
        }
        let row = |(n, priced): (usize, &PricedCommunication)| {
            let total_seconds = priced.seconds * counts[n] as f64;
            CollectiveRow {
                kind: priced.kind,
                group: priced.ranks,
                groups: priced.groups,
                bytes: priced.bytes,
                count: counts[n],
                algorithm: priced.algorithm.clone(),
                params: priced.params.clone(),
                seconds: priced.seconds,
                total_seconds,
                exposed_seconds: shown[n],
                share: if step_seconds > 0.0 { total_seconds / step_seconds } else { 0.0 },
                bound: priced.bound.as_ref().map(|bound| bound.seconds),
                lower_bound: priced.bound.clone(),
                ratio: priced.ratio(),
            }
        };
        let mut rows: Vec<_> = self.priced.iter().enumerate().filter(|&(n, _)| counts[n] > 0).map(row).collect();
        rows.sort_by(|a, b| b.total_seconds.total_cmp(&a.total_seconds));
        rows
    }
}
