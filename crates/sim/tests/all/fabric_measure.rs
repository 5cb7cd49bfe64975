//! The paper's measurement (section 8.3) on the simulated fabric, compared with a clock that all PEs share.

use unisono_algorithms::{Case, Params, resolve};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::wafer::{WaferProgram, prove_and_lower};
use unisono_machine::Wafer;
use unisono_machine::{Grid, Machine};
use unisono_sim::fabric::{Calibration, Measurement, Options, measure, run};

fn program(kind: Kind, grid: Grid, elements: u64, algorithm: &str) -> WaferProgram {
    let wafer = Machine::preset("wse2").unwrap().get::<Wafer>().unwrap().clone();
    let c = Collective::new(kind, grid.count() as u32, elements, 0, Operator::Sum, Dtype::F32).unwrap();
    let case = Case::on_grid(c, grid, 5.0);
    let (algorithm, params) = resolve(algorithm, &case, &Params::new()).unwrap();
    prove_and_lower(&algorithm.build(&case, &params).unwrap(), &wafer).unwrap()
}

fn measured(program: &WaferProgram, noop_probability: f64, seed: u64, calibration: &Calibration) -> Measurement {
    let m = measure(program, &Options { noop_probability, seed, ..Options::default() }, calibration).unwrap();
    assert!(m.result_correct);
    // The clocks cancel out. Only the delays with which PEs sample the trigger remain.
    assert!(m.measured_cycles.abs_diff(m.true_cycles) <= m.start_spread, "{m:?}");
    assert!(m.start_spread.abs_diff(m.true_start_spread) <= 3, "{m:?}");
    m
}

/// alpha = 1 is right at once. PE (0, 0) takes its sample when it sends, two ramps and an operation before the trigger
/// has left. So it starts 2 T_R + 1 = 5 cycles before all others.
#[test]
fn without_no_ops_the_time_is_the_simulated_one_and_five_cycles() {
    for (kind, grid, algorithm) in [
        (Kind::Reduce, Grid::new(1, 64), "chain"),
        (Kind::Reduce, Grid::new(9, 13), "auto-gen"),
        (Kind::Allreduce, Grid::new(8, 8), "chain"),
        (Kind::Reduce, Grid::new(2, 1), "chain"),
    ] {
        let program = program(kind, grid, 100, algorithm);
        let m = measured(&program, 0.0, 3, &Calibration::default());
        assert_eq!((m.alpha, m.runs, m.calibrated, m.start_spread), (1.0, 1, true, 5), "{m:?}");
        assert_eq!(m.quiet_cycles, run(&program, &Options::default()).unwrap().cycles);
        assert_eq!(m.measured_cycles, m.quiet_cycles + 5, "{m:?}");
        assert_eq!(m.trigger_spread, u64::from(grid.rows + grid.cols - 2) + 5);
    }
}

#[test]
fn clocks_cancel_out() {
    let program = program(Kind::Reduce, Grid::new(5, 8), 40, "tree");
    let of = |clock_skew| {
        let m = measured(&program, 0.02, 9, &Calibration { clock_skew, ..Calibration::default() });
        assert!(m.clock_spread <= u64::from(clock_skew) && (clock_skew == 0 || m.clock_spread > 0));
        Measurement { clock_spread: 0, ..m }
    };
    assert_eq!(of(0), of(1_000_000));
}

/// A write takes 1 / (1 - p) cycles, so alpha becomes 1 - p, and starts are as close as in the paper: below 57 cycles
/// in a row of 512 PEs.
#[test]
fn alpha_makes_up_for_no_ops() {
    let program = program(Kind::Reduce, Grid::new(1, 512), 1, "auto-gen");
    for (seed, p) in [(1, 0.01), (2, 0.05), (3, 0.1), (4, 0.2)] {
        let usual = measured(&program, p, seed, &Calibration::default());
        assert!(usual.calibrated && usual.start_spread < 57, "{usual:?}");
        // The vector has one element, so no-ops hardly lengthen the collective itself.
        assert!(p > 0.05 || usual.measured_cycles.abs_diff(usual.quiet_cycles) <= usual.start_spread, "{usual:?}");
        let closest = measured(&program, p, seed, &Calibration { wanted_spread: Some(0), ..Calibration::default() });
        assert!((closest.alpha - (1.0 - p)).abs() < 0.02, "{closest:?}");
        assert!(!closest.calibrated && closest.runs == 20 && closest.start_spread <= usual.start_spread);
    }
}

#[test]
fn a_grid_is_calibrated_too() {
    let m = measured(&program(Kind::Reduce, Grid::new(64, 64), 16, "auto-gen"), 0.05, 5, &Calibration::default());
    assert!(m.calibrated && m.start_spread < 129, "{m:?}");
    let alone = measured(&program(Kind::Reduce, Grid::new(1, 1), 16, "chain"), 0.05, 5, &Calibration::default());
    assert_eq!((alone.start_spread, alone.calibrated), (0, true));
}

/// Without the writes the first PE starts before the last PE receives the trigger, which lengthens the measured time.
#[test]
fn uncalibrated_starts_are_apart() {
    let program = program(Kind::Reduce, Grid::new(1, 256), 16, "chain");
    let m = measured(&program, 0.0, 0, &Calibration::default());
    assert!(m.trigger_spread > 10 * m.start_spread);
}
