//! Tests of projects that measure. The barrier, the trigger and the clock samples run in the interpreter of CSL, one
//! round a cycle, and results stay right.

use crate::{
    common::{TARGET, program},
    interpreter::{Pe, Wafer},
};

use unisono_algorithms::{ALGORITHMS, Case, Params};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_csl::{Files, SdkTarget, emit, emit_measured};
use unisono_lower::wafer::{PeProgram, WaferProgram, lower};
use unisono_machine::{Grid, Machine};
use unisono_schedule::verify::{Method, Verified};

/// Returns starts and ends by the clock of the trigger, as `measure.py` computes them.
fn launch(wafer: &mut Wafer, grid: Grid, function: &str, alpha: f64) -> Vec<(i64, i64)> {
    let distance = |pe: usize| pe / grid.cols as usize + pe % grid.cols as usize;
    for pe in 0..wafer.pes.len() {
        let writes = alpha * (f64::from(grid.rows + grid.cols) - distance(pe) as f64);
        wafer.pes[pe].set("writes", writes.round() as f32);
    }
    wafer.launch(function);
    let common = |(pe, p): (usize, &Pe)| {
        let at = |name: &str| p.samples.get(name).copied().unwrap_or(0) as i64;
        let shift = distance(pe) as i64 + 2 - at("referred");
        (at("started") + shift, at("ended") + shift)
    };
    wafer.pes.iter().enumerate().map(common).collect()
}

fn lowered(name: &str, kind: Kind, grid: Grid, elements: u64) -> Option<WaferProgram> {
    lowered_from(("wse2", &TARGET), name, kind, grid, elements, 0)
}

fn lowered_from(
    (machine, target): (&str, &SdkTarget),
    name: &str,
    kind: Kind,
    grid: Grid,
    elements: u64,
    root: u64,
) -> Option<WaferProgram> {
    let wafer = Machine::preset(machine).unwrap().get().cloned().unwrap();
    let c = Collective::new(kind, grid.count() as u32, elements, root, Operator::Sum, Dtype::F32).unwrap();
    let case = Case::on_grid(c, grid, 5.0);
    let algorithm = unisono_algorithms::find(name).unwrap();
    algorithm.supports(&case, &Params::new()).ok()?;
    let placed = algorithm.build(&case, &Params::new()).unwrap();
    let adapted = target.needs.adapt(placed.grid().unwrap()).unwrap();
    Some(lower(&Verified::of(&placed.schedule, Method::Auto).unwrap(), &adapted, &wafer).unwrap())
}

#[test]
fn every_algorithm_is_measured_and_right() {
    let (mut ran, mut refused) = (0, 0);
    for algorithm in ALGORITHMS.iter().map(|a| a.info()) {
        for kind in [Kind::Reduce, Kind::Allreduce, Kind::Broadcast] {
            for (rows, cols) in [(1, 7), (6, 1), (4, 4), (3, 6)] {
                let (grid, elements) = (Grid::new(rows, cols), 12);
                if !algorithm.collectives.contains(&kind) {
                    continue;
                }
                let Some(program) = lowered(algorithm.name, kind, grid, elements) else { continue };
                if emit(&program, &TARGET).is_err() {
                    continue;
                }
                let measured = match emit_measured(&program, &TARGET) {
                    Ok(files) => files,
                    Err(e) => {
                        assert!(e.to_string().contains("; a measurement takes "), "{} on {grid}: {e}", algorithm.name);
                        refused += 1;
                        continue;
                    }
                };
                if is_ping_pong(&measured) {
                    assert!(kind == Kind::Broadcast && grid.is_line());
                    continue;
                }
                let inputs: Vec<Vec<f32>> = (0..grid.count())
                    .map(|r| vec![(r % 5 + 1) as f32; program.collective.input_len(r as u32) as usize])
                    .collect();
                let mut wafer = Wafer::load(&measured, &inputs);
                for (n, pe) in wafer.pes.iter_mut().enumerate() {
                    pe.set_clock(1000 + 777 * n as u64 % 400);
                }
                let name = format!("{} {kind} on {grid}", algorithm.name);
                for function in ["calibrate", "calibrate", "measure"] {
                    let times = launch(&mut wafer, grid, function, 1.0);
                    let (first, last) =
                        (times.iter().map(|t| t.0).min().unwrap(), times.iter().map(|t| t.0).max().unwrap());
                    assert!(last - first <= 6, "{name}: starts {first} to {last}");
                    if function == "measure" {
                        let cycles = times.iter().map(|t| t.1).max().unwrap() - first;
                        assert!((12..2000).contains(&cycles), "{name}: {cycles}");
                    }
                }
                // In a broadcast only rank 0 has input.
                let wanted: f32 = inputs.iter().filter_map(|i| i.first()).sum();
                let last = wafer.pes.swap_remove(if kind == Kind::Reduce { 0 } else { 3 }).output();
                assert_eq!(last[..12], [wanted; 12], "{name}");
                ran += 1;
            }
        }
    }
    assert!(ran > 30 && 5 * refused < ran, "{ran} ran, {refused} were refused");
}

fn is_ping_pong(files: &Files) -> bool {
    files.iter().any(|f| f.1.contains("fn ping_pong() void {"))
}

/// Only the first PE's clock is read. The expected time is the number of hops, plus the number of elements, plus a few
/// rounds to start at both ends.
#[test]
fn broadcasts_on_lines_are_measured_by_ping_pong() {
    for (machine, target) in [("wse2", TARGET), ("wse3", SdkTarget::WSE3_SDK_2)] {
        for (rows, cols, elements) in [(1, 2, 1), (1, 2, 40), (1, 7, 12), (24, 1, 1), (1, 24, 100), (2, 1, 5)] {
            let grid = Grid::new(rows, cols);
            let program = lowered_from((machine, &target), "flood", Kind::Broadcast, grid, elements, 0)
                .expect("a flood is for lines");
            let files = emit_measured(&program, &target).unwrap();
            assert!(is_ping_pong(&files), "{machine}, {grid}");
            let given: Vec<f32> = (0..elements).map(|e| (3 * e % 7) as f32).collect();
            let mut inputs = vec![vec![0.0]; grid.count() as usize];
            inputs[0].clone_from(&given);
            let mut wafer = Wafer::load(&files, &inputs);
            let mut times = Vec::new();
            for skew in [0, 777] {
                for (n, pe) in wafer.pes.iter_mut().enumerate() {
                    pe.set_clock(1000 + skew * n as u64 % 400);
                }
                wafer.launch("ping_pong");
                let at = |name: &str| wafer.pes[0].samples[name];
                times.push((at("ended") - at("started")) as f64 / 20.0);
                for (n, pe) in wafer.pes.iter().enumerate() {
                    assert_eq!(pe.result()[..elements as usize], given, "{machine}, {grid}, PE {n}");
                }
            }
            assert_eq!(times[0], times[1], "{machine}, {grid}: the clocks of other PEs have no part");
            let wanted = (elements + grid.count()) as f64;
            assert!((times[0] - wanted).abs() <= 4.0, "{machine}, {grid}: {} rounds for {wanted}", times[0]);
            wafer.launch("compute");
        }
    }
}

/// Broadcasts on grids, from other PEs or without elements are measured like reduces, if the cycles of a hop are known.
#[test]
fn other_broadcasts_are_measured_by_calibrated_starts() {
    for (rows, cols, root, elements) in [(3, 4, 0, 8), (1, 6, 2, 8), (1, 6, 0, 0)] {
        let grid = Grid::new(rows, cols);
        let program = |on| lowered_from(on, "flood", Kind::Broadcast, grid, elements, root).unwrap();
        let files = emit_measured(&program(("wse2", &TARGET)), &TARGET).unwrap();
        assert!(!is_ping_pong(&files));
        let target = SdkTarget::WSE3_SDK_2;
        let refused = emit_measured(&program(("wse3", &target)), &target).unwrap_err().to_string();
        assert!(refused.contains("the cycles of a hop, which are not published for the WSE-3"), "{refused}");
    }
}

#[test]
fn a_ping_pong_takes_colors_and_queues_of_its_own() {
    let flood = lowered("flood", Kind::Broadcast, Grid::new(1, 5), 8).unwrap();
    let refusal = |target| emit_measured(&flood, &target).unwrap_err().to_string();
    let few = refusal(SdkTarget { colors: &[0, 1, 2], ..TARGET });
    assert!(few.contains("2 colors; a measurement takes 2 more of 3"), "{few}");
    let queues = refusal(SdkTarget { output_queues: &[2], ..TARGET });
    assert!(queues.contains("a measurement takes 1 and 1 more"), "{queues}");
}

/// With half a write per PE the starts differ, and the calibration must report it.
#[test]
fn too_few_writes_are_seen() {
    let grid = Grid::new(1, 24);
    let measured = emit_measured(&lowered("chain", Kind::Reduce, grid, 4).unwrap(), &TARGET).unwrap();
    let mut wafer = Wafer::load(&measured, &vec![vec![1.0; 4]; 24]);
    let times = launch(&mut wafer, grid, "calibrate", 0.5);
    let spread = times.iter().map(|t| t.0).max().unwrap() - times.iter().map(|t| t.0).min().unwrap();
    assert!((8..=14).contains(&spread), "{spread}");
}

#[test]
fn what_leaves_no_color_is_refused() {
    let refusal = |p, target| emit_measured(&p, target).unwrap_err().to_string();
    let alone = program(Kind::Reduce, Grid::new(1, 1), 4, vec![PeProgram::default()]);
    assert!(refusal(alone, &TARGET).contains("a single PE; a measurement takes 2 or more"));
    let few = SdkTarget { colors: &[0, 1, 2, 3], ..TARGET };
    let chain = lowered("chain", Kind::Reduce, Grid::new(1, 7), 4).unwrap();
    assert!(refusal(chain.clone(), &few).contains("a measurement takes 3 more of 4"));
    let queues = SdkTarget { input_queues: &[2, 3], ..TARGET };
    assert!(refusal(chain, &queues).contains("a measurement takes 2 and 1 more"));
}
