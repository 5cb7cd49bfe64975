//! Tests of `in_network::nodes`.

use unisono_machine::in_network::balanced;

#[test]
fn as_equal_as_can_be() {
    let cases: [(u32, &[u32]); 10] = [
        (1, &[]),
        (2, &[2]),
        (16, &[16]),
        (17, &[17]),
        (64, &[8, 8]),
        (256, &[16, 16]),
        (512, &[8, 8, 8]),
        (1024, &[16, 8, 8]),
        (4096, &[16, 16, 16]),
        (16_384, &[32, 32, 16]),
    ];
    for (nodes, dims) in cases {
        assert_eq!(balanced(nodes), dims, "{nodes}");
    }
    for nodes in 1..2000 {
        assert_eq!(balanced(nodes).iter().product::<u32>(), nodes);
    }
}
