//! Tests of `arborescence`.

use proptest::prelude::*;
use unisono_synthesis::arborescence::{ArcWeights, NONE, cheapest, depths, nearest, price_of, shallow, shortened};

/// Returns the price of the cheapest arborescence, found by trying all parents of each node; `None` if no choice of
/// parents reaches all nodes.
fn by_hand(prices: &ArcWeights, root: usize) -> Option<f64> {
    let n = prices.nodes();
    let mut best: Option<f64> = None;
    for code in 0..n.pow(u32::try_from(n).unwrap()) {
        let parent: Vec<usize> =
            (0..n).map(|to| if to == root { NONE } else { code / n.pow(u32::try_from(to).unwrap()) % n }).collect();
        let reaches = |start: usize| {
            let mut at = start;
            for _ in 0..n {
                if at == root {
                    return true;
                }
                at = parent[at];
            }
            false
        };
        let price = price_of(prices, &parent);
        if (0..n).all(reaches) && price < f64::INFINITY {
            best = Some(best.map_or(price, |b| b.min(price)));
        }
    }
    best
}

proptest! {
    #[test]
    fn the_cheapest_is_the_cheapest_of_all(n in 2_usize..6, of in prop::collection::vec(0_u8..9, 36), root in 0_usize..6) {
        let root = root % n;
        let mut prices = ArcWeights::new(n);
        for from in 0..n {
            for to in (0..n).filter(|&to| to != from) {
                let price = of[from * 6 + to];
                // One price in nine means that there is no arc.
                if price < 8 {
                    prices.set(from, to, f64::from(price));
                }
            }
        }
        let found = cheapest(&prices, root).map(|parent| price_of(&prices, &parent));
        prop_assert_eq!(found, by_hand(&prices, root));
        for most in 1..u32::try_from(n).unwrap() {
            let tree = shallow(&prices, root, most);
            if let Some(parent) = &tree {
                prop_assert!(depths(parent, root).into_iter().all(|d| d <= most));
            }
            prop_assert_eq!(tree.is_some(), nearest(&prices, root, most).is_some());
            let shortened = shortened(&prices, root, most);
            if let Some(parent) = &shortened {
                prop_assert!(depths(parent, root).into_iter().all(|d| d <= most));
            }
            prop_assert!(shortened.is_none() || tree.is_some());
            // No tree is cheaper than the cheapest, and with unlimited depth the search finds the cheapest.
            for parent in tree.iter().chain(&shortened) {
                prop_assert!(price_of(&prices, parent) >= found.unwrap());
            }
        }
        if let Some(found) = found {
            let deepest = u32::try_from(n).unwrap();
            prop_assert_eq!(shortened(&prices, root, deepest).map(|parent| price_of(&prices, &parent)), Some(found));
        }
    }
}
