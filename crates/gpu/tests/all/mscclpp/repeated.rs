//! Tests of consecutive launches, threads of port channels, and the setup of the executor before a launch.

use serde_json::{Value, json};

use super::{
    checked, codes,
    writer::{Writer, all, local},
    wrong,
};

fn named(n: usize, name: &str) -> Value {
    all(n).into_iter().find(|(found, ..)| *found == name).unwrap().1
}

#[test]
fn packets_without_a_second_place_are_refused_or_harmless() {
    let mut failed = 0;
    for n in [2, 3, 4] {
        for (name, mut plan, grains) in all(n).into_iter().filter(|(_, plan, _)| plan["protocol"] == "LL") {
            plan["use_double_scratch_buffer"] = json!(false);
            let found = checked(&plan).unwrap();
            let fails = (0..60).any(|seed| wrong(&plan, grains, seed).is_some());
            assert!(found.diagnostics.iter().all(|d| d.code == "relaunch" && !d.trace.is_empty()), "{name} on {n}");
            assert_eq!(found.relaunch, Some(found.diagnostics.is_empty()), "{name} on {n}");
            assert!(!fails || found.relaunch == Some(false), "{name} on {n}: accepted, and a later launch fails");
            failed += usize::from(fails);
        }
    }
    assert!(failed > 2, "{failed}");
}

#[test]
fn gpus_with_unlike_halves_miss_each_others_packets() {
    let (mut failed, mut tried) = (0, 0);
    for n in [2, 3] {
        for (name, plan, grains) in all(n).into_iter().filter(|(_, plan, _)| plan["protocol"] == "LL") {
            for gpu in 0..n {
                let mut plan = plan.clone();
                let own = &mut plan["gpus"][gpu]["scratch_chunks"];
                *own = json!(own.as_u64().unwrap() + 1);
                let found = checked(&plan).unwrap();
                let fails = (0..6).any(|seed| wrong(&plan, grains, seed).is_some());
                assert!(found.diagnostics.iter().all(|d| d.code == "relaunch" && !d.trace.is_empty()), "{name} on {n}");
                assert_eq!(fails, found.relaunch == Some(false), "{name} on {n}, more scratch memory of gpu {gpu}");
                failed += usize::from(fails);
                tried += 1;
            }
        }
    }
    assert!(failed > tried / 2, "{failed} of {tried}");
}

/// A broadcast of packets from gpu 0 to gpu 1, with an answer if the root waits.
fn broadcast(answers: bool) -> Value {
    let mut w = Writer::new("broadcast", "LL", false, 2, 1, [1, 1, 1]);
    w.op(0, 0, json!({"name": "copy", "src_buff": [local("i", 0, 1)], "dst_buff": [local("o", 0, 1)]}));
    let to = w.remote(0, 0, "memory", 1, &local("s", 0, 1));
    w.op(0, 0, json!({"name": "ppkt", "src_buff": [local("i", 0, 1)], "dst_buff": [to], "channel_type": "memory"}));
    w.op(1, 0, json!({"name": "upkt", "src_buff": [local("s", 0, 1)], "dst_buff": [local("o", 0, 1)]}));
    if answers {
        w.sync(1, 0, "rlxsignal", "memory", &[0]);
        w.sync(0, 0, "rlxwait", "memory", &[1]);
    }
    w.plan
}

#[test]
fn a_root_that_never_waits_overtakes_its_readers() {
    let found = checked(&broadcast(false)).unwrap();
    assert_eq!((found.complete, found.race_free, found.relaunch), (Some(true), Some(true), Some(false)));
    let fault = &found.diagnostics[0];
    assert_eq!((fault.code, fault.rank, fault.threadblock, fault.instruction), ("relaunch", Some(0), Some(0), Some(1)));
    assert_eq!(
        fault.message,
        "gpus[0].threadblocks[0].ops[1] (ppkt) of launch 3 writes packets of gpu 1 over those that \
         gpus[1].threadblocks[0].ops[0] (upkt) of launch 1 may still read; no signal reaches gpu 0 after they have been read"
    );
    assert_eq!(
        fault.trace[0],
        "gpus[0].threadblocks[0] runs its operations up to gpus[0].threadblocks[0].ops[0] (copy) of launch 3"
    );
    let mut once = broadcast(false);
    once["use_double_scratch_buffer"] = json!(false);
    assert!((0..3000).any(|seed| wrong(&once, 1, seed).is_some()));

    let mut answered = broadcast(true);
    assert_eq!(codes(&answered), Vec::<&str>::new());
    answered["use_double_scratch_buffer"] = json!(false);
    assert_eq!(codes(&answered), Vec::<&str>::new(), "one answer a launch is enough without a second place");
}

#[test]
fn plain_data_of_others_stays_in_the_first_half() {
    let mut plan = named(2, "allreduce scratch");
    plan["use_double_scratch_buffer"] = json!(true);
    let found = checked(&plan).unwrap();
    assert!(found.diagnostics.iter().all(|d| d.code == "relaunch" && d.instruction.is_some()), "{found:?}");
    assert_eq!(found.relaunch, Some(false));
    assert!(wrong(&plan, 1, 1).is_some_and(|reason| reason.ends_with("in launch 2")));
    // If only its own GPU accesses scratch memory, all accesses are shifted equally, which is correct.
    let mut own = named(2, "reduce-scatter");
    own["use_double_scratch_buffer"] = json!(true);
    assert_eq!((codes(&own), wrong(&own, 1, 1)), (Vec::new(), None));
}

#[test]
fn the_first_buffers_are_kept_with_reuse_resources() {
    let mut plan = named(2, "allgather");
    plan["reuse_resources"] = json!(true);
    assert_eq!(codes(&plan), ["relaunch"]);
    let mut scratch = named(2, "alltoall pipeline");
    scratch["reuse_resources"] = json!(true);
    assert_eq!(codes(&scratch), Vec::<&str>::new());
}

#[test]
fn an_input_that_is_overwritten_is_a_property() {
    assert_eq!(checked(&named(2, "alltoall port")).unwrap().keeps_input, Some(true));
    assert_eq!(checked(&named(2, "allgather")).unwrap().keeps_input, None);
    let mut clobbered = named(2, "alltoall port");
    let last = json!({"name": "copy", "src_buff": [local("o", 0, 1)], "dst_buff": [local("i", 0, 1)]});
    clobbered["gpus"][0]["threadblocks"][0]["ops"].as_array_mut().unwrap().push(last);
    let found = checked(&clobbered).unwrap();
    assert_eq!((found.keeps_input, found.diagnostics.len()), (Some(false), 0));
}

/// Builds an allgather by two puts of one operation on one port channel, whose second thread does not signal.
fn port(meets: bool, signaler: usize) -> Value {
    let mut w = Writer::new("allgather", "Simple", false, 2, 1, [2, 4, 0]);
    w.meet(true);
    for g in 0..2 {
        let channel = w.channel(g, 0, "port", 1 - g);
        let (own, there) = ([local("i", 0, 1), local("i", 1, 1)], [local("o", 2 * g, 1), local("o", 2 * g + 1, 1)]);
        let there = there.map(|slice| w.remote(g, 0, "port", 1 - g, &slice));
        let both = [channel; 2];
        w.op(
            g,
            0,
            json!({"name": "put", "src_buff": own, "dst_buff": there, "channel_ids": both, "channel_type": "port"}),
        );
        if meets {
            w.nop(g, 0);
        }
        let ids = vec![channel; signaler + 1];
        w.op(g, 0, json!({"name": "signal", "channel_ids": ids, "channel_type": "port"}));
        w.op(g, 0, json!({"name": "flush", "dst_buff": there, "channel_ids": both, "channel_type": "port"}));
        w.op(g, 0, json!({"name": "copy", "src_buff": [local("i", 0, 2)], "dst_buff": [local("o", 2 * g, 2)]}));
        for _ in ids {
            w.op(g, 0, json!({"name": "wait", "channel_ids": [channel], "channel_type": "port"}));
            w.nop(g, 0);
        }
    }
    w.plan
}

#[test]
fn a_signal_follows_the_puts_of_its_own_thread_only() {
    let fails = |plan: &Value| (0..200).any(|seed| wrong(plan, 1, seed).is_some());
    assert!(codes(&port(false, 0)).contains(&"race") && fails(&port(false, 0)));
    assert_eq!((codes(&port(true, 0)), fails(&port(true, 0))), (Vec::new(), false));
    assert_eq!((codes(&port(false, 1)), fails(&port(false, 1))), (Vec::new(), false));
}

#[test]
fn one_of_two_signals_of_two_threads_tells_of_neither_put() {
    for meets in [false, true] {
        let mut plan = port(meets, 1);
        for g in 0..2 {
            plan["gpus"][g]["scratch_chunks"] = json!(1);
            let ops = plan["gpus"][g]["threadblocks"][0]["ops"].as_array_mut().unwrap();
            let first = ops.iter().position(|op| op["name"] == "wait" && op["channel_type"] == "port").unwrap();
            let early =
                json!({"name": "copy", "src_buff": [local("o", 2 * (1 - g), 1)], "dst_buff": [local("s", 0, 1)]});
            ops.insert(first + 2, early);
        }
        assert_eq!(codes(&plan).contains(&"race"), !meets, "{:?}", checked(&plan).unwrap().diagnostics);
    }
}

#[test]
fn groups_behind_switches_are_the_same_for_all_their_gpus() {
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut plan = named(3, "allgather switch");
        edit(&mut plan["gpus"][2]["channels"]);
        checked(&plan).map(|found| found.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>())
    };
    let at =
        |channels: &Value| channels.as_array().unwrap().iter().position(|c| c["channel_type"] == "switch").unwrap();
    let group = |ranks: Value| {
        move |c: &mut Value| {
            let n = at(c);
            c[n]["rank_groups"][0]["ranks"] = ranks.clone();
        }
    };
    assert_eq!(with(&group(json!([2, 0, 1]))).unwrap(), Vec::<&str>::new());
    assert!(with(&group(json!([1, 2]))).unwrap().contains(&"switch"));
    assert!(with(&group(json!([0, 1]))).unwrap_err().contains("not gpu 2, whose channel it is"));
    // The store writes the buffer that each GPU has bound.
    let other = with(&|c| {
        let n = at(c);
        c[n]["buffer_type"] = json!("s");
    });
    assert!(!other.unwrap().is_empty());
}
