//! Tests of `home`.

use unisono_mpi::internals::home::unless_it_panics;

#[test]
fn a_panic_is_a_refusal() {
    assert_eq!(unless_it_panics(|| Some(1)), Some(1));
    assert_eq!(unless_it_panics(|| -> Option<u8> { panic!("a fault in a proof") }), None);
}
