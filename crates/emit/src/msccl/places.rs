//! The step of a file that each instruction of its schedule is of.

use unisono_base::{NodeId, narrow};
use unisono_schedule::Schedule;

use super::slots::Running;
use crate::ImportError;

/// A step, by GPU, thread block and number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepPlace {
    pub rank: u32,
    pub threadblock: u32,
    pub step: u32,
}

/// The place of each instruction of the schedule of steps as they run; none for copies between input and output.
///
/// # Errors
/// The steps are not those of the schedule.
pub fn places(running: &Running, schedule: &Schedule) -> Result<Vec<Option<StepPlace>>, ImportError> {
    let mut made = Vec::with_capacity(schedule.instr_count());
    for (gpu, blocks) in running.iter().enumerate() {
        let node = NodeId::new(gpu);
        let mut steps = Vec::new();
        for (block, steps_of_block) in blocks.iter().enumerate() {
            let moves = steps_of_block.iter().filter(|t| t.count > 0);
            steps.extend(moves.map(|t| StepPlace { rank: node.0, threadblock: narrow(block), step: t.step }));
        }
        // Copies between input and output come first, in a lane of their own.
        let all = if gpu < schedule.node_count() { schedule.node_instrs(node).len() } else { 0 };
        let Some(copies) = all.checked_sub(steps.len()) else {
            return Err(ImportError::new(0, "the schedule is not that of the file"));
        };
        made.extend(std::iter::repeat_n(None, copies).chain(steps.into_iter().map(Some)));
    }
    Ok(made)
}
