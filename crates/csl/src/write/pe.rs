//! Prints the program file of a class of PEs (`plan.rs` defines classes).
//!
//! If the class has one thread, its vector operations run one after another in `compute`. If it has several threads,
//! each thread is a task: the task starts one asynchronous operation, whose end activates the task again. `step_N` is
//! the next operation to start, `done_N` the number of ended operations if other threads wait for them, `round_N`
//! counts the chunks of an operation in turns, and `running` the threads that have not ended. Tasks do not interrupt
//! each other, so these variables need no lock. An operation uses the value that a descriptor has when the operation
//! starts, so descriptors may move while it runs.

use std::fmt::Write;

use super::{
    article, head, operator,
    plan::{Class, Operation, Plan},
    steps::{self, Loop, Step},
};
use crate::SdkTarget;

/// Use of a program file: in a whole project, or imported by a user's program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form<'a> {
    Project,
    /// A module; `operator` is the name of the operator's file.
    Module {
        operator: &'a str,
    },
}

impl Form<'_> {
    /// Returns the statement that ends the collective on a PE.
    fn end(self) -> &'static str {
        if self == Form::Project { "sys_mod.unblock_cmd_stream();" } else { "done();" }
    }
}

/// Returns the declaration of a module's parameter for the ids of tasks.
pub fn tasks_param(plan: &Plan) -> String {
    format!("param tasks: [{}]local_task_id;", plan.tasks.len())
}

pub fn print(plan: &Plan, class: &Class, target: &SdkTarget, form: Form) -> String {
    let key = &class.key;
    let threads: Vec<Vec<Step>> = key
        .threads
        .iter()
        .enumerate()
        .map(|(t, ops)| ops.iter().enumerate().flat_map(|(n, o)| steps::of(plan, t, n, o, target)).collect())
        .collect();
    let mut text = format!(
        "// The program of {} of the {} PEs of {} {} of {} {} on a grid of {} rows and columns.\n// {}\n\n",
        class.pes,
        plan.grid.count(),
        article(plan.collective.kind.name()),
        plan.collective.kind,
        plan.collective.elements,
        plan.collective.dtype,
        plan.grid,
        head(target)
    );
    declarations(&mut text, plan, class, target, form);
    descriptors(&mut text, class, &threads);
    let moved = if form == Form::Project { String::new() } else { moved_back(&threads) };
    if let [] | [_] = &threads[..] {
        sequence(&mut text, plan, key.threads.first().map_or(&[], |t| t), threads.first(), form, &moved);
    } else {
        tasks(&mut text, plan, class, target, &threads, form, &moved);
    }
    setup(&mut text, plan, class, target, threads.len(), form);
    text
}

/// Adds formatted text; writing to a string cannot fail.
macro_rules! put {
    ($text:expr, $($arg:tt)*) => {{ let _ = write!($text, $($arg)*); }};
}

fn declarations(text: &mut String, plan: &Plan, class: &Class, target: &SdkTarget, form: Form) {
    let (key, dtype) = (&class.key, plan.collective.dtype);
    if form == Form::Project {
        text.push_str("param memcpy_params: comptime_struct;\n");
    } else {
        text.push_str("param done: fn () void;\n");
        if !plan.tasks.is_empty() {
            put!(text, "{}\n", tasks_param(plan));
        }
    }
    for c in 0..key.colors {
        put!(text, "param c{c}: color;\n");
    }
    text.push('\n');
    if form == Form::Project {
        text.push_str("const sys_mod = @import_module(\"<memcpy/memcpy>\", memcpy_params);\n");
    }
    if key.threads.iter().flatten().any(|o| o.mapped) {
        let file = if let Form::Module { operator } = form { operator } else { operator::FILE };
        put!(text, "const operator = @import_module(\"{file}\");\n");
    }
    text.push('\n');
    put!(text, "var input = @zeros([{}]{dtype});\n", key.input);
    put!(text, "var output = @zeros([{}]{dtype});\n", key.output);
    if key.scratch > 0 {
        put!(text, "var scratch = @zeros([{}]{dtype});\n", key.scratch);
    }
    for (name, sizes) in [("partial", key.partials(target)), ("arrived", key.arrived(target))] {
        for (t, size) in sizes.into_iter().enumerate().filter(|p| p.1 > 0) {
            put!(text, "var {name}_{t} = @zeros([{size}]{dtype});\n");
        }
    }
    put!(text, "var input_ptr: [*]{dtype} = &input;\n");
    put!(text, "var output_ptr: [*]{dtype} = &output;\n");
    if key.threads.iter().flatten().any(|o| o.control) {
        text.push_str("// Advances the switch of every router on its way; no PE gets it.\n");
        put!(text, "var advance_word = @constants([1]u32, {});\n", target.advance_word());
    }
    text.push('\n');
    let queues = [("iq", "input", &class.queues.input), ("oq", "output", &class.queues.output)];
    for (short, long, queues) in queues {
        for (c, queue) in queues.iter().enumerate() {
            if let Some(q) = queue {
                put!(text, "const {short}_c{c} = @get_{long}_queue({q});\n");
            }
        }
    }
}

fn descriptors(text: &mut String, class: &Class, threads: &[Vec<Step>]) {
    if class.key.colors > 0 {
        text.push('\n');
    }
    let mut seen = rustc_hash::FxHashSet::default();
    for d in threads.iter().flatten().flat_map(|s| &s.descriptors) {
        if seen.insert(&d.name) {
            put!(text, "{} {} = {};\n", if d.moves { "var" } else { "const" }, d.name, d.value);
        }
    }
    if !class.key.threads.is_empty() {
        text.push('\n');
    }
}

/// Returns statements that set the descriptors moved by loops back to their first chunk.
fn moved_back(threads: &[Vec<Step>]) -> String {
    let mut seen = rustc_hash::FxHashSet::default();
    let all = threads.iter().flatten().flat_map(|s| &s.descriptors);
    let moving = all.filter(|d| d.moves && seen.insert(&d.name));
    moving.map(|d| format!("  {} = {};\n", d.name, d.value)).collect()
}

/// Prints a program of at most one thread; consecutive equal operations without loops become one loop. `moved` resets
/// descriptors.
fn sequence(
    text: &mut String,
    plan: &Plan,
    operations: &[Operation],
    steps: Option<&Vec<Step>>,
    form: Form,
    moved: &str,
) {
    put!(text, "fn compute() void {{\n{moved}");
    let steps = steps.map_or(&[][..], |s| s);
    let groups: Vec<&[Step]> = steps.chunk_by(|a, b| a.operation == b.operation).collect();
    let mut phase = 0;
    let mut at = 0;
    while at < groups.len() {
        let operation = &operations[at];
        // An operation with moving descriptors is not repeated.
        let repeated = || operations[at..].iter().take_while(|o| *o == operation).count();
        let same = if operation.moves() { 1 } else { repeated() };
        if operation.phase != phase {
            phase = operation.phase;
            put_phase(text, plan, phase, "  ");
        }
        let indent = if same > 1 { "    " } else { "  " };
        if same > 1 {
            put!(text, "  for (@range(u16, {same})) |n| {{\n");
        }
        // The loop over chunks, if there is one, consists of all steps up to its end.
        let chunks = groups[at].iter().find_map(|s| s.end_of.as_ref());
        let length = chunks.map_or(0, |l| l.length);
        if let Some(l) = chunks {
            put!(text, "{indent}for (@range(u16, {})) |k| {{\n", l.rounds);
        }
        for (n, step) in groups[at].iter().enumerate() {
            let indent = if n < length { format!("{indent}  ") } else { indent.to_owned() };
            put!(text, "{indent}{}({});\n", step.builtin, step.operands.join(", "));
            if let Some(l) = &step.end_of {
                move_on(text, plan, l, &indent);
                put!(text, "{}}}\n", &indent[2..]);
            }
        }
        if same > 1 {
            text.push_str("  }\n");
        }
        at += same;
    }
    put!(text, "  {}\n}}\n\n", form.end());
}

fn put_phase(text: &mut String, plan: &Plan, phase: u16, indent: &str) {
    if let Some(name) = plan.phases.get(usize::from(phase)) {
        put!(text, "{indent}// {name}\n");
    }
}

fn move_on(text: &mut String, plan: &Plan, l: &Loop, indent: &str) {
    for name in &l.moved {
        put!(text, "{indent}{name} = @increment_dsd_offset({name}, {}, {});\n", l.chunk, plan.collective.dtype);
    }
}

fn tasks(
    text: &mut String,
    plan: &Plan,
    class: &Class,
    target: &SdkTarget,
    threads: &[Vec<Step>],
    form: Form,
    moved: &str,
) {
    let waits = steps::Waits::new(&class.key, threads);
    put!(text, "var running: u16 = {};\n", threads.len());
    for (t, steps) in threads.iter().enumerate() {
        let id = plan.tasks.get(t).copied().unwrap_or_default();
        let id = if form == Form::Project { format!("@get_local_task_id({id})") } else { format!("tasks[{t}]") };
        put!(text, "const thread_{t}_id: local_task_id = {id};\n");
        if let Some(id) = target.microthreads.get(t) {
            put!(text, "const thread_{t}_ut = @get_ut_id({id});\n");
        }
        put!(text, "var step_{t}: u16 = 0;\n");
        if steps.iter().any(|s| s.end_of.is_some()) {
            put!(text, "var round_{t}: u16 = 0;\n");
        }
        if waits.is_awaited(t) {
            put!(text, "var done_{t}: u16 = 0;\n");
        }
        if waits.waits(t) {
            put!(text, "var waiting_{t}: bool = false;\n");
        }
    }
    for (t, steps) in threads.iter().enumerate() {
        put!(text, "\ntask thread_{t}() void {{\n  ");
        for (n, step) in steps.iter().enumerate() {
            put!(text, "if (step_{t} == {n}) {{\n");
            signal(text, &waits, t, n);
            start(text, plan, target, t, n, step, waits.of(t, n));
            text.push_str("  } else ");
        }
        text.push_str("{\n");
        signal(text, &waits, t, steps.len());
        text.push_str("    running -= 1;\n    if (running == 0) {\n");
        put!(text, "      {}\n    }}\n  }}\n}}\n", form.end());
    }
    put!(text, "\nfn compute() void {{\n{moved}");
    if form != Form::Project {
        put!(text, "  running = {};\n", threads.len());
        for t in 0..threads.len() {
            put!(text, "  step_{t} = 0;\n");
            if waits.is_awaited(t) {
                put!(text, "  done_{t} = 0;\n");
            }
        }
    }
    for t in 0..threads.len() {
        put!(text, "  @activate(thread_{t}_id);\n");
    }
    text.push_str("}\n\n");
}

/// Prints the statements that record that `done` steps of thread `t` have ended, and that activate the threads that
/// wait for this number of steps. Prints nothing if no thread waits for it.
fn signal(text: &mut String, waits: &steps::Waits, t: usize, done: usize) {
    let told = waits.told(t, done);
    if told.is_empty() {
        return;
    }
    put!(text, "    if (done_{t} < {done}) {{\n      done_{t} = {done};\n");
    for w in told {
        put!(text, "      if (waiting_{w}) {{\n        waiting_{w} = false;\n");
        put!(text, "        @activate(thread_{w}_id);\n      }}\n");
    }
    text.push_str("    }\n");
}

fn start(
    text: &mut String,
    plan: &Plan,
    target: &SdkTarget,
    t: usize,
    n: usize,
    step: &Step,
    waits: &[(usize, usize)],
) {
    let indent = if waits.is_empty() { "    " } else { "      " };
    if !waits.is_empty() {
        let unmet: Vec<String> = waits.iter().map(|(t, n)| format!("done_{t} < {n}")).collect();
        put!(text, "    if ({}) {{\n", unmet.join(" or "));
        put!(text, "      waiting_{t} = true;\n    }} else {{\n");
    }
    if let Some(l) = &step.end_of {
        put!(text, "{indent}round_{t} += 1;\n{indent}if (round_{t} < {}) {{\n", l.rounds);
        put!(text, "{indent}  step_{t} = {};\n{indent}}} else {{\n", n + 1 - l.length);
        put!(text, "{indent}  round_{t} = 0;\n{indent}  step_{t} = {};\n{indent}}}\n", n + 1);
    } else {
        put!(text, "{indent}step_{t} = {};\n", n + 1);
    }
    if step.phase != 0 {
        put_phase(text, plan, step.phase, indent);
    }
    let operands = step.operands.join(", ");
    if step.fabric {
        let microthread =
            if target.microthreads.is_empty() { String::new() } else { format!(", .ut_id = thread_{t}_ut") };
        put!(
            text,
            "{indent}{}({operands}, .{{ .async = true, .activate = thread_{t}_id{microthread} }});\n",
            step.builtin
        );
    } else {
        put!(text, "{indent}{}({operands});\n{indent}@activate(thread_{t}_id);\n", step.builtin);
    }
    if let Some(l) = &step.end_of {
        move_on(text, plan, l, indent);
    }
    if !waits.is_empty() {
        text.push_str("    }\n");
    }
}

fn setup(text: &mut String, plan: &Plan, class: &Class, target: &SdkTarget, threads: usize, form: Form) {
    if form != Form::Project {
        for name in ["input", "output"] {
            put!(text, "fn {name}_vector() [*]{} {{\n  return {name}_ptr;\n}}\n\n", plan.collective.dtype);
        }
    }
    text.push_str("comptime {\n");
    if threads > 1 {
        for t in 0..threads {
            put!(text, "  @bind_local_task(thread_{t}, thread_{t}_id);\n");
        }
    }
    for (c, queue) in class.queues.input.iter().enumerate() {
        if queue.is_some() {
            put!(text, "  @initialize_queue(iq_c{c}, .{{ .color = c{c} }});\n");
            if !target.binds_queues {
                put!(text, "  @block(c{c});\n");
            }
        }
    }
    for (c, queue) in class.queues.output.iter().enumerate() {
        if queue.is_some() && target.binds_queues {
            put!(text, "  @initialize_queue(oq_c{c}, .{{ .color = c{c} }});\n");
        }
    }
    if form == Form::Project {
        if target.launch.is_some() {
            text.push_str("  @rpc(@get_data_task_id(sys_mod.LAUNCH));\n");
        }
        text.push_str("  @export_symbol(input_ptr, \"input\");\n");
        text.push_str("  @export_symbol(output_ptr, \"output\");\n");
        text.push_str("  @export_symbol(compute);\n");
    }
    text.push_str("}\n");
}
