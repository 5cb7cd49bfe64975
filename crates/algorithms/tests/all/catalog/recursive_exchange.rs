//! Tests of `catalog::recursive_exchange`.

use unisono_algorithms::internals::recursive_exchange::Sets;

#[test]
fn each_rank_exchanges_or_is_set_apart_and_intervals_cover_all() {
    for ranks in 2..200 {
        for radix in 2..12 {
            let sets = Sets::new(ranks, radix);
            assert!(sets.virtual_ranks <= ranks && ranks / sets.virtual_ranks < sets.radix);
            assert_eq!((sets.first(0), sets.first(sets.virtual_ranks)), (0, ranks));
            for v in 0..sets.virtual_ranks {
                assert!(sets.first(v) <= sets.real(v));
                assert_eq!(sets.real(v) + 1, sets.first(v + 1), "{ranks} {radix} {v}");
                // No more than k - 1 ranks send to one rank.
                assert!(sets.real(v) - sets.first(v) < sets.radix);
                assert_eq!(sets.reversed(sets.reversed(v)), v);
            }
        }
    }
    // The sets are those of the library. 7 ranks with radix 3 are the sets (0, 1 -> 2), (3, 4 -> 5) and rank 6; of 8
    // ranks, one more rank is set apart: 6 -> 7.
    let reals = |ranks: u32, radix: u32| {
        let sets = Sets::new(ranks, radix);
        (0..sets.virtual_ranks).map(|v| (sets.first(v), sets.real(v))).collect::<Vec<_>>()
    };
    assert_eq!(reals(7, 3), [(0, 2), (3, 5), (6, 6)]);
    assert_eq!(reals(8, 3), [(0, 2), (3, 5), (6, 7)]);
    assert_eq!(reals(6, 3), [(0, 2), (3, 4), (5, 5)]);
    assert_eq!(reals(6, 2), [(0, 1), (2, 3), (4, 4), (5, 5)]);
}
