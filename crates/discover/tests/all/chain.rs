//! Tests of `chain`.

use unisono_discover::Chain;

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
        assert_eq!(a.first_difference(&b), Some(wrong));
        assert_ne!(a.end(), b.end());
    }
    let (mut a, mut b) = (Chain::default(), Chain::default());
    a.push(1);
    b.push(1);
    assert_eq!(a.first_difference(&b), None);
    b.push(2);
    assert_eq!(a.first_difference(&b), Some(1));
}
