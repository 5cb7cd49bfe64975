//! Tests of `split`.

use unisono_discover::{Geometry, internals::split::tiles};

#[test]
fn chunks_cover_the_range_once_in_order() {
    for size in [1, 2, 3, 7, 10, 64, 65] {
        for granule in [1, 2, 3, 8] {
            for nodes in [1, 2, 3, 4, 7, 8, 64, 100] {
                let geometry = Geometry { offset: [5, 0, 0], ..Geometry::of(&[size]) };
                let layout = geometry.with_granularity([granule, 1, 1]).layout(nodes);
                let expected = i64::from(nodes).min(size / granule).max(1);
                assert_eq!(i64::from(layout.chunks()), expected, "{size} {granule} {nodes}");
                let mut next = 5;
                let mut before = i64::MAX;
                for rank in 0..layout.chunks() {
                    let chunk = layout.chunk(rank).expect("it has one");
                    assert_eq!(chunk.min[0], next);
                    next = chunk.max[0];
                    let granules = (chunk.max[0] - chunk.min[0]) / granule;
                    assert!(granules <= before && before - granules <= 1 || before == i64::MAX);
                    before = if rank == 0 { granules } else { before.min(granules) };
                    for x in chunk.min[0]..chunk.max[0] {
                        assert_eq!(layout.axes[0].part_of(x), rank);
                    }
                }
                assert_eq!(next, 5 + size);
                assert_eq!(layout.chunk(layout.chunks()), None);
            }
        }
    }
}

#[test]
fn tiles_are_near_squares() {
    assert_eq!(tiles(4, 64, 64), (2, 2));
    assert_eq!(tiles(8, 64, 64), (4, 2));
    assert_eq!(tiles(8, 32, 64), (2, 4));
    assert_eq!(tiles(7, 64, 64), (7, 1));
    assert_eq!(tiles(64, 4, 1024), (4, 16));
    assert_eq!(tiles(6, 1, 64), (1, 6));
}
