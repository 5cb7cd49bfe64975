//! Helpers of the tests of the CSL emitter.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

mod grids;
mod lines;

use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_csl::{self as csl, Files, SdkTarget};
use unisono_lower::wafer::{Color, ColorRoute, End, Op, PeProgram, Port, Position, Step, WaferProgram};
use unisono_machine::Grid;

use crate::interpreter;

pub use grids::*;
pub use lines::*;

pub const TARGET: SdkTarget = SdkTarget::WSE2_SDK_1_0;

pub fn at(rx: Port, tx: &[Port]) -> Position {
    Position { rx: [rx].into_iter().collect(), tx: tx.iter().copied().collect() }
}

pub fn route(color: Color, positions: &[Position]) -> ColorRoute {
    ColorRoute::new(color, positions)
}

pub fn step(len: u32, sources: &[End], sink: End) -> Step {
    (Op::plain(len), sources.to_vec(), vec![sink])
}

pub fn collective(kind: Kind, grid: Grid, elements: u32) -> Collective {
    let ranks = grid.count() as u32;
    Collective::new(kind, ranks, elements.into(), 0, Operator::Sum, Dtype::F32).unwrap()
}

pub fn program(kind: Kind, grid: Grid, elements: u32, pes: Vec<PeProgram>) -> WaferProgram {
    let phases = vec!["reduce".to_owned(), "broadcast".to_owned()];
    WaferProgram::assemble(grid, collective(kind, grid, elements), phases, pes)
}

pub fn emit(program: &WaferProgram) -> Files {
    csl::emit(program, &TARGET).unwrap_or_else(|e| panic!("{e}"))
}

pub fn refusal(program: &WaferProgram) -> String {
    match csl::emit(program, &TARGET) {
        Ok(_) => panic!("was not refused"),
        Err(e) => e.to_string(),
    }
}

/// Returns small whole numbers, whose sums are exact; for products, ones and twos.
pub fn value(c: &Collective, rank: usize, element: u32) -> f32 {
    let value = ((7 * rank + 3 * element as usize) % 11) as f32;
    if c.operator == Operator::Prod { 1.0 + f32::from(value > 9.0) } else { value }
}

pub fn inputs(c: &Collective) -> Vec<Vec<f32>> {
    (0..c.ranks).map(|r| (0..c.input_len(r)).map(|e| value(c, r as usize, e)).collect()).collect()
}

pub fn combine(operator: Operator) -> fn(f32, f32) -> f32 {
    match operator {
        Operator::Sum => |a, b| a + b,
        Operator::Prod => |a, b| a * b,
        Operator::Min => f32::min,
        Operator::Max => f32::max,
        Operator::And => |a, b| (a as i32 & b as i32) as f32,
        Operator::Or => |a, b| (a as i32 | b as i32) as f32,
        Operator::Xor => |a, b| (a as i32 ^ b as i32) as f32,
        other => panic!("{other} in CSL"),
    }
}

/// Runs a project and asserts that its outputs are those of plain arithmetic.
pub fn check_outputs(files: &Files, c: &Collective, seed: u64) {
    let (ranks, combine) = (c.ranks as usize, combine(c.operator));
    let value = |rank, e| value(c, rank, e);
    for (rank, output) in interpreter::run_held_up(files, &inputs(c), seed).iter().enumerate() {
        for e in 0..c.output_len(rank as u32) {
            let reduced = |ranks, e| (0..ranks).map(|r| value(r, e)).reduce(combine).unwrap();
            // The index of the block, and the index of the element in the block. `own` is the index of the first
            // element of this rank's block.
            let (from, at) = ((e / c.elements) as usize, e % c.elements);
            let own = rank as u32 * c.elements;
            let wanted = match c.kind {
                Kind::Reduce | Kind::Allreduce => reduced(ranks, e),
                Kind::Scan => reduced(rank + 1, e),
                Kind::ReduceScatter => reduced(ranks, own + e),
                Kind::Allgather => value(from, at),
                Kind::Alltoall => value(from, own + at),
                Kind::Message => value(0, e),
                _ => value(c.root as usize, e),
            };
            assert_eq!(output[e as usize], wanted, "element {e} at PE {rank} of {} on {ranks} PEs", c.kind);
        }
    }
}

/// Emits a program and asserts that its project has right results even if PEs and routers are delayed at random.
pub fn right(program: &WaferProgram) -> Files {
    let files = emit(program);
    for seed in [0, 1 + program.pe_count() as u64] {
        check_outputs(&files, &program.collective, seed);
    }
    files
}

/// Emits a program and asserts that its project obeys the rules of the language and leaves no wavelets, in two orders.
pub fn sound(program: &WaferProgram) -> Files {
    let files = emit(program);
    for seed in [0, 1 + program.pe_count() as u64] {
        interpreter::run_held_up(&files, &inputs(&program.collective), seed);
    }
    files
}

pub fn text<'a>(files: &'a Files, name: &str) -> &'a str {
    &files.iter().find(|f| f.0 == name).unwrap_or_else(|| panic!("no {name}")).1
}

pub fn with<'a>(files: &'a Files, text: &str) -> &'a str {
    &files.iter().find(|f| f.1.contains(text)).unwrap().0
}
