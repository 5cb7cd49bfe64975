//! Floods, reduces and allreduces on grids, and a program of two threads.

use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::wafer::{Color, End, PeProgram, Port, Step, WaferProgram};
use unisono_machine::Grid;

use super::{COLUMN, ROW, at, program, route, step, tree};

/// Returns a flood: the root sends along its column, and each PE of this column along its row.
pub fn flood(rows: u32, cols: u32, elements: u32) -> WaferProgram {
    let grid = Grid::new(rows, cols);
    let pes = (0..rows * cols).map(|pe| flood_pe(grid, pe, 5, End::In(0), elements, 0));
    program(Kind::Broadcast, grid, elements, pes.collect())
}

/// Returns one PE of a flood down column 0 and along the rows.
pub fn flood_pe(grid: Grid, pe: u32, color: Color, root: End, elements: u32, phase: u16) -> PeProgram {
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
    PeProgram { routes: vec![route(color, &[at(rx, &tx)])], threads: vec![vec![one]], waits: Vec::new(), scratch: 0 }
}

/// Reduces rows along the tree `x`, then column 0 along `y`. For an allreduce, a flood of the result follows.
pub fn grid_reduce(x: &[usize], y: &[usize], elements: u32, allreduce: bool) -> WaferProgram {
    let (cols, rows) = (x.len() as u32 + 1, y.len() as u32 + 1);
    let grid = Grid::new(rows, cols);
    // The sum of a row is stored behind the scratch memory that the row's tree uses; the sum of row 0 is stored in the
    // output.
    let row = |r: u32| {
        let keep = if r == 0 { End::Out(0) } else { End::Tmp(elements) };
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
    let kind = if allreduce { Kind::Allreduce } else { Kind::Reduce };
    program(kind, grid, elements, pes)
}

/// Returns a reduce on a row of three PEs. One thread of the middle PE adds the vector from the west; another receives
/// the vector from the east in scratch memory; the first thread then waits for that vector and adds it.
pub fn two_sides(elements: u32) -> WaferProgram {
    let side = |rx: Port, color: Color| PeProgram {
        routes: vec![route(color, &[at(Port::Ramp, &[rx])])],
        threads: vec![vec![step(elements, &[End::In(0)], End::Fabric(color))]],
        waits: Vec::new(),
        scratch: 0,
    };
    let middle = PeProgram {
        routes: vec![route(0, &[at(Port::West, &[Port::Ramp])]), route(1, &[at(Port::East, &[Port::Ramp])])],
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
    let c = Collective::new(Kind::Reduce, 3, elements.into(), 1, Operator::Sum, Dtype::F32).unwrap();
    WaferProgram::assemble(grid, c, vec!["both sides".to_owned()], pes)
}
