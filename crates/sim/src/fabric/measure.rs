//! The paper's measurement of a collective on PEs without a common clock ("Near-Optimal Wafer-Scale Reduce", section
//! 8.3), on the simulated fabric.
//!
//! PE (0, 0) broadcasts a trigger; PE (i, j) samples its clock, T_R, when the trigger arrives. The PE then does alpha
//! (M + N - i - j) writes, samples T_S, runs the collective and samples T_E. Without no-ops, alpha = 1 makes all PEs
//! start together, because the trigger takes i + j cycles to reach PE (i, j). With no-ops of probability p a write
//! takes 1 / (1 - p) cycles, and alpha is adjusted until the starts are close together. The measured time is max T_E' -
//! min T_S'; the prime converts a sample to the clock of the trigger:
//!
//! ```text
//! T' = T - (T_R - arrival(i, j))
//! ```
//!
//! `arrival` is the time at which the trigger reaches the PE on a wafer without other traffic. The paper prints T -
//! (T_R + (i + j + 2)), which has a wrong sign: the times of PEs that start together would differ by 2 (i + j).
//!
//! Each clock differs by a constant, and the barrier before the trigger is assumed to be complete. No-ops are drawn by
//! PE and cycle, for the whole run from the trigger to the end of the collective.

use serde::Serialize;
use unisono_base::{mix, narrow, rounded};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::wafer::{ColorRoute, End, Op, PeProgram, Port, Ports, Position, WaferProgram};
use unisono_machine::Grid;

use super::{Options, Run, SimError, noop, run};

/// Parameters of a measurement.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibration {
    /// Greatest difference of two clocks, in cycles.
    pub clock_skew: u32,
    /// The calibration ends when the difference of all starts is below this number of cycles. The defaults are those of
    /// the paper: 57 on a line of PEs, 129 on a grid.
    pub wanted_spread: Option<u32>,
    /// The largest number of calibration runs; at least one run is done. The run with the closest starts is used.
    pub most_runs: u32,
}

impl Default for Calibration {
    fn default() -> Self {
        Self { clock_skew: 1000, wanted_spread: None, most_runs: 20 }
    }
}

/// Results of a measurement; times are in cycles.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measurement {
    pub alpha: f64,
    /// The number of calibration runs. `calibrated` is true if the starts of the best run are as close as requested.
    pub runs: u32,
    pub calibrated: bool,
    /// The cycles between the first and the last start if all PEs started at the same time of their own clocks.
    /// `trigger_spread` is the same if each PE started when the trigger arrives, without writes.
    pub clock_spread: u64,
    pub trigger_spread: u64,
    /// Cycles between the first and last start, computed from the samples; `true_start_spread` uses the true times.
    pub start_spread: u64,
    pub true_start_spread: u64,
    /// max T_E' - min T_S'; `true_cycles` is the duration of the same run by a shared clock.
    pub measured_cycles: u64,
    pub true_cycles: u64,
    /// Cycles of a run without no-ops in which all PEs start together.
    pub quiet_cycles: u64,
    pub result_correct: bool,
}

/// Times at each PE before the collective, in cycles of a shared clock.
struct Starts {
    seed: u64,
    /// T_R of each PE; `started` holds T_S.
    triggered: Vec<u32>,
    started: Vec<u32>,
}

/// Measures a program by the method at the head of this file. The calibration determines the starts; `options.start` is
/// not used.
///
/// # Errors
/// Returns the errors of [`run`].
pub fn measure(program: &WaferProgram, options: &Options, calibration: &Calibration) -> Result<Measurement, SimError> {
    let quiet = Options { noop_probability: 0.0, start: Vec::new(), ..options.clone() };
    let quiet_cycles = run(program, &quiet)?.cycles;
    let grid = program.grid;
    let trigger = trigger(grid);
    let arrival = run(&trigger, &quiet)?.finish;
    let clock: Vec<i64> = (0..grid.count())
        .map(|pe| (mix(options.seed ^ mix(pe + 1)) % (u64::from(calibration.clock_skew) + 1)) as i64)
        .collect();
    // Converts a sample to the clock of the trigger. It uses only samples of the PE's own clock.
    let common = |starts: &Starts, pe: usize, at: u32| {
        let (sample, reference) = (i64::from(at) + clock[pe], i64::from(starts.triggered[pe]) + clock[pe]);
        sample - (reference - i64::from(arrival[pe]))
    };
    let wanted = calibration.wanted_spread.unwrap_or(if grid.is_line() { 57 } else { 129 });
    let (mut alpha, mut runs) = (1.0, 0);
    let mut best: Option<(u64, f64, Starts)> = None;
    while runs < calibration.most_runs.max(1) && best.as_ref().is_none_or(|b| b.0 >= u64::from(wanted.max(1))) {
        let starts = starts(&trigger, options, alpha, mix(options.seed.wrapping_add(u64::from(runs) << 32)))?;
        let sampled: Vec<i64> = (0..arrival.len()).map(|pe| common(&starts, pe, starts.started[pe])).collect();
        let spread = spread(sampled.iter().copied());
        let slope = slope(grid, &sampled);
        if best.as_ref().is_none_or(|b| spread < b.0) {
            best = Some((spread, alpha, starts));
        }
        // A write takes (1 + slope) / alpha cycles. After this division, alpha compensates for the path of the trigger.
        alpha /= (1.0 + slope).max(0.1);
        runs += 1;
    }
    let Some((start_spread, alpha, starts)) = best else { unreachable!("there is one run at least") };
    let collective = Options { start: starts.started.clone(), seed: starts.seed, ..options.clone() };
    let Run { finish, result_correct, .. } = run(program, &collective)?;
    let ended = || (0..finish.len()).filter(|&pe| finish[pe] > 0);
    let first = starts.started.iter().copied().min().unwrap_or(0);
    let last = ended().map(|pe| finish[pe]).max().unwrap_or(first);
    let sampled_first = (0..finish.len()).map(|pe| common(&starts, pe, starts.started[pe])).min().unwrap_or(0);
    let sampled_last = ended().map(|pe| common(&starts, pe, finish[pe])).max().unwrap_or(sampled_first);
    Ok(Measurement {
        alpha,
        runs,
        calibrated: start_spread < u64::from(wanted.max(1)),
        clock_spread: spread(clock.iter().copied()),
        trigger_spread: spread(arrival.iter().map(|&a| i64::from(a))),
        start_spread,
        true_start_spread: spread(starts.started.iter().map(|&s| i64::from(s))),
        measured_cycles: narrow::<u64>((sampled_last - sampled_first).max(0)),
        true_cycles: u64::from(last - first),
        quiet_cycles,
        result_correct,
    })
}

/// Simulates one calibration run: the trigger, then the writes.
fn starts(trigger: &WaferProgram, options: &Options, alpha: f64, seed: u64) -> Result<Starts, SimError> {
    let options = Options { seed, start: Vec::new(), ..options.clone() };
    let triggered = run(trigger, &options)?.finish;
    let grid = trigger.grid;
    let start = |(pe, &at): (usize, &u32)| {
        let left = rounded(alpha * f64::from(writes(grid, narrow::<u32>(pe))));
        let mut left = u32::try_from(left).unwrap_or(u32::MAX);
        if options.noop_probability <= 0.0 {
            return at + left;
        }
        let mut cycle = at;
        while left > 0 {
            left -= u32::from(!noop(&options, narrow::<u32>(pe), cycle));
            cycle += 1;
        }
        cycle
    };
    let started = triggered.iter().enumerate().map(start).collect();
    Ok(Starts { seed, triggered, started })
}

/// Returns the number of writes of a PE at alpha = 1.
fn writes(grid: Grid, pe: u32) -> u32 {
    let (row, col) = grid.row_col(pe);
    grid.rows + grid.cols - row - col
}

fn spread(of: impl Iterator<Item = i64> + Clone) -> u64 {
    let (first, last) = (of.clone().min().unwrap_or(0), of.max().unwrap_or(0));
    narrow::<u64>(last - first)
}

/// Returns the delay of a start in cycles for each further write, by least squares.
fn slope(grid: Grid, sampled: &[i64]) -> f64 {
    let count = sampled.len() as f64;
    let x: Vec<f64> = (0..sampled.len()).map(|pe| f64::from(writes(grid, narrow::<u32>(pe)))).collect();
    let (mean_x, mean_y) = (x.iter().sum::<f64>() / count, sampled.iter().map(|&y| y as f64).sum::<f64>() / count);
    let xx: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    let xy: f64 = x.iter().zip(sampled).map(|(x, &y)| (x - mean_x) * (y as f64 - mean_y)).sum();
    if xx > 0.0 { xy / xx } else { 0.0 }
}

/// Returns a broadcast of one element from PE (0, 0): east along the first row, then south from each PE of this row.
fn trigger(grid: Grid) -> WaferProgram {
    let pes = narrow::<u32>(grid.count());
    let c = Collective::new(Kind::Broadcast, pes, 1, 0, Operator::Sum, Dtype::I32);
    let pe_program = |pe: u32| {
        let (row, col) = grid.row_col(pe);
        let rx = match (row, col) {
            (0, 0) => Port::Ramp,
            (0, _) => Port::West,
            _ => Port::North,
        };
        let onward = [(Port::East, row == 0 && col + 1 < grid.cols), (Port::South, row + 1 < grid.rows)];
        let taken = (Port::Ramp, pe > 0);
        let tx: Ports = onward.into_iter().chain([taken]).filter(|t| t.1).map(|t| t.0).collect();
        let (from, to) = if pe == 0 { (End::In(0), End::Fabric(0)) } else { (End::Fabric(0), End::Out(0)) };
        PeProgram {
            routes: vec![ColorRoute::new(0, &[Position { rx: Ports::NONE.with(rx), tx }])],
            threads: vec![vec![(Op::plain(1), vec![from], vec![to])]],
            ..PeProgram::default()
        }
    };
    let programs: Vec<PeProgram> =
        if pes == 1 { vec![PeProgram::default()] } else { (0..pes).map(pe_program).collect() };
    WaferProgram::assemble(grid, c.expect("one element to PEs of a grid"), Vec::new(), programs)
}
