//! The limits of the runtime, and the plans that it runs differently from what they state.
//!
//! Source: microsoft/mscclpp, `src/core/include/execution_common.hpp` and `execution_kernel.hpp` at commit 1f5f065d.

use super::{
    fault::{Fault, Place},
    layout::message_chunks,
    plan::{Buffer, ChannelType, Gpu, Name, Op, Plan, Slice, ThreadBlock},
};
use crate::too_many_blocks;

/// The maximum number of channels of one type that a thread block has, and of remote buffers that it accesses by
/// channels of one type.
pub const CHANNELS: usize = 16;
/// The maximum number of channels of an operation.
pub const OP_CHANNELS: usize = 8;
/// The maximum number of sources, and of destinations, of an operation: two local buffers, and one buffer for each
/// channel.
pub const OP_BUFFERS: usize = 10;
/// The maximum number of operations of a thread block, including the operations inside pipelines.
pub const OPS: usize = 64;
/// The maximum number of barriers of a GPU.
pub const BARRIERS: u32 = 16;
/// The maximum number of semaphores of an operation.
pub const OP_SEMAPHORES: usize = 16;
const THREADS: u32 = 1024;

/// Returns a fault for each part of the plan that exceeds a limit of the runtime, or that the runtime executes
/// differently. `processors` is the number of processors of a GPU.
pub fn check(plan: &Plan, processors: u32) -> Vec<Fault> {
    let mut faults = Vec::new();
    if plan.buffer_alignment == 0 || !plan.buffer_alignment.is_multiple_of(16) {
        let message = format!(
            "buffer_alignment is {}; the kernels move 16 bytes at a time, so use a multiple of 16",
            plan.buffer_alignment
        );
        faults.push(Fault::of_plan("limit", message));
    }
    if i32::try_from(plan.buffer_alignment).is_err() {
        let message = "buffer_alignment is more than 2147483647, and the loader reads it as a number of 32 bits";
        faults.push(Fault::of_plan("limit", message.to_owned()));
    }
    if let (Some(least), Some(most)) = (plan.min_message_size, plan.max_message_size)
        && least > most
    {
        let message = format!("min_message_size is {least}, and max_message_size only {most}");
        faults.push(Fault::of_plan("limit", message));
    }
    if let Some(message) = no_message(plan) {
        faults.push(Fault::of_plan("limit", message));
    }
    if !(1..=THREADS).contains(&plan.num_threads_per_block) {
        let message = format!("num_threads_per_block is {}; a GPU starts 1 to {THREADS}", plan.num_threads_per_block);
        faults.push(Fault::of_plan("limit", message));
    }
    if plan.min_message_size.is_some_and(|size| i32::try_from(size).is_err()) {
        let message = "min_message_size is more than 2147483647, and the loader reads it as a number of 32 bits";
        faults.push(Fault::of_plan("limit", message.to_owned()));
    }
    for gpu in &plan.gpus {
        resident(gpu, processors, &mut faults);
        in_place(plan, gpu, &mut faults);
        empty_scratch(plan, gpu, &mut faults);
        if let Some(value) = gpu.semaphores.iter().map(|s| s.init_value).find(|&value| value > i32::MAX as u32) {
            let message =
                format!("init_value of a semaphore is {value}, which the runtime takes for a negative number");
            faults.push(Fault::of_gpu("limit", gpu.id, message));
        }
        for block in &gpu.threadblocks {
            thread_block(gpu.id, block, &mut faults);
            for (n, op) in block.ops.iter().enumerate() {
                let place = Place {
                    gpu: gpu.id,
                    block: block.id,
                    op: u32::try_from(n).unwrap_or(u32::MAX),
                    inner: None,
                    launch: None,
                    name: op.name,
                };
                std::iter::once(op).chain(&op.ops).for_each(|op| {
                    if let Some(message) = operation(op).or_else(|| threads(op, plan.num_threads_per_block)) {
                        faults.push(Fault::at("limit", &Place { name: op.name, ..place }, message));
                    }
                });
            }
        }
    }
    faults
}

/// Returns a fault if the loader does not accept a message of any size. The loader compares the size with the plan's
/// limits, and divides the message into chunks.
fn no_message(plan: &Plan) -> Option<String> {
    let (least, most) = (plan.min_message_size.unwrap_or(0), plan.max_message_size?);
    let chunks = message_chunks(plan).filter(|&chunks| chunks > 0)?;
    let unit = u64::from(plan.buffer_alignment).saturating_mul(chunks).max(1);
    let largest = most / unit * unit;
    (least <= most && (largest == 0 || largest < least)).then(|| {
        format!(
            "the loader accepts no message: it divides one into {chunks} chunks of multiples of buffer_alignment, so into \
             {unit} bytes, and no multiple of that is from min_message_size to max_message_size ({least} to {most})"
        )
    })
}

/// Adds a fault for remote scratch memory that is empty, which cannot be registered. With `reuse_resources`, also adds
/// a fault for a GPU that accesses remote scratch memory and has no scratch memory: it would reach only chunk 0 there.
fn empty_scratch(plan: &Plan, gpu: &Gpu, faults: &mut Vec<Fault>) {
    let has_none = |id: u32| plan.gpus.get(id as usize).is_some_and(|gpu| gpu.scratch_chunks == 0);
    let mut remote = gpu.remote_buffers.iter().filter(|remote| remote.buffer == Buffer::Scratch);
    let message = if plan.reuse_resources {
        let is_any = has_none(gpu.id) && remote.next().is_some();
        is_any.then(|| {
            "with reuse_resources, a GPU places chunks of remote scratch memory by its own scratch_chunks, which is 0 here; \
             give it as many as the others"
                .to_owned()
        })
    } else {
        let found = remote.find(|remote| has_none(remote.rank));
        found.map(|remote| {
            let rank = remote.rank;
            format!("a remote buffer is the scratch memory of gpu {rank}, which has none, and the executor cannot register it")
        })
    };
    faults.extend(message.map(|message| Fault::of_gpu("limit", gpu.id, message)));
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

/// Adds a fault if a GPU has fewer processors than thread blocks and one of the thread blocks waits.
fn resident(gpu: &Gpu, processors: u32, faults: &mut Vec<Fault>) {
    let waits = |name: Name| {
        let is = matches!(name, Name::Wait | Name::Rlxwait | Name::SemAcquire | Name::Barrier);
        is || (name.has_packets() && !matches!(name, Name::Ppkt | Name::Cpkt))
    };
    let found = too_many_blocks(gpu.id, gpu.threadblocks.len(), processors);
    let found = found.filter(|_| gpu.ops().any(|op| waits(op.name)));
    faults.extend(found.map(|message| Fault::of_gpu("limit", gpu.id, message)));
}

/// Adds a fault for each access that the runtime performs at a wrong address when the plan runs in place. In place, a
/// GPU's own part lies inside its whole buffer. The runtime then adds the offset of the accessing GPU, instead of the
/// accessed one, to a remote buffer of the part's type and to a buffer behind a switch; it adds no offset to the source
/// of a port channel.
fn in_place(plan: &Plan, gpu: &Gpu, faults: &mut Vec<Fault>) {
    let (part, whole, key) = match plan.collective.as_str() {
        "allgather" => (Buffer::Input, "o", "i"),
        "reducescatter" => (Buffer::Output, "i", "o"),
        _ => return,
    };
    let by_port = |op: &Op| {
        op.channel_type == Some(ChannelType::Port) && op.src_buff.iter().any(|slice| slice.buffer == Some(part))
    };
    let is_remote = gpu.remote_buffers.iter().any(|remote| remote.buffer == part)
        || gpu.channels.iter().any(|channel| channel.buffer_type == Some(part))
        || gpu.ops().any(by_port);
    if plan.inplace && is_remote {
        let message = format!(
            "in place, the runtime finds another part than its own behind a remote or switch buffer of type \"{key}\", and behind a \
             port channel; use \"{whole}\""
        );
        faults.push(Fault::of_gpu("limit", gpu.id, message));
    }
}

/// Returns a fault if an operation has more channels, semaphores or destinations than threads: each needs a thread.
fn threads(op: &Op, threads: u32) -> Option<String> {
    let each = op.channel_ids.len().max(op.semaphores().len()).max(op.dst_buff.len());
    (each > threads as usize)
        .then(|| format!("{} needs {each} threads, and num_threads_per_block is {threads}", op.name))
}

/// Returns a fault in two cases: the operation has a key that it does not use, which the loader stores over an operand
/// or the runtime ignores; or a buffer is not exactly one of the three kinds local, remote, and behind a switch.
fn stray(op: &Op) -> Option<String> {
    let name = op.name;
    let is_semaphore = matches!(name, Name::SemAcquire | Name::SemRelease);
    let keys = [
        ("barrier_id", op.barrier_id.is_some() && name != Name::Barrier),
        ("num_threadblocks", op.num_threadblocks.is_some() && name != Name::Barrier),
        ("semaphore_ids", op.semaphore_ids.is_some() && !is_semaphore),
        ("iter_context", op.iter_context.is_some() && name != Name::Pipeline),
    ];
    if let Some((key, _)) = keys.into_iter().find(|&(_, is)| is) {
        return Some(format!("{name} has no {key}, and the runtime stores it over another operand"));
    }
    if !op.ops.is_empty() && name != Name::Pipeline {
        return Some(format!("{name} has ops, which the runtime passes over; only a pipeline has them"));
    }
    if name == Name::Pipeline && !(op.src_buff.is_empty() && op.dst_buff.is_empty()) {
        return Some("a pipeline has no buffers, and the loader reads those that it is given".to_owned());
    }
    let kinds = |slice: &Slice| {
        [slice.buffer.is_some(), slice.buffer_id.is_some(), slice.switch_channel_id.is_some()]
            .into_iter()
            .filter(|&is| is)
            .count()
    };
    let mixed = op.src_buff.iter().chain(&op.dst_buff).any(|slice| kinds(slice) != 1);
    mixed.then(|| format!("a buffer of {name} has one of \"type\", \"buffer_id\" and \"switch_channel_id\""))
}

/// Returns a fault if the operation's kernel does not support the type of its channels: kernels that read remote memory
/// use memory channels only, and a flush uses port channels only.
fn channel_type(op: &Op) -> Option<String> {
    let by_port = op.channel_type == Some(ChannelType::Port);
    let reads = matches!(op.name, Name::Get | Name::Rre | Name::Rres | Name::Res | Name::Respkt | Name::Recspkt);
    if by_port && reads {
        return Some(format!("the runtime has {} on memory channels only", op.name));
    }
    let is_flush = op.name == Name::Flush && !by_port && op.channel_type.is_some();
    is_flush.then(|| "the runtime has flush on port channels only".to_owned())
}

/// Returns the fault of a pipeline's unit size, if the runtime does not support it.
fn unit(op: &Op) -> Option<String> {
    let size = op.iter_context?.unit_size;
    let fits = size > 0 && size.is_multiple_of(16) && u32::try_from(size).is_ok();
    (!fits).then(|| format!("unit_size is {size}; the runtime takes multiples of 16 below 2^32"))
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
        .or_else(|| over(op.semaphores().len(), OP_SEMAPHORES, "semaphores"))
        .or_else(|| stray(op))
        .or_else(|| channel_type(op))
        .or_else(|| unit(op))
        .or_else(|| {
            let id = op.barrier_id.filter(|&id| name == Name::Barrier && id >= BARRIERS)?;
            Some(format!("barrier {id} is not there: the runtime has {BARRIERS}"))
        })
        .or_else(|| {
            let reduce = op.reduce_op.as_deref().filter(|&reduce| reduce != "sum")?;
            Some(format!("reduce_op is \"{}\", and the runtime always adds", reduce.chars().take(40).collect::<String>()))
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
