//! Tests of `ranks::extents`.

use unisono_algorithms::ranks::extents::Extents;

#[test]
fn coordinates_are_row_major() {
    let e = Extents::new(&[2, 3, 4]).unwrap();
    for rank in 0..24 {
        let [a, b, c] = [0, 1, 2].map(|d| e.coordinate(rank, d));
        assert_eq!(rank, (a * 3 + b) * 4 + c);
        assert_eq!(e.coordinate(e.shifted(rank, 1, 5), 1), (b + 5) % 3);
        assert_eq!(e.shifted(e.shifted(rank, 2, 1), 2, 3), rank);
    }
    assert_eq!(Extents::nearest_to_square(24).to_string(), "4x6");
    assert_eq!(Extents::nearest_to_square(13).to_string(), "1x13");
    assert!(Extents::new(&[3, 0]).is_none() && Extents::new(&[1 << 20, 1 << 20]).is_none());
}
