//! Tests of `ranks::torus_trees`.

use unisono_algorithms::ranks::torus_trees::torus_trees;

/// Returns the number of messages from the root to the farthest rank; checks that each tree reaches all ranks, and that
/// no two trees use the same arc.
fn depth(rows: u32, columns: u32) -> u32 {
    let trees = torus_trees(rows, columns).unwrap();
    let name = format!("{rows}x{columns}");
    let mut deepest = 0;
    for rank in 1..rows * columns {
        let mut from: Vec<u32> = trees.iter().map(|tree| tree[rank as usize]).collect();
        from.sort_unstable();
        let (row, column) = (rank / columns, rank % columns);
        let beside = |row: u32, column: u32| row % rows * columns + column % columns;
        let mut neighbors = vec![
            beside(row + 1, column),
            beside(row + rows - 1, column),
            beside(row, column + 1),
            beside(row, column + columns - 1),
        ];
        neighbors.sort_unstable();
        assert_eq!(from, neighbors, "{name}: rank {rank} is entered once from each neighbor");
        for tree in &trees {
            let way = std::iter::successors(Some(rank), |&at| (at > 0).then(|| tree[at as usize]));
            let messages = way.take(trees[0].len() + 1).count() as u32 - 1;
            assert!(messages < rows * columns, "{name}: rank {rank} is not reached");
            deepest = deepest.max(messages);
        }
    }
    deepest
}

#[test]
fn arc_disjoint_and_shallow_on_every_torus() {
    for rows in 3..=24 {
        for columns in 3..=24 {
            let depth = depth(rows, columns);
            let way = |one: u32, other: u32| (3 * one / 4 + other / 2).max(one);
            let most = way(rows, columns).max(way(columns, rows)) + 2;
            assert!(depth <= most, "{rows}x{columns}: {depth}");
        }
    }
    assert_eq!(depth(32, 32), 40);
    for (rows, columns) in [(3, 40), (40, 3), (21, 37), (40, 39), (24, 64)] {
        depth(rows, columns);
    }
}

#[test]
fn sides_below_three_have_none() {
    assert_eq!(torus_trees(2, 8), None);
    assert_eq!(torus_trees(8, 1), None);
}
