//! What the runtime holds, and where it does another thing than the plan says.
//!
//! Source: microsoft/mscclpp, `src/core/include/execution_common.hpp` and `execution_kernel.hpp` at commit 1f5f065d.

use super::{
    fault::{Fault, Place},
    plan::{ChannelType, Name, Op, Plan, Slice, ThreadBlock},
};

/// Channels, and remote buffers, of a thread block and a type.
pub const CHANNELS: usize = 16;
/// Channels of an operation.
pub const OP_CHANNELS: usize = 8;
/// Sources, and destinations, of an operation: two local ones and one a channel.
pub const OP_BUFFERS: usize = 10;
/// Operations of a thread block, those inside pipelines included.
pub const OPS: usize = 64;
/// Barriers of a GPU.
pub const BARRIERS: u32 = 16;
/// Semaphores of an operation.
pub const OP_SEMAPHORES: usize = 16;

/// Everything in a plan that the runtime does not hold or does otherwise.
pub fn check(plan: &Plan) -> Vec<Fault> {
    let mut faults = Vec::new();
    if plan.buffer_alignment == 0 || !plan.buffer_alignment.is_multiple_of(16) {
        let message = format!(
            "buffer_alignment is {}; the kernels move 16 bytes at a time, so use a multiple of 16",
            plan.buffer_alignment
        );
        faults.push(Fault::of_plan("limit", message));
    }
    for gpu in &plan.gpus {
        for block in &gpu.threadblocks {
            thread_block(gpu.id, block, &mut faults);
            for (n, op) in block.ops.iter().enumerate() {
                let place = Place {
                    gpu: gpu.id,
                    block: block.id,
                    op: u32::try_from(n).unwrap_or(u32::MAX),
                    inner: None,
                    name: op.name,
                };
                std::iter::once(op).chain(&op.ops).for_each(|op| {
                    if let Some(message) = operation(op) {
                        faults.push(Fault::at("limit", &Place { name: op.name, ..place }, message));
                    }
                });
            }
        }
    }
    faults
}

fn thread_block(gpu: u32, block: &ThreadBlock, faults: &mut Vec<Fault>) {
    let ops: usize = block.ops.iter().map(|op| 1 + op.ops.len()).sum();
    let mut over = |count: usize, most: usize, things: &str| {
        if count > most {
            let message = format!("thread block {} has {count} {things}; the runtime holds {most}", block.id);
            faults.push(Fault { threadblock: Some(block.id), ..Fault::of_gpu("limit", gpu, message) });
        }
    };
    over(ops, OPS, "operations");
    for (kind, name) in [(ChannelType::Memory, "memory"), (ChannelType::Port, "port"), (ChannelType::Switch, "switch")]
    {
        let channels = block.channels.iter().filter(|c| c.channel_type == kind).map(|c| c.channel_ids.len()).sum();
        over(channels, CHANNELS, &format!("{name} channels"));
        let refs = block.remote_buffer_refs.iter().filter(|r| r.access_channel_type == kind);
        over(refs.map(|r| r.remote_buffer_ids.len()).sum(), CHANNELS, &format!("remote buffers of {name} channels"));
    }
}

fn operation(op: &Op) -> Option<String> {
    let name = op.name;
    let over = |count: usize, most: usize, things: &str| {
        (count > most).then(|| format!("{name} has {count} {things}; the runtime holds {most}"))
    };
    let source = || op.src_buff.first().and_then(|s| s.buffer);
    over(op.channel_ids.len(), OP_CHANNELS, "channels")
        .or_else(|| over(op.src_buff.len(), OP_BUFFERS, "sources"))
        .or_else(|| over(op.dst_buff.len(), OP_BUFFERS, "destinations"))
        .or_else(|| over(op.semaphore_ids.len(), OP_SEMAPHORES, "semaphores"))
        .or_else(|| {
            let id = op.barrier_id.filter(|&id| name == Name::Barrier && id >= BARRIERS)?;
            Some(format!("barrier {id} is not there: the runtime has {BARRIERS}"))
        })
        .or_else(|| {
            let reduce = op.reduce_op.as_deref().filter(|&reduce| reduce != "sum")?;
            Some(format!("reduce_op is \"{}\", and the runtime adds whatever it says", reduce.chars().take(40).collect::<String>()))
        })
        .or_else(|| {
            let by_memory = op.channel_type == Some(ChannelType::Memory) && matches!(name, Name::Put | Name::Ppkt);
            let other = op.src_buff.iter().find(|s| s.buffer != source())?;
            by_memory.then(|| format!("{name} reads all its sources from the buffer of its first, and chunk {} is of another", other.index))
        })
        .or_else(|| {
            let swapped = |(from, to): (&Slice, &Slice)| from.index != to.index;
            (name == Name::Get && op.src_buff.iter().zip(&op.dst_buff).any(swapped))
                .then(|| "get reads its remote source at the index of its destination and the other way round, so give both the same index".to_owned())
        })
}
