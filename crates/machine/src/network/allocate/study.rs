//! The utilization of a machine by jobs, over many random samples of failures, and of jobs if these are drawn from a
//! distribution.

use std::{collections::HashSet, ops::Range};

use serde::Serialize;
use unisono_base::{limits, mix, narrow, parallel};

use super::{Free, Heuristic, Job, JobSpace, Jobs, Placed, Rule, Sizes, UpperShare, shapes::shapes};
use crate::MachineError;

/// The number of cores that [`estimate`] assumes, so that a refusal does not depend on the computer that runs the
/// study.
const CORES: u128 = 64;

#[derive(Clone, PartialEq, Debug)]
pub struct Study {
    pub jobs: Jobs,
    pub heuristic: Heuristic,
    /// The row-major numbers of boards that failed in every sample, without duplicates.
    pub failed: Vec<u32>,
    /// The number of further boards that fail, drawn for each sample.
    pub failures: u64,
    pub seed: u64,
}

impl Study {
    /// Returns the number of boards that fail in each sample.
    fn failures(&self) -> u64 {
        self.failures.saturating_add(self.failed.len() as u64)
    }
}

/// One sample: the failed boards, and the jobs in the order in which they were placed or refused.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// The row-major numbers of the failed boards.
    pub failed: Vec<u32>,
    pub jobs: Vec<(Job, Option<Placed>)>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// The boards requested by placed jobs, divided by the healthy boards: the mean over the samples.
    pub utilization_mean: f64,
    /// The first percentile, over the samples, of the boards requested by placed jobs divided by the healthy boards.
    pub utilization_p1: f64,
    /// The average number of placed jobs in a sample.
    pub placed: f64,
    /// The average number of refused jobs in a sample.
    pub refused: f64,
    /// The fraction of traffic on the upper level of switches, averaged over all boards that placed jobs requested.
    pub upper_level: UpperShare,
    pub samples: u32,
    #[serde(skip)]
    pub first: Sample,
}

struct Draws {
    state: u64,
}

impl Draws {
    fn new(seed: u64, sample: u32) -> Self {
        Self { state: mix(mix(seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_add(u64::from(sample))) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Draws a number from 0 (included) to 1 (excluded).
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

/// Returns the estimated number of jobs of a sample, and the average number of computation steps to place a job. Nearly
/// all drawn jobs are placed with the first shape that is tried. For listed jobs the worst case is assumed: each is
/// refused after all its shapes were tried.
fn work(space: &JobSpace, study: &Study) -> (u128, u128) {
    /// The number of equally spaced quantiles at which the distribution is evaluated.
    const READ: u32 = 1000;
    let sides = |job: &Job| match space.rule {
        Rule::SubBox { .. } => shapes(job, &space.count, study.heuristic),
        Rule::Crossings | Rule::Blocks { .. } => Vec::new(),
    };
    match &study.jobs {
        Jobs::List(jobs) => {
            let steps: u128 = jobs.iter().map(|job| space.steps(study.heuristic, &sides(job))).sum();
            (jobs.len() as u128, steps / (jobs.len() as u128).max(1))
        }
        Jobs::Drawn(sizes) => {
            let most = space.most_drawn();
            let at = |k: u32| sizes.at((f64::from(k) + 0.5) / f64::from(READ)).boards.min(most);
            let read: Vec<u32> = (0..READ).map(at).collect();
            let boards: u128 = read.iter().map(|&boards| u128::from(boards)).sum();
            // Sizes ascend, so equal sizes are adjacent.
            let steps = read.chunk_by(|a, b| a == b).map(|same| {
                let first: Vec<_> = sides(&Job { boards: same[0], shape: None }).into_iter().take(1).collect();
                same.len() as u128 * space.steps(study.heuristic, &first)
            });
            let (read, all) = (u128::from(READ), u128::from(space.all()));
            (all * read / boards.max(1) + 1, steps.sum::<u128>() / read)
        }
    }
}

/// Returns the estimated memory in bytes and number of computation steps of some samples of a study.
fn estimate(space: &JobSpace, study: &Study, samples: u32) -> (u128, u128) {
    let all = u128::from(space.all());
    let (jobs, place) = work(space, study);
    let samples = u128::from(samples);
    let at_once = samples.min(CORES);
    // The counts of a sample take 40 bytes here, and about 200 bytes as Python numbers.
    (240 * samples + 64 * jobs + 16 * all + 24 * jobs * at_once, samples * (4 * all + jobs * (100 + place)))
}

/// The sums over the jobs of one sample.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Counts {
    pub placed: u64,
    pub refused: u64,
    /// The boards that the placed jobs requested.
    pub requested: u64,
    /// The fractions of traffic on the upper level, each times the boards that its job requested.
    pub upper: UpperShare,
}

/// Checks that a study of `samples` samples can be computed.
///
/// # Errors
/// Returns an error if all boards fail, `samples` is 0, or the estimate exceeds a limit.
pub fn admit(space: &JobSpace, machine: &str, study: &Study, samples: u32) -> Result<(), MachineError> {
    if study.failures() >= space.all() {
        let machine = machine.to_owned();
        return Err(MachineError::AllFail { found: study.failures(), machine, boards: space.all() });
    }
    if samples == 0 {
        return Err(MachineError::NoSamples);
    }
    let (bytes, steps) = estimate(space, study, samples);
    Ok(limits::admit("the study of the allocation", bytes, steps)?)
}

/// Computes some samples of a study; `samples` are their numbers.
pub fn counts(space: &JobSpace, study: &Study, samples: Range<u32>) -> Vec<Counts> {
    let numbers: Vec<u32> = samples.collect();
    parallel::map(&numbers, |&number| counted(space, study, number)).collect()
}

/// Summarizes a study from the counts of its samples, at least one.
pub fn outcome(space: &JobSpace, study: &Study, counts: &[Counts]) -> Outcome {
    let healthy = (space.all() - study.failures()) as f64;
    let mut shares: Vec<f64> = counts.iter().map(|sample| sample.requested as f64 / healthy).collect();
    shares.sort_by(f64::total_cmp);
    let samples = counts.len() as f64;
    let total = |of: fn(&Counts) -> f64| counts.iter().map(of).sum::<f64>();
    let requested = total(|sample| sample.requested as f64).max(1.0);
    Outcome {
        utilization_mean: shares.iter().sum::<f64>() / samples,
        // The first percentile of 1000 sorted samples is the tenth.
        utilization_p1: shares[counts.len().div_ceil(100) - 1],
        placed: total(|sample| sample.placed as f64) / samples,
        refused: total(|sample| sample.refused as f64) / samples,
        upper_level: UpperShare {
            alltoall: total(|sample| sample.upper.alltoall) / requested,
            allreduce: total(|sample| sample.upper.allreduce) / requested,
        },
        samples: narrow(counts.len()),
        first: sample(space, study, 0),
    }
}

/// Computes the first `samples` samples of a study, and summarizes them.
///
/// # Errors
/// Returns the errors of [`admit`].
pub fn study(space: &JobSpace, machine: &str, study: &Study, samples: u32) -> Result<Outcome, MachineError> {
    admit(space, machine, study, samples)?;
    Ok(outcome(space, study, &counts(space, study, 0..samples)))
}

fn counted(space: &JobSpace, study: &Study, number: u32) -> Counts {
    let mut counts = Counts::default();
    for (job, place) in &sample(space, study, number).jobs {
        let Some(place) = place else {
            counts.refused += 1;
            continue;
        };
        let share = UpperShare::of(place, &space.leaf);
        counts.placed += 1;
        counts.requested += u64::from(job.boards);
        counts.upper.alltoall += share.alltoall * f64::from(job.boards);
        counts.upper.allreduce += share.allreduce * f64::from(job.boards);
    }
    counts
}

/// Computes one sample: boards fail, then each job gets the boards that the heuristic finds, or is refused.
fn sample(space: &JobSpace, study: &Study, number: u32) -> Sample {
    let mut draws = Draws::new(study.seed, number);
    let mut free = Free::new(&space.count);
    let failed = failures(space, study, &mut draws);
    failed.iter().for_each(|&board| free.take(board));
    let mut jobs = match &study.jobs {
        Jobs::List(jobs) => jobs.clone(),
        Jobs::Drawn(sizes) => drawn(sizes, space, free.count(), &mut draws),
    };
    if study.heuristic >= Heuristic::Sort {
        jobs.sort_by_key(|job| std::cmp::Reverse(job.boards));
    }
    let mut place = |job: Job| {
        let placed = space.place(&mut free, &job, study.heuristic);
        placed.iter().for_each(|placed| free.give(placed));
        (job, placed)
    };
    Sample { jobs: jobs.into_iter().map(&mut place).collect(), failed }
}

/// Returns distinct boards, sorted: those that fail in every sample, and `study.failures` random other boards.
fn failures(space: &JobSpace, study: &Study, draws: &mut Draws) -> Vec<u32> {
    let mut order: Vec<u32> = (0..narrow::<u32>(space.all())).collect();
    if !study.failed.is_empty() {
        let named: HashSet<u32> = study.failed.iter().copied().collect();
        order.retain(|board| !named.contains(board));
    }
    let left = order.len() as u64;
    for at in 0..study.failures {
        order.swap(narrow(at), narrow(at + draws.below(left - at)));
    }
    order.truncate(narrow(study.failures));
    order.extend(&study.failed);
    order.sort_unstable();
    order
}

/// Draws jobs of at most [`JobSpace::most_drawn`] boards from a distribution until they request all healthy boards.
fn drawn(sizes: &Sizes, space: &JobSpace, healthy: u64, draws: &mut Draws) -> Vec<Job> {
    let most = space.most_drawn();
    let mut left = healthy;
    let mut jobs = Vec::new();
    while left > 0 {
        let size = sizes.at(draws.share()).boards.min(most);
        let boards = narrow(u64::from(size).min(left));
        jobs.push(Job { boards, shape: None });
        left -= u64::from(boards);
    }
    jobs
}
