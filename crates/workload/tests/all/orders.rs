//! Programs that never end, because ranks perform collectives and messages in incompatible orders.

use serde_json::{Value, json};
use unisono_workload::{SourceFile, read};

/// Returns a trace for each rank from its nodes.
fn traces(of: &[Vec<Value>]) -> Vec<SourceFile> {
    let one = |(rank, nodes): (usize, &Vec<Value>)| {
        let text = json!({ "workload_graph": nodes }).to_string();
        (format!("traces/t.{rank}.json"), text.into_bytes())
    };
    of.iter().enumerate().map(one).collect()
}

fn refused(of: &[Vec<Value>]) -> String {
    read(&traces(of), false).unwrap_err().to_string()
}

fn allreduce(id: u64, group: &str, after: &[u64]) -> Value {
    json!({"Id": id, "Name": group, "NodeType": 7, "data_deps": after, "comm_type": 0, "comm_size": 64, "pg_name": group})
}

fn message(id: u64, [from, to]: [u32; 2], sends: bool, after: &[u64]) -> Value {
    json!({"Id": id, "Name": "pass", "NodeType": if sends { 5 } else { 6 }, "data_deps": after, "comm_src": from,
           "comm_dst": to, "comm_tag": 3, "comm_size": 8})
}

const ACCEPTED: &str = "; accepted are programs in which no ranks wait for each other in a circle, so ranks that share \
    several groups make the collectives of all of them in one order";

/// Ranks 0 and 1 share two groups, one of them with rank 2.
#[test]
fn two_ranks_in_different_orders() {
    let good = [
        vec![allreduce(4, "pair", &[]), allreduce(5, "all", &[])],
        vec![allreduce(6, "pair", &[]), allreduce(7, "all", &[])],
        vec![allreduce(8, "all", &[])],
    ];
    assert!(read(&traces(&good), true).is_ok());
    let mut bad = good;
    bad[1].reverse();
    assert_eq!(
        refused(&bad),
        format!(
            "traces/t.0.json, rank 0, node 4: it is allreduce of 64 bytes among 2 ranks ('pair'), and waits for rank 1, \
             which waits in node 7 of 'traces/t.1.json', allreduce of 64 bytes among 3 ranks ('all'), for rank 0{ACCEPTED}"
        )
    );
}

/// Every rank of a ring begins with the group that it shares with the next rank. The message does not name all six
/// ranks.
#[test]
fn a_ring_of_ranks() {
    let ring = |ranks: u64| -> Vec<Vec<Value>> {
        let of = |rank: u64| {
            let before = (rank + ranks - 1) % ranks;
            vec![allreduce(10 + rank, &format!("g{rank}"), &[]), allreduce(90, &format!("g{before}"), &[])]
        };
        (0..ranks).map(of).collect()
    };
    let three = refused(&ring(3));
    assert!(
        three.starts_with(
            "traces/t.0.json, rank 0, node 10: it is allreduce of 64 bytes among 2 ranks ('g0'), and waits for"
        ),
        "{three}"
    );
    assert!(three.contains("which waits in node 11 of 'traces/t.1.json'"), "{three}");
    assert!(three.contains("which waits in node 12 of 'traces/t.2.json'"), "{three}");
    let six = refused(&ring(6));
    assert_eq!(six.matches("which waits in node").count(), 3, "{six}");
    assert!(six.contains(", and so on along 6 ranks; accepted"), "{six}");
}

/// Two process groups with the same ranks: their collectives are equal, but must not be mixed up.
#[test]
fn groups_of_the_same_ranks() {
    let good = [
        vec![allreduce(4, "data", &[]), allreduce(5, "tensor", &[])],
        vec![json!({"Id": 3, "NodeType": 4, "runtime": 7}), allreduce(6, "data", &[]), allreduce(7, "tensor", &[])],
    ];
    assert!(read(&traces(&good), true).is_ok());
    let mut bad = good.clone();
    bad[1].swap(1, 2);
    assert_eq!(
        refused(&bad),
        "traces/t.1.json, rank 1, node 7: it is allreduce of 64 bytes in process group 'tensor', where rank 0 makes one in \
         process group 'data' of the same ranks first; accepted are traces in which all ranks of a group make the same \
         collectives in the same order"
    );
    // If only one rank uses a name, it is taken for another name of the same group.
    let mut renamed = good;
    (renamed[1][1], renamed[1][2]) = (allreduce(6, "data", &[]), allreduce(7, "model", &[]));
    let listed = br#"{"data": [0, 1], "tensor": [0, 1], "model": [0, 1]}"#.to_vec();
    let files: Vec<SourceFile> = traces(&renamed).into_iter().chain([("groups.json".to_owned(), listed)]).collect();
    assert!(read(&files, true).is_ok());
}

/// Rank 0 sends after the allreduce, which rank 1 performs after it has received.
#[test]
fn a_collective_and_a_message() {
    let nodes = |first: &[u64], second: &[u64]| {
        [
            vec![allreduce(4, "all", first), message(5, [0, 1], true, second)],
            vec![message(6, [0, 1], false, &[]), allreduce(7, "all", &[6])],
        ]
    };
    assert!(read(&traces(&nodes(&[], &[])), true).is_ok());
    assert_eq!(
        refused(&nodes(&[], &[4])),
        format!(
            "traces/t.0.json, rank 0, node 4: it is allreduce of 64 bytes among 2 ranks ('all'), and waits for rank 1, which \
             waits in node 6 of 'traces/t.1.json', a receive of 8 bytes from rank 0 ('pass'), for rank 0{ACCEPTED}"
        )
    );
}

/// A profiler records kernels of two streams. In a single communication queue they would never end.
#[test]
fn traces_of_a_profiler() {
    let kernel = |group: &[u32], begin: u32| {
        json!({"ph": "X", "cat": "kernel", "name": format!("nccl{}", group.len()), "ts": begin, "dur": 5, "args": {
            "Collective name": "allreduce", "In msg nelems": 4, "Out msg nelems": 4, "dtype": "Float",
            "Group size": group.len(), "Process Group Name": format!("{group:?}"), "Process Group Ranks": group}})
    };
    let trace = |rank: u32, events: Vec<Value>| {
        let all = json!({"distributedInfo": {"rank": rank, "world_size": 3}, "traceEvents": events});
        (format!("step.{rank}.json"), all.to_string().into_bytes())
    };
    let files = |first: u32| {
        [
            trace(0, vec![kernel(&[0, 1], 1), kernel(&[0, 1, 2], 8)]),
            trace(1, vec![kernel(&[0, 1], first), kernel(&[0, 1, 2], 10 - first)]),
            trace(2, vec![kernel(&[0, 1, 2], 8)]),
        ]
    };
    assert!(read(&files(1), true).is_ok());
    let message = read(&files(9), true).unwrap_err().to_string();
    assert_eq!(
        message,
        format!(
            "step.0.json, rank 0, node 0: it is allreduce of 16 bytes among 2 ranks ('nccl2'), and waits for rank 1, which \
             waits in node 1 of 'step.1.json', allreduce of 16 bytes among 3 ranks ('nccl3'), for rank 0{ACCEPTED}"
        )
    );
}
