//! Projects for the WSE-3: results are those of plain arithmetic, in the interpreter of CSL by the rules of that
//! machine.

use crate::common::check_outputs;

use unisono_algorithms::{ALGORITHMS, Algorithm, Case, Params};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_csl::{self as csl, Files, SdkTarget};
use unisono_lower::wafer::{WaferProgram, lower};
use unisono_machine::{Grid, Machine};
use unisono_schedule::verify::{Method, Verified};

const TARGET: SdkTarget = SdkTarget::WSE3_SDK_2;

fn lowered(algorithm: &dyn Algorithm, c: Collective, grid: Grid) -> Option<WaferProgram> {
    let wafer = Machine::preset("wse3").unwrap().get().cloned().unwrap();
    let case = Case::on_grid(c, grid, 5.0);
    algorithm.supports(&case, &Params::new()).ok()?;
    let placed = algorithm.build(&case, &Params::new()).unwrap();
    let adapted = TARGET.needs.adapt(placed.grid().unwrap()).unwrap();
    Some(lower(&Verified::of(&placed.schedule, Method::Auto).unwrap(), &adapted, &wafer).unwrap())
}

fn project(program: &WaferProgram) -> Files {
    csl::emit(program, &TARGET).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_algorithm_makes_right_sums() {
    let mut ran = 0;
    for &algorithm in ALGORITHMS {
        for kind in [Kind::Reduce, Kind::Allreduce, Kind::Broadcast] {
            if !algorithm.info().collectives.contains(&kind) {
                continue;
            }
            for (rows, cols, elements, dtype) in
                [(1, 7, 19, Dtype::F32), (6, 1, 1, Dtype::I32), (4, 4, 24, Dtype::F32), (3, 6, 9, Dtype::I32)]
            {
                let grid = Grid::new(rows, cols);
                let root = grid.count() / 2;
                let c = Collective::new(kind, grid.count() as u32, elements, root, Operator::Sum, dtype).unwrap();
                let Some(program) = lowered(algorithm, c, grid) else { continue };
                check_outputs(&project(&program), &c, 0);
                ran += 1;
            }
        }
    }
    assert!(ran > 35, "{ran} ran");
}

fn tree_project() -> Files {
    let c = Collective::new(Kind::Reduce, 16, 64, 0, Operator::Sum, Dtype::F32).unwrap();
    project(&lowered(unisono_algorithms::find("kd-tree").unwrap(), c, Grid::new(4, 4)).unwrap())
}

/// A project for SDK 2 follows the language's guide.
#[test]
fn programs_are_written_for_sdk_2() {
    let files = tree_project();
    let has = |text: &str| files.iter().any(|f| f.1.contains(text));
    for text in [
        "cslc ./layout.csl --arch=wse3 ",
        "dims=762,1172",
        "const thread_0_ut = @get_ut_id(2);",
        ".activate = thread_0_id, .ut_id = thread_0_ut }",
        "@initialize_queue(oq_c0, .{ .color = c0 });",
        ".extent = 8, .input_queue = iq_c",
        "and the WSE-3. It was not compiled",
    ] {
        assert!(has(text), "no `{text}`");
    }
    for text in ["LAUNCH", "@rpc", "@block", "WSE-2", "CS-2", "SDK 1.0"] {
        assert!(!has(text), "`{text}`");
    }
    let layout = &files.iter().find(|f| f.0 == "layout.csl").unwrap().1;
    assert!(layout.contains("@get_color(8)"), "color 8 is free");
}

/// Colors with switches are assigned the numbers that allow switches.
#[test]
fn switches_have_colors_that_may_have_them() {
    let c = Collective::new(Kind::Reduce, 16, 24, 0, Operator::Sum, Dtype::F32).unwrap();
    let star = lowered(unisono_algorithms::find("star").unwrap(), c, Grid::new(1, 16)).unwrap();
    let only = |switched: &'static [u8]| csl::emit(&star, &SdkTarget { switched_colors: switched, ..TARGET });
    let files = only(&[17]).unwrap();
    assert!(files.iter().any(|f| f.0 == "layout.csl" && f.1.contains("@get_color(17)")));
    let refused = only(&[]).unwrap_err().reason;
    assert!(refused.contains("1 colors with switches; on the WSE-3 0 may have them"), "{refused}");
}

/// Modules bind the same queues as projects.
#[test]
fn modules_bind_their_queues() {
    let c = Collective::new(Kind::Allreduce, 16, 21, 0, Operator::Sum, Dtype::F32).unwrap();
    let program = lowered(unisono_algorithms::find("kd-tree").unwrap(), c, Grid::new(4, 4));
    let chain = lowered(unisono_algorithms::find("chain").unwrap(), c, Grid::new(1, 16));
    for program in [program, chain].into_iter().flatten() {
        let files = csl::emit_module(&program, &TARGET).unwrap();
        assert!(files.iter().any(|f| f.1.contains("@initialize_queue(oq_c0, .{ .color = c0 });")));
        assert!(files.iter().all(|f| !f.1.contains("@block") && !f.1.contains("SDK 1.0")));
    }
}
