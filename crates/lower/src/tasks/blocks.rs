//! Lowers the instructions of thread blocks of GPUs to tasks.
//!
//! A message is cut into slices. For each slice, a thread block receives, then loads and stores, then sends. Loads and
//! stores consist of *passes*: one pass for each stream; for local work, one pass for each operand after the first, but
//! at least one. The passes of slice n + 2 wait until slice n has left. A full link therefore delays the block, and the
//! transfer of a slice overlaps with the next pass. The next instruction waits until the last slice has left. Passes
//! take the block's own CPU; a sum takes no additional time. Messages are on CPU 0, which all blocks share, since
//! arrivals do not occupy a block. A switch receives the slices of the GPUs, and reduces each slice on its engine. The
//! block that requests the reduction loads and stores each slice: two passes.
//!
//! Sender and receiver cut a message into the same slices, since the number of slices depends only on its bytes and the
//! plan.

use unisono_base::{InstrId, NodeId, TaskId, narrow, rounded};
use unisono_machine::network::Protocol;
use unisono_schedule::{Operand, Schedule};

use super::{
    Kind, Task,
    lower::{Lower, Tasks},
};
use crate::ThreadBlocks;

/// The minimum length in bytes of a slice of a divided message, if all blocks have the protocol `Simple`. With this
/// protocol one signal announces many bytes, up to 1 MiB in NCCL.
const SLICE_BYTES: u64 = 128 << 10;
/// The minimum length in bytes of a slice, if some block has a protocol with a flag in each word or line (LL, LL128).
const FLAGGED_BYTES: u64 = 4 << 10;
/// The maximum number of slices of a message. The last slice leaves only after the last pass, so fewer slices mean a
/// longer time.
const MOST_SLICES: u64 = 16;

/// The thread blocks of a schedule, and the ticks that one pass takes for each byte, by protocol.
#[derive(Clone, Copy, Debug)]
pub struct Passes<'a> {
    blocks: &'a ThreadBlocks,
    ticks_per_byte: [Option<f64>; 3],
    slice_bytes: u64,
}

impl<'a> Passes<'a> {
    /// Makes the passes of `blocks`. `ticks_per_byte` has the ticks per byte of a pass under each [`Protocol`], or
    /// `None` if the block does not limit the rate.
    pub fn new(blocks: &'a ThreadBlocks, ticks_per_byte: [Option<f64>; 3]) -> Self {
        let is_plain = blocks.protocols().iter().all(|&protocol| protocol == Protocol::Simple);
        Self { blocks, ticks_per_byte, slice_bytes: if is_plain { SLICE_BYTES } else { FLAGGED_BYTES } }
    }

    /// The maximum number of tasks to which an instruction or a stream is lowered.
    pub(super) const MOST_TASKS: u128 = 2 * MOST_SLICES as u128;

    pub(super) fn leader(&self, id: InstrId) -> Option<NodeId> {
        self.blocks.leader(id)
    }
}

fn slices(bytes: u64, slice_bytes: u64) -> impl ExactSizeIterator<Item = u64> + Clone {
    let count: u32 = narrow((bytes / slice_bytes).clamp(1, MOST_SLICES));
    let (each, more) = (bytes / u64::from(count), bytes % u64::from(count));
    (0..count).map(move |n| each + u64::from(u64::from(n) < more))
}

impl Lower<'_> {
    /// Adds the tasks of an instruction after `before`, and returns its first and last tasks. `receives` and `sends`
    /// are the messages of the instruction.
    pub(super) fn of_block(
        &mut self,
        passes: &Passes<'_>,
        id: InstrId,
        before: Tasks,
        (receives, sends): (&[Task], &[Task]),
    ) -> (Tasks, Tasks) {
        let schedule: &Schedule = self.schedule;
        let protocol = passes.blocks.protocol(id);
        let bytes = u64::from(schedule.instr(id).len) * schedule.collective().element_bytes();
        let sources = schedule.sources(id);
        let streams = sources.iter().filter(|s| matches!(s, Operand::Stream(_))).count() + sends.len();
        let is_switch = self.is_switch(id);
        let count = match streams {
            _ if is_switch => 2,
            0 => sources.len().saturating_sub(1).max(1),
            _ => streams,
        };
        let ticks = protocol.and_then(|p| passes.ticks_per_byte[p as usize]).unwrap_or(0.0) * count as f64;
        let first = self.joint(before);
        let cpu = protocol.map_or(0, |_| self.block);
        let (mut arrived, mut passed) = (Vec::new(), first.first);
        // The sends of the previous slice and of the slice before it.
        let mut sent = [Vec::<TaskId>::new(), Vec::new()];
        for &receive in receives {
            let of_message = slices(receive.amount, passes.slice_bytes)
                .map(|amount| self.builder.task(Task { amount, ..receive }.on(0, 0)));
            arrived.push(of_message.collect::<Vec<_>>());
        }
        for &receive in arrived.iter().flatten() {
            self.builder.requires(receive, TaskId(first.first));
        }
        // A switch may put more bytes on its links than the instruction has. It then divides them into more slices.
        let leaving: Vec<Vec<u64>> =
            sends.iter().map(|send| slices(send.amount, passes.slice_bytes).collect()).collect();
        let own = slices(bytes, passes.slice_bytes);
        let count = own.len();
        for (n, slice) in own.enumerate() {
            let pass = self.builder.task(Task::calc(rounded(slice as f64 * ticks)).on(cpu, 0));
            self.builder.requires(pass, TaskId(passed));
            for before in std::mem::take(&mut sent[0]) {
                self.builder.requires(pass, before);
            }
            sent.swap(0, 1);
            for of_message in &arrived {
                let share = |n: usize| (n * of_message.len()).div_ceil(count);
                for &receive in &of_message[share(n)..share(n + 1)] {
                    self.builder.requires(pass, receive);
                }
            }
            let mut made = pass;
            if is_switch && sources.len() > 1 {
                made = self.builder.task(Task::reduce(slice).on(self.engine, 0));
                self.builder.requires(made, pass);
            }
            for (&send, amounts) in sends.iter().zip(&leaving) {
                let share = |n: usize| n * amounts.len() / count;
                for &bytes in &amounts[share(n)..share(n + 1)] {
                    let amount = protocol.map_or(bytes, |p| p.wire_bytes(bytes));
                    let task = self.builder.task(Task { amount, ..send }.on(0, 0));
                    self.builder.requires(task, made);
                    sent[1].push(task);
                }
            }
            passed = made.0;
        }
        let last = self.builder.task(Task::calc(0).on(cpu, 0));
        for before in sent.into_iter().flatten().chain([TaskId(passed)]) {
            self.builder.requires(last, before);
        }
        (first, Tasks::one(Kind::Calc, last))
    }

    /// Adds an empty task after `before`.
    fn joint(&mut self, before: Tasks) -> Tasks {
        let task = self.builder.task(Task::calc(0));
        let joint = Tasks::one(Kind::Calc, task);
        self.wait(joint, before);
        joint
    }
}
