//! Tests of `catalog::slack_tree`.

use unisono_algorithms::{
    Case, Params,
    forest::Tree,
    internals::slack_tree::{rate, trees, weight},
};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_machine::Grid;

fn grown(grid: Grid, root: u32, number: u32, children: u32, chains: u32) -> Vec<Tree> {
    let c = Collective::new(Kind::Reduce, grid.count() as u32, 9, u64::from(root), Operator::Sum, Dtype::F32).unwrap();
    let params = Params::new().with("trees", number).with("children", children).with("chains", chains);
    trees(&Case::on_grid(c, grid, 5.0), &params).unwrap()
}

/// Returns the cycles until the root has the first element, at 5 cycles a message.
fn first(grid: Grid, tree: &Tree) -> u32 {
    tree.latency(&tree.children_by_arrival(grid, 5), 5, |pe| grid.distance(pe, tree.0[pe as usize]), 1).0
}

#[test]
fn the_rate_is_the_golden_one_where_it_is_known() {
    // With children of cost 1 and 2, e^r is the golden ratio.
    assert!((rate(2, 1.0).exp() - f64::midpoint(1.0, 5f64.sqrt())).abs() < 1e-9);
}

#[test]
fn weights_are_sums() {
    for (start, end) in [(0, 9), (2, 3), (4, 9)] {
        for at in 0..9u32 {
            let sum: f64 = (start..end).map(|x: u32| (0.3 * f64::from(x.abs_diff(at))).exp()).sum();
            assert!((weight(0.3, (start, end), at) - sum).abs() < 1e-9, "{start}..{end} from {at}");
        }
    }
}

/// Every PE does at most C = (K + T - 1) B / T operations, for any shape and root.
#[test]
fn no_pe_does_more_than_it_should() {
    for grid in [Grid::new(2, 2), Grid::new(7, 5), Grid::new(3, 40), Grid::new(24, 24)] {
        for root in [0, grid.count() as u32 / 2, grid.count() as u32 - 1] {
            for (number, children, chains) in
                [(1, 2, 0), (1, 4, 0), (2, 2, 0), (2, 5, 0), (3, 3, 0), (4, 2, 0), (4, 2, 80), (2, 2, 9)]
            {
                let mut work = vec![0; grid.count() as usize];
                for tree in grown(grid, root, number, children, chains) {
                    let own = tree.children();
                    work.iter_mut().zip(&own).for_each(|(w, c)| *w += c.len().max(1));
                    assert!(own.iter().all(|c| c.len() <= children as usize));
                }
                let most = (children + number - 1) as usize;
                assert!(work.iter().all(|&w| w <= most), "{grid} from {root}: {number} trees of {children}");
            }
        }
    }
}

/// The time of the slowest path, minus the hops of the farthest PE, hardly grows with the grid.
#[test]
fn depth_costs_a_constant() {
    for side in [32, 64, 128, 256] {
        let grid = Grid::new(side, side);
        for tree in grown(grid, 0, 2, 2, 0) {
            let ready = first(grid, &tree);
            assert!(ready < 2 * side + 70, "{ready} cycles on {grid}");
        }
    }
}

/// With chains, most PEs have one child, and the chains do not take longer than allowed.
#[test]
fn chains_leave_few_leaves() {
    for side in [48, 96] {
        let grid = Grid::new(side, side);
        let leaves = |chains: u32| -> f64 {
            let all = grown(grid, 0, 4, 2, chains);
            let count: usize = all.iter().flat_map(Tree::children).filter(Vec::is_empty).count();
            count as f64 / f64::from(4 * side * side)
        };
        assert!(leaves(80) < 0.8 * leaves(0), "{} and {} on {grid}", leaves(80), leaves(0));
        for tree in grown(grid, 0, 4, 2, 80) {
            let ready = first(grid, &tree);
            assert!(ready < 2 * side + 90, "{ready} cycles on {grid}");
        }
    }
}
