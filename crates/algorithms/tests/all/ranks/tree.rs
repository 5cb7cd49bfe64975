//! Tests of `ranks::tree`.

use unisono_algorithms::ranks::tree::{children, parent, size};

#[test]
fn subtrees_are_intervals() {
    for ranks in 1..70 {
        for v in 0..ranks {
            let mut at = v + 1;
            for child in children(v, ranks) {
                assert_eq!((child, parent(child)), (at, v), "{ranks}");
                at += size(child, ranks);
            }
            assert_eq!(at, v + size(v, ranks));
        }
    }
}
