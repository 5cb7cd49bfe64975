//! Operations whose operator has no vector operation in CSL. They run chunk by chunk: each source from the fabric is
//! received into memory, `@map` combines the sources in memory, and the result is sent from memory.
//!
//! `@map` accesses only memory, so the PE never waits for the fabric inside `@map` while other threads have work. For
//! each chunk, the thread's `partial_T` holds the partial result, and `arrived_T` the next operand. All whole chunks
//! are one loop.

use unisono_lower::wafer::End;

use super::{
    operator::{FUNCTION, MAP},
    plan::{Operation, Plan},
    steps::{Descriptor, Step, descriptor, move_builtin, repeat},
};
use crate::SdkTarget;

/// Returns the number of elements of a chunk, at most `len`. An operation with several sources from the fabric, or one
/// that both stores and sends its result, uses the program's chunk length; all other operations use the target's.
pub fn chunk(sources: &[End], is_kept: bool, chunk: u32, len: u32, target: &SdkTarget) -> u32 {
    let fabric = sources.iter().filter(|s| matches!(s, End::Fabric(_))).count();
    let wanted = if fabric > 1 || is_kept { chunk } else { target.needs.chunk };
    wanted.clamp(1, len.max(1))
}

pub fn of(plan: &Plan, thread: usize, operation: usize, o: &Operation, target: &SdkTarget) -> Vec<Step> {
    let chunk = chunk(&o.sources, o.onward.is_some(), o.chunk, o.len, target);
    let whole = o.len / chunk;
    // A switch advances only after the last chunk, which is therefore not part of the loop.
    let rounds = if o.advance && o.len.is_multiple_of(chunk) { whole - 1 } else { whole };
    let rest = o.len - rounds * chunk;
    let mut steps = Vec::new();
    if rounds > 0 {
        steps = part(plan, target, thread, operation, o, (0, chunk), rounds > 1);
        if rounds > 1 {
            repeat(&mut steps, rounds, chunk);
        }
    }
    if rest > 0 {
        steps.extend(part(plan, target, thread, operation, o, (rounds * chunk, rest), false));
    }
    steps
}

/// Returns the steps for one chunk of elements, given as `(first, count)`. If `moves` is true, the steps are the body
/// of a loop, which advances their descriptors.
fn part(
    plan: &Plan,
    target: &SdkTarget,
    thread: usize,
    operation: usize,
    o: &Operation,
    (first, len): (u32, u32),
    moves: bool,
) -> Vec<Step> {
    let buffer = |name: &str| Descriptor::buffer(name, thread, len);
    let last = first + len == o.len;
    let end = |end: End, sink: bool| {
        let d = descriptor(target, end, len, first, sink, sink && o.advance && last);
        d.moving(end, moves, thread, operation)
    };
    let step = |builtin: &'static str, descriptors: Vec<Descriptor>, fabric: bool| {
        let mut step = Step::new((operation, o.phase), builtin, descriptors, fabric);
        if builtin == MAP {
            // The destination is the last argument, after the function and its arguments.
            step.operands.rotate_left(1);
            step.operands.insert(0, FUNCTION.to_owned());
        }
        step
    };
    let moved = move_builtin(plan.collective.dtype);
    let mut steps = Vec::new();
    let mut result: Option<Descriptor> = None;
    for (n, &source) in o.sources.iter().enumerate() {
        let operand = if matches!(source, End::Fabric(_)) {
            let into = || buffer(if result.is_none() { "partial" } else { "arrived" });
            steps.push(step(moved, vec![into(), end(source, false)], true));
            into()
        } else {
            end(source, false)
        };
        result = Some(match result {
            None => operand,
            Some(before) => {
                let is_stored = n + 1 == o.sources.len() && !matches!(o.sink, End::Fabric(_));
                let to = || if is_stored { end(o.sink, true) } else { buffer("partial") };
                steps.push(step(MAP, vec![to(), before, operand], false));
                to()
            }
        });
    }
    if let (End::Fabric(_), Some(result)) = (o.sink, result) {
        steps.push(step(moved, vec![end(o.sink, true), result], true));
    }
    if let Some(onward) = o.onward {
        steps.push(step(moved, vec![end(onward, true), end(o.sink, false)], true));
    }
    steps
}
