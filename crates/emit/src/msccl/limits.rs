//! What the executor holds. Source: msccl-executor-nccl, `src/include/msccl/msccl_struct.h` and `msccl_parser.h`.

/// Steps of a thread block.
pub const STEPS: usize = 64;
/// Thread blocks of a GPU: a step names the one it waits for in 8 signed bits.
pub const BLOCKS: usize = 127;
/// Channels of a GPU.
pub const CHANNELS: usize = 32;
/// Thread blocks of a channel that send, and that receive.
pub const BLOCKS_OF_A_CHANNEL: usize = 32;
/// Chunks of a step.
pub const COUNT: u32 = 71;
/// Chunks of a buffer: offsets are 16 signed bits.
pub const CHUNKS: u32 = 32_767;
/// GPUs: children of a node of the XML file.
pub const GPUS: u32 = 1024;
/// Nodes of the XML file that a GPU keeps: the root, all GPUs, its own thread blocks and steps.
pub const NODES: usize = 4096;
/// Reductions of one destination that the parser fuses into one step.
pub const FUSED: usize = 15;
/// Chunks that a connection surely holds while nobody receives: a chunk takes half of the steps of its buffer.
pub const IN_FLIGHT: u32 = 2;
