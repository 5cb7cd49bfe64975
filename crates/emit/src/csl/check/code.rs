//! Checks 5, 8 and 9 of a program file: operations, queues, its end, its memory.

use std::collections::BTreeMap;

use super::Findings;
use crate::csl::{
    SdkTarget,
    read::{Code, Descriptor, Run},
    write::MAP,
};

pub fn check(file: &str, code: &Code, target: &SdkTarget, found: &mut Findings) {
    for run in code.threads.steps.iter().flatten().map(|s| &s.run) {
        operation(file, code, run, target, found);
    }
    queues(file, code, target, found);
    if let Some(thread) = code.threads.ends.iter().position(|e| !e) {
        found.add("end", file, format!("thread {thread} does not let the host go on"));
    }
    let threads = code.threads.steps.len() as u64;
    if code.threads.asynchronous && code.counters.get("running") != Some(&threads) {
        found.add("end", file, format!("`running` does not start at {threads}, the number of threads"));
    }
    memory(file, code, target, found);
}

fn operation(file: &str, code: &Code, run: &Run, target: &SdkTarget, found: &mut Findings) {
    let place = format!("{file}, line {}", run.line);
    let arity = match run.builtin.as_str() {
        "@fmovs" | "@mov32" => 2,
        "@fadds" | "@fmaxs" | "@fmuls" | MAP => 3,
        other => return found.add("operation", place, format!("`{other}` is not emitted")),
    };
    if run.operands.len() != arity {
        let n = run.operands.len();
        return found.add("operation", place, format!("`{}` with {n} operands; it has {arity}", run.builtin));
    }
    let mut operands = Vec::new();
    for name in &run.operands {
        match code.descriptors.get(name) {
            Some(d) => operands.push(d),
            None => return found.add("operand", place, format!("`{name}` is no descriptor")),
        }
    }
    let (sink, sources) = (operands[0], &operands[1..]);
    if matches!(sink, Descriptor::In { .. }) {
        found.add("operand", &place, "an input from the fabric is no destination");
    }
    if sources.iter().any(|s| matches!(s, Descriptor::Out { .. })) {
        found.add("operand", &place, "an output to the fabric is no source");
    }
    if run.builtin == MAP && operands.iter().any(|d| !d.is_memory()) {
        found.add("operand", &place, format!("`{MAP}` waits for the fabric, and no other thread runs meanwhile"));
    }
    if sources.iter().filter(|s| matches!(s, Descriptor::In { .. })).count() > target.needs.fabric_sources {
        let wafer = target.wafer;
        found.add("operand", &place, format!("more sources from the fabric than the {wafer} takes in one operation"));
    }
    if let [Descriptor::In { .. }, Descriptor::Memory { .. }] = sources {
        found.add("operand", &place, "a fabric source stands before a memory source");
    }
    for descriptor in &operands {
        slice(&place, code, descriptor, found);
    }
    let extent = sink.extent();
    if operands.iter().any(|d| d.extent() != extent) {
        found.add("extent", &place, "the operands differ in length");
    }
    if extent == 0 || extent > u64::from(target.extent) {
        found.add("extent", &place, format!("length {extent}; 1 to {} are finite", target.extent));
    }
    if let (Descriptor::Out { control: true, .. }, [Descriptor::Memory { array, .. }]) = (sink, sources)
        && code.words.get(array) != Some(&u64::from(target.advance_word()))
    {
        found.add("control", &place, format!("`{array}` is not the command to advance"));
    }
    let fabric = operands.iter().any(|d| !d.is_memory());
    if run.asynchronous != (code.threads.asynchronous && fabric) {
        found.add(
            "operation",
            &place,
            "an operation runs by itself exactly where tasks run it and it touches the fabric",
        );
    }
}

fn slice(place: &str, code: &Code, descriptor: &Descriptor, found: &mut Findings) {
    let Descriptor::Memory { array, start, extent } = descriptor else {
        return;
    };
    let size = code.arrays.get(array).map_or(0, |a| a.0);
    if start.saturating_add(*extent) > size {
        let end = start.saturating_add(*extent);
        found.add("extent", place, format!("`{array}[{start}..{end}]` of a vector of {size} elements"));
    }
}

/// Each queue exists and serves one color, said alike wherever it is named; data and control share one.
fn queues(file: &str, code: &Code, target: &SdkTarget, found: &mut Findings) {
    let mut color_of: BTreeMap<&str, &str> = BTreeMap::new();
    let mut out_of: BTreeMap<&str, &str> = BTreeMap::new();
    for descriptor in code.descriptors.values() {
        let (color, queue, known) = match descriptor {
            Descriptor::In { color, queue, .. } => (color, queue, &code.input_queues),
            Descriptor::Out { color, queue, .. } => {
                if *out_of.entry(color).or_insert(queue) != queue {
                    found.add(
                        "control",
                        file,
                        format!("what is sent on `{color}` takes two queues and could overtake itself"),
                    );
                }
                (color, queue, &code.output_queues)
            }
            Descriptor::Memory { .. } => continue,
        };
        if !known.contains_key(queue) {
            found.add("queue", file, format!("`{queue}` is no queue of that direction"));
        }
        if *color_of.entry(queue).or_insert(color) != color {
            found.add("queue", file, format!("`{queue}` serves two colors"));
        }
        if !code.params.contains(color) {
            found.add("queue", file, format!("`{color}` is no parameter"));
        }
    }
    let sides =
        [("input", &code.input_queues, target.input_queues), ("output", &code.output_queues, target.output_queues)];
    for (side, queues, legal) in sides {
        let mut taken = Vec::new();
        for (name, &id) in queues {
            if !legal.iter().any(|&q| u64::from(q) == id) {
                found.add("queue", file, format!("`{name}` is {side} queue {id}; there are {}", legal.len()));
            }
            if taken.contains(&id) {
                found.add("queue", file, format!("two names for {side} queue {id}"));
            }
            taken.push(id);
        }
    }
    let bound = code.output_queues.keys().filter(|_| target.binds_queues);
    for queue in code.input_queues.keys().chain(bound) {
        let given: Vec<&str> = code.queue_colors.iter().filter(|q| q.0 == *queue).map(|q| q.1.as_str()).collect();
        let wanted = color_of.get(queue.as_str()).copied();
        if wanted.is_some() && given != wanted.as_slice() {
            found.add("queue", file, format!("`{queue}` is not set to its color once"));
        }
    }
}

fn memory(file: &str, code: &Code, target: &SdkTarget, found: &mut Findings) {
    // All types that are emitted have 4 bytes.
    let elements = code.arrays.values().fold(0u64, |sum, a| sum.saturating_add(a.0));
    let bytes = elements.saturating_mul(4);
    let limit = target.sram_bytes.saturating_sub(target.code_bytes);
    if bytes > limit {
        found.add(
            "memory",
            file,
            format!("vectors take {bytes} bytes; {limit} of {} remain beside the code", target.sram_bytes),
        );
    }
    for (pointer, array) in &code.pointers {
        if !code.arrays.contains_key(array) {
            found.add("export", file, format!("`{pointer}` points to `{array}`, which is not declared"));
        }
    }
}
