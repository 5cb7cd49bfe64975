//! Tests of exported plans: every algorithm for ranks is read back and run by the second implementation.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use unisono_algorithms::{ALGORITHMS, Case, Means, Params, Ranks};
use unisono_base::{NodeId, StreamId};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_formats::{Facts, Importer};
use unisono_gpu::{Choices, GpuFormat, mscclpp::MscclPp};
use unisono_lower::{File, VerifiedFile};
use unisono_machine::network::Protocol;
use unisono_schedule::{
    Builder, Operand, Schedule,
    verify::{Method, verify},
};

use super::{checked, wrong};

fn emit_as(schedule: &Schedule, choices: &Choices) -> Result<String, String> {
    let file = File { schedule: schedule.clone(), placement: None, machine: None, blocks: None };
    let proven = VerifiedFile::new(&file, Method::Auto).map_err(|proof| format!("{:?}", proof.diagnostics))?;
    let files = MscclPp.emit_as(&proven, choices);
    files.map(|mut files| files.remove(0).1.text().unwrap().to_owned()).map_err(|e| e.to_string())
}

fn emit(schedule: &Schedule) -> Result<String, String> {
    emit_as(schedule, &Choices::default())
}

fn class(schedule: &Schedule) -> Option<String> {
    verify(schedule, Method::Auto).expression_class
}

/// Asserts that a plan is read back as a schedule with the same results, and that launches of the plan compute these
/// results.
fn holds(text: &str, schedule: &Schedule, seeds: u64, what: &str) -> Value {
    let c = schedule.collective();
    let facts = Facts { elements: Some(c.elements.into()), dtype: Some(c.dtype), ..Facts::default() };
    let back = MscclPp.import(text, &facts).unwrap().schedule;
    assert!(class(&back).is_some() && class(&back) == class(schedule), "{what}");
    let plan: Value = serde_json::from_str(text).unwrap();
    for seed in 0..seeds {
        assert_eq!(wrong(&plan, 1, seed), None, "{what}, seed {seed}");
    }
    plan
}

fn named<'a>(plan: &'a Value, name: &'a str) -> impl Iterator<Item = &'a Value> {
    let list = |value: &'a Value, key: &str| value[key].as_array().unwrap().iter();
    let blocks = list(plan, "gpus").flat_map(move |gpu| list(gpu, "threadblocks"));
    blocks.flat_map(move |block| list(block, "ops")).filter(move |op| op["name"] == name)
}

fn build(name: &str, kind: Kind, ranks: u32, elements: u64) -> Option<Schedule> {
    let algorithm = ALGORITHMS.iter().find(|a| a.name() == name)?;
    let c = Collective::new(kind, ranks, elements, 0, Operator::Sum, Dtype::I32).unwrap();
    let case = Case::on_ranks(c, Ranks { latency_ns: 400.0, issue_ns: 100.0, ..Ranks::default() });
    algorithm.supports(&case, &Params::new()).ok()?;
    Some(algorithm.build(&case, &Params::new()).unwrap().schedule)
}

/// Algorithms that every run exports, each up to a number of ranks.
const ALWAYS: [(&str, u32); 4] = [("ring", 16), ("recursive-doubling", 16), ("pairwise", 8), ("rabenseifner", 16)];

/// Exports every algorithm on these numbers of ranks and reads it back; returns the plans' protocols and collectives.
fn export_every(ranks: &[u32]) -> (BTreeSet<String>, Vec<&'static str>) {
    let (mut written, mut refused) = (BTreeSet::<(&str, u32)>::new(), BTreeMap::<String, u32>::new());
    let (mut protocols, mut kinds, mut number) = (BTreeSet::new(), BTreeSet::new(), 0);
    for algorithm in ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Messages)) {
        for &kind in algorithm.info().collectives {
            for &ranks in ranks {
                number += 1;
                // Only the long run exports all algorithms for many ranks.
                let is_always =
                    ALWAYS.iter().any(|a| a.0 == algorithm.name()) && (ranks < 16 || kind == Kind::Allreduce);
                if ranks >= 8 && !is_always && !crate::soak::runs(number) {
                    continue;
                }
                let sizes = [u64::from(ranks) * 12, u64::from(ranks) << 14];
                // Only the long run has both sizes for many ranks.
                let one = unisono_base::mix(number) as usize % 2;
                let sizes = if ranks < 8 || crate::soak::is_on() { &sizes[..] } else { &sizes[one..=one] };
                for &elements in sizes {
                    let Some(schedule) = build(algorithm.name(), kind, ranks, elements) else { continue };
                    let what = format!("{} {kind} on {ranks} ranks, {elements} elements", algorithm.name());
                    let text = match emit(&schedule) {
                        Err(reason) => {
                            assert!(!reason.contains("please report"), "{what}: {reason}");
                            *refused.entry(reason).or_default() += 1;
                            continue;
                        }
                        Ok(text) => text,
                    };
                    written.insert((algorithm.name(), ranks));
                    let plan =
                        holds(&text, &schedule, if ranks <= 4 { crate::soak::cases(6).into() } else { 0 }, &what);
                    protocols.insert(plan["protocol"].as_str().unwrap().to_owned());
                    kinds.insert(kind.name());
                }
            }
        }
    }
    for (name, most) in ALWAYS {
        for &ranks in ranks.iter().filter(|&&r| r != 3 && r <= most) {
            assert!(written.contains(&(name, ranks)), "{name} on {ranks}: {refused:#?}");
        }
    }
    (protocols, kinds.into_iter().collect())
}

#[test]
fn every_algorithm_is_exported_and_reads_back() {
    let (protocols, kinds) = export_every(&[2, 3, 4]);
    assert_eq!(protocols.len(), 2, "{protocols:?}");
    assert_eq!(kinds, ["allgather", "allreduce", "alltoall", "broadcast", "reduce", "reduce-scatter"]);
}

#[test]
fn every_algorithm_is_exported_for_one_box() {
    export_every(&[8]);
}

#[test]
fn every_algorithm_is_exported_for_two_boxes() {
    export_every(&[16]);
}

#[test]
fn what_a_plan_cannot_hold_is_refused_with_the_reason() {
    let refused = |name, kind| emit(&build(name, kind, 4, 16).unwrap()).unwrap_err();
    assert_eq!(
        refused("binomial", Kind::Scatter),
        "mscclpp cannot express this schedule: scatter is no collective of plans; there are allgather, allreduce, \
         alltoall, broadcast, reduce and reduce-scatter"
    );
    let three = Choices { gpus_per_box: Some(3), ..Choices::default() };
    assert_eq!(
        emit_as(&build("ring", Kind::Allreduce, 4, 16).unwrap(), &three).unwrap_err(),
        "mscclpp cannot express this schedule: 4 GPUs do not fill boxes of 3; use a number that divides 4"
    );
    let many = Choices { thread_blocks: Some(u32::MAX), ..Choices::default() };
    assert_eq!(
        emit_as(&build("recursive-doubling", Kind::Allreduce, 4, 16).unwrap(), &many).unwrap_err(),
        "mscclpp cannot express this schedule: 4294967295 thread blocks that share the work need 8589934590 processors of a GPU, \
         which has 108; accepted are 1 to 54"
    );
    let c = Collective::new(Kind::Allreduce, 4, 16, 0, Operator::Max, Dtype::F32).unwrap();
    let ring = ALGORITHMS.iter().find(|a| a.name() == "ring").unwrap();
    let schedule = ring.build(&Case::on_ranks(c, Ranks::default()), &Params::new()).unwrap().schedule;
    assert_eq!(
        emit(&schedule).unwrap_err(),
        "mscclpp cannot express this schedule: the runtime adds, and the operator is max"
    );
}

#[test]
fn plans_in_place_copy_the_inputs_that_they_need_later() {
    let mut copied = 0;
    for (name, kind) in [
        ("pairwise", Kind::Alltoall),
        ("bruck", Kind::Allgather),
        ("ring", Kind::ReduceScatter),
        ("recursive-doubling", Kind::Allreduce),
        ("binomial", Kind::Broadcast),
        ("binomial", Kind::Reduce),
    ] {
        for (ranks, in_place) in [(2, true), (2, false), (4, true), (4, false), (8, true)] {
            let schedule = build(name, kind, ranks, 16).unwrap();
            let what = format!("{name} {kind} on {ranks}, in place {in_place}");
            let choices = Choices { in_place: Some(in_place), ..Choices::default() };
            let text = emit_as(&schedule, &choices).unwrap_or_else(|e| panic!("{what}: {e}"));
            let mut plan = holds(&text, &schedule, if ranks < 8 { 8 } else { 0 }, &what);
            assert_eq!(plan["inplace"], in_place, "{what}");
            let found = checked(&plan).unwrap();
            assert_eq!(found.keeps_input, (!in_place).then_some(true), "{what}");
            // A plan written to run in place must also run with two buffers, and vice versa.
            plan["inplace"] = json!(!in_place);
            assert!(checked(&plan).unwrap().diagnostics.is_empty(), "{what}");
            plan["inplace"] = json!(true);
            let is_copy = |op: &Value| {
                op["name"] == "copy" && op["src_buff"][0]["type"] == "i" && op["dst_buff"][0]["type"] == "s"
            };
            let ops = &plan["gpus"][0]["threadblocks"][0]["ops"];
            let Some(at) = ops.as_array().unwrap().iter().position(is_copy) else { continue };
            // Without the copy, the data that is sent later would have been overwritten.
            let (from, to) = (ops[at]["src_buff"].clone(), ops[at]["dst_buff"][0]["index"].as_u64().unwrap());
            let size = from[0]["size"].as_u64().unwrap();
            let ops = plan["gpus"][0]["threadblocks"][0]["ops"].as_array_mut().unwrap();
            ops.remove(at);
            for slice in ops
                .iter_mut()
                .filter(|op| op["src_buff"].is_array())
                .flat_map(|op| op["src_buff"].as_array_mut().unwrap())
            {
                let index = slice["index"].as_u64().unwrap();
                if slice["type"] == "s" && (to..to + size).contains(&index) {
                    (slice["type"], slice["index"]) = (json!("i"), json!(index - to));
                }
            }
            assert!(!checked(&plan).unwrap().diagnostics.is_empty(), "{what}");
            copied += 1;
        }
    }
    assert!(copied >= 3, "{copied}");
}

#[test]
fn boxes_are_joined_by_port_channels() {
    for (name, kind, ranks, of_box) in [
        ("ring", Kind::Allreduce, 4, 2),
        ("ring", Kind::Allgather, 4, 1),
        ("ring", Kind::ReduceScatter, 4, 2),
        ("pairwise", Kind::Alltoall, 4, 2),
        ("binomial", Kind::Broadcast, 4, 2),
        ("binomial", Kind::Reduce, 4, 2),
        ("rabenseifner", Kind::Allreduce, 16, 8),
        ("recursive-doubling", Kind::Allgather, 16, 8),
        ("recursive-halving", Kind::ReduceScatter, 16, 8),
        ("bruck", Kind::Alltoall, 16, 8),
        ("binomial", Kind::Broadcast, 16, 8),
        ("binomial", Kind::Reduce, 16, 8),
    ] {
        let schedule = build(name, kind, ranks, 64).unwrap();
        let what = format!("{name} {kind} on {ranks}, boxes of {of_box}");
        for in_place in [true, false] {
            let choices = Choices { in_place: Some(in_place), gpus_per_box: Some(of_box), ..Choices::default() };
            let text = emit_as(&schedule, &choices).unwrap_or_else(|e| panic!("{what}: {e}"));
            let plan = holds(&text, &schedule, if ranks == 4 { 12 } else { 1 }, &what);
            assert_eq!(plan["protocol"], "Simple", "{what}");
            let puts: Vec<&Value> = named(&plan, "put").collect();
            assert!(puts.iter().any(|op| op["channel_type"] == "port"), "{what}");
            assert_eq!(puts.iter().any(|op| op["channel_type"] == "memory"), of_box > 1, "{what}");
            for (gpu, peer) in named_peers(&plan) {
                assert_ne!(gpu / of_box, peer / of_box, "{what}");
            }
            // A put without a flush may read its source after the kernel ends.
            let mut open = plan.clone();
            let blocks =
                open["gpus"].as_array_mut().unwrap().iter_mut().flat_map(|g| g["threadblocks"].as_array_mut().unwrap());
            for block in blocks {
                block["ops"].as_array_mut().unwrap().retain(|op| op["name"] != "flush");
            }
            assert!(!checked(&open).unwrap().diagnostics.is_empty(), "{what}");
        }
    }
}

/// Returns the two GPUs of each port channel.
fn named_peers(plan: &Value) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    for gpu in plan["gpus"].as_array().unwrap() {
        for row in gpu["channels"].as_array().unwrap().iter().filter(|row| row["channel_type"] == "port") {
            let peers = row["connected_to"].as_array().unwrap();
            found.extend(peers.iter().map(|peer| (gpu["id"].as_u64().unwrap() as u32, peer.as_u64().unwrap() as u32)));
        }
    }
    found
}

#[test]
fn thread_blocks_share_the_work_of_a_gpu() {
    let (mut cut, mut number) = (0, 0);
    for (name, kind) in [
        ("ring", Kind::Allreduce),
        ("ring", Kind::Allgather),
        ("ring", Kind::ReduceScatter),
        ("recursive-doubling", Kind::Allreduce),
        ("recursive-doubling", Kind::Allgather),
        ("rabenseifner", Kind::Allreduce),
        ("recursive-halving", Kind::ReduceScatter),
        ("pairwise", Kind::Alltoall),
        ("bruck", Kind::Alltoall),
        ("binomial", Kind::Broadcast),
        ("binomial", Kind::Reduce),
    ] {
        for (ranks, elements, of_box) in [(2, 64, 2), (4, 96, 4), (4, 1 << 16, 4), (4, 96, 2), (8, 256, 8)] {
            number += 1;
            let schedule = build(name, kind, ranks, elements).unwrap();
            let one = Choices { gpus_per_box: Some(of_box), thread_blocks: Some(1), ..Choices::default() };
            let one: Value = serde_json::from_str(&emit_as(&schedule, &one).unwrap()).unwrap();
            // Only the long run tries both numbers.
            let drawn = 2 + number % 2;
            for shares in [2, 3].into_iter().filter(|&shares| shares == drawn || crate::soak::is_on()) {
                let choices = Choices { gpus_per_box: Some(of_box), thread_blocks: Some(shares), ..Choices::default() };
                let what = format!("{name} {kind} on {ranks}, boxes of {of_box}, {shares} thread blocks");
                let text = emit_as(&schedule, &choices).unwrap_or_else(|e| panic!("{what}: {e}"));
                let plan = holds(&text, &schedule, if ranks < 8 { 3 } else { 0 }, &what);
                let groups: BTreeSet<u64> = ["put", "ppkt"]
                    .iter()
                    .flat_map(|put| named(&plan, put))
                    .map(|op| op["tbg_info"]["tb_id"].as_u64().unwrap())
                    .collect();
                assert_eq!(groups.len(), shares as usize, "{what}");
                let moves = |plan: &Value| named(plan, "put").count() + named(plan, "ppkt").count();
                // Slices that are divided differently are first divided into chunks, since their shares do not match.
                cut += u32::from(moves(&plan) > moves(&one) * shares as usize);
                assert!(named(&one, "put").all(|op| op.get("tbg_info").is_none()), "{what}");
            }
        }
    }
    assert!(cut > 0);
    // By default, several thread blocks share large chunks.
    let shares = |elements: u64| {
        let text = emit(&build("ring", Kind::Allreduce, 4, elements).unwrap()).unwrap();
        let plan: Value = serde_json::from_str(&text).unwrap();
        named(&plan, "put").map(|op| op["tbg_info"]["tbg_size"].as_u64().unwrap_or(1)).max()
    };
    assert_eq!([shares(4 << 8), shares(4 << 14), shares(4 << 20)], [None, Some(2), Some(16)]);
}

/// An allgather over the first GPU, which sends its own input and then all data that arrived.
fn over_the_first(ranks: u32, len: u32) -> Schedule {
    let c = Collective::new(Kind::Allgather, ranks, len.into(), 0, Operator::Sum, Dtype::I32).unwrap();
    let mut b = Builder::new(c);
    let first = NodeId(0);
    let others = || (1..ranks).map(NodeId);
    let (own, whole) = (|rank: u32| Operand::Out(rank * len), Operand::In(0));
    let up: Vec<StreamId> = others().map(|rank| b.stream(rank, &[first])).collect();
    let down: Vec<StreamId> = others().map(|rank| b.stream(first, &[rank])).collect();
    (0..ranks).for_each(|rank| {
        b.combine(NodeId(rank), 0, len, &[whole], &[own(rank)]);
    });
    for (rank, &stream) in others().zip(&up) {
        b.combine(rank, 0, len, &[whole], &[Operand::Stream(stream)]);
        b.combine(first, 0, len, &[Operand::Stream(stream)], &[own(rank.0)]);
    }
    for source in 0..ranks {
        for (rank, &stream) in others().zip(&down).filter(|(rank, _)| rank.0 != source) {
            let from = if source == 0 { whole } else { own(source) };
            b.combine(first, 0, len, &[from], &[Operand::Stream(stream)]);
            b.combine(rank, 0, len, &[Operand::Stream(stream)], &[own(source)]);
        }
    }
    b.finish().unwrap()
}

#[test]
fn puts_that_are_fused_read_from_one_buffer() {
    for (ranks, len) in [(2, 8), (3, 8), (4, 12)] {
        let schedule = over_the_first(ranks, len);
        let forms =
            [false, true].into_iter().flat_map(|in_place| [Protocol::Simple, Protocol::Ll].map(|p| (in_place, p)));
        for (in_place, protocol) in forms {
            let what = format!("{ranks} GPUs, {protocol:?}, in place: {in_place}");
            let choices = Choices { in_place: Some(in_place), protocol: Some(protocol), ..Choices::default() };
            holds(&emit_as(&schedule, &choices).unwrap_or_else(|e| panic!("{what}: {e}")), &schedule, 4, &what);
        }
    }
}

fn by_switch(kind: Kind, ranks: u32, pieces: u32, root: u32) -> Schedule {
    let len = 8;
    let c = Collective::new(kind, ranks, (pieces * len).into(), root.into(), Operator::Sum, Dtype::I32).unwrap();
    let mut b = Builder::new(c);
    let switch = b.switch();
    let gives = |rank: u32| c.input_len(rank) > 0;
    let gets = |rank: u32| c.output_len(rank) > 0;
    let up: Vec<_> = (0..ranks).filter(|&r| gives(r)).map(|r| (r, b.stream(NodeId(r), &[switch]))).collect();
    let down: Vec<_> = (0..ranks).filter(|&r| gets(r)).map(|r| (r, b.stream(switch, &[NodeId(r)]))).collect();
    for piece in 0..pieces {
        let at = piece * len;
        for &(r, stream) in &up {
            b.combine(NodeId(r), 0, len, &[Operand::In(at)], &[Operand::Stream(stream)]);
        }
        let all = |streams: &[(u32, StreamId)]| streams.iter().map(|s| Operand::Stream(s.1)).collect::<Vec<_>>();
        b.combine(switch, 0, len, &all(&up), &all(&down));
        for &(r, stream) in &down {
            b.combine(NodeId(r), 1, len, &[Operand::Stream(stream)], &[Operand::Out(at)]);
        }
    }
    b.finish().unwrap()
}

#[test]
fn switches_add_and_store_by_switch_channels() {
    for (kind, op) in [(Kind::Allreduce, "glres"), (Kind::Broadcast, "gstore"), (Kind::Reduce, "glres")] {
        for (ranks, pieces, root) in [(2, 1, 0), (3, 2, 1), (4, 6, 3), (8, 4, 5)] {
            let schedule = by_switch(kind, ranks, pieces, root);
            let what = format!("{kind} on {ranks} by a switch, root {root}");
            for (in_place, shares) in [(true, 1), (false, 1), (true, 2), (false, 2)] {
                let choices = Choices { in_place: Some(in_place), thread_blocks: Some(shares), ..Choices::default() };
                let text = emit_as(&schedule, &choices).unwrap_or_else(|e| panic!("{what}: {e}"));
                let plan = holds(&text, &schedule, if ranks < 8 { 8 } else { 2 }, &what);
                // Each GPU requests its share of the sums that all GPUs get, if these sums are few: 32 bytes are two
                // shares of 16 bytes.
                let leaders = if kind == Kind::Allreduce && pieces < ranks { 2 } else { 1 };
                assert_eq!(named(&plan, op).count(), (pieces * shares * leaders) as usize, "{what}");
                assert_eq!(plan["min_message_size"], pieces * 32, "{what}");
            }
            let apart = Choices { gpus_per_box: Some(1), ..Choices::default() };
            assert!(emit_as(&schedule, &apart).unwrap_err().contains("in different boxes"), "{what}");
        }
    }
}

#[test]
fn the_root_of_a_broadcast_fills_its_output_too() {
    let plan: Value =
        serde_json::from_str(&emit(&build("binomial", Kind::Broadcast, 4, 16).unwrap()).unwrap()).unwrap();
    let mut apart = plan.clone();
    apart["inplace"] = json!(false);
    assert!(checked(&apart).unwrap().diagnostics.is_empty());
    let ops = apart["gpus"][0]["threadblocks"][0]["ops"].as_array_mut().unwrap();
    let at = ops.iter().position(|op| op["name"] == "copy").unwrap();
    ops.remove(at);
    let found = checked(&apart).unwrap();
    assert_eq!((found.complete, found.diagnostics[0].rank), (Some(false), Some(0)));
    assert_eq!(found.diagnostics[0].message, "the output of gpu 0, which is the root, does not end as its input");
    assert!(wrong(&apart, 1, 0).is_some());
    // In place, the GPU's part of the output is correct from the start, because it is the input.
    apart["inplace"] = json!(true);
    assert!(checked(&apart).unwrap().diagnostics.is_empty());
}
