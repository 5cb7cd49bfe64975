//! The limits of the executor. Source: msccl-executor-nccl, `src/include/msccl/msccl_struct.h` and `msccl_parser.h`.

use unisono_base::{NodeId, narrow};

use super::{
    program::{Block, Gpu, Program},
    write::buffer_name,
};
use crate::too_many_blocks;

/// The maximum number of steps of a thread block.
pub const STEPS: usize = 64;
/// The maximum number of thread blocks of a GPU: a step names the thread block that it waits for in 8 signed bits.
pub const BLOCKS: usize = 127;
/// The maximum number of thread blocks of a GPU that every executor accepts: RCCL refuses files with more.
///
/// Source: ROCm/rccl (2.21), `src/include/msccl/msccl_struct.h`, `MSCCL_MAX_NUM_THREAD_BLOCKS`.
pub const BLOCKS_OF_ALL: usize = 64;
/// The maximum number of channels of a GPU.
pub const CHANNELS: usize = 32;
/// The maximum number of thread blocks of a GPU that send on one channel; the same limit holds for those that receive.
pub const BLOCKS_OF_A_CHANNEL: usize = 32;
/// The maximum number of chunks that a step moves.
pub const COUNT: u32 = 71;
/// The maximum number of chunks of a buffer: offsets have 16 signed bits.
pub const CHUNKS: u32 = 32_767;
/// The maximum number of GPUs: the parser stores at most this number of children of an XML node.
pub const GPUS: u32 = 1024;
/// The maximum number of XML nodes that a GPU stores: the root, all GPUs, and its own thread blocks and steps. The
/// parser has room for one more node, and fails on the next tag.
pub const NODES: usize = 4095;
/// The maximum number of reductions into one destination that the parser fuses into one step.
pub const FUSED: usize = 15;
/// The number of chunks that a connection can always buffer: a chunk takes at most half of the steps of its buffer.
pub const IN_FLIGHT: u32 = 2;

/// Returns the notes on a file: a sentence for each GPU with more thread blocks than RCCL accepts, and a sentence if a
/// step's number differs from its position.
pub fn notes(p: &Program) -> Vec<String> {
    let most = p.gpus.iter().enumerate().map(|(g, gpu)| (gpu.blocks.len(), std::cmp::Reverse(g))).max();
    let over = most.filter(|&(blocks, _)| blocks > BLOCKS_OF_ALL);
    let note = |(blocks, gpu): (usize, std::cmp::Reverse<usize>)| {
        format!("gpu {} has {blocks} thread blocks, and RCCL refuses a file with more than {BLOCKS_OF_ALL}", gpu.0)
    };
    over.map(note).into_iter().chain(misnumbered(p)).collect()
}

/// Returns a sentence on the first step whose number differs from its position, if there is one.
fn misnumbered(p: &Program) -> Option<String> {
    let blocks = p.gpus.iter().flat_map(|gpu| &gpu.blocks);
    let mut steps = blocks.flat_map(|block| block.steps.iter().enumerate());
    let (place, step) = steps.find(|(place, step)| step.number as usize != *place)?;
    Some(format!(
        "line {}: the step has s=\"{}\" and is number {place} of its thread block; the executor runs steps in the order of the \
         file",
        step.line, step.number
    ))
}

/// Returns a sentence for each limit of the executor that a file exceeds on GPUs with `processors` processors, with the
/// GPU; `None` stands for the whole file.
pub fn of_program(p: &Program, processors: u32) -> Vec<(Option<NodeId>, String)> {
    let mut found = Vec::new();
    if !["LL", "LL128", "Simple"].contains(&p.protocol.as_str()) {
        let name = p.protocol.chars().take(40).collect::<String>();
        found.push((None, format!("proto=\"{name}\" is not a protocol; accepted are LL, LL128, Simple")));
    }
    found.extend(p.refused.clone().map(|message| (None, message)));
    if !p.missing.is_empty() {
        let keys = p.missing.join(", ");
        found.push((None, format!("the executor does not load a file without {keys}; add what is missing to <algo>")));
    }
    for (g, gpu) in p.gpus.iter().enumerate() {
        let node = NodeId::new(g);
        let mut add = |message| found.push((Some(node), message));
        if gpu.blocks.is_empty() {
            add(format!("{node} has no thread block, and the executor starts no kernel without one"));
        }
        if let Err(message) = check(node, &gpu.blocks, BLOCKS) {
            add(message);
        } else if let Some(message) = too_many_blocks(node.0, gpu.blocks.len(), processors) {
            add(message);
        }
        if let Some(message) = too_many_nodes(p.gpus.len(), gpu) {
            add(message);
        }
        let linked = gpu.blocks.iter().find(|b| (b.send.or(b.receive)).is_some() && b.channel >= p.channels);
        if let Some(block) = linked {
            add(format!("{node} uses channel {}, and nchannels=\"{}\" connects fewer", block.channel, p.channels));
        }
        let outside = gpu.blocks.iter().flat_map(|b| &b.steps).find_map(|step| {
            let places = [
                step.kind.checks_source().then_some(step.source),
                step.kind.checks_destination().then_some(step.destination),
            ];
            places.into_iter().flatten().find(|place| place.chunk >= gpu.chunks(place.buffer))
        });
        if let Some(place) = outside {
            let (name, stated) = (buffer_name(place.buffer), gpu.chunks(place.buffer));
            add(format!(
                "{node} uses chunk {} of buffer {name}, and {name}_chunks=\"{stated}\"; the executor refuses the file",
                place.chunk
            ));
        }
        let places = gpu.blocks.iter().flat_map(|b| &b.steps).flat_map(|s| [s.source, s.destination]);
        if let Some(place) = places.into_iter().find(|place| place.chunk >= CHUNKS) {
            add(format!("{node} uses chunk {} of a buffer; at most {CHUNKS} are addressed", place.chunk));
        }
    }
    found
}

/// Checks that the thread blocks of a GPU can have `steps` steps in total.
///
/// # Errors
/// Returns the reason if there are too many.
pub fn check_steps(node: NodeId, steps: usize) -> Result<(), String> {
    let most = STEPS * BLOCKS;
    if steps > most { Err(format!("{node} would take more than {most} steps")) } else { Ok(()) }
}

/// Returns the reason why a GPU in a file of `gpus` GPUs cannot store its part of the file; `None` if it can.
pub fn too_many_nodes(gpus: usize, gpu: &Gpu) -> Option<String> {
    let kept = gpus + 1 + gpu.blocks.iter().map(|b| 1 + b.steps.len()).sum::<usize>();
    (kept > NODES).then(|| format!("a GPU would keep {kept} nodes of the file; at most {NODES} are held"))
}

/// Checks that the executor's limits admit the thread blocks of a GPU, of which there may be `most`.
///
/// # Errors
/// Returns the first limit that is exceeded.
pub fn check(node: NodeId, blocks: &[Block], most: usize) -> Result<(), String> {
    if blocks.len() > most {
        return Err(format!("{node} takes {} thread blocks; at most {most} are held", blocks.len()));
    }
    if let Some(steps) = blocks.iter().map(|b| b.steps.len()).find(|&s| s > STEPS) {
        return Err(format!(
            "a thread block of {node} takes {steps} steps; at most {} are held: plan for fewer ranks or \
             segments",
            STEPS
        ));
    }
    if let Some(b) = blocks.iter().find(|b| b.channel as usize >= CHANNELS) {
        return Err(format!("{node} takes channel {}; there are {}", b.channel, CHANNELS));
    }
    for channel in 0..narrow::<u32>(CHANNELS) {
        let of = blocks.iter().filter(|b| b.channel == channel);
        let (sends, receives) =
            of.fold((0, 0), |(s, r), b| (s + usize::from(b.send.is_some()), r + usize::from(b.receive.is_some())));
        let found = sends.max(receives);
        if found > BLOCKS_OF_A_CHANNEL {
            return Err(format!("{node} talks to {found} others on one channel; at most {} fit", BLOCKS_OF_A_CHANNEL));
        }
    }
    Ok(())
}
