//! Tests of `route`.

use std::ffi::c_int;

use unisono_mpi::internals::route::{Lease, Peer, Route, Tags};

#[test]
fn ranges_of_tags_never_overlap_and_come_back() {
    let tags = Tags::new(99);
    let mut held: Vec<(c_int, Lease)> = Vec::new();
    let mut state = 7u64;
    let mut refused = 0;
    for _ in 0..2000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let count = (state >> 33) as c_int % 9 + 1;
        match tags.lease(count) {
            Some(lease) => {
                let new = lease.first()..lease.first() + count;
                assert!(new.start >= 0 && new.end <= 100);
                assert!(held.iter().all(|(n, l)| l.first() + n <= new.start || new.end <= l.first()));
                held.push((count, lease));
            }
            None => refused += 1,
        }
        if !held.is_empty() && (state >> 50).is_multiple_of(2) {
            held.swap_remove((state >> 40) as usize % held.len());
        }
    }
    assert!(refused > 0, "the ranges were never all in use");
    held.clear();
    assert_eq!(tags.lease(100).map(|lease| lease.first()), Some(0));
    assert!(tags.lease(101).is_none());
}

#[test]
fn messages_carry_a_tag_of_the_receivers_range() {
    let tags = Tags::new(1000);
    let (_first, lease) = (tags.lease(10).expect("room"), tags.lease(5).expect("room"));
    let peers = [Peer { rank: 4, tag: 70 }, Peer { rank: 2, tag: 30 }];
    let route = Route::over(9, lease, Box::new(peers));
    assert_eq!(route.to(0, 3), Ok((4, 73)));
    assert_eq!(route.from(1, 3), Ok((2, 13)));
    assert_eq!(Route::direct(9).to(1, 3), Ok((1, 3)));
}
