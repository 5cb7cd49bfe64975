//! What the tests over all algorithms share: cases, data and plain arithmetic.
#![allow(dead_code, reason = "each test file uses its part")]

use unisono_algorithms::{ALGORITHMS, Algorithm, Case, Params, PlaceKind};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_machine::Grid;
use unisono_schedule::interpret::Element;

pub const DEPTH_CYCLES: f64 = 5.0;

pub fn case(kind: Kind, grid: Grid, elements: u64, root: u32, operator: Operator) -> Case {
    let ranks = grid.count() as u32;
    let collective = Collective::new(kind, ranks, elements, u64::from(root), operator, Dtype::I64).unwrap();
    Case::on_grid(collective, grid, DEPTH_CYCLES)
}

/// Lines of 1 to 17 PEs lying and standing, and grids.
pub fn grids() -> Vec<Grid> {
    let lines = (1..=17).map(|n| Grid::new(1, n)).chain([2, 5, 16].map(|n| Grid::new(n, 1)));
    lines.chain([(2, 2), (3, 4), (4, 4), (7, 5), (2, 9)].map(|(r, c)| Grid::new(r, c))).collect()
}

pub fn roots(kind: Kind, pes: u32) -> Vec<u32> {
    let mut roots = if kind.has_root() { vec![0, pes / 2, pes - 1] } else { vec![0] };
    roots.dedup();
    roots
}

/// Calls `f` on every algorithm with every supported case of its collectives, all candidate parameters included.
pub fn every_case(elements: &[u64], operator: Operator, mut f: impl FnMut(&'static dyn Algorithm, &Case, &Params)) {
    for &algorithm in ALGORITHMS.iter().filter(|a| a.runs_on().contains(&PlaceKind::Wafer)) {
        for &kind in algorithm.collectives() {
            for grid in grids() {
                for root in roots(kind, grid.count() as u32) {
                    for &n in elements {
                        let case = case(kind, grid, n, root, operator);
                        let mut settings = algorithm.candidates(&case);
                        settings.push(Params::new());
                        if algorithm.name() == "two-phase" {
                            settings.extend((1..=grid.count().min(6)).map(|g| Params::new().with("group", g)));
                        }
                        for params in settings {
                            if algorithm.supports(&case, &params).is_ok() {
                                f(algorithm, &case, &params);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Inputs that tell every rank and element apart; as affine maps they do not commute.
pub fn inputs(c: &Collective) -> Vec<Vec<i64>> {
    let value =
        |rank: u32, k: u32| (i64::from(rank * 7919 + k * 104_729 + 3) % 1_000_003) << 32 | i64::from(rank * 31 + k + 1);
    (0..c.ranks).map(|r| (0..c.input_len(r)).map(|k| value(r, k)).collect()).collect()
}

/// The outputs by plain arithmetic, straight from the meaning of the collective.
pub fn expected(c: &Collective, inputs: &[Vec<i64>]) -> Vec<Vec<i64>> {
    let n = c.elements as usize;
    let reduce = |k: usize| inputs[1..].iter().fold(inputs[0][k], |sum, x| i64::combine(c.operator, sum, x[k]));
    (0..c.ranks)
        .map(|rank| match c.kind {
            Kind::Broadcast if rank != c.root => inputs[c.root as usize].clone(),
            Kind::Message if rank == c.root => inputs[c.sender() as usize].clone(),
            Kind::Reduce if rank == c.root => (0..n).map(reduce).collect(),
            Kind::Allreduce => (0..n).map(reduce).collect(),
            Kind::Broadcast | Kind::Message | Kind::Reduce => Vec::new(),
            other => panic!("no algorithm makes {other} yet; say here what it means"),
        })
        .collect()
}

/// A name for messages of failed assertions.
pub fn label(algorithm: &dyn Algorithm, case: &Case, params: &Params) -> String {
    let c = case.collective;
    format!("{} {params} {} on {} root {} of {} elements", algorithm.name(), c.kind, case.grid(), c.root, c.elements)
}
