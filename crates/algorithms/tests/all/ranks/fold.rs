//! Tests of `ranks::fold`.

use unisono_algorithms::ranks::Fold;
use unisono_base::NodeId;

#[test]
fn each_rank_stays_or_folds() {
    for ranks in 1..40 {
        for root in 0..ranks {
            let fold = Fold::with_root(ranks, root);
            let all = fold.nodes().into_iter().chain((0..fold.pairs).map(|v| fold.pair(v).1));
            let mut all: Vec<u32> = all.map(|n| n.0).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..ranks));
            assert!(fold.nodes().contains(&NodeId(root)));
        }
    }
}
