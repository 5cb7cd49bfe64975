//! Tests of `switches::packing`.

use unisono_algorithms::switches::{Packed, pack};

fn grid(rows: u32, cols: u32) -> Vec<(u32, u32)> {
    let mut edges = Vec::new();
    for v in 0..rows * cols {
        edges.extend((v % cols + 1 < cols).then_some((v, v + 1)));
        edges.extend((v / cols + 1 < rows).then_some((v, v + cols)));
    }
    edges
}

fn complete(n: u32) -> Vec<(u32, u32)> {
    (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).collect()
}

fn check(vertices: usize, edges: &[(u32, u32)], packed: &Packed) {
    let mut used = vec![0; edges.len()];
    for tree in &packed.trees {
        assert_eq!(tree.len(), vertices - 1);
        let mut group: Vec<usize> = (0..vertices).collect();
        for &edge in tree {
            used[edge] += 1;
            let (a, b) = (group[edges[edge].0 as usize], group[edges[edge].1 as usize]);
            assert_ne!(a, b, "a circle");
            group.iter_mut().filter(|g| **g == b).for_each(|g| *g = a);
        }
    }
    assert!(used.iter().all(|&u| u <= packed.load));
}

#[test]
fn complete_graphs_hold_half_as_many_trees_as_vertices() {
    for n in 2..12 {
        let edges = complete(n);
        for trees in 1..=n / 2 {
            let packed = pack(n as usize, &edges, &(0..trees).collect::<Vec<_>>()).unwrap();
            check(n as usize, &edges, &packed);
            assert_eq!(packed.load, 1, "{trees} trees on {n}");
        }
        // One more tree does not fit, because there are only n (n - 1) / 2 edges.
        let more: Vec<u32> = (0..=n / 2).collect();
        assert_eq!(pack(n as usize, &edges, &more).unwrap().load, 2);
    }
}

#[test]
fn a_mesh_of_eight_holds_ten_trees_at_load_seven() {
    // There are 10 edges and a tree has 7, so at most 10/7 trees fit for each unit of load.
    let edges = grid(2, 4);
    for trees in 1..=10 {
        let packed = pack(8, &edges, &vec![1; trees]).unwrap();
        check(8, &edges, &packed);
        assert_eq!(packed.load as usize, (7 * trees).div_ceil(10), "{trees}");
    }
    assert_eq!(pack(3, &[(0, 1)], &[0]), None);
}
