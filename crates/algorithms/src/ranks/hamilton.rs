//! Two edge-disjoint Hamiltonian cycles of a torus of rows x columns, both sides at least 3. Together the cycles have
//! all edges of the torus.
//!
//! If rows = k columns and gcd(rows, columns - 1) = 1, the cycles have the closed form of Bae, AlBdaiwi, Bose,
//! "Edge-disjoint Hamiltonian cycles in two-dimensional torus", 2004, as in the artifact of "HammingMesh"
//! (emberhxmesh.cc): step X = x1 columns + x0 with d = x0 + (columns - 1) x1 is at (x1 mod rows, d mod columns), and at
//! (d mod rows, x1 mod columns).
//!
//! Otherwise one set of edges begins as all rows, the other set as all columns. The swap of a unit square moves its two
//! edges in rows to the set of columns, and its two edges in columns to the set of rows. A swap joins the two rows of
//! the square if they were in different cycles, and likewise its two columns. With rows <= columns (else transposed),
//! each gap between columns c and c + 1 has one square, in row s(c), so all columns are joined one by one. The squares
//! of gaps c and c + 1 share an edge only if they are in the same row, so swaps do not affect each other.
//!
//! * s(c) = c for c < rows - 1: these squares join all rows too, and suffice if rows = columns.
//! * For further gaps s(c) = 0, 1, 0, 1, ...: the square in row 0 cuts the cycle of the joined rows in two, one of
//!   which has rows 0 and 1 beyond the gap, and the square in row 1 joins the two cycles again.
//! * If columns - rows is odd, one further swap is needed that does not cut a cycle. If the number of rows is odd, this
//!   is the square of the last and the first row in gap rows - 1: the cycle crosses both rows in the same direction, so
//!   the swap only reverses a part of it. If the number of columns is odd, the square is in the gap from the last
//!   column to the first, by the same argument.
//!
//! The tests check the result for all sides of 3 to 32, and some long sides.

use unisono_base::narrow;

use super::Extents;

/// Returns both cycles as lists of ranks, row-major on the torus, or `None` if a side is below 3.
pub fn two_cycles(rows: u32, columns: u32) -> Option<[Vec<u32>; 2]> {
    if rows < 3 || columns < 3 {
        return None;
    }
    if rows.is_multiple_of(columns) && gcd(rows, columns - 1) == 1 {
        return Some(closed_form(rows, columns));
    }
    Some(if rows <= columns {
        swapped(rows, columns)
    } else {
        let turned = |cycle: Vec<u32>| cycle.into_iter().map(|v| v % rows * columns + v / rows).collect();
        swapped(columns, rows).map(turned)
    })
}

pub fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn closed_form(rows: u32, columns: u32) -> [Vec<u32>; 2] {
    let at = |row: u64, column: u64| {
        narrow::<u32>(row % u64::from(rows)) * columns + narrow::<u32>(column % u64::from(columns))
    };
    let steps = || (0..u64::from(rows) * u64::from(columns)).map(|x| (x / u64::from(columns), x % u64::from(columns)));
    let d = |x1: u64, x0: u64| x0 + u64::from(columns - 1) * x1;
    [steps().map(|(x1, x0)| at(x1, d(x1, x0))).collect(), steps().map(|(x1, x0)| at(d(x1, x0), x1)).collect()]
}

/// Returns the row of the square that is swapped in each gap, from the first gap on; requires `rows` <= `columns`.
fn squares(rows: u32, columns: u32) -> impl Iterator<Item = u32> {
    let odd = (columns - rows) % 2 == 1;
    let turn = (odd && rows % 2 == 1).then_some(rows - 1);
    let around = u32::from(odd && rows.is_multiple_of(2));
    let gaps = columns - 1 + around;
    (0..rows - 1).chain(turn).chain([0, 1].into_iter().cycle()).take(gaps as usize)
}

/// Returns both cycles by swaps of squares; requires `rows` <= `columns`.
pub fn swapped(rows: u32, columns: u32) -> [Vec<u32>; 2] {
    let torus = Extents::new(&[rows, columns]).expect("as many ranks as there are");
    let count = (rows * columns) as usize;
    // For each rank, true if the edge to the next rank belongs to the second cycle: in its row (first vector) and in
    // its column (second vector).
    let mut second = [vec![false; count], vec![true; count]];
    let next = |rank: u32, along: usize| torus.shifted(rank, [1, 0][along], 1);
    let before = |rank: u32, along: usize| {
        let dim = [1, 0][along];
        torus.shifted(rank, dim, torus.dims()[dim] - 1)
    };
    for (gap, row) in (0..).zip(squares(rows, columns)) {
        let corner = row * columns + gap;
        for (along, edges) in [(0, [corner, next(corner, 1)]), (1, [corner, next(corner, 0)])] {
            edges.iter().for_each(|&edge| second[along][edge as usize] ^= true);
        }
    }
    let cycle = |which: bool| {
        let neighbors = |at: u32| {
            let along = |dim: usize| {
                let back = before(at, dim);
                let of = |edge: u32, to: u32| (second[dim][edge as usize] == which).then_some(to);
                [of(at, next(at, dim)), of(back, back)]
            };
            [along(0), along(1)].into_iter().flatten().flatten()
        };
        let (mut from, mut at, mut cycle) = (u32::MAX, 0, Vec::with_capacity(count));
        for _ in 0..count {
            cycle.push(at);
            let to = neighbors(at).find(|&n| n != from).unwrap_or(at);
            (from, at) = (at, to);
        }
        cycle
    };
    [cycle(false), cycle(true)]
}
