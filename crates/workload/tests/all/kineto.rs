//! Traces of PyTorch's profiler: compute with gaps, collectives with their groups, one rank for all, damaged files.

use serde_json::{Value, json};
use unisono_collective::Kind;
use unisono_workload::{Compute, Queues, SourceFile, Work, WorkloadGraph, read};

fn kernel(begin: f64, end: f64) -> Value {
    json!({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": begin, "dur": end - begin,
           "args": {"stream": 7}})
}

/// Returns a collective of bf16 with 1000 elements as input and as output, or in each part of the larger buffer.
fn collective(name: &str, begin: f64, end: f64, ranks: &str) -> Value {
    let size = ranks.split(',').count();
    let input = if name.contains("reduce_scatter") { 1000 * size } else { 1000 };
    let output = if name.contains("allgather") { 1000 * size } else { 1000 };
    json!({"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "ts": begin, "dur": end - begin, "args": {
        "stream": 20, "Collective name": name, "In msg nelems": input, "Out msg nelems": output, "dtype": "BFloat16",
        "Group size": size, "Process Group Name": ranks, "Process Group Ranks": ranks}})
}

fn trace(rank: u32, world: u32, events: &[Value]) -> SourceFile {
    let host = json!({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 900});
    let events: Vec<&Value> = [&host].into_iter().chain(events).collect();
    let all = json!({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world},
                     "traceEvents": events});
    (format!("runs/step.{rank}.json"), all.to_string().into_bytes())
}

/// The types of PyTorch by their number of bytes, from `AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS` of
/// `torch/headeronly/core/ScalarType.h`.
const TYPES: [(u32, &str); 5] = [
    (
        1,
        "Byte Char Bool QInt8 QUInt8 QUInt4x2 QUInt2x4 Bits1x8 Bits2x4 Bits4x2 Bits8 Float8_e5m2 Float8_e4m3fn \
         Float8_e5m2fnuz Float8_e4m3fnuz UInt1 UInt2 UInt3 UInt4 UInt5 UInt6 UInt7 Int1 Int2 Int3 Int4 Int5 Int6 Int7 \
         Float8_e8m0fnu Float4_e2m1fn_x2",
    ),
    (2, "Short Half BFloat16 Bits16 UInt16"),
    (4, "Int Float ComplexHalf QInt32 UInt32 Float8_e8m0fnu_x4"),
    (8, "Long Double ComplexFloat UInt64"),
    (16, "ComplexDouble"),
];

#[test]
fn every_type_of_pytorch_has_its_bytes() {
    let types = || TYPES.iter().flat_map(|(bytes, names)| names.split(' ').map(move |name| (bytes, name)));
    assert_eq!(types().count(), 47);
    for (&each, name) in types() {
        let mut event = collective("allreduce", 4.0, 5.0, "[0, 1]");
        event["args"]["dtype"] = json!(name);
        let graph = read(&[trace(0, 2, &[event.clone()]), trace(1, 2, &[event])], true).unwrap();
        let found = graph.classes[0].nodes.iter().find_map(|node| match node.work {
            Work::Collective(met) => Some((met.bytes, met.element_bytes)),
            _ => None,
        });
        assert_eq!(found, Some((1000 * u64::from(each), each)), "{name}");
    }
}

fn seconds(graph: &WorkloadGraph, class: usize) -> Vec<(&str, f64, &[u32])> {
    let shown = |node: &unisono_workload::WorkNode| match node.work {
        Work::Compute(Compute::Measured { seconds }) => (seconds * 1e9).round() / 1e3,
        _ => -1.0,
    };
    graph.classes[class].nodes.iter().map(|node| (&*node.name, shown(node), &node.after[..])).collect()
}

#[test]
fn gaps_wait_for_collectives_or_for_the_host() {
    let events = [
        kernel(10.0, 20.0),
        // Half of this kernel overlaps the first, on another stream.
        kernel(15.0, 25.0),
        collective("allreduce", 21.0, 60.0, "[0, 1]"),
        kernel(25.0, 40.0),
        // The gap before this kernel is 20 us for the collective, then 2 us for the host.
        kernel(62.0, 70.0),
        // The gap before this kernel is 5 us for the host.
        kernel(75.0, 80.0),
        kernel(76.0, 79.0),
    ];
    let graph = read(&[trace(0, 2, &events), trace(1, 2, &events)], true).unwrap();
    assert_eq!((graph.ranks, graph.classes.len(), graph.queues, &*graph.name), (2, 2, Queues::InOrder, "step"));
    let expected: [(&str, f64, &[u32]); 9] = [
        ("gemm", 10.0, &[]),
        ("gemm", 5.0, &[]),
        ("ncclDevKernel", -1.0, &[0]),
        ("gemm", 15.0, &[]),
        ("host", 2.0, &[2]),
        ("gemm", 8.0, &[]),
        ("host", 5.0, &[]),
        ("gemm", 5.0, &[]),
        ("gemm", 0.0, &[]),
    ];
    assert_eq!(seconds(&graph, 1), expected);
    let Work::Collective(met) = graph.classes[0].nodes[2].work else { panic!() };
    assert_eq!((met.kind, met.bytes, met.element_bytes), (Kind::Allreduce, 2000, 2));
}

/// The profiler lists the sizes of parts. The list is empty for equal parts, and its end may be cut off.
#[test]
fn exchanges_of_unequal_parts_are_listed_as_unknown() {
    let exchange = |input: Value, output: Value, received: u64| {
        let mut event = collective("all_to_allv", 0.0, 10.0, "[0, 1, 2, 3]");
        let args = event["args"].as_object_mut().unwrap();
        args.insert("In split size".to_owned(), input);
        args.insert("Out split size".to_owned(), output);
        args.insert("Out msg nelems".to_owned(), received.into());
        event
    };
    let read = |event: &Value, strict: bool| {
        let traces: Vec<SourceFile> = (0..4).map(|rank| trace(rank, 4, std::slice::from_ref(event))).collect();
        read(&traces, strict)
    };
    let equal = [
        (json!("[]"), json!("[]")),
        (Value::Null, Value::Null),
        (json!("[250, 250, 250, 250]"), json!([250, 250, 250, 250])),
        (json!("[250, 250, ...]"), json!("[250, ...]")),
    ];
    for (input, output) in equal {
        let graph = read(&exchange(input, output, 1000), true).unwrap();
        assert!(graph.unknown.is_empty(), "{:?}", graph.unknown);
    }
    let unequal = [
        (json!("[100, 400, 250, 250]"), json!("[]"), 1000),
        (json!("[]"), json!([250, 250, 100, 400]), 1000),
        (json!("[100, 100, ...]"), json!("[]"), 1000),
        (json!("[]"), json!("[]"), 900),
    ];
    for (input, output, received) in unequal {
        let event = exchange(input, output, received);
        let graph = read(&event, false).unwrap();
        let expected = "all_to_allv of unequal parts, taken as equal ones";
        assert_eq!(graph.unknown.get(expected), Some(&4), "{event}: {:?}", graph.unknown);
        let Work::Collective(met) = graph.classes[0].nodes[0].work else { panic!() };
        assert_eq!((met.kind, met.bytes), (Kind::Alltoall, 500));
        let refused = read(&event, true).unwrap_err().to_string();
        assert!(refused.contains(expected) && refused.contains("--strict"), "{refused}");
    }
    for (name, larger) in [("_allgather_base", "Out msg nelems"), ("_reduce_scatter_base", "In msg nelems")] {
        let mut event = collective(name, 0.0, 10.0, "[0, 1, 2, 3]");
        assert!(read(&event, true).unwrap().unknown.is_empty());
        event["args"][larger] = 3000.into();
        let expected = format!("{name} of unequal parts, taken as equal ones");
        assert_eq!(read(&event, false).unwrap().unknown.get(&*expected), Some(&4));
        assert!(read(&event, true).unwrap_err().to_string().contains(&expected));
    }
    let damaged = read(&exchange(json!("[a]"), json!("[]"), 1000), false).unwrap_err().to_string();
    assert!(damaged.contains("'In split size' is"), "{damaged}");
}

#[test]
fn bytes_are_counted_as_by_mpi() {
    let cases = [
        ("allreduce", Kind::Allreduce, 2000),
        ("_allgather_base", Kind::Allgather, 2000),
        ("reduce_scatter_tensor_coalesced", Kind::ReduceScatter, 2000),
        ("_reduce_scatter_base", Kind::ReduceScatter, 2000),
        ("all_to_allv", Kind::Alltoall, 500),
        ("broadcast", Kind::Broadcast, 2000),
        ("reduce", Kind::Reduce, 2000),
        ("barrier", Kind::Barrier, 0),
    ];
    for (name, kind, bytes) in cases {
        let graph = read(&[trace(2, 4, &[collective(name, 0.0, 5.0, "[0, 1, 2, 3]")])], true).unwrap();
        let Work::Collective(met) = graph.classes[0].nodes[0].work else { panic!() };
        assert_eq!((met.kind, met.bytes), (kind, bytes), "{name}");
        assert_eq!(graph.notes, ["the trace of rank 2 stands for all 4 ranks"]);
    }
    let graph = read(&[trace(2, 3, &[collective("all_to_allv", 0.0, 5.0, "[0, 1, 2]")])], true).unwrap();
    let Work::Collective(met) = graph.classes[0].nodes[0].work else { panic!() };
    assert_eq!(met.bytes, 668);
    let note = "3 ranks do not divide the 2000 bytes of a collective's input: each rank's part is rounded up";
    assert_eq!(graph.notes, ["the trace of rank 2 stands for all 3 ranks", note]);
}

#[test]
fn one_rank_stands_for_all() {
    let of = |ranks: &str| {
        let graph = read(&[trace(5, 8, &[collective("allreduce", 0.0, 5.0, ranks)])], true)?;
        assert_eq!((graph.ranks, graph.classes.len(), graph.classes[0].ranks.len()), (8, 1, 8));
        assert_eq!(graph.notes, ["the trace of rank 5 stands for all 8 ranks"]);
        Ok::<_, unisono_workload::ReadError>(graph.groups[0].iter().map(<[u32]>::to_vec).collect::<Vec<_>>())
    };
    assert_eq!(of("[4, 5]").unwrap(), [[0, 1], [2, 3], [4, 5], [6, 7]]);
    assert_eq!(of("[1, 5]").unwrap(), [[0, 4], [1, 5], [2, 6], [3, 7]]);
    assert_eq!(of("[5, 7]").unwrap(), [[0, 2], [1, 3], [4, 6], [5, 7]]);
    assert_eq!(of("[1, 3, 5, 7]").unwrap(), [[0, 2, 4, 6], [1, 3, 5, 7]]);
    for ranks in ["[3, 5]", "[0, 1, 5]", "[5, 4]", "[2, 3, 4, 5]"] {
        let message = of(ranks).unwrap_err().to_string();
        assert!(message.starts_with("runs/step.5.json, rank 5, node 1: process group '"), "{message}");
        assert!(message.ends_with("which does not list the groups of the others; give the traces of all ranks"));
    }
}

#[test]
fn mistakes_are_named_with_rank_and_event() {
    let good = |rank| trace(rank, 3, &[kernel(0.0, 4.0), collective("allreduce", 4.0, 5.0, "[0, 1, 2]")]);
    let refused = |files: &[SourceFile]| read(files, true).unwrap_err().to_string();
    read(&[good(0), good(1), good(2)], true).unwrap();
    assert_eq!(
        refused(&[good(0), good(2)]),
        "runs/step.2.json: the trace of rank 1 is missing; accepted are the traces of all 3 ranks, or of one, which stands \
         for all"
    );
    assert!(
        refused(&[good(1), good(1)])
            .ends_with("rank 1: 'runs/step.1.json' is a trace of this rank too; accepted is one a rank")
    );
    let with = |event: Value| refused(&[good(0), good(1), trace(2, 3, &[event])]);
    let changed = |key: &str, value: Value| {
        let mut event = collective("allreduce", 4.0, 5.0, "[0, 1, 2]");
        match key {
            "ts" | "dur" => event[key] = value,
            _ => event["args"][key] = value,
        }
        with(event)
    };
    let cases = [
        (changed("ts", json!(null)), "ts is null; accepted are microseconds"),
        (changed("dur", json!(-3)), "dur is -3; accepted are microseconds"),
        (changed("In msg nelems", json!(-3)), "'In msg nelems' is -3; accepted is a number of at least 0"),
        (changed("In msg nelems", json!(null)), "a collective has no 'In msg nelems'"),
        (changed("dtype", json!("Quarter")), "dtype 'Quarter' is not known"),
        (changed("dtype", json!(null)), "a collective or a message has no 'dtype'"),
        (changed("Group size", json!(4)), "'Group size' is 4, and 'Process Group Ranks' lists 3"),
        (
            changed("Process Group Ranks", json!("[0, ...]")),
            "'Process Group Ranks' is \"[0, ...]\", which does not determine the other ranks; accepted are ranks at equal \
             distances, or pg_config of distributedInfo with all ranks",
        ),
        (
            changed("Process Group Ranks", json!("[0, 2, 1]")),
            "process group '[0, 1, 2]' has ranks [0, 2, 1], and by rank 0 it has ranks [0, 1, 2]; the traces are mixed up",
        ),
        (
            with(collective("allreduce", 4.0, 5.0, "[0, 1]")),
            "process group '[0, 1]' has ranks [0, 1], and rank 2 is not among them",
        ),
        (
            with(collective("sing", 4.0, 5.0, "[0, 1, 2]")),
            "the collective 'sing' is not known; without --strict it is counted",
        ),
    ];
    for (found, message) in cases {
        assert_eq!(found, format!("runs/step.2.json, rank 2, node 1: {message}"));
    }
    let odd = trace(0, 1, &[collective("sing", 4.0, 5.0, "[0]")]);
    assert_eq!(read(&[odd], false).unwrap().unknown["sing"], 1);
    let whole = String::from_utf8(good(0).1).unwrap();
    let cut = refused(&[("a.json".to_owned(), whole.as_bytes()[..whole.len() - 3].to_vec())]);
    assert!(cut.starts_with("a.json, line 1: it is not a trace of PyTorch's profiler: EOF while parsing"), "{cut}");
    let other = refused(&[("a.json".to_owned(), b"{\"nodes\": []}".to_vec())]);
    assert!(
        other.starts_with("a.json, line 1: it is not a trace of PyTorch's profiler: missing field `traceEvents`"),
        "{other}"
    );
    let nameless = whole.replace("distributedInfo", "info");
    assert_eq!(
        refused(&[("a.json".to_owned(), nameless.into_bytes())]),
        "a.json: it has collectives, and no distributedInfo with the rank; record it with a process group"
    );
    let groups: Vec<Value> = (1..17).map(|n| collective("allreduce", 0.0, 5.0, &format!("[0, {}]", 1 << n))).collect();
    assert_eq!(
        refused(&[trace(0, 1 << 22, &groups)]),
        "runs/step.0.json, rank 0, node 5: the traces have more than 4 different groups among 4194304 ranks"
    );
    assert_eq!(refused(&[trace(3, 3, &[])]), "runs/step.3.json: it is of rank 3, and its world_size is 3");
}

/// Kernels of NCCL and RCCL without metadata communicate. They are neither compute nor known collectives.
#[test]
fn kernels_without_metadata_are_counted() {
    let bare = |name: &str| json!({"ph": "X", "cat": "kernel", "name": name, "ts": 4.0, "dur": 2.0});
    let name = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)";
    let events = [kernel(0.0, 4.0), bare(name), bare(name), bare("rcclKernel_AllGather")];
    let graph = read(&[trace(0, 1, &events)], false).unwrap();
    let counts: Vec<(&str, u64)> = graph.unknown.iter().map(|(name, count)| (&**name, *count)).collect();
    assert_eq!(
        counts,
        [("ncclKernel_AllReduce_RING_LL_Sum_float without metadata", 2), ("rcclKernel_AllGather without metadata", 1)]
    );
    assert_eq!(graph.classes[0].nodes.len(), 1);
    let message = read(&[trace(0, 1, &events)], true).unwrap_err().to_string();
    assert_eq!(
        message,
        "runs/step.0.json, rank 0, node 2: 'ncclKernel_AllReduce_RING_LL_Sum_float without metadata' is not known; without \
         --strict it is counted and left out"
    );
}

/// Ranks of a group perform the same collectives in the same order.
#[test]
fn groups_agree_between_ranks() {
    let of = |rank, names: &[&str]| {
        let events: Vec<Value> = names.iter().map(|name| collective(name, 4.0, 5.0, "[0, 1]")).collect();
        trace(rank, 2, &events)
    };
    let message = read(&[of(0, &["allreduce"]), of(1, &["_allgather_base"])], true).unwrap_err().to_string();
    assert!(message.starts_with("runs/step.1.json, rank 1, node 1: it is allgather of "), "{message}");
    let message = read(&[of(0, &["allreduce", "allreduce"]), of(1, &["allreduce"])], true).unwrap_err().to_string();
    assert!(message.starts_with("runs/step.0.json, rank 0, node 2: it is allreduce of "), "{message}");
    assert!(message.contains("which rank 1 of the same group does not make; accepted are traces"), "{message}");
}

/// Events of the host take no memory; the number of events of devices is limited.
#[test]
fn events_are_limited() {
    let list = |event: &str, count: usize| {
        let text = format!("{{\"traceEvents\": [{}{event}]}}", format!("{event},").repeat(count - 1));
        read(&[("a.json".to_owned(), text.into_bytes())], true)
    };
    assert_eq!(list("{}", 1 << 21).unwrap().classes[0].nodes.len(), 0);
    let message = list("{\"cat\": \"kernel\", \"ts\": 0, \"dur\": 0}", (1 << 20) + 1).unwrap_err().to_string();
    assert!(message.ends_with("profiler: more than 1048576 device events"), "{message}");
}

/// Returns a message of 1000 elements of bf16 to or from rank `peer`.
fn message(name: &str, begin: f64, end: f64, peer: u32) -> Value {
    let key = if name == "send" { "Dst Rank" } else { "Src Rank" };
    json!({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv", "ts": begin, "dur": end - begin, "args": {
        "stream": 24, "Collective name": name, "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "BFloat16",
        "Group size": 2, "Process Group Name": "pipe", "Process Group Ranks": "[0, 1]", key: peer}})
}

#[test]
fn sends_and_receives_are_messages() {
    let first = [kernel(0.0, 10.0), message("send", 10.0, 12.0, 1), kernel(10.0, 20.0), message("recv", 20.0, 40.0, 1)];
    let second = [message("recv", 0.0, 12.0, 0), kernel(12.0, 30.0), message("send", 30.0, 40.0, 0)];
    let graph = read(&[trace(0, 2, &first), trace(1, 2, &second)], true).unwrap();
    assert_eq!(graph.queues, Queues::AsReady);
    let works = |class: usize| graph.classes[class].nodes.iter().map(|node| (node.work, &node.after[..]));
    let messages: Vec<_> = works(0).filter(|(work, _)| work.is_message()).collect();
    let expected: [(Work, &[u32]); 2] =
        [(Work::Send { to: 1, bytes: 2000, tag: 0 }, &[0]), (Work::Receive { from: 1, bytes: 2000, tag: 0 }, &[2])];
    assert_eq!(messages, expected);
    // Compute nodes run in sequence.
    assert_eq!(works(0).nth(2).unwrap().1, [0]);
    let received: Vec<_> = works(1).collect();
    assert_eq!(received[0], (Work::Receive { from: 0, bytes: 2000, tag: 0 }, &[][..]));
    let refused = |files: &[SourceFile]| read(files, true).unwrap_err().to_string();
    let alone = refused(&[trace(0, 2, &first)]);
    assert!(
        alone.contains("rank 0, node 2: it is a message between two ranks; give the traces of all ranks"),
        "{alone}"
    );
    let lost = refused(&[trace(0, 2, &first), trace(1, 2, &second[..2])]);
    assert!(lost.contains("step.0.json, rank 0, node 4: it receives 2000 bytes from rank 1"), "{lost}");
    let mut odd = message("send", 10.0, 12.0, 1);
    odd["args"]["Dst Rank"] = Value::Null;
    assert!(refused(&[trace(0, 2, &[odd])]).contains("a message has no 'Dst Rank'"));
}

#[test]
fn cut_lists_of_ranks_are_continued() {
    let group = |text: &str, size: u32| {
        let mut event = collective("allreduce", 0.0, 9.0, text);
        event["args"]["Group size"] = json!(size);
        event
    };
    let ranks = |text: &str, size: u32| {
        let graph = read(&[trace(0, 64, &[group(text, size)])], true).unwrap();
        graph.groups[0].group(0).to_vec()
    };
    assert_eq!(ranks("[0, 1, 2, ...]", 64), (0..64).collect::<Vec<u32>>());
    assert_eq!(ranks("[0, 2, 4, ..., 62]", 32), (0..64).step_by(2).collect::<Vec<u32>>());
    for (text, size) in
        [("[0, 1, 3, ...]", 32), ("[0, ...]", 32), ("[0, 2, ..., 60]", 32), ("[0, 1, 2, ...]", 2), ("[1, 0, ...]", 2)]
    {
        let found = read(&[trace(0, 64, &[group(text, size)])], true).unwrap_err().to_string();
        assert!(
            found.contains("which does not determine the other ranks; accepted are ranks at equal distances"),
            "{found}"
        );
    }
    // The trace itself lists the whole group.
    let mut file: Value = serde_json::from_slice(&trace(0, 4, &[group("[0, 1, 3, ...]", 4)]).1).unwrap();
    file["distributedInfo"]["pg_config"] = json!([{"pg_name": "[0, 1, 3, ...]", "pg_size": 4, "ranks": [0, 1, 2, 3]}]);
    let graph = read(&[("step.0.json".to_owned(), file.to_string().into_bytes())], true).unwrap();
    assert_eq!(graph.groups[0].group(0), [0, 1, 2, 3]);
}
