//! The files of MSCCL with which RCCL runs allreduces of some sizes on 8 MI300X, instead of its own choice.
//!
//! Each GPU sends an eighth of the vector to each other GPU, adds the eighths that it receives, and sends the sum to
//! all, in two steps. Each file has a thread block for each other GPU and channel, whose rate (`[thread_block]` of the
//! machine) limits its data. With a part of an eighth of the vector, and the rate r of all thread blocks for one GPU:
//!
//! ```text
//! time = start + 2 steps + 2 x max(2 part / r, part on the wire / rate of the link) + 7/8 part / r
//! ```
//!
//! Start and steps are RCCL's own (`baseLat`, the ring of its tuning model). RCCL uses a file if the bytes of a call
//! are between the file's `minBytes` and `maxBytes`, and its `nchunksperloop` divides the elements. RCCL does not
//! compare times. The limits here are those of calls that are not in place.
//!
//! Source: tools/msccl-algorithms (allreduce-allpairs-8n-*-op.xml) and `mscclInternalSchedulerSelectAlgo` of
//! src/misc/msccl/msccl_lifecycle.cc, ROCm/rccl 0cbce2a7.

use unisono_collective::{Kind, Operator};
use unisono_machine::network::Protocol as BlockProtocol;

use super::{Rccl, constants::BASE_US};
use crate::network::nccl::Protocol;

/// The number of GPUs for which the files are written.
const GPUS: u32 = 8;

struct File {
    protocol: Protocol,
    channels: u32,
    /// The elements of a call must be a multiple of this number.
    chunks: u64,
    most_bytes: u64,
}

/// The files in ascending order of sizes. Only one file can run a call: the first whose `most_bytes` is at least the
/// size of the call.
const FILES: [File; 3] = [
    File { protocol: Protocol::Ll, channels: 4, chunks: 256, most_bytes: 65_536 },
    File { protocol: Protocol::Ll, channels: 8, chunks: 512, most_bytes: 524_287 },
    File { protocol: Protocol::Simple, channels: 8, chunks: 512, most_bytes: 16_777_216 },
];

/// A file of MSCCL that runs a call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FileTime {
    /// The name that the file states.
    pub name: &'static str,
    pub protocol: Protocol,
    pub channels: u32,
    pub latency_us: f64,
    /// The bytes of the call divided by its time, without the latency, in GB/s.
    pub bandwidth: f64,
    pub seconds: f64,
}

impl Rccl {
    /// Returns the file with which RCCL runs a call; `None` if RCCL makes its own choice.
    pub fn file(&self, kind: Kind, operator: Operator, elements: u64, bytes: u64) -> Option<FileTime> {
        let is_served = kind == Kind::Allreduce
            && matches!(operator, Operator::Sum | Operator::Prod | Operator::Min | Operator::Max)
            && self.constants.has_files
            && self.boxes == 1
            && elements > 0;
        let file = FILES.iter().find(|file| is_served && bytes <= file.most_bytes)?;
        if !elements.is_multiple_of(file.chunks) {
            return None;
        }
        let latency_us = BASE_US[file.protocol as usize] + 2.0 * self.constants.ring.inside_us[file.protocol as usize];
        let moved_ns = self.moved_ns(file, bytes);
        Some(FileTime {
            name: "allreduce_pairs",
            protocol: file.protocol,
            channels: file.channels,
            latency_us,
            bandwidth: bytes as f64 / moved_ns,
            seconds: (latency_us + moved_ns / 1000.0) / 1e6,
        })
    }

    fn moved_ns(&self, file: &File, bytes: u64) -> f64 {
        let block = match file.protocol {
            Protocol::Ll => BlockProtocol::Ll,
            Protocol::Ll128 => BlockProtocol::Ll128,
            Protocol::Simple => BlockProtocol::Simple,
        };
        let pass_ns = self.blocks.of(block).pass_ns_per_byte().unwrap_or(0.0);
        let (part, channels) = (bytes / u64::from(GPUS), f64::from(file.channels));
        let on_wire = block.wire_bytes(part) as f64 / self.pair;
        // A thread block sends its bytes and receives as many; then it adds an eighth of the bytes received from all
        // other GPUs.
        let of_blocks = 2.0 * part as f64 * pass_ns / channels;
        let added = f64::from(GPUS - 1) * part as f64 / f64::from(GPUS) * pass_ns / channels;
        2.0 * of_blocks.max(on_wire) + added
    }
}
