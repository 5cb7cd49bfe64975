//! Modules for users' programs: a layout and a program import them, and run in the interpreter of CSL.

use crate::{
    common::TARGET,
    interpreter::{Pe, Wafer},
};

use unisono_algorithms::{ALGORITHMS, Case, Params};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_csl::{Files, emit_module};
use unisono_lower::wafer::lower;
use unisono_machine::{Grid, Machine};
use unisono_schedule::verify::{Method, Verified};

/// Returns the arguments that the readme proposes: colors and ids of tasks.
fn proposed(files: &Files) -> &str {
    let readme = &files.iter().find(|f| f.0 == "README.md").unwrap().1;
    let (_, from) = readme.split_once(".csl\", .{\n").unwrap();
    from.split_once("\n});").unwrap().0
}

/// Returns a user's program that doubles its input, calls the collective, and copies the result to an array.
fn own_program(c: &Collective, grid: Grid, module: Files) -> Files {
    let (name, n, t) = (format!("{}_{}", c.kind, c.elements), c.elements, c.dtype);
    let (given, Grid { rows, cols }) = (proposed(&module).to_owned(), grid);
    let layout = format!(
        "const memcpy = @import_module(\"<memcpy/get_params>\", .{{ .width = {cols}, .height = {rows} }});\n\
         const collective = @import_module(\"{name}_layout.csl\", .{{\n{given}\n}});\n\
         layout {{\n  @set_rectangle({cols}, {rows});\n\
         for (@range(u16, {rows})) |y| {{\n    for (@range(u16, {cols})) |x| {{\n\
         @set_tile_code(x, y, \"pe.csl\", .{{ .memcpy_params = memcpy.get_params(x), .part = collective.get_params(x, y) }});\n\
         }}\n  }}\n  @export_name(\"compute\", fn()void);\n}}\n"
    );
    let pe = format!(
        "param memcpy_params: comptime_struct;\nparam part: comptime_struct;\n\
         const sys_mod = @import_module(\"<memcpy/memcpy>\", memcpy_params);\n\
         var input = @zeros([{n}]{t});\nvar output = @zeros([{n}]{t});\n\
         const collective = @import_module(\"{name}_pe.csl\", @concat_structs(part, .{{ .done = finished }}));\n\
         const own = @get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{{n}}} -> input[i] }});\n\
         const result = @get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{{n}}} -> output[i] }});\n\
         const given = @get_dsd(mem1d_dsd, .{{ .base_address = collective.input_vector(), .extent = {n} }});\n\
         const found = @get_dsd(mem1d_dsd, .{{ .base_address = collective.output_vector(), .extent = {n} }});\n\
         fn finished() void {{\n  @fmovs(result, found);\n  sys_mod.unblock_cmd_stream();\n}}\n\
         fn compute() void {{\n  @fadds(given, own, own);\n  collective.compute();\n}}\n"
    );
    [("layout.csl".to_owned(), layout), ("pe.csl".to_owned(), pe)].into_iter().chain(module).collect()
}

fn module(name: &str, c: &Collective, grid: Grid) -> Option<Files> {
    let wafer = Machine::preset("wse2").unwrap().get().cloned().unwrap();
    let case = Case::on_grid(*c, grid, 5.0);
    let algorithm = unisono_algorithms::find(name).unwrap();
    algorithm.supports(&case, &Params::new()).ok()?;
    let placed = algorithm.build(&case, &Params::new()).unwrap();
    let adapted = TARGET.needs.adapt(placed.grid().unwrap()).unwrap();
    let proven = Verified::of(&placed.schedule, Method::Auto).unwrap();
    emit_module(&lower(&proven, &adapted, &wafer).unwrap(), &TARGET).ok()
}

#[test]
fn own_programs_import_every_algorithm_and_call_it_again() {
    let (mut ran, mut again) = (0, 0);
    for algorithm in ALGORITHMS.iter().map(|a| a.info()).filter(|a| a.collectives.contains(&Kind::Allreduce)) {
        for (operator, dtype) in [(Operator::Sum, Dtype::F32), (Operator::Max, Dtype::I32)] {
            for (rows, cols) in [(1, 7), (4, 4), (3, 6)] {
                let grid = Grid::new(rows, cols);
                let ranks = grid.count();
                let c = Collective::new(Kind::Allreduce, ranks as u32, 21, 0, operator, dtype).unwrap();
                let Some(files) = module(algorithm.name, &c, grid) else { continue };
                let once = files.iter().any(|f| f.1.contains("may be called once"));
                let input = |run: usize| -> Vec<Vec<f32>> {
                    (0..ranks as usize)
                        .map(|r| (0..21).map(|e| ((run + 7 * r + 3 * e) % 11) as f32).collect())
                        .collect()
                };
                let mut wafer = Wafer::load(&own_program(&c, grid, files), &input(0));
                for run in 0..if once { 1 } else { 3 } {
                    let inputs = input(run);
                    wafer.pes.iter_mut().zip(&inputs).for_each(|(pe, input)| pe.set_input(input));
                    wafer.launch("compute");
                    for (rank, found) in wafer.pes.iter().map(Pe::result).enumerate() {
                        for e in 0..21 {
                            let of = inputs.iter().map(|i| 2.0 * i[e]);
                            let wanted = if operator == Operator::Sum { of.sum() } else { of.fold(0.0, f32::max) };
                            assert_eq!(found[e], wanted, "{} on {grid}, PE {rank}, run {run}", algorithm.name);
                        }
                    }
                    again += run;
                }
                ran += 1;
            }
        }
    }
    assert!(ran > 12 && again > 24, "{ran} programs, {again} calls again");
}

/// A module takes all colors and ids of tasks from its importer, so two calls with different colors do not interfere.
#[test]
fn colors_and_tasks_are_the_importers() {
    let grid = Grid::new(4, 4);
    let c = Collective::new(Kind::Reduce, 16, 24, 0, Operator::Sum, Dtype::F32).unwrap();
    let files = module("kd-tree", &c, grid).unwrap();
    assert!(proposed(&files).contains("@get_local_task_id("));
    // The example is not checked, because it is an importer.
    let sources = files.iter().filter(|f| f.0 != "README.md" && !f.0.starts_with("example/"));
    assert!(sources.clone().all(|f| !f.1.contains("@get_color(") && !f.1.contains("@get_local_task_id(")));
    assert!(sources.clone().all(|f| !f.1.contains("memcpy") && f.0.starts_with("reduce_24_")));
}

/// The emitted example program calls its module and has right results. A module for a reduce has no example.
#[test]
fn the_example_runs() {
    for (rows, cols) in [(1, 5), (4, 4)] {
        let grid = Grid::new(rows, cols);
        let ranks = grid.count() as u32;
        let c = Collective::new(Kind::Allreduce, ranks, 12, 0, Operator::Sum, Dtype::F32).unwrap();
        let files = module("reduce-broadcast", &c, grid).unwrap();
        let example = files.iter().filter_map(|(name, text)| Some((name.strip_prefix("example/")?, text)));
        let example: Vec<_> = example.map(|(name, text)| (name.to_owned(), text.clone())).collect();
        let names: Vec<&str> = example.iter().map(|f| f.0.as_str()).collect();
        assert_eq!(names, ["layout.csl", "pe.csl", "run.py", "commands.sh"]);
        let all: Files = example.into_iter().chain(files).collect();
        let input: Vec<Vec<f32>> = (0..ranks).map(|r| (0..12).map(|e| (r + e) as f32).collect()).collect();
        let mut wafer = Wafer::load(&all, &input);
        wafer.launch("compute");
        for pe in &wafer.pes {
            for e in 0..12 {
                assert_eq!(pe.result()[e], input.iter().map(|of| of[e]).sum::<f32>());
            }
        }
    }
    // Only the root of a reduce has a result, so a reduce has no example.
    let c = Collective::new(Kind::Reduce, 16, 24, 0, Operator::Sum, Dtype::F32).unwrap();
    let files = module("kd-tree", &c, Grid::new(4, 4)).unwrap();
    assert!(files.iter().all(|f| !f.0.starts_with("example/")));
}
