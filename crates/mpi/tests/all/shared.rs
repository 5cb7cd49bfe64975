//! Tests of `shared`.

use std::sync::atomic::Ordering;

use unisono_mpi::internals::shared::{Shared, path};

#[test]
fn both_see_one_memory_without_a_name() {
    let ours = Shared::create(64).expect("shared memory");
    let theirs = Shared::open(ours.name(), 64).expect("the same");
    assert!(Shared::open(ours.name(), 128).is_err(), "another size");
    let (a, b) = (ours.map().expect("room"), theirs.map().expect("room"));
    let name = ours.name();
    drop((ours, theirs));
    assert!(!path(name).exists());
    // SAFETY: eight words stay mapped here until the process ends.
    let a = unsafe { &*a.wrapping_add(7) };
    // SAFETY: eight words stay mapped here until the process ends.
    let b = unsafe { &*b.wrapping_add(7) };
    a.store(5, Ordering::Relaxed);
    assert_eq!(b.load(Ordering::Relaxed), 5);
}
