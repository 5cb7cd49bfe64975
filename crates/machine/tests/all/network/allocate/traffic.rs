//! Tests of `network::allocate::traffic`.

use unisono_machine::network::{
    Boards,
    allocate::{Placed, UpperShare},
};

#[test]
fn whole_lines_give_the_artifacts_constants() {
    let boards = Boards { count: [64, 64], board: [2, 2], leaf: [16, 16], adjacent: false };
    let all = Placed { rows: (0..64).collect(), columns: (0..64).collect() };
    let share = UpperShare::of(&all, &boards);
    assert!((share.alltoall - 48.0 / 63.0).abs() < 1e-12 && (share.allreduce - 0.0625).abs() < 1e-12, "{share:?}");
    let one = Placed { rows: (0..16).collect(), columns: vec![63] };
    assert_eq!(UpperShare::of(&one, &boards), UpperShare::default());
}
