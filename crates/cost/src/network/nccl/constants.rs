//! The constants of NCCL's cost model: latencies in microseconds, rates in GB/s of 1e9 bytes.
//!
//! Source: NVIDIA/nccl 5067397c (June 2026), `ncclTunerConstantsDefaults` and `treeCorrectionFactor` of
//! `src/graph/tuning.cc`, the ladders of `src/graph/search.cc`, the links of `src/graph/topo.h`. NCCL 2.32 has another
//! model.

use unisono_machine::network::{Architecture, Cpu};

use super::{Algorithm, Protocol};

/// The version of NCCL that has these constants, for reports.
pub const VERSION: &str = "NVIDIA/nccl 5067397c (June 2026)";

/// The generations of NVIDIA's GPUs, in the order of the rows of the tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Generation {
    Volta,
    Ampere,
    Hopper,
    Blackwell,
}

impl Generation {
    /// Returns the generation of an architecture; `None` for GPUs of other makers.
    pub fn of(architecture: Architecture) -> Option<Self> {
        match architecture {
            Architecture::Volta => Some(Self::Volta),
            Architecture::Ampere => Some(Self::Ampere),
            Architecture::Hopper => Some(Self::Hopper),
            Architecture::Blackwell => Some(Self::Blackwell),
            Architecture::Cdna2 | Architecture::Cdna3 | Architecture::Cdna4 => None,
        }
    }
}

/// The kind of link that a step uses: NVLink or PCIe inside a box, the network between boxes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Medium {
    Nvlink,
    Pcie,
    Net,
}

/// Returns the microseconds from the call to the first step.
pub fn base_us(algorithm: Algorithm, protocol: Protocol) -> f64 {
    let by_protocol = match algorithm {
        Algorithm::Tree => [6.8, 14.0, 8.4],
        Algorithm::Ring => [6.6, 14.0, 8.4],
        Algorithm::Pat => [8.0, 8.0, 8.0],
        _ => [0.0; 3],
    };
    by_protocol[protocol as usize]
}

/// Returns the microseconds of one step.
pub fn hop_us(medium: Medium, algorithm: Algorithm, protocol: Protocol) -> f64 {
    use Algorithm::{CollnetChain, CollnetDirect, Nvls, NvlsTree, Pat, Ring, Tree};
    let by_protocol = match (medium, algorithm) {
        (Medium::Nvlink, Tree) => [0.6, 1.25, 4.0],
        (Medium::Nvlink, Ring) => [0.6, 1.9, 3.4],
        (Medium::Nvlink, Nvls | NvlsTree) => [0.0, 0.0, 25.0],
        (Medium::Pcie, Tree) => [1.0, 1.9, 4.0],
        (Medium::Pcie, Ring) => [1.0, 2.5, 5.7],
        (Medium::Pcie, Nvls | NvlsTree) => [0.0; 3],
        (Medium::Nvlink | Medium::Pcie, CollnetDirect) => [0.0, 0.0, 3.7],
        (Medium::Nvlink | Medium::Pcie, CollnetChain) => [0.0, 0.0, 2.8],
        (Medium::Nvlink | Medium::Pcie, Pat) => [0.0, 0.0, 4.0],
        (Medium::Net, Tree) => [5.0, 8.5, 14.0],
        (Medium::Net, Ring) => [2.7, 4.0, 14.0],
        (Medium::Net, CollnetDirect) => [0.0, 0.0, 31.0],
        (Medium::Net, CollnetChain) => [0.0, 0.0, 30.0],
        (Medium::Net, Nvls) => [0.0, 0.0, 18.0],
        (Medium::Net, NvlsTree) => [0.0, 0.0, 20.9],
        (Medium::Net, Pat) => [0.0, 0.0, 14.0],
    };
    by_protocol[protocol as usize]
}

/// The latency, in microseconds, of the network for which NCCL's times of steps between boxes are assumed to hold: that
/// of InfiniBand, as TE-CCL states it (github.com/microsoft/TE-CCL, teccl/topologies/dgx2.py).
pub const NETWORK_US: f64 = 2.6;

/// The microseconds in which a process starts the kernel of one GPU. This is the median over five machines of the
/// shortest call of one process, divided by the number of its GPUs: 8 A100 4.2
/// (github.com/NVIDIA/nccl-tests/issues/123), 2 V100 5.4, 8 H200 5.5, 2 RTX 2080 Ti 5.8, 4 H100 6.0
/// (docs/measured/posted-times.tsv names the other sources).
pub const KERNEL_US: f64 = 5.5;

/// Returns the microseconds in which a CPU posts one message to a network interface.
pub fn post_us(cpu: Cpu) -> f64 {
    match cpu {
        Cpu::Amd => 2.0,
        Cpu::Intel | Cpu::Arm => 1.0,
    }
}

/// Returns the largest bus bandwidth of protocol LL in GB/s. On one box it depends on the generation of the GPUs, on
/// several boxes on the maker of the CPU.
pub fn most_ll(architecture: Generation, cpu: Cpu, boxes: u32) -> f64 {
    const ROWS: [[f64; 3]; 4] = [[39.0, 39.0, 20.4], [87.7, 22.5, 19.0], [141.0, 45.0, 35.0], [282.0, 90.0, 70.0]];
    let row = if boxes == 1 { architecture as usize } else { usize::from(cpu == Cpu::Amd) };
    ROWS[row][column(boxes)]
}

/// Returns the largest bus bandwidth of one channel in GB/s; `None` if the model does not limit it.
pub fn most_a_channel(algorithm: Algorithm, protocol: Protocol, architecture: Generation, boxes: u32) -> Option<f64> {
    let rows = match (algorithm, protocol) {
        (Algorithm::Ring, Protocol::Ll128) => [[20.0; 3], [20.0; 3], [36.7; 3], [40.0; 3]],
        (Algorithm::Tree, Protocol::Ll128) => [[20.0; 3], [20.0; 3], [36.7, 36.7, 29.0], [55.6, 31.67, 20.0]],
        (Algorithm::Tree, Protocol::Ll | Protocol::Simple) => TREE,
        (Algorithm::NvlsTree, _) => [TREE[0], TREE[1], [0.0, 57.7, 45.5], [0.0, 96.0, 80.0]],
        _ => return None,
    };
    Some(rows[architecture as usize][column(boxes)])
}

/// The limits of a channel of a tree in GB/s, by generation and [`column`]. LL128 has a further limit.
pub const TREE: [[f64; 3]; 4] = [[26.5, 18.5, 10.0], [24.0, 23.6, 17.8], [38.7, 41.4, 36.0], [70.0, 42.8, 24.0]];

/// Returns the GB/s at which a thread block forwards data with flags as it arrives; `None` for protocol Simple, whose
/// steps include this. LL has half the data of LL128 on the wire, where 15 of 16 bytes are data.
pub fn passing(protocol: Protocol, architecture: Generation, boxes: u32) -> Option<f64> {
    let ll128 = most_a_channel(Algorithm::Tree, Protocol::Ll128, architecture, boxes);
    match protocol {
        Protocol::Ll => ll128.map(|rate| rate * 16.0 / 15.0 / 2.0),
        Protocol::Ll128 => ll128,
        Protocol::Simple => None,
    }
}

/// Returns the column of the tables for one, two, or more boxes.
pub fn column(boxes: u32) -> usize {
    match boxes {
        0..=1 => 0,
        2 => 1,
        _ => 2,
    }
}

/// Returns the fraction of the rate of a GPU's NVLinks that NVLS reaches.
pub fn nvls_efficiency(architecture: Generation) -> f64 {
    match architecture {
        Generation::Volta | Generation::Ampere => 0.0,
        Generation::Hopper => 0.85,
        Generation::Blackwell => 0.74,
    }
}

/// Returns the bytes of a chunk in a call of `bytes` bytes by an NVLS tree, and the number of thread blocks. A thread
/// block sends each chunk to one head, a GPU that reduces a part of the vector. A box has `gpus` GPUs and `heads`
/// heads, each with an interface of `nic` GB/s.
///
/// Source: `ncclNvlsTuning` of src/transport/nvls.cc, `calcCollChunking` of src/enqueue.cc. GPUs and interfaces are
/// assumed to have a PCIe switch in common.
pub fn nvls_tree_chunk(
    architecture: Generation,
    boxes: u32,
    gpus: u32,
    heads: u32,
    nic: f64,
    bytes: u64,
) -> (u64, u64) {
    const KIB: u64 = 1024;
    let (blocks, most) = match (architecture, boxes, gpus) {
        (Generation::Blackwell, 2, ..=4) if nic >= 48.0 => (32, 256),
        (Generation::Blackwell, 2, 9..=15) if nic >= 48.0 => (32, 128),
        (Generation::Blackwell, 2, 5..=8) if nic >= 96.0 => (32, 128),
        (Generation::Blackwell, 2, _) if nic >= 48.0 => (32, 64),
        (Generation::Blackwell, _, ..=8) if nic >= 96.0 => (24, 256),
        (Generation::Blackwell, _, ..=31) if nic >= 96.0 => (32, 128),
        (Generation::Blackwell, ..) if nic >= 96.0 => (32, 64),
        (Generation::Blackwell, ..) if nic >= 48.0 => (24, 64),
        (Generation::Blackwell, ..) => (32, if boxes >= 4 { 64 } else { 128 }),
        _ => (16, if boxes >= 4 { 64 } else { 128 }),
    };
    let at_once = blocks * u64::from(heads);
    let mut chunk = most * KIB;
    for (rounds, shorter) in [(16, 128 * KIB), (4, 64 * KIB), (1, SHORT_CHUNK)] {
        if bytes < rounds * at_once * chunk {
            chunk = chunk.min(shorter);
        }
    }
    (chunk, blocks)
}

/// The bytes of the shortest chunk of an NVLS tree.
pub const SHORT_CHUNK: u64 = 32 * 1024;

/// Returns the factor on the bandwidth of a tree allreduce of `bytes` bytes. `sizes` is the number of sizes, powers of
/// two from 64 bytes on, that have a factor.
pub fn tree_correction(protocol: Protocol, sizes: u32, bytes: u64) -> f64 {
    const ROWS: [[f64; 24]; 3] = [
        [
            1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0,
            1.0, 1.0, 1.0,
        ],
        [
            1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9,
            1.0, 1.0, 1.0,
        ],
        [
            0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8,
            0.9, 0.9, 0.9,
        ],
    ];
    match (bytes >> 6).checked_ilog2() {
        Some(power) if power < sizes => ROWS[protocol as usize][power as usize],
        _ => 1.0,
    }
}

/// Returns the rates of a channel that the search tries, in GB/s, fastest first.
pub fn ladder(architecture: Generation, across_boxes: bool) -> &'static [f64] {
    match (architecture, across_boxes) {
        (Generation::Volta | Generation::Ampere, false) => {
            &[40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0]
        }
        (Generation::Volta | Generation::Ampere, true) => {
            &[48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.4, 1.2, 0.24, 0.12]
        }
        (Generation::Hopper, false) => &[60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0],
        (Generation::Hopper, true) => {
            &[48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12]
        }
        (Generation::Blackwell, false) => &[90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0],
        (Generation::Blackwell, true) => &[
            96.0, 86.0, 80.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2,
            0.24, 0.12,
        ],
    }
}

/// Returns the rate of one NVLink in GB/s: the rate that NCCL assumes, and the rate of the data sheet.
pub fn nvlink(architecture: Generation) -> [f64; 2] {
    match architecture {
        Generation::Volta | Generation::Ampere => [20.0, 25.0],
        Generation::Hopper => [20.6, 25.0],
        Generation::Blackwell => [40.1, 50.0],
    }
}
