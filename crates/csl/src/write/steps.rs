//! Converts an operation into vector operations, none longer than the target permits ([`SdkTarget::extent`]), and a
//! step for its final control wavelet, if any.

use unisono_collective::Dtype;
use unisono_lower::wafer::End;

use super::{
    mapped,
    operator::{MAP, vector_operation},
    plan::{ClassKey, Operation, Plan},
    turns,
};
use crate::SdkTarget;

pub struct Step {
    /// Index of the operation in its thread.
    pub operation: usize,
    pub phase: u16,
    pub builtin: &'static str,
    pub operands: Vec<String>,
    pub descriptors: Vec<Descriptor>,
    pub fabric: bool,
    /// Loop that ends with this step, if any.
    pub end_of: Option<Loop>,
}

impl Step {
    /// Creates a step of an operation. `descriptors` are its operands, starting with the destination.
    pub fn new(
        (operation, phase): (usize, u16),
        builtin: &'static str,
        descriptors: Vec<Descriptor>,
        fabric: bool,
    ) -> Self {
        let operands = descriptors.iter().map(|d| d.name.clone()).collect();
        Self { operation, phase, builtin, operands, descriptors, fabric, end_of: None }
    }
}

/// Declaration of a vector operand: its name and the CSL expression of its value.
pub struct Descriptor {
    pub name: String,
    pub value: String,
    /// True if the descriptor is a variable that a loop advances.
    pub moves: bool,
}

impl Descriptor {
    /// Returns the descriptor of the first `len` elements of a thread's buffer `name`.
    pub fn buffer(name: &str, thread: usize, len: u32) -> Self {
        Self {
            name: format!("{name}_{thread}_{len}"),
            value: format!("@get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{{len}}} -> {name}_{thread}[i] }})"),
            moves: false,
        }
    }

    /// Returns the descriptor for the operand `end`. If the operand is in memory and the operation is a loop, the
    /// descriptor is a variable of the operation that the loop moves.
    pub fn moving(self, end: End, is_loop: bool, thread: usize, operation: usize) -> Self {
        if !is_loop || matches!(end, End::Fabric(_)) {
            return self;
        }
        Self { name: format!("{}_moving_{thread}_{operation}", self.name), moves: true, ..self }
    }
}

/// A loop that runs the last `length` steps `rounds` times. Each round moves the descriptors `moved` by `chunk`
/// elements.
pub struct Loop {
    pub length: usize,
    pub rounds: u32,
    pub chunk: u32,
    pub moved: Vec<String>,
}

/// Makes `steps` the body of a loop of `rounds` rounds, each of which moves descriptors by `chunk` elements.
pub fn repeat(steps: &mut [Step], rounds: u32, chunk: u32) {
    let mut moved: Vec<String> = Vec::new();
    for d in steps.iter().flat_map(|s| &s.descriptors).filter(|d| d.moves) {
        if !moved.contains(&d.name) {
            moved.push(d.name.clone());
        }
    }
    let length = steps.len();
    if let Some(last) = steps.last_mut() {
        last.end_of = Some(Loop { length, rounds, chunk, moved });
    }
}

pub fn of(plan: &Plan, thread: usize, operation: usize, o: &Operation, target: &SdkTarget) -> Vec<Step> {
    if o.mapped {
        return mapped::of(plan, thread, operation, o, target);
    }
    if o.in_turns() || o.onward.is_some() {
        return turns::of(plan, thread, operation, o, target);
    }
    let mut steps = Vec::new();
    let mut at = 0;
    while at < o.len {
        let len = (o.len - at).min(target.extent.max(1));
        let last = at + len == o.len;
        let mut descriptors = vec![descriptor(target, o.sink, len, at, true, o.advance && last)];
        let sources = o.sources.iter().map(|&s| descriptor(target, s, len, at, false, false));
        descriptors.extend(sources);
        steps.push(Step::new((operation, o.phase), builtin(plan, &descriptors), descriptors, o.uses_fabric()));
        at += len;
    }
    if let (true, End::Fabric(c)) = (o.control, o.sink) {
        steps.push(control(operation, o.phase, c));
    }
    steps
}

/// Returns the builtin that moves a vector of a 32-bit type.
pub fn move_builtin(dtype: Dtype) -> &'static str {
    if dtype == Dtype::F32 { "@fmovs" } else { "@mov32" }
}

/// Returns the builtin for a destination and its sources: one source is moved, several are combined.
pub fn builtin(plan: &Plan, descriptors: &[Descriptor]) -> &'static str {
    let c = &plan.collective;
    if descriptors.len() == 2 { move_builtin(c.dtype) } else { vector_operation(c).unwrap_or(MAP) }
}

/// Returns the descriptor of `len` elements of an operand, after its first `skip`. With `advance`, a fabric sink
/// advances the switch of its color after the last element.
pub fn descriptor(target: &SdkTarget, end: End, len: u32, skip: u32, sink: bool, advance: bool) -> Descriptor {
    let c = match end {
        End::Fabric(c) => c,
        End::In(start) => return slice("input", start + skip, len),
        End::Out(start) => return slice("output", start + skip, len),
        End::Tmp(start) => return slice("scratch", start + skip, len),
    };
    let (name, kind, queue, field) = match (sink, advance) {
        (false, _) => (format!("rx_c{c}_{len}"), "fabin_dsd", "input_queue = iq", ""),
        (true, false) => (format!("tx_c{c}_{len}"), "fabout_dsd", "output_queue = oq", ""),
        (true, true) => {
            (format!("tx_c{c}_{len}_advance"), "fabout_dsd", "output_queue = oq", ", .advance_switch = true")
        }
    };
    let color = if target.binds_queues && !sink { String::new() } else { format!(".fabric_color = c{c}, ") };
    let value = format!("@get_dsd({kind}, .{{ .extent = {len}, {color}.{queue}_c{c}{field} }})");
    Descriptor { name, value, moves: false }
}

fn slice(array: &str, start: u32, len: u32) -> Descriptor {
    let index = if start == 0 { "i".to_owned() } else { format!("i + {start}") };
    Descriptor {
        name: format!("{array}_{start}_{len}"),
        value: format!("@get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{{len}}} -> {array}[{index}] }})"),
        moves: false,
    }
}

/// Returns the step that sends the control wavelet. The step uses the same queue as the data, so the control wavelet
/// cannot overtake the data.
fn control(operation: usize, phase: u16, c: u8) -> Step {
    let fixed = |name: &str, value: String| Descriptor { name: name.to_owned(), value, moves: false };
    let word = "@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{1} -> advance_word[i] })".to_owned();
    let out = format!(
        "@get_dsd(fabout_dsd, .{{ .extent = 1, .fabric_color = c{c}, .output_queue = oq_c{c}, .control = true }})"
    );
    let descriptors = vec![fixed(&format!("control_c{c}"), out), fixed("advance_0_1", word)];
    Step::new((operation, phase), "@mov32", descriptors, true)
}

/// Waits of a class between steps, derived from the waits between operations.
pub struct Waits {
    /// For each thread and step, the waits of the step as pairs (other thread, number of that thread's steps that must
    /// have ended).
    of: Vec<Vec<Vec<(usize, usize)>>>,
}

impl Waits {
    pub fn new(key: &ClassKey, threads: &[Vec<Step>]) -> Self {
        let mut of: Vec<Vec<Vec<_>>> = threads.iter().map(|t| vec![Vec::new(); t.len()]).collect();
        // Thread of each operation, and its index there.
        let place: Vec<(usize, usize)> =
            key.threads.iter().enumerate().flat_map(|(t, ops)| (0..ops.len()).map(move |n| (t, n))).collect();
        for &(op, earlier) in &key.waits {
            // The assignment of queues has checked that the operations of all waits exist.
            let (Some(&(t, n)), Some(&(u, m))) = (place.get(op as usize), place.get(earlier as usize)) else {
                continue;
            };
            let first = threads[t].partition_point(|s| s.operation < n);
            let ended = threads[u].partition_point(|s| s.operation <= m);
            of[t][first].push((u, ended));
        }
        Self { of }
    }

    pub fn of(&self, thread: usize, step: usize) -> &[(usize, usize)] {
        &self.of[thread][step]
    }

    pub fn waits(&self, thread: usize) -> bool {
        self.of[thread].iter().any(|s| !s.is_empty())
    }

    pub fn is_awaited(&self, thread: usize) -> bool {
        self.of.iter().flatten().flatten().any(|w| w.0 == thread)
    }

    /// Returns the threads with a step that waits until exactly `done` steps of `thread` have ended.
    pub fn told(&self, thread: usize, done: usize) -> Vec<usize> {
        let waits = |t: &usize| self.of[*t].iter().flatten().any(|&w| w == (thread, done));
        (0..self.of.len()).filter(waits).collect()
    }
}
