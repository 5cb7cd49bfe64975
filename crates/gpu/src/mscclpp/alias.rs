//! Finds the instructions of an in-place plan that read inputs after output has overwritten them.
//!
//! A GPU runs its instructions in one order ([`super::export`]). An input is therefore overwritten only by a write of
//! the same GPU: an earlier write, or a write of the same instruction at another offset. Such reads use a copy of the
//! input, which the GPU makes first.

use std::collections::BTreeMap;

use unisono_base::{InstrId, NodeId};
use unisono_collective::Kind;
use unisono_schedule::{Flow, Operand, Schedule};

/// A set of offsets, as disjoint ranges: the end of each range by its start.
#[derive(Default)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub(super) fn meets(&self, start: u64, end: u64) -> bool {
        self.0.range(..end).next_back().is_some_and(|(_, &last)| last > start)
    }

    pub(super) fn add(&mut self, mut start: u64, mut end: u64) {
        while let Some((&first, &last)) = self.0.range(..=end).next_back().filter(|(_, last)| **last >= start) {
            (start, end) = (start.min(first), end.max(last));
            self.0.remove(&first);
        }
        self.0.insert(start, end);
    }
}

/// Returns the first element of a GPU's input, and of its output, in their shared memory.
fn bases(schedule: &Schedule, gpu: NodeId) -> (u64, u64) {
    let part = |len: u32| u64::from(gpu.0) * u64::from(len);
    match schedule.collective().kind {
        Kind::Allgather => (part(schedule.input_len(gpu)), 0),
        Kind::ReduceScatter => (0, part(schedule.output_len(gpu))),
        _ => (0, 0),
    }
}

/// Returns, for each instruction, true if it must read inputs from a copy, because an earlier instruction or the
/// instruction itself overwrites them with output.
pub fn endangered(schedule: &Schedule, flow: &Flow, order: &[InstrId]) -> Vec<bool> {
    let mut written: Vec<Ranges> = schedule.all_nodes().map(|_| Ranges::default()).collect();
    let mut found = vec![false; schedule.instr_count()];
    for &id in order {
        let gpu = flow.node_of(id);
        let (base_in, base_out) = bases(schedule, gpu);
        let len = u64::from(schedule.instr(id).len);
        let outputs = || {
            schedule.sinks(id).iter().filter_map(|sink| match sink {
                Operand::Out(at) => Some(base_out + u64::from(at)),
                _ => None,
            })
        };
        found[id.index()] = schedule.sources(id).iter().any(|source| {
            let Operand::In(at) = source else { return false };
            let at = base_in + u64::from(at);
            let beside = outputs().any(|out| out != at && out < at + len && at < out + len);
            beside || written[gpu.index()].meets(at, at + len)
        });
        outputs().for_each(|out| written[gpu.index()].add(out, out + len));
    }
    found
}
