//! Instances of a program: each chunk is divided into equal parts, and each part has its own thread blocks and
//! channels. The results are the same expressions.
//!
//! A group is the data of one rank, or the whole vector. The parts of a group are stored consecutively, so that
//! consecutive chunks of a group stay consecutive in each part. Source: `instances` of msccl-tools, which groups parts
//! by chunk.

use unisono_base::narrow;

use super::{
    limits,
    ops::Place,
    program::{Block, Gpu, Program, Step, counts_all_ranks},
};
use crate::PROCESSORS;

/// Returns the program in `count` instances, with at most `most` thread blocks on a GPU.
///
/// # Errors
/// Returns the reason if `count` does not divide the elements of a chunk, a step crosses groups, or a limit is
/// exceeded.
pub fn instances(p: &Program, count: u32, most: usize) -> Result<Program, String> {
    if count == 1 {
        return Ok(p.clone());
    }
    let parts = if counts_all_ranks(p.kind) { narrow(p.gpus.len()) } else { 1 };
    let group = (p.chunks / parts).max(1);
    let elements = p.meaning.elements.unwrap_or(0);
    if count == 0 || !elements.is_multiple_of(u64::from(group) * u64::from(count)) {
        let each = elements / u64::from(group);
        return Err(format!("chunks of {each} elements do not divide into {count} instances"));
    }
    if p.chunks.checked_mul(count).is_none_or(|chunks| chunks > limits::CHUNKS) {
        return Err(format!(
            "{count} instances of {} chunks; at most {} chunks are addressed",
            p.chunks,
            limits::CHUNKS
        ));
    }
    let crosses = |at: Place, step: &Step| at.chunk / group != (at.chunk + step.count.max(1) - 1) / group;
    let mut steps = p.gpus.iter().flat_map(|g| &g.blocks).flat_map(|b| &b.steps);
    if let Some(step) = steps.find(|s| crosses(s.source, s) || crosses(s.destination, s)) {
        return Err(format!("a step of {} chunks crosses what a rank gives or keeps, so instances cut it", step.count));
    }
    let gpus = p.gpus.iter().map(|gpu| of_gpu(gpu, group, count)).collect();
    let made = Program { channels: p.channels * count, chunks: p.chunks * count, gpus, ..p.clone() };
    let refused = limits::of_program(&made, PROCESSORS).into_iter().next().map(|(_, message)| message);
    let over = || made.gpus.iter().map(|gpu| gpu.blocks.len()).find(|&blocks| blocks > most);
    match refused.or_else(|| Some(format!("{count} instances take {} thread blocks; at most {most} are held", over()?)))
    {
        Some(message) => Err(message),
        None => Ok(made),
    }
}

fn of_gpu(gpu: &Gpu, group: u32, count: u32) -> Gpu {
    let each: u32 = narrow(gpu.blocks.len());
    let block = |n: u32, block: &Block| {
        let moved = |at: Place| Place { chunk: (at.chunk / group * count + n) * group + at.chunk % group, ..at };
        let step = |step: &Step| Step {
            source: moved(step.source),
            destination: moved(step.destination),
            waits_for: step.waits_for.map(|(block, earlier)| (n * each + block, earlier)),
            ..step.clone()
        };
        Block { channel: block.channel * count + n, steps: block.steps.iter().map(step).collect(), ..block.clone() }
    };
    let chunks = |chunks: u32| chunks.next_multiple_of(group) * count;
    Gpu {
        input: gpu.input * count,
        output: gpu.output * count,
        scratch: chunks(gpu.scratch),
        blocks: (0..count).flat_map(|n| gpu.blocks.iter().map(move |b| block(n, b))).collect(),
        ..gpu.clone()
    }
}
