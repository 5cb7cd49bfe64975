//! Tests of plans for GPUs: every operation, known faults, mutations judged by a second implementation, damaged files.

mod exported;
mod interpreter;
mod packets;
mod repeated;
mod sized;
mod writer;

use interpreter::{Dice, run};
use serde_json::{Value, json};
use unisono_formats::{Facts, Importer};
use unisono_gpu::{
    Options,
    mscclpp::{Checked, MscclPp, check},
};
use unisono_schedule::verify::{Method, verify};
use writer::{Writer, all, local};

fn checked(plan: &Value) -> Result<Checked, String> {
    check(&plan.to_string(), &Facts::default(), Options::default()).map_err(|e| e.to_string())
}

fn codes(plan: &Value) -> Vec<&'static str> {
    checked(plan).unwrap().diagnostics.iter().map(|d| d.code).collect()
}

/// Returns an input whose sums differ for different parts.
fn value(launch: usize, gpu: usize, at: usize) -> u64 {
    let gpu = 64 * launch + gpu;
    let mixed =
        (gpu as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (at as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed.wrapping_mul(0x94d0_49bb_1331_11eb) >> 8
}

/// Returns the reason why one of three launches of a plan does not compute its collective.
fn wrong(plan: &Value, grains: usize, seed: u64) -> Option<String> {
    let gpus = plan["gpus"].as_array().unwrap();
    let n = gpus.len();
    let launches = match run(plan, grains, 3, value, &mut Dice(seed)) {
        Ok(launches) => launches,
        Err(reason) => return Some(reason),
    };
    let chunks = |key: &str| gpus[0][key].as_u64().unwrap() as usize * grains;
    let (input, output) = (chunks("input_chunks"), chunks("output_chunks"));
    let all = launches.iter().enumerate().flat_map(|(l, memory)| memory.iter().enumerate().map(move |m| (l, m)));
    for (launch, (g, buffers)) in all {
        let value = |gpu, at| value(launch, gpu, at);
        for k in 0..output {
            let sum = |at: usize| (0..n).map(|r| value(r, at)).fold(0, u64::wrapping_add);
            let root = plan["root"].as_u64().unwrap_or(0) as usize;
            let (expected, found) = match plan["collective"].as_str().unwrap() {
                "broadcast" => (value(root, k), buffers[&'o'][k]),
                "reduce" if g != root => continue,
                "reduce" => (sum(k), buffers[&'o'][k]),
                "allgather" => (value(k / input, k % input), buffers[&'o'][k]),
                "allreduce" => (sum(k), buffers[&'o'][k]),
                "alltoall" => (value(k / (input / n), g * (input / n) + k % (input / n)), buffers[&'o'][k]),
                "reducescatter" if plan["inplace"] == true => (sum(g * output + k), buffers[&'i'][g * output + k]),
                _ => (sum(g * output + k), buffers[&'o'][k]),
            };
            if found != expected {
                return Some(format!("output {k} of gpu {g} is wrong in launch {}", launch + 1));
            }
        }
    }
    None
}

#[test]
fn every_operation_is_proved_and_runs() {
    for n in [2, 3, 4, 8] {
        for (name, plan, grains) in all(n) {
            let found = checked(&plan).unwrap_or_else(|e| panic!("{name} on {n}: {e}\n{plan}"));
            assert!(found.diagnostics.is_empty(), "{name} on {n}: {:#?}", found.diagnostics.first());
            assert_eq!(
                (found.complete, found.deadlock_free, found.race_free),
                (Some(true), Some(true), Some(true)),
                "{name}"
            );
            for seed in 0..u64::from(crate::soak::cases(if n < 8 { 40 } else { 4 })) {
                assert_eq!(wrong(&plan, grains, seed), None, "{name} on {n}, seed {seed}");
            }
            let text = plan.to_string();
            for elements in [None, Some(16 * 3 * n as u64)] {
                let facts = Facts { elements, ..Facts::default() };
                let file = MscclPp.import(&text, &facts).unwrap_or_else(|e| panic!("{name} on {n}: {e}"));
                let proof = verify(&file.schedule, Method::Auto);
                assert!(proof.holds(), "{name} on {n}: {:?}", proof.diagnostics.first());
            }
        }
    }
}

/// Builds an allgather of two GPUs by puts and signals. The flags select its operations.
fn two(waits_first: bool, second_sends: bool, signals: bool) -> Value {
    let mut w = Writer::new("allgather", "Simple", true, 2, 1, [1, 2, 0]);
    w.meet(true);
    for g in 0..2 {
        if waits_first {
            w.sync(g, 0, "wait", "memory", &[1 - g]);
        }
        if g == 0 || second_sends {
            let to = w.remote(g, 0, "memory", 1 - g, &local("o", g, 1));
            w.op(
                g,
                0,
                json!({"name": "put", "src_buff": [local("o", g, 1)], "dst_buff": [to], "channel_type": "memory"}),
            );
        }
        if signals {
            w.sync(g, 0, "signal", "memory", &[1 - g]);
            if !waits_first {
                w.sync(g, 0, "wait", "memory", &[1 - g]);
            }
        }
    }
    w.plan
}

#[test]
fn three_faulty_plans_are_refused_with_the_right_reason() {
    assert_eq!(codes(&two(false, true, true)), Vec::<&str>::new());

    let found = checked(&two(true, true, true)).unwrap();
    assert_eq!(found.deadlock_free, Some(false));
    let fault = &found.diagnostics[0];
    assert_eq!(fault.code, "deadlock");
    assert_eq!((fault.rank, fault.threadblock, fault.instruction), (Some(0), Some(0), Some(7)));
    assert_eq!(
        fault.message,
        "gpus[0].threadblocks[0].ops[7] (wait) and gpus[1].threadblocks[0].ops[7] (wait) wait for each other and never go on"
    );
    assert_eq!(
        fault.trace[2],
        "gpus[0].threadblocks[0].ops[7] (wait) waits for the signal of gpus[1].threadblocks[0].ops[11] (signal) on \
         memory channel 0 of gpu 0 to gpu 1"
    );

    let found = checked(&two(false, false, true)).unwrap();
    assert_eq!((found.complete, found.race_free), (Some(false), Some(true)));
    assert_eq!(found.diagnostics[0].code, "missing");
    assert_eq!(found.diagnostics[0].message, "nothing writes out[1..2] of rank 0");

    let found = checked(&two(false, true, false)).unwrap();
    assert_eq!(found.race_free, Some(false));
    let fault = &found.diagnostics[0];
    assert_eq!((fault.code, fault.rank, fault.threadblock, fault.instruction), ("race", Some(1), Some(0), Some(6)));
    assert_eq!(
        fault.message,
        "gpus[1].threadblocks[0].ops[6] (put) writes chunk 1 of the output of gpu 0, and no signal reaches gpu 0 before its \
         kernel ends; what it writes may come after that"
    );
    assert_eq!(fault.trace.last().unwrap(), "gpu 0 runs all its operations, and its kernel ends");
}

/// A write may arrive after the copy that waited for a relaxed signal. A later strong signal orders the write before
/// the end of the plan.
#[test]
fn relaxed_signals_order_no_writes() {
    for relaxed in [false, true] {
        let mut w = Writer::new("allgather", "Simple", true, 2, 1, [1, 2, 2]);
        w.meet(true);
        for g in 0..2 {
            let to = w.remote(g, 0, "memory", 1 - g, &local("s", g, 1));
            let put =
                json!({"name": "put", "src_buff": [local("o", g, 1)], "dst_buff": [to], "channel_type": "memory"});
            w.op(g, 0, put);
        }
        w.meet(relaxed);
        for g in 0..2 {
            let [from, to] = ["s", "o"].map(|buffer| local(buffer, 1 - g, 1));
            w.op(g, 0, json!({"name": "copy", "src_buff": [from], "dst_buff": [to]}));
        }
        w.meet(false);
        assert_eq!(codes(&w.plan), if relaxed { vec!["race"; 2] } else { Vec::new() });
    }
}

/// Returns all plans that differ in one operation, each with the name of the change.
fn mutations(plan: &Value) -> Vec<(String, Value)> {
    let mut made = Vec::new();
    for (g, gpu) in plan["gpus"].as_array().unwrap().iter().enumerate() {
        for (b, block) in gpu["threadblocks"].as_array().unwrap().iter().enumerate() {
            let ops = block["ops"].as_array().unwrap();
            let mut change = |what: String, edit: &dyn Fn(&mut Vec<Value>)| {
                let mut other = plan.clone();
                edit(other["gpus"][g]["threadblocks"][b]["ops"].as_array_mut().unwrap());
                if other != *plan {
                    made.push((format!("{what} of gpu {g}, block {b}"), other));
                }
            };
            for n in 0..ops.len() {
                change(format!("drop {n}"), &|ops| drop(ops.remove(n)));
                change(format!("repeat {n}"), &|ops| ops.insert(n, ops[n].clone()));
                if n + 1 < ops.len() {
                    change(format!("swap {n}"), &|ops| ops.swap(n, n + 1));
                }
                for key in ["src_buff", "dst_buff"] {
                    for k in 0..ops[n][key].as_array().map_or(0, Vec::len) {
                        for by in [1, -1] {
                            change(format!("move {key}[{k}] of {n}"), &|ops| {
                                let index = &mut ops[n][key][k]["index"];
                                *index = json!((index.as_i64().unwrap() + by).max(0));
                            });
                        }
                        for id in 0..3 {
                            change(format!("redirect {key}[{k}] of {n} to {id}"), &|ops| {
                                let slice = &mut ops[n][key][k];
                                if slice.get("buffer_id").is_some() {
                                    slice["buffer_id"] = json!(id);
                                } else if slice.get("type").is_some() {
                                    slice["type"] = json!(["i", "o", "s"][id]);
                                }
                            });
                        }
                    }
                }
                for id in 0..3 {
                    change(format!("redirect channel of {n} to {id}"), &|ops| {
                        if ops[n].get("channel_ids").is_some() {
                            ops[n]["channel_ids"][0] = json!(id);
                        }
                    });
                }
                for inner in 0..ops[n]["ops"].as_array().map_or(0, Vec::len) {
                    change(format!("drop {n}.{inner}"), &|ops| {
                        drop(ops[n]["ops"].as_array_mut().unwrap().remove(inner))
                    });
                }
            }
        }
    }
    made
}

#[test]
fn mutations_are_refused_or_harmless() {
    let (mut tried, mut refused, mut harmful, mut number) = (0, 0, 0, 0);
    for n in [2, 3] {
        for (name, plan, grains) in all(n) {
            for (what, mutation) in mutations(&plan) {
                number += 1;
                if !crate::soak::runs(number) {
                    continue;
                }
                tried += 1;
                let accepted = checked(&mutation).is_ok_and(|found| found.diagnostics.is_empty());
                refused += usize::from(!accepted);
                if accepted {
                    for seed in 0..u64::from(crate::soak::cases(40)) {
                        let reason = wrong(&mutation, grains, 1000 + seed);
                        harmful += usize::from(reason.is_some());
                        assert_eq!(reason, None, "{name} on {n} GPUs, {what}: accepted, and seed {seed} fails");
                    }
                }
            }
        }
    }
    assert!(
        tried > crate::soak::cases(2800) as usize && refused * 10 > tried * 7 && harmful == 0,
        "{tried} tried, {refused} refused"
    );
}

#[test]
fn damaged_plans_name_the_path() {
    let message = |edit: &dyn Fn(&mut Value)| {
        let mut plan = two(false, true, true);
        edit(&mut plan);
        checked(&plan).unwrap_err()
    };
    let op = |n: usize| move |plan: &mut Value| plan["gpus"][1]["threadblocks"][0]["ops"][6] = json!(n);
    assert!(message(&op(3)).starts_with("gpus[1].threadblocks[0].ops[6]: invalid type: integer `3`"));
    let put = |edit: fn(&mut Value)| message(&move |plan| edit(&mut plan["gpus"][1]["threadblocks"][0]["ops"][6]));
    assert!(
        put(|op| op["name"] = json!("glre"))
            .starts_with("gpus[1].threadblocks[0].ops[6].name: unknown variant `glre`, expected one of `nop`")
    );
    assert_eq!(
        put(|op| op["dst_buff"][0]["buffer_id"] = json!(4)),
        "gpus[1].threadblocks[0].ops[6]: buffer_id 4 is not among the remote_buffer_refs of the thread block"
    );
    assert_eq!(
        put(|op| *op = json!({"name": "signal", "channel_ids": [7], "channel_type": "memory"})),
        "gpus[1].threadblocks[0].ops[6]: signal uses channel 7 of its thread block, which has 1 of that type"
    );
    assert_eq!(
        message(&|plan| plan["gpus"][0]["input_chunks"] = json!(3)),
        "gpus[0]: 3 chunks of input and 2 of output are no allgather on 2 GPUs; required are 1 to 2, the same on all GPUs"
    );
    assert!(message(&|plan| plan["gpus"][0]["scratch_chunks"] = json!(u32::MAX)).contains("more than memory holds"));
    assert!(
        message(&|plan| plan["gpus"][0]["output_chunks"] = json!(-1))
            .starts_with("gpus[0].output_chunks: invalid value")
    );
    let facts = Facts { elements: Some(7), ..Facts::default() };
    let found = check(&allgather_of_two_chunks().to_string(), &facts, Options::default()).unwrap_err().to_string();
    assert_eq!(found, "7 elements do not divide into the 2 chunks of the plan; accepted are multiples");
    for text in ["", "{", "[]", "{\"gpus\": 3}", "nothing"] {
        assert!(check(text, &Facts::default(), Options::default()).is_err());
    }
}

fn allgather_of_two_chunks() -> Value {
    let mut plan = two(false, true, true);
    for gpu in plan["gpus"].as_array_mut().unwrap() {
        (gpu["input_chunks"], gpu["output_chunks"]) = (json!(2), json!(4));
    }
    plan
}

#[test]
fn limits_of_the_runtime_are_told() {
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut plan = two(false, true, true);
        edit(&mut plan);
        let found = checked(&plan).unwrap();
        found
            .diagnostics
            .into_iter()
            .filter(|d| matches!(d.code, "limit" | "scratch" | "range"))
            .map(|d| d.message)
            .collect::<Vec<_>>()
    };
    let long = with(&|plan| {
        let ops = plan["gpus"][0]["threadblocks"][0]["ops"].as_array_mut().unwrap();
        ops.extend((0..60).map(|_| json!({"name": "nop"})));
    });
    assert_eq!(long, ["thread block 0 has 73 operations; the runtime holds 64"]);
    let put = |edit: fn(&mut Value)| with(&move |plan| edit(&mut plan["gpus"][1]["threadblocks"][0]["ops"][6]));
    assert_eq!(
        put(|op| op["dst_buff"][0]["index"] = json!(2)),
        ["the output of gpu 0 has 2 chunks, and chunk 2 is used"]
    );
    assert_eq!(
        put(|op| op["src_buff"][0] = local("s", 0, 1)),
        ["scratch memory of gpu 1 is too small: 1 chunks are used and 0 are there"]
    );
    assert_eq!(put(|op| op["reduce_op"] = json!("max")), ["reduce_op is \"max\", and the runtime always adds"]);
    assert_eq!(with(&|plan| plan["buffer_alignment"] = json!(4)).len(), 1);
    // The loader stores some keys over other fields, and some combinations of operands have no kernel.
    assert_eq!(
        put(|op| op["barrier_id"] = json!(5)),
        ["put has no barrier_id, and the runtime stores it over another operand"]
    );
    assert_eq!(
        put(|op| op["src_buff"][0]["buffer_id"] = json!(0)),
        ["a buffer of put has one of \"type\", \"buffer_id\" and \"switch_channel_id\""]
    );
    assert_eq!(with(&|plan| plan["num_threads_per_block"] = json!(4096)).len(), 1);
    assert_eq!(with(&|plan| plan["num_threads_per_block"] = json!(1)), Vec::<String>::new());
    assert_eq!(with(&|plan| (plan["min_message_size"], plan["max_message_size"]) = (json!(9), json!(8))).len(), 1);
    assert_eq!(with(&|plan| plan["gpus"][0]["semaphores"] = json!([{"init_value": u32::MAX}])).len(), 1);
    // In place, the input of an allgather is accessed only through the output.
    let input = with(&|plan| plan["gpus"][0]["remote_buffers"][0]["type"] = json!("i"));
    assert!(input.iter().any(|message| message.contains("use \"o\"")), "{input:?}");
}
