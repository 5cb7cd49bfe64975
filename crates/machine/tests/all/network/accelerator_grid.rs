//! Tests of `network::accelerator_grid`.

use unisono_machine::{
    Machine, Shape,
    network::{AcceleratorGrid, Network, Topology, note_on_lost_rows},
};

fn topology(table: &str, failed: &[u32]) -> Box<dyn Topology> {
    let failed: Vec<String> = failed.iter().map(u32::to_string).collect();
    let text = format!(
        "name = 'test'\nkind = 'network'\nplanes = 1\nlink_gbps = 400\nlink_latency_ns = 40\ninput_latency_ns = 20\n\
         output_latency_ns = 20\npacket_bytes = 1000\nbuffer_bytes = 100000\nfailed = {failed:?}\n[topology]\n{table}\n"
    );
    Machine::from_toml(&text, "test.toml").unwrap().get::<Network>().unwrap().topology("test").unwrap()
}

#[test]
fn parts_are_named_by_their_shape() {
    let whole = topology("name = 'torus'\ndims = [4, 4]", &[]);
    for (shape, nodes) in [
        (Shape::line(5), vec![0, 1, 2, 3, 4]),
        (Shape::rect(2, 3), vec![0, 1, 2, 4, 5, 6]),
        (Shape::rect(3, 1), vec![0, 4, 8]),
    ] {
        let part = AcceleratorGrid::new("m", &[4, 4], Some(shape)).unwrap();
        assert_eq!(part.nodes, nodes);
        assert_eq!(AcceleratorGrid::shape(&nodes, &*whole), Some(shape));
    }
    assert_eq!(AcceleratorGrid::new("m", &[4, 4], Some(Shape::line(8))).unwrap().extents, [2, 4]);
    assert_eq!(AcceleratorGrid::new("m", &[4, 4], None).unwrap().extents, [4, 4]);
    assert_eq!(AcceleratorGrid::shape(&[0, 1, 4, 6], &*whole), None);
    assert_eq!(AcceleratorGrid::shape(&[1, 2], &*whole), None);
    assert!(AcceleratorGrid::new("m", &[4, 4], Some(Shape::rect(2, 5))).is_err());
    assert!(AcceleratorGrid::new("m", &[64], Some(Shape::rect(2, 2))).is_err());
}

/// Nodes are compared by their original numbers, because accelerators after a failed one are renumbered.
#[test]
fn healthy_parts_keep_rows_and_columns() {
    let torus = "name = 'torus'\ndims = [4, 6]";
    let of = |failed: &[u32], shape: &str| {
        let topology = topology(torus, failed);
        let part = AcceleratorGrid::of("m", &*topology, Some(shape.parse().unwrap())).map_err(|e| e.to_string())?;
        let kept = topology.kept().unwrap();
        // If the part is named by its shape again, the ranks keep their accelerators.
        let named = AcceleratorGrid::shape(&part.nodes, &*topology).unwrap();
        assert_eq!(AcceleratorGrid::of("m", &*topology, Some(named)).unwrap().nodes, part.nodes);
        let note = note_on_lost_rows(&*topology, &part.extents);
        let nodes: Vec<u32> = part.nodes.iter().map(|&node| kept[node as usize]).collect();
        Ok::<_, String>((nodes, part.extents, note.is_some()))
    };
    // After a failure of the last accelerator, the part does not move.
    assert_eq!(of(&[23], "2x2").unwrap(), (vec![0, 1, 6, 7], vec![2, 2], false));
    assert_eq!(of(&[23], "12").unwrap(), ((0..12).collect(), vec![2, 6], false));
    assert_eq!(of(&[23], "23").unwrap(), ((0..23).collect(), vec![23], true));
    assert!(!of(&[23], "7").unwrap().2);
    // The rectangle is placed beside the failed accelerator, or below it.
    assert_eq!(of(&[1], "2x2").unwrap(), (vec![2, 3, 8, 9], vec![2, 2], false));
    assert_eq!(of(&[1], "3x6").unwrap(), ((6..24).collect(), vec![3, 6], false));
    assert_eq!(of(&[1], "12").unwrap().1, [12]);
    assert!(of(&[1], "12").unwrap().2);
    // A whole row has failed.
    assert_eq!(of(&[0, 1, 2, 3, 4, 5], "18").unwrap(), ((6..24).collect(), vec![3, 6], false));
    let refused = of(&[8], "3x5").unwrap_err();
    assert!(refused.starts_with("shape 3x5 does not fit on m without its failed accelerators (8)"), "{refused}");
    assert!(of(&[8], "5x5").unwrap_err().contains("the 4x6 accelerators of m"));
    // With boards, parts begin at the corner of a board.
    let boards = topology("name = 'hxmesh'\nboard = [2, 2]\nboards = [2, 3]", &[0]);
    let part = AcceleratorGrid::of("m", &*boards, Some(Shape::rect(2, 2))).unwrap();
    let kept = boards.kept().unwrap();
    assert_eq!(part.nodes.iter().map(|&node| kept[node as usize]).collect::<Vec<_>>(), [2, 3, 8, 9]);
}
