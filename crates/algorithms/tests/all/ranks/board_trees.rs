//! Tests of `ranks::board_trees`.

use std::collections::BTreeSet;

use unisono_algorithms::ranks::board_trees::board_trees;

/// Returns the axis of the connection between two ranks, and whether it is a link of a board.
fn way(from: u32, to: u32, columns: u32) -> (bool, bool) {
    let [[row, column], [other_row, other_column]] = [from, to].map(|rank| [rank / columns, rank % columns]);
    let along = row == other_row;
    assert!(along || column == other_column, "{from} and {to} are in no line of {columns} columns");
    (along, if along { column / 2 == other_column / 2 } else { row / 2 == other_row / 2 })
}

/// Each tree reaches all ranks in few messages; no two trees enter or leave a rank by the same link or port.
#[test]
fn arc_disjoint_and_shallow_on_every_mesh_of_boards() {
    for rows in (6..=40).step_by(2) {
        for columns in (6..=40).step_by(2) {
            let name = format!("{rows}x{columns}");
            let trees = board_trees(rows, columns).unwrap();
            let (mut into, mut out) = (BTreeSet::new(), BTreeSet::new());
            let most = 1 + 2 * [rows, columns].map(|side| (side / 2).next_power_of_two().ilog2()).iter().sum::<u32>();
            for tree in &trees {
                for rank in 1..rows * columns {
                    let parent = tree[rank as usize];
                    let way = way(parent, rank, columns);
                    assert!(into.insert((rank, way)) && out.insert((parent, way)), "{name}: {parent} to {rank}");
                    let up = std::iter::successors(Some(rank), |&at| (at > 0).then(|| tree[at as usize]));
                    let messages = up.take(tree.len() + 1).count() as u32 - 1;
                    assert!(messages <= most, "{name}: {messages} messages to {rank}, {most} expected");
                }
            }
        }
    }
}

#[test]
fn odd_and_short_sides_have_none() {
    for (rows, columns) in [(4, 8), (8, 4), (7, 8), (8, 9), (0, 8)] {
        assert_eq!(board_trees(rows, columns), None);
    }
}
