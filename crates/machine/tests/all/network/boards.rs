//! Tests of `network::boards`.

use unisono_machine::network::Boards;

#[test]
fn a_sub_mesh_in_the_order_of_its_ranks() {
    let boards = Boards { count: [4, 4], board: [2, 2] };
    let (places, extents) = boards.accelerators(&[0, 3], &[1]);
    assert_eq!(extents, [4, 2]);
    assert_eq!(places, [2, 3, 10, 11, 50, 51, 58, 59]);
}
