//! A workload with every message of every collective, for the simulators of messages: the tasks of its program.

use std::collections::BTreeMap;

use unisono_base::TaskId;
use unisono_lower::tasks::TaskGraph;
use unisono_machine::network::Switches;
use unisono_workload::{Compute, Work};

use super::{
    Communication, NetworkWorkload, Pattern, Phase, Workload, WorkloadError,
    graph::{Chosen, Occurrences, Scheduled, program_tasks},
    groups,
    timeline::Communicated,
};
use crate::{PlanError, report::map, workload::Iteration};

/// The algorithm of one communication.
struct Made {
    algorithm: String,
    params: BTreeMap<String, String>,
}

/// The graph, and the tasks whose ends make the timeline: of each rank, for each step its compute, then for each of its
/// communications the task before and the one after it.
pub struct Tasks {
    pub graph: TaskGraph,
    pub watch: Vec<TaskId>,
    /// Of each distinct communication.
    made: Vec<Made>,
    /// Of each communication, its place there.
    rows: Vec<usize>,
}

/// The tasks of a workload whose ranks all go through the same steps.
///
/// # Errors
/// Ranks that go through different steps, a communication that no schedule makes, or more messages than a limit admits.
pub fn tasks(workload: &Workload, overlap: bool, on: &NetworkWorkload) -> Result<Tasks, PlanError> {
    if workload.is_concurrent() {
        let message = "its ranks go through different steps; time it as a program".to_owned();
        return Err(WorkloadError::Tasks { name: workload.name.clone(), message }.into());
    }
    let program = workload.program();
    let (mut rows, mut chosen, mut made) = (Vec::new(), Vec::new(), Vec::new());
    let mut known: Vec<&Communication> = Vec::new();
    for step in &workload.steps {
        rows.push(None);
        for c in &step.communication {
            let row = known.iter().position(|other| *other == c).unwrap_or(known.len());
            rows.push(Some(row));
            if row == known.len() {
                let (of_groups, one) = make(workload, c, on)?;
                known.push(c);
                chosen.push(of_groups);
                made.push(one);
            }
        }
    }
    let seconds = |_: usize, node: usize| match program.classes[0].nodes[node].work {
        Work::Compute(Compute::Measured { seconds }) => seconds,
        _ => 0.0,
    };
    let (rows, places) = ([rows], on.places());
    let (computing, charges) = (&Switches::default(), on.charges());
    let scheduled = Scheduled { graph: &program, chosen: &chosen, rows: &rows, places, computing, charges, overlap };
    let tasks = program_tasks(&scheduled, &Occurrences::new(&program), seconds)?;
    Ok(Tasks { graph: tasks.graph, watch: tasks.watch, made, rows: rows.into_iter().flatten().flatten().collect() })
}

/// How the groups of a communication make it; nothing for messages to partners.
fn make(workload: &Workload, c: &Communication, on: &NetworkWorkload) -> Result<(Vec<Chosen>, Made), PlanError> {
    let taken = on.take(workload, c)?;
    let mut chosen = Vec::new();
    if let (Pattern::Collective(kind), true) = (c.collective, workload.group_size(c) > 1) {
        chosen.push(Chosen::by_name(on.case(kind, workload, c)?, groups(workload, c).into(), &taken));
    }
    Ok((chosen, Made { algorithm: taken.algorithm, params: map(&taken.given) }))
}

impl Tasks {
    /// The timeline of a run, from the ends of [`Tasks::watch`] and that of the run. Picoseconds.
    pub fn iteration(&self, workload: &Workload, watched: &[u64], makespan: u64) -> Iteration {
        let seconds = |ps: u64| ps as f64 * 1e-12;
        let each = workload.steps.iter().map(|s| 1 + 2 * s.communication.len()).sum::<usize>();
        let all = |at: usize| watched.iter().skip(at).step_by(each.max(1)).copied();
        let first = |at: usize| seconds(all(at).min().unwrap_or(0));
        let last = |at: usize| seconds(all(at).max().unwrap_or(0));
        let (mut at, mut next, mut before) = (0, 0, 0.0);
        let mut phases = Vec::with_capacity(workload.steps.len());
        for step in &workload.steps {
            let computed = last(at);
            let begin = (computed - step.compute_us * 1e-6).max(0.0);
            at += 1;
            let mut communication = Vec::with_capacity(step.communication.len());
            for c in &step.communication {
                let made = &self.made[self.rows[next]];
                communication.push(Communicated {
                    collective: c.collective.name(),
                    bytes: 4 * c.elements,
                    ranks: workload.group_size(c),
                    blocking: c.blocking,
                    algorithm: made.algorithm.clone(),
                    params: made.params.clone(),
                    begin: first(at),
                    end: last(at + 1),
                });
                (at, next) = (at + 2, next + 1);
            }
            phases.push(Phase::new(step, begin, (begin - before).max(0.0), communication));
            before = computed;
        }
        Iteration::new(seconds(makespan), workload.compute_seconds(), phases)
    }
}
