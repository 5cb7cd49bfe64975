//! Tests of `network::allocate::place`.

use unisono_machine::{
    internals::place::shapes,
    network::{
        Boards,
        allocate::{Free, Heuristic, Job, Placed},
    },
};

const SMALL: Boards = Boards { count: [16, 16], board: [2, 2], leaf: [16, 16], adjacent: false };

fn of(boards: u32) -> Job {
    Job { boards, shape: None }
}

#[test]
fn shapes_in_their_order() {
    assert_eq!(shapes(of(12), &SMALL, Heuristic::Greedy), [[3, 4]]);
    assert_eq!(shapes(of(12), &SMALL, Heuristic::Transpose), [[3, 4], [4, 3]]);
    assert_eq!(shapes(of(12), &SMALL, Heuristic::Sort), [[3, 4], [4, 3], [2, 6], [6, 2]]);
    // 8 x 8 is half of each side. Larger jobs take more of a side, and primes are rounded up.
    assert_eq!(shapes(of(64), &SMALL, Heuristic::Greedy), [[8, 8]]);
    assert_eq!(shapes(of(11), &SMALL, Heuristic::Greedy), [[1, 11]]);
    assert_eq!(shapes(of(37), &SMALL, Heuristic::Greedy), [[5, 8]]);
    assert_eq!(shapes(of(256), &SMALL, Heuristic::Greedy), [[16, 16]]);
    assert_eq!(shapes(of(13), &SMALL, Heuristic::Greedy), [[1, 13]]);
    assert_eq!(shapes(of(251), &SMALL, Heuristic::Greedy), [[16, 16]]);
}

#[test]
fn rows_with_the_same_free_columns() {
    // "HammingMesh", Fig. 3: with failed boards, the chosen rows have the same remaining columns.
    let mut free = Free::new(Boards { count: [4, 4], board: [2, 2], leaf: [4, 4], adjacent: false });
    for (row, column) in [(0, 0), (1, 2), (2, 0)] {
        free.take(row, column);
    }
    assert_eq!(free.count(), 13);
    let job = Job { boards: 9, shape: Some([3, 3]) };
    // Row 1 would leave two columns in common with row 0.
    let placed = free.place(job, Heuristic::Greedy).unwrap();
    assert_eq!(placed, Placed { rows: vec![0, 2, 3], columns: vec![1, 2, 3] });
    free.give(&placed);
    assert_eq!(free.place(job, Heuristic::Locality), None);
}

#[test]
fn rectangles_go_around_the_ends() {
    let torus = Boards { adjacent: true, ..SMALL };
    let mut free = Free::new(Boards { count: [4, 4], ..torus });
    for (row, column) in [(1, 2), (2, 1)] {
        free.take(row, column);
    }
    let job = |rows, columns| Job { boards: rows * columns, shape: Some([rows, columns]) };
    // Rows 0 to 2 and 1 to 3 lack columns 1 and 2; rows 2, 3 and 0 lack column 1 only.
    let placed = free.place(job(3, 3), Heuristic::Sort).unwrap();
    assert_eq!(placed, Placed { rows: vec![2, 3, 0], columns: vec![2, 3, 0] });
    free.give(&placed);
    assert_eq!(free.place(job(2, 2), Heuristic::Sort), None);
    assert_eq!(free.place(job(1, 2), Heuristic::Sort), Some(Placed { rows: vec![1], columns: vec![0, 1] }));
    // A HammingMesh takes rows and columns that are not adjacent.
    let mut mesh = Free::new(Boards { count: [4, 4], adjacent: false, ..torus });
    let mut ring = Free::new(Boards { count: [4, 4], ..torus });
    for board in 0..4 {
        mesh.take(board, (board + 2) % 4);
        ring.take(board, (board + 2) % 4);
    }
    assert!(mesh.place(job(2, 2), Heuristic::Sort).is_some());
    assert_eq!(ring.place(job(2, 3), Heuristic::Sort), None);
}
