//! Tests of `least_price`.

use proptest::prelude::*;
use unisono_synthesis::internals::least_price::{NONE, Table, least_price};

/// Returns the price of the cheapest arborescence, found by trying all parents of each node; `None` if no choice of
/// parents reaches all nodes.
fn by_hand(table: &Table, root: usize) -> Option<u128> {
    let n = table.nodes;
    let choices = n.pow(u32::try_from(n).unwrap());
    let parents = (0..choices).map(|code| (0..n).map(|to| code / n.pow(u32::try_from(to).unwrap()) % n).collect());
    parents
        .filter_map(|parent: Vec<usize>| {
            let reaches = |start| (0..n).fold(start, |at, _| if at == root { at } else { parent[at] }) == root;
            let prices = (0..n).filter(|&to| to != root).map(|to| table.get(parent[to], to));
            (0..n).all(reaches).then(|| prices.fold(0, u128::saturating_add)).filter(|&price| price < NONE)
        })
        .min()
}

proptest! {
    #[test]
    fn the_price_is_that_of_the_cheapest_of_all(
        n in 1_usize..6,
        most in 1_u128..9,
        of in prop::collection::vec(0_u128..9, 25),
        root in 0_usize..5,
    ) {
        let root = root % n;
        let mut table = Table::new(n);
        for from in 0..n {
            for to in (0..n).filter(|&to| to != from) {
                // One price in nine means that there is no arc; small prices make many trees equally cheap.
                let price = of[from * 5 + to];
                if price < 8 {
                    table.add(from, to, price % most);
                }
            }
        }
        prop_assert_eq!(least_price(&table, root), by_hand(&table, root));
    }
}

#[test]
fn circles_within_circles_are_joined_one_by_one() {
    // Node k + 1 is on a cycle with all earlier nodes, at a price that grows with k: each round joins one more node.
    let n = 200;
    let mut table = Table::new(n + 1);
    for k in 1..n {
        table.add(k, k + 1, k as u128);
        table.add(k + 1, k, k as u128);
    }
    table.add(0, n, 1_000_000);
    // The tree leads from the root to the end of the line, and back along all cables.
    assert_eq!(least_price(&table, 0), Some(1_000_000 + (n * (n - 1) / 2) as u128));
}
