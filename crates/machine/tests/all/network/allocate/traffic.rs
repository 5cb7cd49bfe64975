//! Tests of `network::allocate::traffic`.

use unisono_machine::network::allocate::{Placed, UpperShare};

#[test]
fn whole_lines_give_the_artifacts_constants() {
    let all = Placed { positions: vec![(0..64).collect(), (0..64).collect()] };
    let share = UpperShare::of(&all, &[16, 16]);
    assert!((share.alltoall - 48.0 / 63.0).abs() < 1e-12 && (share.allreduce - 0.0625).abs() < 1e-12, "{share:?}");
    let one = Placed { positions: vec![(0..16).collect(), vec![63]] };
    assert_eq!(UpperShare::of(&one, &[16, 16]), UpperShare::default());
}
