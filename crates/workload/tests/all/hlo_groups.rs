//! The grammars of groups, compared with lists that loops make.

use unisono_workload::{Work, hlo};

/// Returns the groups of an all-reduce with these attributes on the replicas and partitions of `head`.
fn groups(head: &str, attributes: &str) -> Vec<Vec<u32>> {
    let text = format!(
        "HloModule m{head}\n\nENTRY %main (x: f32[4]) -> f32[4] {{\n  %x = f32[4]{{0}} parameter(0)\n  \
         ROOT %r = f32[4]{{0}} all-reduce(%x), {attributes}, to_apply=%sum\n}}\n"
    );
    let graph = hlo::read(&text, "m.hlo", true).unwrap();
    graph.groups[0].iter().map(<[u32]>::to_vec).collect()
}

const DEVICES: &str = "channel_id=1, use_global_device_ids=true, replica_groups=";

#[test]
fn rows_of_transposed_grids() {
    // All orders of three axes, and all sizes of rows into which 24 devices can be cut.
    let dims = [2_u32, 3, 4];
    let strides = [12, 4, 1];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut all = Vec::new();
        for i in 0..dims[order[0]] {
            for j in 0..dims[order[1]] {
                for k in 0..dims[order[2]] {
                    all.push(i * strides[order[0]] + j * strides[order[1]] + k * strides[order[2]]);
                }
            }
        }
        for size in [2, 3, 4, 6, 8, 12, 24] {
            let [a, b, c] = order;
            let text = format!("{DEVICES}[{},{size}]<=[2,3,4]T({a},{b},{c})", 24 / size);
            let expected: Vec<Vec<u32>> = all.chunks(size).map(<[u32]>::to_vec).collect();
            assert_eq!(groups(", num_partitions=24", &text), expected, "{text}");
        }
    }
}

#[test]
fn axes_of_meshes() {
    let with = |axes: &str| groups(", num_partitions=24", &format!("{DEVICES}mesh['a'=2,'b'=3,'c'=4] {{{axes}}}"));
    let iota = |text: &str| groups(", num_partitions=24", &format!("{DEVICES}{text}"));
    assert_eq!(with("'a'"), iota("[12,2]<=[2,12]T(1,0)"));
    assert_eq!(with("'b'"), iota("[8,3]<=[2,3,4]T(0,2,1)"));
    assert_eq!(with("'c'"), iota("[6,4]<=[24]"));
    assert_eq!(with("'c','a'"), iota("[3,8]<=[2,3,4]T(1,2,0)"));
    // Parts of the axis of 4: groups whose members are 2 apart, and groups whose members are adjacent.
    assert_eq!(with("'c':(1)2"), iota("[12,2]<=[6,2,2]T(0,2,1)"));
    assert_eq!(with("'c':(2)2"), iota("[12,2]<=[24]"));
}

/// XLA writes the unordered devices of a mesh after its axes; other attributes follow.
#[test]
fn meshes_with_listed_devices() {
    let with = |ids: &str, axes: &str| {
        let list = format!("mesh['a'=2,'b'=2], device_ids=({ids}) {{{axes}}}");
        let text = format!("channel_id=1, replica_groups={list}, use_global_device_ids=true");
        groups(", num_partitions=4", &text)
    };
    assert_eq!(with("[2,2]T(1,0)", "'b'"), [[0, 2], [1, 3]]);
    assert_eq!(with("[2,2]T(1,0)", "'a'"), [[0, 1], [2, 3]]);
    assert_eq!(with("3,0,2,1", "'a'"), [[3, 2], [0, 1]]);
    assert_eq!(with("3,0,2,1", "'b'"), [[3, 0], [2, 1]]);
}

#[test]
fn numbers_of_replicas_and_partitions() {
    // 2 replicas of 3 partitions: device = 3 replica + partition.
    let head = ", replica_count=2, num_partitions=3";
    assert_eq!(groups(head, "replica_groups={{0,1}}"), [[0, 3], [1, 4], [2, 5]]);
    assert_eq!(groups(head, "replica_groups={}"), [[0, 3], [1, 4], [2, 5]]);
    assert_eq!(groups(head, "channel_id=1, replica_groups={{0,1}}"), [[0, 1, 2, 3, 4, 5]]);
    assert_eq!(groups(head, "channel_id=1, replica_groups={{0},{1}}"), [[0, 1, 2], [3, 4, 5]]);
    assert_eq!(
        groups(head, "channel_id=1, use_global_device_ids=true, replica_groups={{0,4},{1,5}}"),
        [[0, 4], [1, 5]]
    );
    // Without counts in the head, the devices are those that groups name.
    assert_eq!(groups("", &format!("{DEVICES}{{{{3,1}}}}")), [[3, 1]]);
}

#[test]
fn receivers_of_permutations() {
    let read = |pairs: &str| {
        let text = format!(
            "HloModule m, num_partitions=4\n\nENTRY %main (x: f32[4]) -> f32[4] {{\n  %x = f32[4]{{0}} parameter(0)\n  \
             ROOT %r = f32[4]{{0}} collective-permute(%x), channel_id=1, source_target_pairs={pairs}\n}}\n"
        );
        hlo::read(&text, "m.hlo", true)
    };
    let graph = read("{{0,1},{1,2},{3,0}}").unwrap();
    assert_eq!(graph.receivers, [[vec![1, 2, 2, 0]]]);
    assert_eq!(graph.classes[0].nodes[0].work, Work::Permute { bytes: 16, receivers: 0 });
    assert_eq!(read("{{0,1},{0,2}}").unwrap_err().message, "device 0 is the source of two pairs; accepted is one");
    assert_eq!(read("{{0,4}}").unwrap_err().message, "a pair has partition 4; accepted are 0 to 3");
    assert!(read("{}").unwrap().classes[0].nodes.is_empty());
}
