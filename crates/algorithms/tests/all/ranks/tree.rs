//! Tests of `ranks::tree`.

use unisono_algorithms::ranks::tree::{Tree, children, parent, size};

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

/// Returns the parent in a tree of fanout 2, computed as in `ompi_coll_base_topo_build_tree`: steps of half the width
/// of the rank's level lead to the level above.
fn parent_in_open_mpi(v: u32) -> u32 {
    let level = (v + 1).ilog2();
    let (step, above) = ((1 << level) / 2, (1 << level) - 1);
    let mut parent = v;
    while v >= 2 && parent >= above {
        parent -= step;
    }
    if v < 2 { 0 } else { parent }
}

#[test]
fn levels_join_the_ranks_of_open_mpi() {
    for ranks in 1..200 {
        let tree = Tree::levels(ranks, 0);
        let mut joined: Vec<_> =
            (0..ranks).flat_map(|v| tree.children(v).iter().map(move |&child| (child, v))).collect();
        joined.sort_unstable();
        assert_eq!(joined, (1..ranks).map(|v| (v, parent_in_open_mpi(v))).collect::<Vec<_>>(), "{ranks} ranks");
        assert_eq!(tree.size(0), ranks);
    }
}
