//! What the tests of the CSL emitter share.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

mod grids;
mod lines;

use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_emit::csl::{self, Files, Finding, Project, SdkTarget};
use unisono_lower::wafer::{Color, ColorRoute, End, Op, PeProgram, Port, Position, Step, WaferProgram};
use unisono_machine::Grid;

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

pub fn findings(files: &Files) -> Vec<Finding> {
    let project = Project::parse(files).unwrap_or_else(|e| panic!("{e}"));
    csl::check(&project, &TARGET)
}

/// Reads back what was emitted, and finds nothing wrong with it.
pub fn round_trip(program: &WaferProgram) -> Files {
    let files = emit(program);
    let again = csl::read(&files).unwrap_or_else(|e| panic!("{e}"));
    assert!(again == csl::normalised(program), "read back is another program");
    let found = findings(&files);
    assert!(found.is_empty(), "{}", found.iter().map(|f| format!("{f}\n")).collect::<String>());
    files
}

pub fn text<'a>(files: &'a Files, name: &str) -> &'a str {
    &files.iter().find(|f| f.0 == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// Replaces a text in a file, which must be there, and returns the codes of what is found.
pub fn codes(files: &Files, name: &str, from: &str, to: &str) -> Vec<&'static str> {
    let mut files = files.clone();
    let file = files.iter_mut().find(|f| f.0 == name).unwrap();
    assert!(file.1.contains(from), "{name} has no `{from}`");
    file.1 = file.1.replacen(from, to, 1);
    let project = Project::parse(&files).unwrap_or_else(|e| panic!("{e}"));
    csl::check(&project, &TARGET).iter().map(|f| f.code).collect()
}

/// The name of the first file with a text.
pub fn with<'a>(files: &'a Files, text: &str) -> &'a str {
    &files.iter().find(|f| f.1.contains(text)).unwrap().0
}

#[track_caller]
pub fn finds(files: &Files, name: &str, from: &str, to: &str, code: &str) {
    let found = codes(files, name, from, to);
    assert!(found.contains(&code), "`{from}` -> `{to}`: {found:?} without `{code}`");
}
