//! Execution traces: writing and reading back, variants of writers, damaged and missing files.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use unisono_collective::Kind;
use unisono_workload::{
    Collected, Compute, Groups, Queues, RankClass, SourceFile, Work, WorkNode, WorkloadGraph, chakra, hlo, read,
};

const TRANSFORMER: &str = include_str!("../../../../examples/programs/transformer.hlo");

/// A Protobuf message, built field by field without a library.
#[derive(Default)]
struct Raw(Vec<u8>);

impl Raw {
    fn varint(mut self, mut number: u64) -> Self {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    fn number(self, tag: u64, number: u64) -> Self {
        self.varint(tag << 3).varint(number)
    }

    fn bytes(self, tag: u64, bytes: &[u8]) -> Self {
        let mut raw = self.varint(tag << 3 | 2).varint(bytes.len() as u64);
        raw.0.extend(bytes);
        raw
    }

    /// Adds an attribute whose value is a varint in field `tag` of the oneof.
    fn attribute(self, name: &str, tag: u64, number: u64) -> Self {
        let attribute = Raw::default().bytes(1, name.as_bytes()).number(tag, number);
        self.bytes(10, &attribute.0)
    }

    fn text(self, name: &str, text: &str) -> Self {
        let attribute = Raw::default().bytes(1, name.as_bytes()).bytes(29, text.as_bytes());
        self.bytes(10, &attribute.0)
    }
}

fn node(id: u64, kind: u64, after: &[u64]) -> Raw {
    let raw = Raw::default().number(1, id).bytes(2, format!("n{id}").as_bytes()).number(3, kind);
    after.iter().fold(raw, |raw, &before| raw.number(5, before))
}

fn file(nodes: &[Raw]) -> Vec<u8> {
    let head = Raw::default().bytes(1, b"0.0.4");
    [&head]
        .into_iter()
        .chain(nodes)
        .fold(Raw::default(), |all, message| {
            let mut all = all.varint(message.0.len() as u64);
            all.0.extend(&message.0);
            all
        })
        .0
}

const COMPUTE: u64 = 4;
const COLLECTIVE: u64 = 7;

fn ranks(count: u32, of: impl Fn(u32) -> Vec<u8>) -> Vec<SourceFile> {
    (0..count).map(|rank| (format!("traces/t.{rank}.et"), of(rank))).collect()
}

fn refused(files: &[SourceFile]) -> String {
    read(files, true).unwrap_err().to_string()
}

fn allreduce(id: u64, after: &[u64]) -> Raw {
    node(id, COLLECTIVE, after).attribute("comm_type", 9, 0).attribute("comm_size", 9, 4096)
}

#[test]
fn a_program_that_is_written_reads_back() {
    let program = hlo::read(TRANSFORMER, "transformer.hlo", true).unwrap();
    let files = chakra::write(&program).unwrap();
    assert_eq!(files.len(), 256);
    let again = read(&files, true).unwrap();
    assert!(again.classes == program.classes && again.groups == program.groups);
    assert_eq!((again.name, again.format, again.ranks), (program.name.clone(), "chakra", 256));
    let packed = |(name, bytes): &SourceFile| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        (name.replace(".et", ".et.gz"), encoder.finish().unwrap())
    };
    let packed: Vec<SourceFile> = files.iter().map(packed).collect();
    assert!(read(&packed, true).unwrap().classes == program.classes);
}

#[test]
fn every_collective_keeps_its_bytes() {
    let kinds = [Kind::Allreduce, Kind::Reduce, Kind::Allgather, Kind::Gather, Kind::Scatter, Kind::Broadcast];
    let kinds = [&kinds[..], &[Kind::Alltoall, Kind::ReduceScatter, Kind::Barrier]].concat();
    let node = |&kind: &Kind| {
        let bytes = if kind == Kind::Barrier { 0 } else { 4096 };
        let collected = Collected { kind, bytes, element_bytes: 4, root: 0, groups: 0 };
        WorkNode::new(kind.to_string(), Work::Collective(collected), Vec::new())
    };
    let graph = WorkloadGraph {
        name: "w".to_owned(),
        format: "chakra",
        ranks: 6,
        groups: vec![Groups::new(6, [vec![0, 2, 4], vec![1, 3, 5]]).unwrap()],
        classes: vec![RankClass { ranks: (0..6).collect(), nodes: kinds.iter().map(node).collect() }],
        ..WorkloadGraph::default()
    };
    assert_eq!(read(&chakra::write(&graph).unwrap(), true).unwrap(), graph);
}

/// A part that is not a whole number of bytes is rounded up with a note. Groups of different sizes have different
/// parts.
#[test]
fn inputs_are_split_among_the_ranks_of_a_group() {
    let of = |kind: u64, bytes: u64, group: &str| {
        [node(7, COLLECTIVE, &[])
            .attribute("comm_type", 9, kind)
            .attribute("comm_size", 9, bytes)
            .text("pg_name", group)]
    };
    let note = |bytes| {
        format!("3 ranks do not divide the {bytes} bytes of a collective's input: each rank's part is rounded up")
    };
    for (kind, bytes, each, notes) in
        [(7, 64, 22, vec![note(64)]), (6, 65, 22, vec![note(65)]), (7, 66, 22, vec![]), (0, 64, 64, vec![])]
    {
        let graph = read(&ranks(3, |_| file(&of(kind, bytes, "a"))), true).unwrap();
        let Work::Collective(met) = graph.classes[0].nodes[0].work else { panic!() };
        assert_eq!((met.bytes, &graph.notes), (each, &notes), "{kind} {bytes}");
    }
    let graph = read(&ranks(5, |rank| file(&of(7, 60, if rank < 2 { "a" } else { "b" }))), true).unwrap();
    let parts = graph.classes.iter().map(|class| match class.nodes[0].work {
        Work::Collective(met) => (class.ranks.clone(), met.bytes),
        _ => panic!(),
    });
    let expected = [(0, 30), (1, 30), (2, 20), (3, 20), (4, 20)].map(|(rank, bytes)| (vec![rank], bytes));
    assert_eq!(parts.collect::<Vec<_>>(), expected);
    assert!(graph.notes.is_empty());
}

#[test]
fn sizes_are_read_from_any_numeric_field() {
    // The fields int32, int64, uint32 and uint64.
    for field in [7, 9, 11, 13] {
        let one = node(0, COLLECTIVE, &[]).attribute("comm_type", field, 0).attribute("comm_size", field, 4096);
        let graph = read(&ranks(2, |_| file(&[Raw(one.0.clone())])), true).unwrap();
        assert!(matches!(graph.classes[0].nodes[0].work, Work::Collective(c) if c.bytes == 4096), "field {field}");
    }
    let one = node(0, COLLECTIVE, &[]).text("comm_type", "2").text("comm_size", "64").text("pg_name", "0");
    let graph = read(&ranks(2, |_| file(&[Raw(one.0.clone())])), true).unwrap();
    assert!(
        matches!(graph.classes[0].nodes[0].work, Work::Collective(c) if (c.kind, c.bytes) == (Kind::Allgather, 64))
    );
}

#[test]
fn nodes_follow_their_dependencies() {
    // Node 5, compute of 20 us, waits for a metadata node, which waits for the allreduce. The allreduce comes later in
    // the file.
    let of = |_| {
        let host = node(9, COMPUTE, &[]).number(7, 1000).attribute("is_cpu_op", 27, 1);
        let computed = node(5, COMPUTE, &[7]).number(7, 20);
        let counted = node(8, COMPUTE, &[5]).attribute("num_ops", 9, 1000).attribute("tensor_size", 13, 50);
        file(&[computed, host, node(7, 1, &[3, 9]), allreduce(3, &[]), counted])
    };
    let graph = read(&ranks(4, of), true).unwrap();
    let nodes = &graph.classes[0].nodes;
    let shown: Vec<(&str, &[u32])> = nodes.iter().map(|node| (&*node.name, &node.after[..])).collect();
    assert_eq!(shown, [("n3", &[][..]), ("n5", &[0]), ("n8", &[1])]);
    assert_eq!(nodes[1].work, Work::Compute(Compute::Measured { seconds: 20.0 * 1e-6 }));
    assert_eq!(nodes[2].work, Work::Compute(Compute::Counted { operations: 1000.0, bytes: 50.0 }));
}

proptest! {
    /// The error about a missing order names a node that depends on itself, not a node that only follows such nodes.
    #[test]
    fn a_refused_order_names_a_node_of_a_cycle(
        nodes in 1_usize..9,
        pairs in prop::collection::vec((0_usize..9, 0_usize..9), 0..12),
    ) {
        let mut needs = vec![vec![false; nodes]; nodes];
        let pairs = pairs.into_iter().map(|(node, needed)| (node % nodes, needed % nodes));
        pairs.for_each(|(node, needed)| needs[node][needed] = true);
        let after = |node: usize| (0..nodes).filter(|&other| needs[node][other]).map(|n| n as u64).collect::<Vec<_>>();
        let listed: Vec<Raw> =
            (0..nodes).map(|n| node(n as u64, COMPUTE, &after(n)).number(7, 5)).collect();
        let files = ranks(1, |_| file(&listed));
        for by in 0..nodes {
            for from in 0..nodes {
                for to in 0..nodes {
                    needs[from][to] |= needs[from][by] && needs[by][to];
                }
            }
        }
        match (0..nodes).any(|node| needs[node][node]) {
            false => prop_assert!(read(&files, true).is_ok()),
            true => {
                let said = refused(&files);
                let named = |&node: &usize| said.contains(&format!("node {node}: it depends on itself"));
                prop_assert!((0..nodes).find(named).is_some_and(|node| needs[node][node]), "{said}");
            }
        }
    }
}

#[test]
fn ranks_that_differ_are_classes() {
    let of = |rank: u32| {
        let group = if rank < 2 { "a" } else { "b" };
        let one = node(0, COMPUTE, &[]).number(7, u64::from(rank) + 1);
        file(&[one, allreduce(1, &[0]).text("pg_name", group), allreduce(2, &[1])])
    };
    let graph = read(&ranks(4, of), true).unwrap();
    assert_eq!(graph.classes.len(), 4);
    let lists: Vec<Vec<&[u32]>> = graph.groups.iter().map(|groups| groups.iter().collect()).collect();
    assert_eq!(lists, [vec![&[0, 1][..]], vec![&[0, 1, 2, 3]], vec![&[2, 3]]]);
    // Equal nodes on all ranks form one class, whose groups communicate concurrently.
    let alike = |rank: u32| {
        let group = if rank < 2 { "a" } else { "b" };
        file(&[node(0, COMPUTE, &[]).number(7, 5), allreduce(1, &[0]).text("pg_name", group)])
    };
    let graph = read(&ranks(4, alike), true).unwrap();
    assert_eq!((graph.classes.len(), graph.groups.len(), graph.groups[0].len()), (1, 1, 2));
}

#[test]
fn mistakes_are_named_with_rank_and_node() {
    let good = |_| file(&[node(0, COMPUTE, &[]).number(7, 5), allreduce(1, &[0])]);
    read(&ranks(3, good), true).unwrap();
    let with = |rank: usize, bytes: Vec<u8>| {
        let mut files = ranks(3, good);
        files[rank].1 = bytes;
        refused(&files)
    };
    let mut missing = ranks(3, good);
    missing.remove(1);
    assert_eq!(
        refused(&missing),
        "traces/t.0.et: the trace of rank 1 is missing; accepted are the traces of all ranks from 0 on"
    );
    let mut twice = ranks(2, good);
    twice.push(("traces/u.1.et".to_owned(), good(1)));
    assert!(refused(&twice).starts_with("traces/u.1.et, rank 1: 'traces/t.1.et' is a trace of this rank too"));
    let whole = good(1);
    let cut = with(1, whole[..whole.len() - 1].to_vec());
    assert!(cut.starts_with("traces/t.1.et, rank 1: a message of ") && cut.contains("is cut off after"), "{cut}");
    let circle = file(&[node(0, COMPUTE, &[1]), node(1, COMPUTE, &[0])]);
    assert_eq!(with(2, circle), "traces/t.2.et, rank 2, node 0: it depends on itself, by way of other nodes");
    let absent = file(&[node(0, COMPUTE, &[77])]);
    assert!(
        with(2, absent).starts_with("traces/t.2.et, rank 2, node 0: it depends on node 77, which is not in the file")
    );
    let same = file(&[node(4, COMPUTE, &[]), node(4, COMPUTE, &[])]);
    assert_eq!(with(0, same), "traces/t.0.et, rank 0, node 4: two nodes have this id");
    let odd = file(&[node(6, COLLECTIVE, &[]).attribute("comm_type", 9, 12)]);
    assert_eq!(with(1, odd), "traces/t.1.et, rank 1, node 6: comm_type is 12; accepted are 0 to 9");
    let limit = file(&[allreduce(6, &[]).attribute("involved_dim", 9, 1)]);
    assert_eq!(with(1, limit), "traces/t.1.et, rank 1, node 6: involved_dim is not a list of true and false");
    let pair = file(&[node(6, 5, &[])]);
    assert_eq!(with(1, pair), "traces/t.1.et, rank 1, node 6: a message has no comm_dst");
    let unknown = file(&[node(6, 9, &[])]);
    assert!(with(1, unknown).contains("rank 1, node 6: node type 9 is not known; without --strict it is counted"));
    let mut files = ranks(1, |_| file(&[node(6, 9, &[])]));
    assert_eq!(read(&files, false).unwrap().unknown["node type 9"], 1);
    let mut bare = ranks(1, |_| file(&[node(6, COLLECTIVE, &[])]));
    assert!(refused(&bare).contains("node 6: collective without comm_type is not known"));
    assert_eq!(read(&bare, false).unwrap().unknown["collective without comm_type"], 1);
    // A head that states a schema instead of a version.
    let schema = Raw::default().bytes(1, b"schema").bytes(29, b"1.0.2-chakra.0.0.4");
    let head = Raw::default().bytes(2, &schema.0);
    bare[0].1 = Raw::default().varint(head.0.len() as u64).0;
    bare[0].1.extend(&head.0);
    assert_eq!(read(&bare, true).unwrap().ranks, 1);
    files[0].0 = "trace.et".to_owned();
    assert_eq!(refused(&files), "trace.et: the name of a trace is NAME.RANK.et, and this one has no rank");
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&good(0)).unwrap();
    let packed = packed.finish().unwrap();
    let files = [("t.0.et".to_owned(), packed[..packed.len() - 9].to_vec())];
    assert_eq!(refused(&files), "t.0.et, rank 0: the compressed file is damaged or cut off");
}

/// Ranks of a group perform the same collectives. Only sums must have the same length on all of them.
#[test]
fn groups_agree_between_ranks() {
    let of = |kind: u64, bytes: u64, root: u64| {
        let node = node(7, COLLECTIVE, &[]).attribute("comm_type", 9, kind).attribute("comm_size", 9, bytes);
        node.attribute("root", 7, root).text("pg_name", "a")
    };
    let first = [of(0, 64, 0)];
    let with = |last: &[Raw]| read(&ranks(3, |rank| file(if rank < 2 { &first } else { last })), true);
    let accepted = "accepted are traces in which all ranks of a group make the same collectives in the same order";
    let broadcast = |root: u32| read(&ranks(3, |rank| file(&[of(5, 64, u64::from(rank == root))])), true);
    let cases = [
        (
            with(&[of(0, 32, 0)]),
            "it is allreduce of 32 bytes, where rank 0 of the same group makes allreduce of 64 bytes",
        ),
        (
            with(&[of(2, 64, 0)]),
            "it is allgather of 64 bytes, where rank 0 of the same group makes allreduce of 64 bytes",
        ),
        (
            read(&ranks(3, |rank| file(&[of(1, if rank < 2 { 64 } else { 32 }, 0)])), true),
            "it is reduce of 32 bytes with root 0, where rank 0 of the same group makes reduce of 64 bytes with root 0",
        ),
        (
            broadcast(2),
            "it is broadcast of 64 bytes with root 1, where rank 0 of the same group makes broadcast of 64 bytes with \
             root 0",
        ),
    ];
    for (found, message) in cases {
        assert_eq!(found.unwrap_err().to_string(), format!("traces/t.2.et, rank 2, node 7: {message}; {accepted}"));
    }
    let more = with(&[of(0, 64, 0), node(9, COLLECTIVE, &[]).attribute("comm_type", 9, 9).text("pg_name", "a")]);
    let missed = "it is barrier of 0 bytes, which rank 0 of the same group does not make";
    assert_eq!(more.unwrap_err().to_string(), format!("traces/t.2.et, rank 2, node 9: {missed}; {accepted}"));
    read(&ranks(3, |rank| file(&[of(6, 64 * u64::from(rank + 1), 0)])), true).unwrap();
}

/// A short file must not unpack or decode to more than some hundred megabytes.
#[test]
fn short_files_of_long_traces_are_refused() {
    let packed = |begin: &[u8], repeated: &[u8], times: usize| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(begin).unwrap();
        packed.write_all(&repeated.repeat(times)).unwrap();
        refused(&[("t.0.et".to_owned(), packed.finish().unwrap())])
    };
    let head = file(&[]);
    let node_of = |bytes: usize| [&head[..], &Raw::default().varint(bytes as u64).0].concat();
    let most = 1 << 22;
    let message = format!("t.0.et, rank 0: message 1 has {} bytes; accepted are nodes of at most {most}", most + 2);
    // The repeated bytes are an attribute without a name, and dependencies on a node.
    assert_eq!(packed(&node_of(most + 2), &[0x52, 0], most / 2 + 1), message);
    let three = [&Raw::default().varint(1 << 20).0[..], &Raw::default().bytes(5, &vec![2; (1 << 20) - 4]).0].concat();
    assert_eq!(packed(&head, &three, 17), "t.0.et, rank 0: the trace has more than 16777216 dependencies");
    assert_eq!(packed(&head, &[0], (1 << 20) + 1), "t.0.et, rank 0: the trace has more than 1048576 nodes");
    let json = packed(b"{\"workload_graph\": [", b"{\"Id\": 1, \"NodeType\": 4},", (1 << 20) + 1);
    assert!(
        json.contains("t.0.et, rank 0: the JSON form of a trace is damaged: it has more than 1048576 nodes"),
        "{json}"
    );
}

#[test]
fn every_beginning_of_a_trace_is_refused_or_read() {
    let whole = file(&[node(0, COMPUTE, &[]).number(7, 5), allreduce(1, &[0]).text("pg_name", "a")]);
    for end in 0..whole.len() {
        drop(read(&[("t.0.et".to_owned(), whole[..end].to_vec())], true));
    }
}

/// Returns a send (kind 5) or a receive (6) between two ranks.
fn message(id: u64, kind: u64, from: u64, to: u64, bytes: u64) -> Raw {
    let raw = node(id, kind, &[]).attribute("comm_src", 7, from).attribute("comm_dst", 7, to);
    raw.attribute("comm_tag", 7, 3).attribute("comm_size", 9, bytes)
}

#[test]
fn messages_are_read_and_written() {
    let of = |rank: u32| match rank {
        0 => file(&[node(0, COMPUTE, &[]).number(7, 5), message(1, 5, 0, 1, 64).number(5, 0), allreduce(2, &[])]),
        _ => file(&[message(4, 6, 0, 1, 64), node(5, COMPUTE, &[4]).number(7, 9), allreduce(7, &[])]),
    };
    let graph = read(&ranks(2, of), true).unwrap();
    assert_eq!((graph.queues, graph.classes.len()), (Queues::AsReady, 2));
    let works: Vec<Work> = graph.classes.iter().flat_map(|class| &class.nodes).map(|node| node.work).collect();
    assert_eq!(works[1], Work::Send { to: 1, bytes: 64, tag: 3 });
    assert_eq!(works[3], Work::Receive { from: 0, bytes: 64, tag: 3 });
    let after: Vec<&[u32]> = graph.classes.iter().flat_map(|class| &class.nodes).map(|node| &node.after[..]).collect();
    assert_eq!(after, [&[][..], &[0], &[], &[], &[0], &[]]);
    let mut begun = graph;
    begun.classes[0].nodes[2].begun = vec![0, 1];
    assert_eq!(read(&chakra::write(&begun).unwrap(), true).unwrap(), begun);
}

#[test]
fn messages_have_two_ends() {
    let program = |first: Raw, second: Raw| {
        let of = |rank: u32| file(&[Raw(if rank == 0 { &first } else { &second }.0.clone())]);
        read(&ranks(2, of), true).map(drop).map_err(|e| e.to_string())
    };
    program(message(0, 5, 0, 1, 64), message(4, 6, 0, 1, 64)).unwrap();
    let refused = |first, second| program(first, second).unwrap_err();
    assert_eq!(
        refused(message(0, 5, 0, 1, 64), node(4, COMPUTE, &[]).number(7, 5)),
        "traces/t.0.et, rank 0, node 0: it sends 64 bytes to rank 1 with tag 3, which rank 1 does not receive; accepted \
         are as many receives as sends, of the same lengths"
    );
    assert_eq!(
        refused(node(4, COMPUTE, &[]).number(7, 5), message(9, 6, 0, 1, 64)),
        "traces/t.1.et, rank 1, node 9: it receives 64 bytes from rank 0 with tag 3, which rank 0 does not send; accepted \
         are as many sends as receives, of the same lengths"
    );
    let longer = refused(message(0, 5, 0, 1, 64), message(4, 6, 0, 1, 65));
    assert!(longer.starts_with("traces/t.0.et, rank 0, node 0: it sends 64 bytes to rank 1"), "{longer}");
    let far = refused(message(0, 5, 0, 2, 64), message(4, 6, 0, 1, 64));
    assert!(
        far.ends_with("'n0' is a message with rank 2; accepted are ranks 0 to 1, but not the rank itself"),
        "{far}"
    );
    let mixed = refused(message(0, 5, 1, 0, 64), message(4, 6, 0, 1, 64));
    assert!(mixed.ends_with("node 0: comm_src is 1 in the trace of rank 0; the traces are mixed up"), "{mixed}");
    let unknown = message(4, 6, 0, 1, 64).text("unisono_begun", "7");
    let named = refused(message(0, 5, 0, 1, 64), unknown);
    assert!(named.ends_with("unisono_begun names '7'; accepted are ids of earlier nodes that take time"), "{named}");
}

#[test]
fn a_file_lists_process_groups() {
    let of = |rank: u32| file(&[allreduce(3, &[]).text("pg_name", if rank < 2 { "low" } else { "high" })]);
    let with = |name: &str, json: &str| {
        let mut files = ranks(4, of);
        files.push((name.to_owned(), json.as_bytes().to_vec()));
        read(&files, true).map_err(|e| e.to_string())
    };
    let graph = with("groups.json", r#"{"low": [1, 0], "high": [2, 3], "idle": []}"#).unwrap();
    let lists: Vec<&[u32]> = graph.groups[0].iter().collect();
    assert_eq!(lists, [&[1, 0][..], &[2, 3]]);
    // A system file is not a list of groups.
    let lists = |graph: WorkloadGraph| graph.groups[0].iter().map(<[u32]>::to_vec).collect::<Vec<_>>();
    let plain = with("system.json", r#"{"scheduling-policy": "LIFO", "all-reduce-implementation": ["ring"]}"#).unwrap();
    assert_eq!(lists(plain), [[0, 1], [2, 3]]);
    let cases = [
        (r#"{"low": [0, 1]}"#, "traces/t.2.et, rank 2, node 3: process group 'high' is not listed in 'g.json'"),
        (
            r#"{"low": [0, 1], "high": [2]}"#,
            "traces/t.3.et, rank 3, node 3: rank 3 is not in process group 'high', as 'g.json' lists it",
        ),
        (r#"{"low": [0, 0], "high": [2, 3]}"#, "g.json: process group 'low': rank 0 is in two groups, or twice in one"),
        (r#"{"low": [0, 9], "high": [2, 3]}"#, "g.json: process group 'low': a group has rank 9; accepted are 0 to 3"),
        (r#"{"low": [0, -1], "high": [2, 3]}"#, "g.json: process group 'low': accepted is a list of ranks"),
        (r#"{"low": [0"#, "g.json, line 1: it is not JSON: EOF while parsing a list"),
    ];
    for (json, message) in cases {
        assert_eq!(with("g.json", json).unwrap_err(), message);
    }
    let mut files = ranks(4, of);
    for name in ["a.json", "b.json"] {
        files.push((name.to_owned(), br#"{"low": [0, 1], "high": [2, 3]}"#.to_vec()));
    }
    assert_eq!(refused(&files), "b.json: 'a.json' lists process groups too; accepted is one such file");
}

/// Returns the JSON form of a rank's trace: compute of 40 us, an allreduce and a message to the other rank.
fn json(rank: u32) -> String {
    let (kind, other) = (5 + rank, 1 - rank);
    format!(
        r#"{{"workload_graph": [
        {{"Id": 7, "Name": "grad", "NodeType": 4, "data_deps": [], "runtime": 40, "is_cpu_op": false, "shape": [1, 2]}},
        {{"Id": 8, "Name": "sum", "NodeType": 7, "data_deps": [7], "runtime": 9, "comm_type": 0, "comm_size": 4096,
          "is_cpu_op": false}},
        {{"Id": 9, "Name": "pass", "NodeType": {kind}, "data_deps": [8], "comm_src": {src}, "comm_dst": {dst}, "comm_tag": 3,
          "comm_size": 64, "other {other}": -1.5}}]}}"#,
        src = 0,
        dst = 1
    )
}

#[test]
fn a_root_is_a_rank() {
    let broadcast = |_| {
        file(&[node(1, COLLECTIVE, &[])
            .attribute("comm_type", 9, 5)
            .attribute("comm_size", 9, 8)
            .attribute("root", 9, 7)])
    };
    assert!(refused(&ranks(4, broadcast)).contains("the root is rank 7; accepted is one below 4"));
}

proptest! {
    /// ASTRA-sim limits a collective among all ranks to the dimensions whose value is true, and ignores the list in a
    /// process group. A collective that is not among all dimensions is counted as unknown, in both forms.
    #[test]
    fn limits_to_dimensions_are_counted(dims in prop::collection::vec(prop::bool::ANY, 0..5), group in "|0|1") {
        let list = Raw::default().bytes(1, &dims.iter().map(|&dim| dim.into()).collect::<Vec<u8>>());
        let limit = Raw::default().bytes(1, b"involved_dim").bytes(28, &list.0);
        let protobuf = file(&[allreduce(1, &[]).text("pg_name", &group).bytes(10, &limit.0)]);
        let json = format!(
            r#"{{"workload_graph": [{{"Id": 1, "NodeType": 7, "comm_type": 0, "comm_size": 4096, "pg_name": "{group}",
            "involved_dim": {dims:?}}}]}}"#
        );
        let is_limited = group != "1" && !(dims.contains(&true) && dims.iter().all(|&dim| dim));
        for bytes in [protobuf, json.into_bytes()] {
            let files = ranks(2, |_| bytes.clone());
            let graph = read(&files, false).unwrap();
            prop_assert_eq!(graph.unknown.values().sum::<u64>(), if is_limited { 2 } else { 0 });
            prop_assert_eq!(graph.classes[0].nodes.len(), usize::from(!is_limited));
            if is_limited {
                let of = "node 1: collective in some dimensions of involved_dim is not known; without --strict";
                prop_assert!(refused(&files).contains(of));
            }
        }
    }
}

#[test]
fn the_json_form_is_the_same_trace() {
    let named = |form: &str, of: &dyn Fn(u32) -> Vec<u8>| -> Vec<SourceFile> {
        (0..2).map(|rank| (format!("traces/t.{rank}.{form}"), of(rank))).collect()
    };
    let protobuf = |rank: u32| {
        let message = |node: Raw| {
            let ends = node.attribute("comm_src", 7, 0).attribute("comm_dst", 7, 1);
            ends.attribute("comm_tag", 7, 3).attribute("comm_size", 9, 64)
        };
        let compute = node(7, COMPUTE, &[]).number(7, 40);
        file(&[compute, allreduce(8, &[7]), message(node(9, 5 + u64::from(rank), &[8]))])
    };
    let read_json = read(&named("json", &|rank| json(rank).into_bytes()), true).unwrap();
    let expected = read(&named("et", &protobuf), true).unwrap();
    assert_eq!(read_json.format, "chakra");
    let works = |graph: &WorkloadGraph| {
        let node = |node: &WorkNode| (node.work, node.after.clone());
        graph.classes.iter().map(|class| class.nodes.iter().map(node).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    assert_eq!(format!("{:?}", works(&read_json)), format!("{:?}", works(&expected)));
    // A file of process groups among the files is not read as a trace.
    let mut files = named("json", &|rank| json(rank).into_bytes());
    files.push(("traces/zz-groups.json".to_owned(), br#"{"all": [0, 1]}"#.to_vec()));
    assert!(read(&files, true).is_ok());
    let damaged = named("json", &|_| json(0).into_bytes()[..200].to_vec());
    assert!(refused(&damaged).contains("rank 0: the JSON form of a trace is damaged"), "{}", refused(&damaged));
    let without = named("json", &|_| br#"{"workload_graph": [{"Id": 1}]}"#.to_vec());
    assert!(refused(&without).contains("missing field `NodeType`"), "{}", refused(&without));
}

#[test]
fn the_last_traces_of_a_written_program_are_missed() {
    let program = hlo::read(TRANSFORMER, "transformer.hlo", true).unwrap();
    let files: Vec<SourceFile> = chakra::write(&program).unwrap().into_iter().take(3).collect();
    let message = read(&files, false).unwrap_err().to_string();
    assert_eq!(message, "jit_step.0.et, rank 0: it is one of the traces of 256 ranks, and 3 are given");
}
