//! Wafer programs written by hand, by the route tables of "Near-Optimal Wafer-Scale Reduce".
#![allow(dead_code)]

use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_emit::csl::{self, Files, Finding, Project, Target};
use unisono_lower::wafer::{
    Color, ColorRoute, End, Op, PeProgram, Port, Position, Step, WaferProgram,
};
use unisono_machine::Grid;

pub const TARGET: Target = Target::WSE2_SDK_1_0;

pub fn at(rx: Port, tx: &[Port]) -> Position {
    Position {
        rx: [rx].into_iter().collect(),
        tx: tx.iter().copied().collect(),
    }
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

/// The two directions of a line: away from the root, and toward it.
#[derive(Clone, Copy)]
pub struct Line {
    pub pos: Port,
    pub neg: Port,
}

pub const ROW: Line = Line {
    pos: Port::East,
    neg: Port::West,
};
pub const COLUMN: Line = Line {
    pos: Port::South,
    neg: Port::North,
};

/// A reduce on a line along a tree in pre-order, `parents[v - 1] < v` being the parent of PE `v`. `out_root` is where the
/// root keeps the sum; each other PE has scratch memory where it has more than one child. Returns routes and
/// operations a PE, with `own` as the PE's own contribution.
pub fn tree(
    parents: &[usize],
    line: Line,
    colors: [Color; 2],
    elements: u32,
    own: impl Fn(usize) -> End,
    out_root: End,
) -> Vec<PeProgram> {
    let n = parents.len() + 1;
    let children =
        |v: usize| -> Vec<usize> { (v + 1..n).filter(|&c| parents[c - 1] == v).collect() };
    let mut depth = vec![0; n];
    for v in 1..n {
        depth[v] = depth[parents[v - 1]] + 1;
    }
    // A PE sends on the color that its parent receives on.
    let incoming = |v: usize| colors[depth[v] % 2];
    let outgoing = |v: usize| colors[(depth[v] + 1) % 2];
    let mut pes = Vec::new();
    for v in 0..n {
        let kids = children(v);
        let mut pe = PeProgram::default();
        let keep = if v == 0 { out_root } else { End::Tmp(0) };
        let mut steps = Vec::new();
        let mut have = own(v);
        for (k, _) in kids.iter().enumerate() {
            let last = k + 1 == kids.len() && v > 0;
            let sink = if last { End::Fabric(outgoing(v)) } else { keep };
            steps.push(step(elements, &[have, End::Fabric(incoming(v))], sink));
            have = sink;
        }
        if kids.is_empty() && v > 0 {
            steps.push(step(elements, &[have], End::Fabric(outgoing(v))));
        }
        if v > 0 && kids.len() > 1 {
            pe.scratch = elements;
        }
        if v > 0 {
            // Only the last child to be served tells its parent that no more come.
            let parent = parents[v - 1];
            let is_last = children(parent).last() == Some(&v);
            let passes = parent > 0 && is_last;
            let op = &mut steps.last_mut().unwrap().0;
            if passes {
                op.control = Some(outgoing(v));
            } else {
                op.advance = Some(outgoing(v));
            }
        }
        // Where streams of PEs further away pass later, and on which color.
        let beyond = |color: Color| (v + 1..n).any(|s| outgoing(s) == color && parents[s - 1] < v);
        let Line { pos, neg } = line;
        if !kids.is_empty() {
            let first = at(pos, &[Port::Ramp]);
            let passing = at(pos, &[neg]);
            let both = [first, passing];
            let switched = v > 0;
            pe.routes.push(route(
                incoming(v),
                if switched { &both } else { &both[..1] },
            ));
        } else if beyond(incoming(v)) {
            pe.routes.push(route(incoming(v), &[at(pos, &[neg])]));
        }
        if v > 0 {
            let own = at(Port::Ramp, &[neg]);
            let passing = at(pos, &[neg]);
            pe.routes.push(route(outgoing(v), &[own, passing]));
        }
        pe.routes.sort_by_key(|r| r.color);
        if !steps.is_empty() {
            pe.threads = vec![steps];
        }
        pes.push(pe);
    }
    pes
}

pub fn tree_row(parents: &[usize], elements: u32) -> WaferProgram {
    let grid = Grid::new(1, parents.len() as u32 + 1);
    let pes = tree(parents, ROW, [0, 1], elements, |_| End::In(0), End::Out(0));
    program(Kind::Reduce, grid, elements, pes)
}

pub fn chain_parents(n: usize) -> Vec<usize> {
    (0..n - 1).collect()
}

/// Chain with static routes: each PE adds and passes on.
pub fn chain(n: u32, elements: u32) -> WaferProgram {
    let pes = (0..n).map(|v| {
        let (incoming, outgoing) = ((v % 2) as Color, ((v + 1) % 2) as Color);
        let mut pe = PeProgram::default();
        let mut sources = vec![End::In(0)];
        if v + 1 < n {
            pe.routes
                .push(route(incoming, &[at(Port::East, &[Port::Ramp])]));
            sources.push(End::Fabric(incoming));
        }
        if v > 0 {
            pe.routes
                .push(route(outgoing, &[at(Port::Ramp, &[Port::West])]));
        }
        pe.routes.sort_by_key(|r| r.color);
        let sink = if v > 0 {
            End::Fabric(outgoing)
        } else {
            End::Out(0)
        };
        pe.threads = vec![vec![step(elements, &sources, sink)]];
        pe
    });
    program(Kind::Reduce, Grid::new(1, n), elements, pes.collect())
}

/// Every PE sends straight to the root, the nearest first.
pub fn star(n: u32, elements: u32) -> WaferProgram {
    let mut pes = Vec::new();
    for v in 0..n {
        let mut pe = PeProgram::default();
        if v == 0 {
            pe.routes.push(route(3, &[at(Port::East, &[Port::Ramp])]));
            let add = |k| {
                let have = if k == 1 { End::In(0) } else { End::Out(0) };
                step(elements, &[have, End::Fabric(3)], End::Out(0))
            };
            pe.threads = vec![(1..n).map(add).collect()];
        } else {
            let own = at(Port::Ramp, &[Port::West]);
            let passing = at(Port::East, &[Port::West]);
            let positions = [own, passing];
            let used = if v + 1 < n { 2 } else { 1 };
            pe.routes.push(route(3, &positions[..used]));
            let mut send = step(elements, &[End::In(0)], End::Fabric(3));
            send.0.advance = (v + 1 < n).then_some(3);
            pe.threads = vec![vec![send]];
        }
        pes.push(pe);
    }
    program(Kind::Reduce, Grid::new(1, n), elements, pes)
}

/// The root floods its column and every row.
pub fn flood(rows: u32, cols: u32, elements: u32) -> WaferProgram {
    let grid = Grid::new(rows, cols);
    let pes = (0..rows * cols).map(|pe| flood_pe(grid, pe, 5, End::In(0), elements, 0));
    program(Kind::Broadcast, grid, elements, pes.collect())
}

/// One PE of a flood down column 0 and along the rows.
pub fn flood_pe(
    grid: Grid,
    pe: u32,
    color: Color,
    root: End,
    elements: u32,
    phase: u16,
) -> PeProgram {
    let (row, col) = grid.row_col(pe);
    let mut tx = Vec::new();
    if pe > 0 {
        tx.push(Port::Ramp);
    }
    if col + 1 < grid.cols {
        tx.push(Port::East);
    }
    if col == 0 && row + 1 < grid.rows {
        tx.push(Port::South);
    }
    let rx = match (row, col) {
        (0, 0) => Port::Ramp,
        (_, 0) => Port::North,
        _ => Port::West,
    };
    let mut one = if pe == 0 {
        step(elements, &[root], End::Fabric(color))
    } else {
        step(elements, &[End::Fabric(color)], End::Out(0))
    };
    one.0.phase = phase;
    PeProgram {
        routes: vec![route(color, &[at(rx, &tx)])],
        threads: vec![vec![one]],
        waits: Vec::new(),
        scratch: 0,
    }
}

/// Rows along `x`, then column 0 along `y`; with a flood of the result an allreduce.
pub fn grid_reduce(x: &[usize], y: &[usize], elements: u32, allreduce: bool) -> WaferProgram {
    let (cols, rows) = (x.len() as u32 + 1, y.len() as u32 + 1);
    let grid = Grid::new(rows, cols);
    // The sum of a row stands in scratch memory behind what the trees need, at the root in the output.
    let row = |r: u32| {
        let keep = if r == 0 {
            End::Out(0)
        } else {
            End::Tmp(elements)
        };
        tree(x, ROW, [0, 1], elements, |_| End::In(0), keep)
    };
    let column = tree(
        y,
        COLUMN,
        [2, 3],
        elements,
        |v| match (v, x.len()) {
            (_, 0) => End::In(0),
            (0, _) => End::Out(0),
            _ => End::Tmp(elements),
        },
        End::Out(0),
    );
    let mut pes: Vec<PeProgram> = (0..rows).flat_map(row).collect();
    for (r, second) in column.into_iter().enumerate() {
        let pe = &mut pes[r * cols as usize];
        pe.routes.extend(second.routes);
        let steps: Vec<Step> = second.threads.into_iter().flatten().collect();
        if pe.threads.is_empty() {
            pe.threads = vec![Vec::new()];
        }
        pe.threads[0].extend(steps.into_iter().map(|mut s| {
            s.0.phase = 1;
            s
        }));
        if r > 0 {
            pe.scratch = 2 * elements;
        }
    }
    if allreduce && grid.count() > 1 {
        for (number, pe) in pes.iter_mut().enumerate() {
            let last = flood_pe(grid, number as u32, 7, End::Out(0), elements, 2);
            pe.routes.extend(last.routes);
            if pe.threads.is_empty() {
                pe.threads = vec![Vec::new()];
            }
            pe.threads[0].extend(last.threads.into_iter().flatten());
        }
    }
    for pe in &mut pes {
        pe.threads.retain(|t| !t.is_empty());
    }
    let kind = if allreduce {
        Kind::Allreduce
    } else {
        Kind::Reduce
    };
    program(kind, grid, elements, pes)
}

/// A row of three: the middle PE is root of a chain from either side, each a thread, halves of the vector; then it adds
/// what a third thread received in scratch memory, waiting for both.
pub fn two_sides(elements: u32) -> WaferProgram {
    let side = |rx: Port, color: Color| PeProgram {
        routes: vec![route(color, &[at(Port::Ramp, &[rx])])],
        threads: vec![vec![step(elements, &[End::In(0)], End::Fabric(color))]],
        waits: Vec::new(),
        scratch: 0,
    };
    let middle = PeProgram {
        routes: vec![
            route(0, &[at(Port::West, &[Port::Ramp])]),
            route(1, &[at(Port::East, &[Port::Ramp])]),
        ],
        threads: vec![
            vec![
                step(elements, &[End::In(0), End::Fabric(0)], End::Out(0)),
                step(elements, &[End::Out(0), End::Tmp(0)], End::Out(0)),
            ],
            vec![step(elements, &[End::Fabric(1)], End::Tmp(0))],
        ],
        waits: vec![(1, 2)],
        scratch: elements,
    };
    let pes = vec![side(Port::East, 0), middle, side(Port::West, 1)];
    let grid = Grid::new(1, 3);
    let c = Collective::new(
        Kind::Reduce,
        3,
        elements.into(),
        1,
        Operator::Sum,
        Dtype::F32,
    )
    .unwrap();
    WaferProgram::assemble(grid, c, vec!["both sides".to_owned()], pes)
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
    assert!(
        again == csl::normalised(program),
        "read back is another program"
    );
    let found = findings(&files);
    assert!(
        found.is_empty(),
        "{}",
        found.iter().map(|f| format!("{f}\n")).collect::<String>()
    );
    files
}

pub fn text<'a>(files: &'a Files, name: &str) -> &'a str {
    &files
        .iter()
        .find(|f| f.0 == name)
        .unwrap_or_else(|| panic!("no {name}"))
        .1
}
