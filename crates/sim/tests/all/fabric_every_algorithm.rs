//! Every algorithm of a wafer, with all candidate parameters and all of its collectives, runs on the fabric and gives
//! the right result, even for vectors much longer than the queues.

use crate::soak;
use unisono_algorithms::{ALGORITHMS, Case, Means, Params};
use unisono_collective::{Collective, Dtype, Operator};
use unisono_lower::wafer::prove_and_lower;
use unisono_machine::Wafer;
use unisono_machine::{Grid, Machine};
use unisono_sim::fabric::{Options, run};

/// Runs all cases on some grids; returns their number.
fn simulate(grids: &[(u32, u32)], elements: &[u64], all_roots: bool) -> u32 {
    let wafer = Machine::preset("wse2").unwrap().get::<Wafer>().unwrap().clone();
    let (mut cases, mut number) = (0, 0);
    let mut wrong = Vec::new();
    for &algorithm in ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Grid)) {
        for &kind in algorithm.info().collectives {
            for grid in grids.iter().map(|&(rows, cols)| Grid::new(rows, cols)) {
                let ranks = grid.count() as u32;
                let mut roots = if kind.has_root() && all_roots { vec![0, ranks / 2, ranks - 1] } else { vec![0] };
                roots.dedup();
                for (&root, &elements) in roots.iter().flat_map(|r| elements.iter().map(move |e| (r, e))) {
                    let c = Collective::new(kind, ranks, elements, root.into(), Operator::Sum, Dtype::F32).unwrap();
                    let case = Case::on_grid(c, grid, wafer.depth_cycles());
                    let mut settings = algorithm.candidates(&case);
                    settings.push(Params::new());
                    for params in settings.into_iter().filter(|p| algorithm.supports(&case, p).is_ok()) {
                        number += 1;
                        if !soak::runs(number) {
                            continue;
                        }
                        let name = format!("{} {params} {kind} on {grid} root {root} of {elements}", algorithm.name());
                        let program = prove_and_lower(&algorithm.build(&case, &params).unwrap(), &wafer);
                        match program.map(|program| run(&program, &Options::default())) {
                            Ok(Ok(run)) if run.result_correct => {}
                            Ok(Ok(run)) => wrong.push(format!("{name}: {:?}", run.mismatch)),
                            Ok(Err(e)) => wrong.push(format!("{name}: {e}")),
                            Err(e) => wrong.push(format!("{name}: {e}")),
                        }
                        cases += 1;
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {cases} cases: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
    cases
}

#[test]
fn results_are_right() {
    let small = [(1, 1), (1, 2), (1, 4), (1, 7), (1, 16), (5, 1), (4, 4), (6, 6), (7, 5)];
    let cases = simulate(&small, &[1, 7, 64, 300], true);
    assert!(cases > soak::cases(900), "{cases} cases");
}

/// Takes minutes in the long run: grids of up to 64 x 64 PEs, wavelet by wavelet.
#[test]
fn results_are_right_at_size() {
    if !soak::is_on() {
        simulate(&[(1, 64)], &[64], false);
        return;
    }
    simulate(&[(1, 16), (1, 64), (1, 512), (4, 4), (7, 5), (16, 16)], &[1, 7, 64, 1024], false);
    simulate(&[(64, 64)], &[1, 7, 64, 1024], false);
}
