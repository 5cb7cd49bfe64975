//! Cuts instructions into parts so that each end of a stream transfers whole messages.

use unisono_base::{InstrId, StreamId, interrupt};

use super::StoreError;
use crate::{flow::Flow, schedule::Schedule};

/// The number of parts that every schedule may have. A schedule of many instructions may have more: 64 for each
/// instruction.
const MOST_PARTS: u64 = 1 << 21;

/// Cuts of instructions, and the order in which a proven schedule runs.
pub struct Cut {
    pub flow: Flow,
    pub order: Vec<InstrId>,
    /// Inner cuts of each instruction, in ascending order, in elements from the start of the instruction.
    inner: Vec<Vec<u32>>,
}

impl Cut {
    /// Returns the parts of an instruction as `(start, len)`; `start` counts from the start of the instruction.
    pub fn parts(&self, schedule: &Schedule, id: InstrId) -> impl Iterator<Item = (u32, u32)> + use<'_> {
        let len = schedule.instr(id).len;
        let cuts = &self.inner[id.index()];
        (0..=cuts.len()).map(move |n| {
            let start = if n == 0 { 0 } else { cuts[n - 1] };
            (start, cuts.get(n).copied().unwrap_or(len) - start)
        })
    }
}

/// # Errors
/// Returns an error if a schedule of this size would have too many parts.
pub fn cut(schedule: &Schedule) -> Result<Cut, StoreError> {
    let mut none = unisono_base::Diagnostics::default();
    let flow = Flow::new(schedule, &mut none);
    let order = crate::order::topological(schedule, &flow, &mut none);
    let mut inner: Vec<Vec<u32>> = vec![Vec::new(); schedule.instr_count()];
    let mut queued = vec![true; schedule.stream_count()];
    let mut todo: Vec<StreamId> = schedule.all_streams().collect();
    let mut places = Vec::new();
    let most = MOST_PARTS.max(64 * schedule.instr_count() as u64);
    let mut parts = schedule.instr_count() as u64;
    while let Some(stream) = todo.pop() {
        interrupt::poll();
        queued[stream.index()] = false;
        places.clear();
        let ends = || flow.writers(stream).iter().chain(flow.readers(stream));
        for end in ends() {
            places.push(end.start);
            places.extend(inner[end.instr.index()].iter().map(|c| end.start + c));
        }
        places.sort_unstable();
        places.dedup();
        for end in ends() {
            let stop = end.start + schedule.instr(end.instr).len;
            let from = places.partition_point(|&p| p <= end.start);
            let to = places.partition_point(|&p| p < stop);
            if to - from == inner[end.instr.index()].len() {
                continue;
            }
            parts += (to - from - inner[end.instr.index()].len()) as u64;
            if parts > most {
                return Err(StoreError::Parts { most });
            }
            inner[end.instr.index()] = places[from..to].iter().map(|p| p - end.start).collect();
            // The new cuts of this instruction also apply to its other streams.
            let touched = flow.pops(schedule, end.instr).chain(flow.pushes(schedule, end.instr));
            for (other, _) in touched.filter(|(other, _)| *other != stream) {
                if !std::mem::replace(&mut queued[other.index()], true) {
                    todo.push(other);
                }
            }
        }
    }
    Ok(Cut { flow, order, inner })
}
