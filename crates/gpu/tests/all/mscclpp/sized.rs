//! Tests of sizes besides the natural one, limits that depend on the size, and the loader.

use serde_json::{Value, json};
use unisono_collective::{Dtype, Operator};
use unisono_formats::{Facts, Importer};
use unisono_gpu::{
    Options,
    mscclpp::{MscclPp, Sizes, check},
};

use super::{
    checked, codes, two,
    writer::{Writer, all, local},
    wrong,
};

fn named(name: &str) -> Value {
    all(2).into_iter().find(|(found, ..)| *found == name).unwrap().1
}

/// Builds groups of four and of two thread blocks. The shares of both groups have the same boundaries only if the
/// grains of a chunk are a multiple of four.
fn groups() -> Value {
    let mut w = Writer::new("allgather", "Simple", false, 2, 4, [2, 4, 2]);
    w.meet(true);
    for g in 0..2 {
        let to = w.remote(g, 0, "memory", 1 - g, &local("o", 2 * g, 2));
        w.op(g, 0, json!({"name": "put", "src_buff": [local("i", 0, 2)], "dst_buff": [to], "channel_type": "memory"}));
        for b in 0..4 {
            w.op(g, b, json!({"name": "copy", "src_buff": [local("i", 0, 2)], "dst_buff": [local("s", 0, 2)], "tbg_info": {"tb_id": b, "tbg_size": 4}}));
            w.nop(g, b);
            w.op(g, b, json!({"name": "copy", "src_buff": [local("s", b / 2, 1)], "dst_buff": [local("o", 2 * g + b / 2, 1)], "tbg_info": {"tb_id": b % 2, "tbg_size": 2}}));
        }
    }
    w.meet(false);
    w.plan
}

/// Builds pipelines of puts, with a signal in each iteration, and a unit for each GPU.
fn pipelines(units: [u64; 2]) -> Value {
    let mut w = Writer::new("allgather", "Simple", true, 2, 1, [1, 2, 0]);
    w.meet(true);
    for (g, unit) in units.into_iter().enumerate() {
        let to = w.remote(g, 0, "memory", 1 - g, &local("o", g, 1));
        let channel = w.channel(g, 0, "memory", 1 - g);
        let sync = |name: &str| json!({"name": name, "channel_ids": [channel], "channel_type": "memory"});
        let put = json!({"name": "put", "src_buff": [local("o", g, 1)], "dst_buff": [to], "channel_type": "memory"});
        let ops = [put, json!({"name": "nop"}), sync("signal"), sync("wait"), json!({"name": "nop"})];
        w.op(g, 0, json!({"name": "pipeline", "iter_context": {"unit_size": unit, "num_chunks": 1}, "ops": ops}));
    }
    w.plan
}

#[test]
fn shares_and_units_are_checked_at_the_sizes_where_they_change() {
    let found = checked(&groups()).unwrap();
    assert_eq!((found.complete, found.sizes), (Some(true), None));
    assert!(found.diagnostics.iter().all(|d| d.code == "race" && d.message.ends_with("where a chunk has 16 bytes")));
    assert!(!found.diagnostics.is_empty());

    assert_eq!(codes(&pipelines([4096, 4096])), Vec::<&str>::new());
    for units in [[1024, 65536], [4096, 4112], [65536, 32768]] {
        let found = checked(&pipelines(units)).unwrap();
        assert!(found.diagnostics.iter().any(|d| d.code == "unmatched"), "{units:?}: {found:?}");
    }
    let sizes = |plan: &Value, elements| {
        check(&plan.to_string(), &Facts { elements, ..Facts::default() }, Options::default()).unwrap().sizes
    };
    assert_eq!(sizes(&named("allgather"), None), Some(Sizes::All));
    assert_eq!(sizes(&named("allgather group"), None), Some(Sizes::All));
    assert_eq!(sizes(&named("alltoall pipeline"), None), Some(Sizes::Tried));
    assert_eq!(sizes(&named("allgather group"), Some(96)), Some(Sizes::One));
}

#[test]
fn a_reduction_of_packets_in_a_pipeline_adds_at_each_turn() {
    let mut w = Writer::new("allreduce", "LL", false, 2, 1, [1, 1, 1]);
    for g in 0..2 {
        let to = w.remote(g, 0, "memory", 1 - g, &local("s", 0, 1));
        w.op(g, 0, json!({"name": "copy", "src_buff": [local("i", 0, 1)], "dst_buff": [local("o", 0, 1)]}));
        w.op(g, 0, json!({"name": "ppkt", "src_buff": [local("i", 0, 1)], "dst_buff": [to], "channel_type": "memory"}));
        w.nop(g, 0);
        let add =
            json!({"name": "repkt", "src_buff": [local("o", 0, 1), local("s", 0, 1)], "dst_buff": [local("o", 0, 1)]});
        let ops = [add, json!({"name": "nop"})];
        w.op(g, 0, json!({"name": "pipeline", "iter_context": {"unit_size": 65536, "num_chunks": 1}, "ops": ops}));
    }
    assert!(codes(&w.plan).iter().all(|&code| code == "twice"));
    assert!(!codes(&w.plan).is_empty());
}

#[test]
fn limits_of_a_size_are_told() {
    let limits = |plan: &Value, elements, dtype, processors| -> Vec<String> {
        let options = Options { processors, ..Options::default() };
        let facts = Facts { elements, dtype, ..Facts::default() };
        let found = check(&plan.to_string(), &facts, options).unwrap();
        found.diagnostics.into_iter().map(|d| d.message).collect()
    };
    let plan = named("allreduce reads");
    assert_eq!(limits(&plan, Some(16), None, 8), Vec::<String>::new());
    assert_eq!(
        limits(&plan, Some(6), None, 8),
        ["a chunk has 12 bytes; the loader accepts multiples of buffer_alignment, which is 16"]
    );
    assert_eq!(
        limits(&plan, Some(64), Some(Dtype::F64), 8),
        ["the runtime has no reductions of f64; it has f16, bf16, f32 and i32"]
    );
    assert_eq!(
        limits(&plan, Some(1 << 25), None, 8),
        ["a message of 134217728 bytes is not between min_message_size and max_message_size (0 to 67108864)"]
    );
    let mut small = pipelines([16, 16]);
    assert_eq!(
        limits(&small, None, None, 8)[0],
        "the pipeline takes 2097152 turns, and the runtime counts to 65535, for the largest message that is accepted; \
         set max_message_size to at most 2097120"
    );
    small["max_message_size"] = json!(2_097_120);
    assert_eq!(limits(&small, None, None, 8), Vec::<String>::new());
    let group = named("allgather group");
    assert_eq!(limits(&group, None, None, 3), Vec::<String>::new());
    assert_eq!(
        limits(&group, None, None, 2)[0],
        "gpu 0 has 3 thread blocks that have to run at once, and 2 processors; use fewer, or state the processors of \
         your GPU"
    );
}

/// Builds an allreduce of two GPUs that exchange all chunks as packets.
fn packets(chunks: usize, scratch: usize) -> Value {
    let mut w = Writer::new("allreduce", "LL", false, 2, 1, [chunks, chunks, scratch]);
    for g in 0..2 {
        let to = w.remote(g, 0, "memory", 1 - g, &local("s", 0, chunks));
        w.op(
            g,
            0,
            json!({"name": "ppkt", "src_buff": [local("i", 0, chunks)], "dst_buff": [to], "channel_type": "memory"}),
        );
        let from = [local("i", 0, chunks), local("s", 0, chunks)];
        w.op(g, 0, json!({"name": "repkt", "src_buff": from, "dst_buff": [local("o", 0, chunks)]}));
    }
    w.plan
}

/// Returns whether the second half of scratch memory begins at a multiple of 16 bytes, by the executor's steps
/// (`calScratchBufferSize`, `launchKernelHelper`), for an input in an allocation of `allocated` bytes.
fn is_aligned(plan: &Value, allocated: u64) -> bool {
    let number = |v: &Value| v.as_u64().unwrap();
    let (gpu, alignment) = (&plan["gpus"][0], plan["buffer_alignment"].as_u64().unwrap_or(16));
    let input = allocated.min(plan["max_message_size"].as_u64().unwrap_or(u64::MAX));
    let chunks = number(&gpu["input_chunks"]);
    let size_per_chunk = input.div_ceil(chunks);
    let size = size_per_chunk * number(&gpu["scratch_chunks"]) * 2 * 2;
    let size = size.next_multiple_of(alignment);
    (size >> 1).is_multiple_of(16)
}

#[test]
fn halves_of_scratch_memory_begin_where_the_kernels_reach() {
    for (chunks, scratch, alignment, most) in [
        (1, 1, 16, None),
        (2, 2, 16, None),
        (3, 3, 16, None),
        (3, 8, 16, None),
        (3, 3, 32, None),
        (3, 3, 16, Some(48 << 10)),
        (3, 3, 16, Some(1 << 20)),
        (3, 4, 16, Some(100_000)),
        (5, 6, 16, Some(3 << 20)),
        (6, 6, 16, None),
        (6, 6, 16, Some(96 << 10)),
        (6, 6, 32, Some(1 << 20)),
        (7, 7, 16, Some(7 << 21)),
        (8, 9, 16, Some(100_000)),
        (9, 9, 16, None),
    ] {
        let mut plan = packets(chunks, scratch);
        plan["buffer_alignment"] = json!(alignment);
        plan.as_object_mut().unwrap().remove("max_message_size");
        if let Some(most) = most {
            plan["max_message_size"] = json!(most);
        }
        let found = checked(&plan).unwrap().diagnostics;
        // A buffer of less than 2 MiB has an allocation of its own size, which its chunks divide.
        let is_right = (1..200).all(|n| is_aligned(&plan, n << 21));
        assert_eq!(found.is_empty(), is_right, "{chunks} {scratch} {alignment} {most:?}: {found:?}");
        assert!(found.iter().all(|fault| fault.message.contains("second half")), "{found:?}");
        plan["use_double_scratch_buffer"] = json!(false);
        assert_eq!(codes(&plan).into_iter().filter(|&code| code != "relaunch").count(), 0);
    }
    let said = &checked(&packets(3, 3)).unwrap().diagnostics[0].message;
    assert_eq!(
        *said,
        "with use_double_scratch_buffer, the second half of scratch memory begins at byte 4194312 where the input is in an \
         allocation of 2097152 bytes, and the kernels move 16 bytes at a time; use scratch_chunks in multiples of 8, or a \
         buffer_alignment of 32"
    );
}

#[test]
fn the_file_is_read_as_the_loader_reads_it() {
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut plan = two(false, true, true);
        edit(&mut plan);
        checked(&plan).map(|found| found.diagnostics.len())
    };
    assert_eq!(with(&|plan| plan["protocol"] = json!("simple")), Ok(0));
    let error = |edit: &dyn Fn(&mut Value)| with(edit).unwrap_err();
    assert!(error(&|plan| drop(plan.as_object_mut().unwrap().remove("name"))).contains("missing field `name`"));
    let block = |plan: &mut Value| plan["gpus"][1]["threadblocks"][0].take();
    let error_in = |edit: &dyn Fn(&mut Value)| {
        error(&|plan| {
            let mut changed = block(plan);
            edit(&mut changed);
            plan["gpus"][1]["threadblocks"][0] = changed;
        })
    };
    assert_eq!(
        error_in(&|block| block["channels"][0]["channel_ids"] = json!([0, 99])),
        "gpus[1].threadblocks[0].channels: channel 99 is not there: gpu 1 has 1 of that type"
    );
    assert_eq!(
        error_in(&|block| block["remote_buffer_refs"][0]["remote_buffer_ids"] = json!([0, 99])),
        "gpus[1].threadblocks[0].remote_buffer_refs: remote buffer 99 is not there: gpu 1 has 1"
    );
    assert_eq!(
        error_in(
            &|block| block["ops"][0] = json!({"name": "nop", "src_buff": [{"buffer_id": 200, "index": 0, "size": 1}]})
        ),
        "gpus[1].threadblocks[0].ops[0]: nop has no buffers, and the loader reads those that it is given"
    );
    assert_eq!(
        error(&|plan| drop(plan["gpus"][0]["channels"][0].as_object_mut().unwrap().remove("connected_to"))),
        "gpus[0].channels[0]: missing field `connected_to`"
    );
    let facts = Facts { operator: Some(Operator::Max), ..Facts::default() };
    let import = |name: &str| MscclPp.import(&named(name).to_string(), &facts).map(drop).map_err(|e| e.to_string());
    assert_eq!(import("allreduce reads").unwrap_err(), "the runtime adds, and the operator asked for is max; use sum");
    assert_eq!(import("allgather"), Ok(()));
}

#[test]
fn the_order_of_shared_channels_is_open_rather_than_a_deadlock() {
    let mut plan = two(false, true, true);
    for gpu in 0..2 {
        let mut block = plan["gpus"][gpu]["threadblocks"][0].clone();
        block["id"] = json!(1);
        plan["gpus"][gpu]["threadblocks"].as_array_mut().unwrap().push(block);
    }
    let found = checked(&plan).unwrap();
    assert_eq!((found.deadlock_free, found.race_free), (None, None));
    assert!(found.diagnostics.iter().all(|d| d.code == "shared"));
}

/// Builds an allgather whose two thread blocks put a half each, and signal on one channel one after the other.
fn shared_channel(ordered_by: &str) -> Value {
    let mut w = Writer::new("allgather", "Simple", false, 2, 2, [2, 4, 0]);
    w.meet(true);
    for g in 0..2 {
        w.plan["gpus"][g]["semaphores"] = json!([{"init_value": 0}]);
        let channel = w.channel(g, 0, "memory", 1 - g);
        let global = w.plan["gpus"][g]["threadblocks"][0]["channels"][0]["channel_ids"][channel].clone();
        w.plan["gpus"][g]["threadblocks"][1]["channels"] = json!([{"channel_type": "memory", "channel_ids": [global]}]);
        let sync = |name: &str| json!({"name": name, "channel_ids": [0], "channel_type": "memory"});
        for b in 0..2 {
            let order = match (ordered_by, b) {
                ("barrier", _) => json!({"name": "barrier", "barrier_id": 0, "num_threadblocks": 2}),
                ("semaphore", 0) => json!({"name": "sem_release", "semaphore_ids": [0]}),
                ("semaphore", _) => json!({"name": "sem_acquire", "semaphore_ids": [0]}),
                _ => json!({"name": "nop"}),
            };
            if b == 1 {
                w.op(g, 1, order.clone()).nop(g, 1);
            }
            w.op(g, b, json!({"name": "copy", "src_buff": [local("i", b, 1)], "dst_buff": [local("o", 2 * g + b, 1)]}));
            let to = w.remote(g, b, "memory", 1 - g, &local("o", 2 * g + b, 1));
            w.op(
                g,
                b,
                json!({"name": "put", "src_buff": [local("i", b, 1)], "dst_buff": [to], "channel_type": "memory"}),
            );
            w.nop(g, b).op(g, b, sync("signal")).op(g, b, sync("wait")).nop(g, b);
            if b == 0 {
                w.op(g, 0, order);
            }
        }
    }
    w.plan
}

#[test]
fn thread_blocks_share_a_channel_in_an_order() {
    for by in ["barrier", "semaphore"] {
        let plan = shared_channel(by);
        let found = checked(&plan).unwrap();
        assert!(found.diagnostics.is_empty(), "{by}: {:?}", found.diagnostics);
        assert_eq!((found.complete, found.relaunch), (Some(true), Some(true)), "{by}");
        for seed in 0..60 {
            assert_eq!(wrong(&plan, 1, seed), None, "{by}, seed {seed}");
        }
    }
    let found = checked(&shared_channel("nothing")).unwrap();
    assert_eq!((found.deadlock_free, found.race_free), (None, None));
    assert!(found.diagnostics.iter().all(|d| d.code == "shared"));
    assert!(
        found.diagnostics[0]
            .message
            .starts_with("thread blocks 0 and 1 both signal memory channel 0 of gpu 0 to gpu 1; ")
    );
    // A release before the meeting of the threads does not order any access.
    let mut early = shared_channel("semaphore");
    let ops = early["gpus"][0]["threadblocks"][0]["ops"].as_array_mut().unwrap();
    let last = ops.len() - 1;
    assert_eq!((&ops[last - 1]["name"], &ops[last]["name"]), (&json!("nop"), &json!("sem_release")));
    ops.swap(last - 1, last);
    assert!(codes(&early).contains(&"shared"));
}

#[test]
fn threads_of_a_block_share_a_channel_in_an_order() {
    let with = |name: &str, meets: bool| {
        let mut plan = two(false, true, true);
        for g in 0..2 {
            let ops = plan["gpus"][g]["threadblocks"][0]["ops"].as_array_mut().unwrap();
            for other in ["signal", "wait"] {
                let at = ops.iter().position(|op| op["name"] == other).unwrap();
                let mut both = ops[at].clone();
                both["channel_ids"] = json!([0, 0]);
                // The second thread uses the channel too, with or without a preceding meeting.
                let behind = if meets && other == name { vec![json!({"name": "nop"}), both] } else { vec![both] };
                let behind = if other == name || name == "both" { behind } else { vec![ops[at].clone(); 2] };
                ops.splice(at + 1..at + 1, behind);
            }
        }
        codes(&plan)
    };
    assert_eq!(with("wait", false), ["shared"; 2]);
    assert_eq!(with("wait", true), Vec::<&str>::new());
    // Two signals of a memory channel are interchangeable.
    assert_eq!(with("signal", false), Vec::<&str>::new());
}

#[test]
fn scratch_memory_in_a_circle_is_refused() {
    let mut plan = named("allreduce scratch");
    plan["reuse_resources"] = json!(true);
    plan["max_message_size"] = json!(1u64 << 32);
    let chunks = plan["gpus"][0]["scratch_chunks"].as_u64().unwrap();
    let (inputs, most) = (plan["gpus"][0]["input_chunks"].as_u64().unwrap(), (64u64 << 20).div_ceil(chunks) / 16 * 16);
    let circle = |chunk: u64| {
        let facts = Facts { elements: Some(chunk / 4 * inputs), ..Facts::default() };
        let found = check(&plan.to_string(), &facts, Options::default()).unwrap();
        found.diagnostics.iter().any(|d| d.message.contains("in a circle"))
    };
    assert_eq!([circle(most), circle(most + 16)], [false, true]);
    // A GPU without scratch memory would access all chunks of other GPUs at one offset.
    plan["gpus"][0]["scratch_chunks"] = json!(0);
    assert!(codes(&plan).contains(&"limit"));
}

#[test]
fn a_pipeline_goes_through_scratch_memory_in_a_circle_by_chunks() {
    let mut w = Writer::new("allgather", "Simple", false, 2, 1, [2, 4, 2]);
    w.plan["reuse_resources"] = json!(true);
    w.plan["max_message_size"] = json!(1u64 << 32);
    w.meet(true);
    for g in 0..2 {
        let to = w.remote(g, 0, "memory", 1 - g, &local("s", 0, 2));
        let put = json!({"name": "put", "src_buff": [local("i", 0, 2)], "dst_buff": [to], "channel_type": "memory"});
        let own = json!({"name": "copy", "src_buff": [local("i", 0, 2)], "dst_buff": [local("o", 2 * g, 2)]});
        w.op(g, 0, json!({"name": "pipeline", "iter_context": {"unit_size": 1 << 20, "num_chunks": 2}, "ops": [put]}));
        w.op(g, 0, own);
    }
    w.meet(false);
    for g in 0..2 {
        let other = 2 * (1 - g);
        w.op(g, 0, json!({"name": "copy", "src_buff": [local("s", 0, 2)], "dst_buff": [local("o", other, 2)]}));
    }
    // The fixed scratch memory has 32 MiB for each of the two chunks, and offsets within a slice reach the bytes of
    // both.
    let said = |chunk: u64| {
        let facts = Facts { elements: Some(2 * chunk / 4), ..Facts::default() };
        let found = check(&w.plan.to_string(), &facts, Options::default()).unwrap().diagnostics;
        found.into_iter().map(|d| d.message).collect::<Vec<_>>()
    };
    assert_eq!(said(16 << 20), Vec::<String>::new());
    assert!(
        said((16 << 20) + 16)[0].contains("uses scratch memory in a circle for chunks of more than 16777216 bytes")
    );
}

#[test]
fn what_the_loader_refuses_or_cannot_follow_is_told() {
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut plan = two(false, true, true);
        edit(&mut plan);
        match checked(&plan) {
            Ok(found) => found.diagnostics.iter().map(|d| d.code.to_owned()).collect::<Vec<_>>(),
            Err(error) => vec![error],
        }
    };
    let bounds = |least: u64, most: u64| {
        with(&move |plan| (plan["min_message_size"], plan["max_message_size"]) = (json!(least), json!(most)))
    };
    // The shortest output is two chunks of 16 bytes.
    assert_eq!([bounds(0, 31), bounds(33, 63)], [["limit"], ["limit"]]);
    assert_eq!([bounds(0, 32), bounds(33, 64)], [Vec::<String>::new(), Vec::new()]);
    let remote = json!({"rank": 1, "type": "s", "access_channel_types": ["memory"]});
    let add = |list: &'static str, item: Value| {
        with(&move |plan| plan["gpus"][0][list].as_array_mut().unwrap().push(item.clone()))
    };
    assert_eq!(add("remote_buffers", remote), ["limit"]);
    let switch = json!({"channel_type": "switch", "rank_groups": []});
    assert_eq!(add("channels", switch), ["gpus[0].channels[1]: missing field `buffer_type`"]);
    let pipeline = |rest: Value| {
        let mut op = json!({"name": "pipeline", "iter_context": {"unit_size": 65536, "num_chunks": 1}});
        rest.as_object().unwrap().iter().for_each(|(key, value)| op[key] = value.clone());
        with(&move |plan| plan["gpus"][0]["threadblocks"][0]["ops"].as_array_mut().unwrap().push(op.clone()))
    };
    assert_eq!(pipeline(json!({})).len(), 1);
    let nop = json!([{"name": "nop"}]);
    assert_eq!(pipeline(json!({"ops": nop, "dst_buff": [{"buffer_id": 7, "index": 0, "size": 1}]})), ["limit"]);
}

#[test]
fn operations_inside_others_than_pipelines_are_refused() {
    let mut plan = two(false, true, true);
    let ops = plan["gpus"][0]["threadblocks"][0]["ops"].as_array_mut().unwrap();
    let at = ops.iter().position(|op| op["name"] == "nop").unwrap();
    ops[at]["ops"] = json!([{"name": "nop"}]);
    let found = checked(&plan).unwrap();
    assert_eq!(found.diagnostics[0].code, "limit");
    assert_eq!(found.diagnostics[0].message, "nop has ops, which the runtime passes over; only a pipeline has them");
}

#[test]
fn sizes_beyond_memory_name_the_buffer() {
    let large = |plan: &Value, elements| {
        let facts = Facts { elements: Some(elements), ..Facts::default() };
        check(&plan.to_string(), &facts, Options::default()).unwrap_err().to_string()
    };
    let mut plan = named("allreduce reads");
    assert_eq!(
        large(&plan, 1 << 31),
        "gpus[0]: the input has 2147483648 elements of f32 at this size, 8589934592 bytes; a buffer is checked up to \
         1073741823 elements, and the runtime addresses 4294967295 bytes of it"
    );
    for gpu in plan["gpus"].as_array_mut().unwrap() {
        gpu["scratch_chunks"] = json!(8);
    }
    assert!(large(&plan, 1 << 29).starts_with("gpus[0]: the scratch memory has 2147483648 elements of f32"));
}
