//! Maps each instruction of an imported schedule to its step in the file.

use unisono_base::{InstrId, NodeId, narrow};
use unisono_formats::ImportError;
use unisono_schedule::{
    Schedule,
    verify::{Rounding, Roundings},
};

use super::executed::{Running, Transmission};

/// A step, by the indices of GPU, thread block and step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepPlace {
    pub rank: u32,
    pub threadblock: u32,
    pub step: u32,
}

/// Returns the step and the transmission of each instruction of a file's schedule; `None` for copies that only the
/// schedule has.
///
/// # Errors
/// Returns an error if the schedule does not have these steps.
pub fn places<'a>(
    running: &'a Running,
    schedule: &Schedule,
) -> Result<Vec<Option<(StepPlace, &'a Transmission)>>, ImportError> {
    let mut made = Vec::with_capacity(schedule.instr_count());
    for (gpu, blocks) in running.iter().enumerate() {
        let node = NodeId::new(gpu);
        let mut steps = Vec::new();
        for (block, steps_of_block) in blocks.iter().enumerate() {
            let moves = steps_of_block.iter().filter(|t| t.count > 0);
            let place = |t: &Transmission| StepPlace { rank: node.0, threadblock: narrow(block), step: t.step };
            steps.extend(moves.map(|t| Some((place(t), t))));
        }
        // The copies that only the schedule has come first, in a lane of their own.
        let all = if gpu < schedule.node_count() { schedule.node_instrs(node).len() } else { 0 };
        let Some(copies) = all.checked_sub(steps.len()) else {
            return Err(ImportError::new(0, "the schedule is not that of the file"));
        };
        made.extend(std::iter::repeat_n(None, copies).chain(steps));
    }
    Ok(made)
}

/// Returns the fused sums, which the executor adds in its own order. In a piece of as many elements as threads, it adds
/// from the first source to the destination; in a shorter piece, it begins with the destination. Two fused sums round
/// in the same way if their counts and the offsets of their destinations are equal.
pub fn roundings(places: &[Option<(StepPlace, &Transmission)>]) -> Roundings {
    let fused = |t: &Transmission| {
        (t.sources.len() > 1).then(|| Rounding::Own(t.count << 16 | t.destination.chunk.min(u32::from(u16::MAX))))
    };
    let of =
        |(n, place): (usize, &Option<(StepPlace, &Transmission)>)| Some((InstrId::new(n), fused(place.as_ref()?.1)?));
    places.iter().enumerate().filter_map(of).collect()
}
