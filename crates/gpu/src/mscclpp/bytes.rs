//! The limits of the runtime that depend on the size of a message.
//!
//! Source: microsoft/mscclpp, `src/core/executor/execution_plan.cc` (`checkMessageSize`, 32-bit offsets) and
//! `src/core/include/execution_kernel.hpp` (16-bit counts of a pipeline's iterations, types of reductions) at 1f5f065d.

use unisono_collective::Dtype;

use super::{
    fault::Fault,
    layout::{Layout, message_chunks},
    plan::{Gpu, Plan, Protocol},
};

/// The largest buffer in bytes that the kernels address.
const BUFFER: u64 = u32::MAX as u64;
/// The scratch memory in bytes that `reuse_resources` allocates for the chunks of a plan.
const SCRATCH: u64 = 64 << 20;
/// The unit of GPU allocations in bytes.
const ALLOCATED: u64 = 2 << 20;
/// The maximum number of allocation units that the search for a size tries.
const PIECES: u64 = 4096;
/// The maximum number of iterations of a pipeline that the kernels count.
const TURNS: u64 = u16::MAX as u64;

/// Returns the faults of a plan at the requested size: operations and sizes that the runtime does not support. Without
/// a requested size, pipelines are checked at the largest accepted size.
pub fn check(plan: &Plan, layout: &Layout, dtype: Option<Dtype>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let wide = dtype.filter(|dtype| matches!(dtype, Dtype::F64 | Dtype::I16 | Dtype::I64));
    if let Some(dtype) = wide.filter(|_| plan.ops().any(|op| op.name.reduces())) {
        let message = format!("the runtime has no reductions of {dtype}; it has f16, bf16, f32 and i32");
        faults.push(Fault::of_plan("limit", message));
    }
    faults.extend(halves(plan, layout));
    let Some(message_chunks) = message_chunks(plan) else { return faults };
    let widest = widest(plan);
    let alignment = u64::from(plan.buffer_alignment).max(1);
    let chunk = match layout.chunk_bytes() {
        Some(chunk) => {
            faults.extend(asked(plan, chunk, message_chunks, widest, alignment));
            chunk
        }
        None => {
            let most = plan.max_message_size.unwrap_or(u64::MAX) / message_chunks.max(1);
            most.min(BUFFER / widest) / alignment * alignment
        }
    };
    faults.extend(turns(plan, chunk, message_chunks, layout.chunk_bytes().is_none()));
    faults
}

/// Returns the number of chunks of the largest buffer that the kernels address, at least 1. A double buffer doubles the
/// scratch memory, and packets double it too.
fn widest(plan: &Plan) -> u64 {
    let of_scratch = [plan.use_double_scratch_buffer, plan.protocol == Protocol::LL].map(|twice| 1 + u64::from(twice));
    let chunks = |gpu: &Gpu| {
        let scratch = of_scratch.iter().fold(u64::from(gpu.scratch_chunks), |all, times| all.saturating_mul(*times));
        // With `reuse_resources`, scratch memory has a fixed size and is used cyclically.
        let scratch = if plan.reuse_resources { 0 } else { scratch };
        u64::from(gpu.input_chunks.max(gpu.output_chunks)).max(scratch)
    };
    plan.gpus.iter().map(chunks).max().unwrap_or(0).max(1)
}

/// Returns the largest chunk in bytes for which the fixed scratch memory of `reuse_resources` holds all chunks; `None`
/// without that option or without scratch memory. For a pipeline, the kernels also reduce the offset inside a slice
/// modulo the size of a chunk in that memory.
fn circle(plan: &Plan, alignment: u64) -> Option<u64> {
    let room = if plan.use_double_scratch_buffer { SCRATCH / 2 } else { SCRATCH };
    let chunks = plan.gpus.iter().map(|gpu| u64::from(gpu.scratch_chunks)).max().filter(|&chunks| chunks > 0);
    let inner = plan.gpus.iter().flat_map(|gpu| &gpu.threadblocks).flat_map(|block| &block.ops).flat_map(|op| &op.ops);
    let slices = inner.flat_map(|op| op.src_buff.iter().chain(&op.dst_buff));
    let longest = slices.map(|slice| u64::from(slice.size)).max().unwrap_or(1).max(1);
    let held = |chunks| room.div_ceil(chunks).next_multiple_of(alignment) / longest / alignment * alignment;
    chunks.filter(|_| plan.reuse_resources).map(held)
}

/// Returns a fault if the second half of scratch memory is not aligned to 16 bytes, the unit in which the kernels move
/// data.
///
/// The executor derives the size of scratch memory from the size of the input's allocation, up to `max_message_size`,
/// and rounds the bytes of a chunk up. Allocations are assumed to be multiples of 2 MiB, or as long as the message.
///
/// Source: `src/core/executor/executor.cc` (`setupScratchBuffer`, `launchKernelHelper`).
fn halves(plan: &Plan, layout: &Layout) -> Option<Fault> {
    // With `reuse_resources`, each half has 64 MiB, which is aligned.
    if !plan.use_double_scratch_buffer || plan.reuse_resources {
        return None;
    }
    let alignment = u64::from(plan.buffer_alignment).max(1);
    let packets = 1 + u64::from(plan.protocol == Protocol::LL);
    let of_message = message_chunks(plan)?.max(1);
    let used = plan.gpus.iter().filter(|gpu| gpu.scratch_chunks > 0 && gpu.input_chunks > 0);
    used.into_iter().find_map(|gpu| {
        let chunks = u64::from(gpu.input_chunks);
        let least = layout.chunk_bytes().unwrap_or(plan.min_message_size.unwrap_or(0) / of_message);
        let most = plan.max_message_size.unwrap_or(u64::MAX);
        let half = |allocated: u64| {
            let chunk = u128::from(allocated.min(most).div_ceil(chunks));
            let bytes = chunk * u128::from(gpu.scratch_chunks) * u128::from(2 * packets);
            bytes.next_multiple_of(alignment.into()) / 2
        };
        // `chunks` additional allocation units lengthen each chunk by one allocation unit. From there on the alignments
        // repeat, so longer inputs need no test.
        let first = least.saturating_mul(chunks).div_ceil(ALLOCATED).max(1);
        let allocated = (first..=first.saturating_add(chunks.min(PIECES))).map(|n| n.saturating_mul(ALLOCATED));
        let (allocated, half) = allocated.map(|n| (n, half(n))).find(|(_, half)| !half.is_multiple_of(16))?;
        let message = format!(
            "with use_double_scratch_buffer, the second half of scratch memory begins at byte {half} where the input is in an \
             allocation of {allocated} bytes, and the kernels move 16 bytes at a time; use scratch_chunks in multiples of {}, or \
             a buffer_alignment of 32",
            16 / packets
        );
        Some(Fault::of_gpu("limit", gpu.id, message))
    })
}

/// Returns a fault of the requested size: the loader does not accept it, offsets do not fit in 32 bits, or chunks are
/// longer than [`circle`] permits.
fn asked(plan: &Plan, chunk: u64, message_chunks: u64, widest: u64, alignment: u64) -> Option<Fault> {
    let size = chunk.saturating_mul(message_chunks);
    let circle = circle(plan, alignment).filter(|&circle| chunk > circle);
    let message = if let Some(circle) = circle {
        let largest = circle.saturating_mul(message_chunks);
        format!(
            "a chunk has {chunk} bytes; with reuse_resources, the runtime uses scratch memory in a circle for chunks of more \
             than {circle} bytes, which is not checked; use messages of at most {largest} bytes, or leave reuse_resources out"
        )
    } else if !chunk.is_multiple_of(alignment) {
        format!("a chunk has {chunk} bytes; the loader accepts multiples of buffer_alignment, which is {alignment}")
    } else if let Some(message) = unserved(plan, size) {
        message
    } else if chunk.saturating_mul(widest) > BUFFER {
        format!("a buffer has {} bytes; the runtime counts offsets in 32 bits", chunk.saturating_mul(widest))
    } else {
        return None;
    };
    Some(Fault::of_plan("limit", message))
}

/// Returns the reason why the loader does not accept a plan for a message of `size` bytes; `None` if it does.
pub fn unserved(plan: &Plan, size: u64) -> Option<String> {
    let (least, most) = (plan.min_message_size.unwrap_or(0), plan.max_message_size.unwrap_or(u64::MAX));
    (!(least..=most).contains(&size)).then(|| {
        format!("a message of {size} bytes is not between min_message_size and max_message_size ({least} to {most})")
    })
}

/// Returns a fault if a pipeline has more iterations than the runtime counts, for chunks of `chunk` bytes. With
/// `is_largest`, `chunk` is that of the largest accepted message.
fn turns(plan: &Plan, chunk: u64, message_chunks: u64, is_largest: bool) -> Option<Fault> {
    for gpu in &plan.gpus {
        for block in &gpu.threadblocks {
            for (n, op) in block.ops.iter().enumerate() {
                let Some(context) = op.iter_context.filter(|c| c.unit_size > 0 && c.num_chunks > 0) else { continue };
                let turns = u64::from(context.num_chunks).saturating_mul(chunk).div_ceil(context.unit_size);
                if turns <= TURNS {
                    continue;
                }
                let holds = TURNS.saturating_mul(context.unit_size) / u64::from(context.num_chunks);
                let size = holds.saturating_mul(message_chunks);
                let advice = if is_largest {
                    format!("the largest message that is accepted; set max_message_size to at most {size}")
                } else {
                    format!("this message; the largest has {size} bytes")
                };
                let message =
                    format!("the pipeline takes {turns} turns, and the runtime counts to {TURNS}, for {advice}");
                let of_gpu = Fault::of_gpu("limit", gpu.id, message);
                return Some(Fault { threadblock: Some(block.id), instruction: u32::try_from(n).ok(), ..of_gpu });
            }
        }
    }
    None
}
