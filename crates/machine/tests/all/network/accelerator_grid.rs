//! Tests of `network::accelerator_grid`.

use unisono_machine::{Shape, network::AcceleratorGrid};

#[test]
fn parts_are_named_by_their_shape() {
    for (shape, nodes) in [
        (Shape::line(5), vec![0, 1, 2, 3, 4]),
        (Shape::rect(2, 3), vec![0, 1, 2, 4, 5, 6]),
        (Shape::rect(3, 1), vec![0, 4, 8]),
    ] {
        let part = AcceleratorGrid::new("m", &[4, 4], Some(shape)).unwrap();
        assert_eq!(part.nodes, nodes);
        assert_eq!(AcceleratorGrid::shape(&nodes, &[4, 4]), Some(shape));
    }
    assert_eq!(AcceleratorGrid::new("m", &[4, 4], Some(Shape::line(8))).unwrap().extents, [2, 4]);
    assert_eq!(AcceleratorGrid::new("m", &[4, 4], None).unwrap().extents, [4, 4]);
    assert_eq!(AcceleratorGrid::shape(&[0, 1, 4, 6], &[4, 4]), None);
    assert_eq!(AcceleratorGrid::shape(&[1, 2], &[4, 4]), None);
    assert!(AcceleratorGrid::new("m", &[4, 4], Some(Shape::rect(2, 5))).is_err());
    assert!(AcceleratorGrid::new("m", &[64], Some(Shape::rect(2, 2))).is_err());
}
