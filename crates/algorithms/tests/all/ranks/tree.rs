//! Tests of `ranks::tree`.

use unisono_algorithms::ranks::tree::{children, parent, size};

#[test]
fn subtrees_are_intervals() {
    for radix in [2, 3, 4, 7, 64] {
        for ranks in 1..70 {
            for v in 0..ranks {
                let mut at = v + 1;
                for child in children(v, ranks, radix) {
                    assert_eq!((child, parent(child, radix)), (at, v), "{ranks} to base {radix}");
                    at += size(child, ranks, radix);
                }
                assert_eq!(at, v + size(v, ranks, radix));
            }
        }
    }
}
