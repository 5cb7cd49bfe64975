//! Tests of `space`.

use unisono_discover::{Box3, Region};

fn at(x: i64, y: i64, w: i64, h: i64) -> Box3 {
    Box3::new([x, y, 0], [x + w, y + h, 1])
}

/// Returns for each point of a small grid whether a region contains it.
fn points(region: &Region) -> Vec<bool> {
    (0..100).map(|k| region.boxes().iter().any(|b| b.overlaps(&at(k / 10, k % 10, 1, 1)))).collect()
}

#[test]
fn equal_sets_have_equal_boxes() {
    let whole = Region::of([at(0, 0, 4, 4)]);
    assert_eq!(whole, Region::of([at(0, 0, 2, 4), at(2, 0, 2, 2), at(2, 2, 2, 2)]));
    assert_eq!(whole, Region::of([at(0, 0, 4, 3), at(0, 1, 4, 3)]));
    assert_eq!(Region::of([at(3, 3, 0, 5)]), Region::empty());
}

#[test]
fn algebra_agrees_with_single_points() {
    let mut random = unisono_base::Random(7);
    let mut next = |n: u64| random.below(n) as i64;
    for _ in 0..500 {
        let mut some = || Region::of((0..3).map(|_| at(next(6), next(6), next(5), next(5))).collect::<Vec<_>>());
        let (a, b) = (some(), some());
        let (pa, pb) = (points(&a), points(&b));
        let each = |f: fn(bool, bool) -> bool| pa.iter().zip(&pb).map(|(&x, &y)| f(x, y)).collect::<Vec<_>>();
        assert_eq!(points(&a.union(&b)), each(|x, y| x || y));
        assert_eq!(points(&a.intersect(&b)), each(|x, y| x && y));
        assert_eq!(points(&a.minus(&b)), each(|x, y| x && !y));
        assert_eq!(a.minus(&b).union(&a.intersect(&b)), a);
        assert_eq!(a.volume(), pa.iter().filter(|&&x| x).count() as u64);
        assert_eq!(a.overlaps(&b), !a.intersect(&b).is_empty());
    }
}
