//! Emitted projects, run by an interpreter of CSL, have the results of plain arithmetic, for every algorithm, and send
//! no control wavelets.

use crate::common::{TARGET, check_outputs, emit};

use unisono_algorithms::{ALGORITHMS, Algorithm, Case, Params};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_csl::Files;
use unisono_lower::wafer::lower;
use unisono_machine::{Grid, Machine, Wafer};
use unisono_schedule::verify::{Method, Verified};

/// Returns the project of an algorithm for a case, if the algorithm supports the case.
fn project(algorithm: &dyn Algorithm, c: Collective, grid: Grid, params: &Params) -> Option<Files> {
    let wafer = Machine::preset("wse2").unwrap().get::<Wafer>().unwrap().clone();
    let case = Case::on_grid(c, grid, 5.0);
    algorithm.supports(&case, params).ok()?;
    let placed = algorithm.build(&case, params).unwrap();
    let adapted = TARGET.needs.adapt(placed.grid().unwrap()).unwrap();
    let proven = Verified::of(&placed.schedule, Method::Auto).unwrap();
    Some(emit(&lower(&proven, &adapted, &wafer).unwrap()))
}

/// Blocks have few elements, because every rank has as many blocks as there are ranks.
#[test]
fn blocks_and_scans_by_every_operator_arrive_where_they_belong() {
    let mut ran = 0;
    for name in ["two-way", "x-y-scan"] {
        let algorithm = unisono_algorithms::find(name).unwrap();
        for &kind in algorithm.info().collectives {
            for (operator, dtype) in [(Operator::Sum, Dtype::F32), (Operator::Max, Dtype::I32)] {
                for (rows, cols) in [(1, 1), (1, 2), (1, 9), (7, 1), (2, 2), (3, 5)] {
                    for elements in [0, 1, 7, 20] {
                        let grid = Grid::new(rows, cols);
                        let c = Collective::new(kind, grid.count() as u32, elements, 0, operator, dtype).unwrap();
                        let files = project(algorithm, c, grid, &Params::new()).unwrap();
                        check_outputs(&files, &c, 0);
                        ran += 1;
                    }
                }
            }
        }
    }
    assert!(ran > 150, "{ran} projects");
}

fn collective(kind: Kind, grid: Grid, elements: u64, root: u32) -> Collective {
    Collective::new(kind, grid.count() as u32, elements, root.into(), Operator::Sum, Dtype::F32).unwrap()
}

#[test]
fn every_algorithm_makes_right_sums_without_control_wavelets() {
    let (mut ran, mut number) = (0, 0);
    for &algorithm in ALGORITHMS {
        for &kind in algorithm.info().collectives.iter().filter(|k| **k != Kind::Message) {
            for (rows, cols) in [(1, 2), (1, 7), (1, 24), (6, 1), (4, 4), (7, 5), (2, 9)] {
                let grid = Grid::new(rows, cols);
                for (root, elements) in [(0, 24), (grid.count() as u32 / 2, 37), (grid.count() as u32 - 1, 1)] {
                    let c = collective(kind, grid, elements, root);
                    number += 1;
                    if !crate::soak::runs(number) {
                        continue;
                    }
                    let Some(files) = project(algorithm, c, grid, &Params::new()) else { continue };
                    assert!(files.iter().all(|f| !f.1.contains(".control")), "{}", algorithm.name());
                    check_outputs(&files, &c, 0);
                    ran += 1;
                }
            }
        }
    }
    assert!(ran > crate::soak::cases(140), "{ran} projects");
}

/// Lengths with a shorter last chunk, of one chunk, below one chunk, and of one element.
#[test]
fn chunks_of_any_length_make_right_sums() {
    let kd = unisono_algorithms::find("kd-tree").unwrap();
    let grid = Grid::new(5, 6);
    for trees in ["2", "4"] {
        for chunk in ["2", "3", "8", "40"] {
            for elements in [1, 2, 5, 16, 61] {
                let c = collective(Kind::Reduce, grid, elements, 0);
                let params = Params::new().with("trees", trees).with("chunk", chunk);
                check_outputs(&project(kd, c, grid, &params).unwrap(), &c, 0);
            }
        }
    }
}

/// Operators that are not vector operations, on lines and grids, with switches, threads and several children.
#[test]
fn operators_without_a_vector_operation_make_right_results() {
    use Operator::{And, Max, Min, Or, Prod, Sum, Xor};
    let on_integers = [Sum, Prod, Min, Max, And, Or, Xor].map(|operator| (operator, Dtype::I32));
    let (mut ran, mut number) = (0, 0);
    for (at, (operator, dtype)) in on_integers.into_iter().chain([(Min, Dtype::F32)]).enumerate() {
        for &algorithm in ALGORITHMS {
            for kind in [Kind::Reduce, Kind::Allreduce] {
                if !algorithm.info().collectives.contains(&kind) {
                    continue;
                }
                // Each operator gets every second shape.
                let shapes = [(1, 2), (1, 7), (1, 24), (6, 1), (4, 4), (7, 5)];
                for &(rows, cols) in shapes.iter().skip(at % 2).step_by(2) {
                    let grid = Grid::new(rows, cols);
                    for (root, elements) in [(0, 24), (grid.count() / 2, 37), (grid.count() - 1, 1)] {
                        number += 1;
                        if !crate::soak::runs(number) {
                            continue;
                        }
                        let ranks = grid.count() as u32;
                        let c = Collective::new(kind, ranks, elements, root, operator, dtype).unwrap();
                        let Some(files) = project(algorithm, c, grid, &Params::new()) else { continue };
                        assert!(files.iter().any(|f| f.0 == "operator.csl"));
                        assert!(files.iter().all(|f| !f.1.contains("@fadds") && !f.1.contains("@fmaxs")));
                        check_outputs(&files, &c, 0);
                        ran += 1;
                    }
                }
            }
        }
    }
    assert!(ran > crate::soak::cases(280), "{ran} projects");
}

/// Returns choices of the planner on grids up to 32x32, with the planner's vector lengths in a long run, otherwise with
/// shorter vectors. Larger grids are an ignored test, which takes a minute (`-- --ignored`).
fn choices() -> Vec<Choice<'static>> {
    let all: [Choice; 6] = [
        ("kd-tree", 16, 256, &[("trees", "2")]),
        ("kd-tree", 16, 256, &[("trees", "4")]),
        ("quad-chain", 16, 512, &[]),
        ("quad-two-phase", 16, 256, &[]),
        ("slack-tree", 16, 16, &[("trees", "3"), ("children", "3")]),
        ("kd-tree", 32, 64, &[("trees", "2")]),
    ];
    let most = |side| if crate::soak::is_on() { u64::MAX } else { 1024 / u64::from(side) };
    all.map(|(name, side, elements, given)| (name, side, elements.min(most(side)), given)).to_vec()
}

#[test]
fn the_planners_choices_make_right_sums() {
    run_choices(Kind::Reduce, &choices());
}

#[test]
fn the_planners_choices_make_right_sums_everywhere() {
    run_choices(Kind::Allreduce, &choices());
}

#[test]
#[ignore = "a minute: the interpreter runs up to 4,096 PEs word by word; the_planners_choices_make_right_sums checks smaller grids"]
fn choices_on_large_grids_make_right_sums() {
    for kind in [Kind::Reduce, Kind::Allreduce] {
        run_choices(
            kind,
            &[
                ("kd-tree", 16, 4096, &[("trees", "2")]),
                ("quad-chain", 16, 4096, &[]),
                ("kd-tree", 64, 256, &[("trees", "2")]),
                ("kd-tree", 64, 16, &[("trees", "4")]),
            ],
        );
    }
}

/// Algorithm, side of the grid, elements, parameters.
type Choice<'a> = (&'a str, u32, u64, &'a [(&'a str, &'a str)]);

fn run_choices(kind: Kind, cases: &[Choice]) {
    for &(name, side, elements, given) in cases {
        let params = given.iter().fold(Params::new(), |p, (k, v)| p.with(k, v));
        let grid = Grid::new(side, side);
        let c = collective(kind, grid, elements, 0);
        let (algorithm, params) = if kind == Kind::Reduce {
            (unisono_algorithms::find(name).unwrap(), params)
        } else {
            (unisono_algorithms::find("reduce-broadcast").unwrap(), params.with("reduce", name))
        };
        check_outputs(&project(algorithm, c, grid, &params).unwrap(), &c, 0);
    }
}
