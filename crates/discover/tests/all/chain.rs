//! Tests of `chain`.

use unisono_discover::Chain;

/// Returns the first submission in which `a` and `b` differ, if `b` has dropped no links.
pub fn first_difference(a: &Chain, b: &Chain) -> Option<u64> {
    let (first, links) = a.links();
    let at = links.iter().zip(&b.links().1[first as usize..]).position(|(a, b)| a != b);
    at.map(|at| first + at as u64)
}

#[test]
fn the_first_difference_is_found() {
    for wrong in 0..50 {
        let (mut a, mut b) = (Chain::default(), Chain::default());
        for k in 0..50u64 {
            a.push(k % 7);
            b.push(if k == wrong { 9 } else { k % 7 });
            if k + 1 == wrong / 2 {
                a.agreed();
            }
        }
        assert_eq!(first_difference(&a, &b), Some(wrong));
        assert_ne!(a.end(), b.end());
    }
    let (mut a, mut b) = (Chain::default(), Chain::default());
    a.push(1);
    b.push(1);
    assert_eq!(first_difference(&a, &b), None);
}

#[test]
fn agreeing_again_and_again_changes_no_number_and_no_difference() {
    for (wrong, every) in (0..30).flat_map(|wrong| (1..8).map(move |every| (wrong, every))) {
        let (mut whole, mut a, mut b) = (Chain::default(), Chain::default(), Chain::default());
        for k in 0..30u64 {
            whole.push(k % 7);
            a.push(k % 7);
            b.push(if k == wrong { 9 } else { k % 7 });
            if k < wrong && k % every == 0 {
                a.agreed();
            }
            assert_eq!((a.len(), a.end()), (whole.len(), whole.end()));
        }
        let (first, links) = a.links();
        assert_eq!(links, &whole.links().1[first as usize..]);
        assert_eq!(first_difference(&a, &b), Some(wrong));
    }
}
