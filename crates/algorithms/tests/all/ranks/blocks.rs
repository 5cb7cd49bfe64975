//! Tests of `ranks::blocks`.

use unisono_algorithms::ranks::Blocks;

#[test]
fn blocks_cover_the_vector() {
    for (elements, count) in [(0, 3), (2, 5), (19, 4), (u32::MAX, 7), (u32::MAX, 1 << 22)] {
        let blocks = Blocks::new(elements, count);
        assert_eq!((blocks.start(0), blocks.start(count)), (0, elements));
        let lengths: Vec<u32> = (0..count).map(|b| blocks.block(b).len).collect();
        assert!(lengths.is_sorted_by(|a, b| a >= b) && lengths[0] - lengths[count as usize - 1] <= 1);
    }
}
