//! A workload as a task graph, with every message of every collective, for the simulators of messages.
//!
//! Each rank computes on its first CPU and communicates on a second one, so that both go on at once; the rules of order are
//! those of [`super::iterate`].

use std::collections::BTreeMap;

use unisono_algorithms::resolve;
use unisono_base::{NodeId, TaskId, rounded};
use unisono_lower::tasks::{Among, Builder, Subgraph, Task, TaskGraph};
use unisono_schedule::verify::Verified;
use unisono_workload::Groups;

use super::{Communication, NetworkWorkload, Pattern, Phase, Workload, WorkloadError, groups, timeline::Communicated};
use crate::{PlanError, report::map, stored::proved, workload::Iteration};

/// More messages are not simulated: their tasks take gigabytes.
const MOST_MESSAGES: u64 = 1 << 25;
/// Picoseconds: the ticks of a machine.
const TICKS_PER_US: f64 = 1e6;
const COMMUNICATES: u8 = 1;

/// What each rank does in one communication.
struct Made {
    groups: Groups,
    /// `None`: messages to partners.
    proven: Option<Verified<'static>>,
    algorithm: String,
    params: BTreeMap<String, String>,
}

/// The graph, and the tasks whose ends make the timeline: of each rank, for each step its compute, then for each of its
/// communications the task before and the one after it.
pub struct Tasks {
    pub graph: TaskGraph,
    pub watch: Vec<TaskId>,
    made: Vec<Made>,
}

/// # Errors
/// A communication that no schedule makes, or more messages than can be simulated.
pub fn tasks(workload: &Workload, overlap: bool, on: &NetworkWorkload) -> Result<Tasks, PlanError> {
    let ranks = workload.accelerators();
    let (mut made, mut messages) = (Vec::new(), 0);
    for step in &workload.steps {
        for c in &step.communication {
            let one = make(workload, c, on)?;
            messages += match &one.proven {
                Some(proven) => proven.schedule().stream_count() as u64 * one.groups.len() as u64,
                None => u64::from(ranks) * c.partners.len().max(1) as u64,
            };
            if messages > MOST_MESSAGES {
                let message = format!(
                    "up to here there are {messages} messages, and at most {MOST_MESSAGES} are simulated; name algorithms with fewer, \
                     or use the model"
                );
                return Err(WorkloadError::Step { step: step.name.clone(), message }.into());
            }
            made.push(one);
        }
    }
    let malformed = |m: &Made| PlanError::NotTimed {
        algorithm: m.algorithm.clone(),
        model: "packets",
        message: "its schedule has no task graph".to_owned(),
    };
    let parts: Vec<Option<Subgraph<'_>>> = made
        .iter()
        .map(|m| m.proven.as_ref().map(Subgraph::new).transpose().map_err(|_| malformed(m)))
        .collect::<Result<_, _>>()?;
    let mut builder = Builder::new();
    let mut watch = Vec::new();
    for rank in 0..ranks {
        builder.rank();
        one_rank(&mut builder, &mut watch, workload, overlap, rank, &made, &parts);
    }
    let graph = builder
        .finish()
        .map_err(|e| WorkloadError::Step { step: workload.steps[0].name.clone(), message: e.to_string() })?;
    Ok(Tasks { graph, watch, made })
}

fn make(workload: &Workload, c: &Communication, on: &NetworkWorkload) -> Result<Made, PlanError> {
    let groups = groups(workload, c);
    let taken = on.take(workload, c)?;
    let mut proven = None;
    if let (Pattern::Collective(kind), true) = (c.collective, workload.group_size(c) > 1) {
        let case = on.case(kind, workload, c)?;
        let (algorithm, params) = resolve(&taken.algorithm, &case, &taken.given)?;
        proven = Some(proved(algorithm.build(&case, &params)?.schedule)?);
    }
    Ok(Made { groups, proven, algorithm: taken.algorithm, params: map(&taken.given) })
}

fn one_rank(
    b: &mut Builder,
    watch: &mut Vec<TaskId>,
    workload: &Workload,
    overlap: bool,
    rank: u32,
    made: &[Made],
    parts: &[Option<Subgraph<'_>>],
) {
    // The last compute, the last blocking communication and the last communication.
    let (mut computed, mut blocked, mut free) = (None, None, None);
    let (mut next, mut tag) = (0, 0);
    for step in &workload.steps {
        let compute = b.task(Task::calc(rounded(step.compute_us * TICKS_PER_US)));
        let held_by = if step.waits || !overlap { free } else { blocked };
        for before in [computed, held_by].into_iter().flatten() {
            b.requires(compute, before);
        }
        computed = Some(compute);
        watch.push(compute);
        for c in &step.communication {
            let begin = b.task(Task::calc(0).on(COMMUNICATES, 0));
            for before in [Some(compute), free].into_iter().flatten() {
                b.requires(begin, before);
            }
            let end = communicate(b, c, &made[next], parts[next].as_ref(), rank, &mut tag, begin);
            watch.extend([begin, end]);
            free = Some(end);
            if c.blocking {
                blocked = free;
            }
            next += 1;
        }
    }
}

/// Adds one communication of a rank after `begin`; gives the task that is done when all of it is.
fn communicate(
    b: &mut Builder,
    c: &Communication,
    made: &Made,
    part: Option<&Subgraph<'_>>,
    rank: u32,
    tag: &mut u32,
    begin: TaskId,
) -> TaskId {
    let (group, place) = made.groups.of(rank).expect("every rank of a workload is in a group");
    if let Some(part) = part {
        let among = Among { ranks: Some(group), tag: *tag, cpu: COMMUNICATES, ..Among::default() };
        *tag += part.tags();
        return part.append(b, NodeId(place), &among, begin);
    }
    let bytes = 4 * c.elements;
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    match c.collective {
        Pattern::Send => {
            sends.extend(group.get(place as usize + 1));
            receives.extend(place.checked_sub(1).map(|before| &group[before as usize]));
        }
        Pattern::Exchange => {
            let partners = c.partners.iter().filter_map(|p| group.get((place ^ p) as usize));
            sends.extend(partners);
            receives.clone_from(&sends);
        }
        Pattern::Collective(_) => {}
    }
    let receives = receives.into_iter().map(|&from| Task::receive(from, bytes, *tag));
    let sends = sends.into_iter().map(|&to| Task::send(to, bytes, *tag));
    let all: Vec<TaskId> = receives.chain(sends).map(|task| b.task(task.on(COMMUNICATES, 0))).collect();
    let end = b.task(Task::calc(0).on(COMMUNICATES, 0));
    b.requires(end, begin);
    for task in all {
        b.requires(task, begin);
        b.requires(end, task);
    }
    *tag += 1;
    end
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
                let made = &self.made[next];
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
