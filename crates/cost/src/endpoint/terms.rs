//! The cost terms of a schedule among ranks: each message is one hop, and loads are in bytes.

use std::ops::Add;

use rustc_hash::FxHashSet;
use unisono_base::{Diagnostic, Diagnostics, InstrId};
use unisono_lower::Terms;
use unisono_schedule::{Flow, Schedule, topological};

/// Returns the terms of the whole schedule:
///
/// * energy: the bytes sent;
/// * distance and depth: the number of messages in the longest chain of dependent messages;
/// * contention: the most bytes that a rank sends or receives;
/// * links: the number of ordered pairs of ranks that exchange messages;
/// * `max_link_load`: the most bytes of such a pair;
/// * datapath: the most bytes of operands that a rank adds to the first operands of its instructions.
///
/// # Errors
///
/// Returns the faults of a schedule that is not well-formed, or that cannot run.
pub fn schedule_terms(schedule: &Schedule) -> Result<Terms, Vec<Diagnostic>> {
    let mut found = Diagnostics::default();
    let flow = Flow::new(schedule, &mut found);
    let order = if found.is_empty() { topological(schedule, &flow, &mut found) } else { Vec::new() };
    if !found.is_empty() {
        return Err(found.into_vec());
    }
    let width = schedule.collective().element_bytes();
    let nodes = schedule.node_count();
    let (mut sent, mut received, mut work) = (vec![0u64; nodes], vec![0u64; nodes], vec![0u64; nodes]);
    let mut pairs = rustc_hash::FxHashMap::<(u32, u32), u64>::default();
    for id in schedule.all_streams() {
        let stream = schedule.stream(id);
        let bytes = u64::from(stream.len) * width;
        for sink in schedule.stream_sinks(id) {
            sent[stream.source.index()] += bytes;
            received[sink.index()] += bytes;
            *pairs.entry((stream.source.0, sink.0)).or_default() += bytes;
        }
    }
    let deepest = chains(schedule, &flow, &order, |_, _| 1).into_iter().max().unwrap_or(0);
    for &id in &order {
        let operands = schedule.sources(id).len() as u64 - 1;
        work[flow.node_of(id).index()] += u64::from(schedule.instr(id).len) * width * operands;
    }
    let most = |bytes: &[u64]| bytes.iter().copied().max().unwrap_or(0) as f64;
    Ok(Terms {
        energy: sent.iter().sum::<u64>() as f64,
        distance: f64::from(deepest),
        depth: f64::from(deepest),
        contention: most(&sent).max(most(&received)),
        links: pairs.len() as f64,
        max_link_load: pairs.values().copied().max().unwrap_or(0) as f64,
        datapath: most(&work),
    })
}

/// Returns, for each instruction, the weight of the heaviest chain of messages that ends at the instruction or before
/// it. `weight` returns the weight of a message from one instruction to another. `order` is a topological order of all
/// instructions.
pub(crate) fn chains<T: Copy + Default + PartialOrd + Add<Output = T>>(
    schedule: &Schedule,
    flow: &Flow,
    order: &[InstrId],
    weight: impl Fn(InstrId, InstrId) -> T,
) -> Vec<T> {
    let mut chain = vec![T::default(); order.len()];
    let mut writers = FxHashSet::<InstrId>::default();
    let longer = |a: T, b: T| if b > a { b } else { a };
    for &id in order {
        let mut longest = T::default();
        let before = InstrId(id.0.wrapping_sub(1));
        if id.0 > 0 && flow.lane_of(before) == flow.lane_of(id) {
            longest = chain[before.index()];
        }
        for &(_, earlier) in schedule.after(id) {
            longest = longer(longest, chain[earlier.index()]);
        }
        writers.clear();
        for (stream, span) in flow.pops(schedule, id) {
            writers.extend(Flow::touching(flow.writers(stream), span).iter().map(|p| p.instr));
        }
        for &writer in &writers {
            longest = longer(longest, chain[writer.index()] + weight(writer, id));
        }
        chain[id.index()] = longest;
    }
    chain
}
