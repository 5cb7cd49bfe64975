//! Check 6: operations that may run together, tasks and their ids, who waits and who wakes.

use unisono_base::narrow;

use super::Findings;
use crate::csl::{
    Project, SdkTarget,
    order::Order,
    read::{Code, Descriptor, Run},
};

pub fn check(file: &str, code: &Code, project: &Project, target: &SdkTarget, found: &mut Findings) {
    for name in &code.blocked {
        // A color may stay blocked: its wavelets are taken by operations, not by a task.
        if code.tasks.contains_key(name) && !code.unblocked.contains(name) {
            found.add("task", file, format!("task `{name}` is blocked and never unblocked"));
        }
        if code.params.contains(name) && target.binds_queues {
            found.add("task", file, format!("color `{name}` is blocked; on the {} queues are", target.wafer));
        }
    }
    ids(file, code, project, target, found);
    if !code.threads.asynchronous {
        return;
    }
    activations(file, code, found);
    signals(file, code, found);
    live(file, code, target, found);
}

fn ids(file: &str, code: &Code, project: &Project, target: &SdkTarget, found: &mut Findings) {
    for (task, id) in &code.binds {
        let Some(&number) = code.tasks.get(id) else {
            found.add("task", file, format!("`{task}` is bound to `{id}`, which is no id"));
            continue;
        };
        if !target.local_tasks.iter().any(|&t| u64::from(t) == number) {
            found.add("task", file, format!("`{id}` is id {number}, which is reserved"));
        }
        if target.tasks_share_colors
            && let Some((color, _)) = project.layout.colors.iter().find(|c| c.1 == number)
        {
            found.add("task", file, format!("`{id}` is id {number}, which `{color}` has too"));
        }
        let same = code.tasks.iter().find(|t| t.0 != id && *t.1 == number);
        if let Some((other, _)) = same {
            found.add("task", file, format!("`{id}` and `{other}` are id {number}"));
        }
    }
}

fn activations(file: &str, code: &Code, found: &mut Findings) {
    for (t, steps) in code.threads.steps.iter().enumerate() {
        let own = format!("thread_{t}_id");
        if !code.binds.contains(&(format!("thread_{t}"), own.clone())) {
            found.add("task", file, format!("`thread_{t}` is not bound to `{own}`"));
        }
        let started = code.threads.started.iter().filter(|s| **s == own).count();
        if started != 1 {
            found.add("task", file, format!("`compute` starts `{own}` {started} times"));
        }
        for run in steps.iter().map(|s| &s.run) {
            if run.activates.as_deref() != Some(own.as_str()) {
                let place = format!("{file}, line {}", run.line);
                found.add("task", place, format!("the end of the operation does not activate `{own}`"));
            }
        }
        for name in [format!("step_{t}")] {
            if code.counters.get(&name) != Some(&0) {
                found.add("task", file, format!("`{name}` does not start at 0"));
            }
        }
    }
}

fn signals(file: &str, code: &Code, found: &mut Findings) {
    let threads = &code.threads;
    for (t, step) in threads.steps.iter().enumerate().flat_map(|(t, s)| s.iter().map(move |s| (t, s))) {
        for &(earlier, ended) in &step.waits {
            let told = threads.signals.get(earlier as usize);
            if !told.is_some_and(|s| s.contains(&(ended, narrow(t)))) {
                let place = format!("{file}, line {}", step.run.line);
                found.add("wake", place, format!("thread {earlier} does not wake thread {t} after {ended} steps"));
            }
        }
    }
}

/// Queues `(input?, name)` that an operation holds while it runs.
fn held<'a>(code: &'a Code, run: &'a Run) -> Vec<(bool, &'a str)> {
    let operands = run.operands.iter().filter_map(|name| code.descriptors.get(name));
    operands
        .filter_map(|d| match d {
            Descriptor::In { queue, .. } => Some((true, queue.as_str())),
            Descriptor::Out { queue, .. } => Some((false, queue.as_str())),
            Descriptor::Memory { .. } => None,
        })
        .collect()
}

/// The one that is chosen, else the output queue's number, else the first input queue's.
fn microthread(code: &Code, run: &Run) -> Option<u64> {
    if let Some(chosen) = &run.microthread {
        return code.microthreads.get(chosen).copied();
    }
    let held = held(code, run);
    let (input, queue) = held.iter().find(|q| !q.0).or(held.first())?;
    let ids = if *input { &code.input_queues } else { &code.output_queues };
    ids.get(*queue).copied()
}

fn live(file: &str, code: &Code, target: &SdkTarget, found: &mut Findings) {
    let steps = &code.threads.steps;
    let lengths: Vec<usize> = steps.iter().map(Vec::len).collect();
    let first: Vec<usize> = lengths.iter().scan(0, |at, n| Some(std::mem::replace(at, *at + n))).collect();
    let runs: Vec<&Run> = steps.iter().flatten().map(|s| &s.run).collect();
    for run in runs.iter().filter(|r| r.asynchronous) {
        let chosen = run.microthread.as_ref().map(|name| code.microthreads.get(name).copied().unwrap_or(u64::MAX));
        let is_free = |id| target.microthreads.iter().any(|&m| u64::from(m) == id);
        if !chosen.map_or(target.microthreads.is_empty(), is_free) {
            let (line, wafer) = (run.line, target.wafer);
            found.add(
                "live",
                file,
                format!("line {line} does not choose its microthread as programs of the {wafer} do"),
            );
        }
    }
    let mut waits = Vec::new();
    for (number, step) in steps.iter().flatten().enumerate() {
        for &(thread, ended) in &step.waits {
            let last = usize::try_from(ended).ok().and_then(|e| e.checked_sub(1));
            let known = last.filter(|&l| lengths.get(thread as usize).is_some_and(|&n| l < n));
            match known {
                Some(last) => waits.push((narrow(number), narrow(first[thread as usize] + last))),
                None => found.add("wake", file, format!("a wait for step {ended} of thread {thread}, which has none")),
            }
        }
    }
    let Some(order) = Order::new(&lengths, &waits) else {
        return found.add("wake", file, "threads wait for each other in a circle");
    };
    for a in 0..runs.len() {
        for b in (0..a).filter(|&b| order.may_meet(a, b)) {
            let (at, with) = (runs[a].line, runs[b].line);
            let mine = held(code, runs[a]);
            if held(code, runs[b]).iter().any(|q| mine.contains(q)) {
                found.add("live", file, format!("lines {with} and {at} may run together and share a queue"));
            } else if let (Some(m), Some(n)) = (microthread(code, runs[a]), microthread(code, runs[b]))
                && m == n
            {
                found.add("live", file, format!("lines {with} and {at} may run together on microthread {m}"));
            }
        }
    }
}
