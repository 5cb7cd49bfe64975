//! Operations that take several fabric sources in turns of one chunk, as vector operations with at most two sources.
//!
//! For each chunk, the first vector operation writes `partial_T`, memory of its thread, from the first two sources;
//! each later one adds a source to it, and the last one sends or stores the sum. All whole chunks are a loop, at whose
//! end the descriptors of the operation's own vectors move by a chunk; a shorter last chunk follows. If the first two
//! sources are both from the fabric, they are received one after another, as in the fabric simulator. An operation that
//! both stores and sends its result writes the result to memory chunk by chunk, and sends it from there.

use unisono_lower::wafer::End;

use super::{
    plan::{Operation, Plan},
    steps::{Descriptor, Step, builtin, descriptor, repeat},
};
use crate::SdkTarget;

/// Returns the vector operations of an operation that has several fabric sources, or keeps the result that it sends.
pub fn of(plan: &Plan, thread: usize, operation: usize, o: &Operation, target: &SdkTarget) -> Vec<Step> {
    let chunk = o.chunk.clamp(1, o.len);
    let (rounds, rest) = (o.len / chunk, o.len % chunk);
    let mut steps = round(plan, target, thread, operation, o, (0, chunk), rounds > 1);
    if rounds > 1 {
        repeat(&mut steps, rounds, chunk);
    }
    if rest > 0 {
        steps.extend(round(plan, target, thread, operation, o, (rounds * chunk, rest), false));
    }
    steps
}

/// Returns the steps of one chunk of elements, given as `(first, count)`. If `moves`, the steps are the body of a loop.
fn round(
    plan: &Plan,
    target: &SdkTarget,
    thread: usize,
    operation: usize,
    o: &Operation,
    (first, len): (u32, u32),
    moves: bool,
) -> Vec<Step> {
    let partial = || Descriptor::buffer("partial", thread, len);
    let end =
        |end: End, sink: bool| descriptor(target, end, len, first, sink, false).moving(end, moves, thread, operation);
    // Number of sources that the first step takes.
    let start = o.first_taken();
    let mut steps = Vec::new();
    let mut taken = 0;
    while taken < o.sources.len() {
        let until = if taken == 0 { start } else { taken + 1 };
        let sink = if until == o.sources.len() { end(o.sink, true) } else { partial() };
        let mut descriptors = vec![sink];
        if taken > 0 {
            descriptors.push(partial());
        }
        descriptors.extend(o.sources[taken..until].iter().map(|&s| end(s, false)));
        steps.push(Step::new((operation, o.phase), builtin(plan, &descriptors), descriptors, o.uses_fabric()));
        taken = until;
    }
    if let Some(onward) = o.onward {
        let descriptors = vec![end(onward, true), end(o.sink, false)];
        steps.push(Step::new((operation, o.phase), builtin(plan, &descriptors), descriptors, true));
    }
    steps
}
