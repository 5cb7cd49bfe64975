//! Tests of `region_map`.

use unisono_discover::{
    Box3,
    internals::region_map::{FEW, RegionMap},
};

#[test]
fn agrees_with_single_points() {
    let whole = Box3::of_size([12, 9, 1]);
    let mut map = RegionMap::new(whole, 0u32);
    let mut plain = [[0u32; 9]; 12];
    let mut random = unisono_base::Random(3);
    let mut next = |n: u64| random.below(n) as i64;
    for step in 1..400 {
        let (x, y) = (next(12), next(9));
        let b = Box3::new([x, y, 0], [x + 1 + next(12), y + 1 + next(9), 1]).intersect(&whole);
        if step % 2 == 0 {
            map.set(&b, step);
            for row in &mut plain[b.min[0] as usize..b.max[0] as usize] {
                row[b.min[1] as usize..b.max[1] as usize].fill(step);
            }
        }
        let mut seen = 0;
        map.query(&b, |piece, value| {
            assert!(b.contains(&piece));
            seen += piece.volume();
            for x in piece.min[0]..piece.max[0] {
                for y in piece.min[1]..piece.max[1] {
                    assert_eq!(plain[x as usize][y as usize], value);
                }
            }
        });
        assert_eq!(seen, b.volume());
    }
    assert!(map.levels.iter().map(|(_, level)| level.len()).sum::<usize>() > FEW);
}
