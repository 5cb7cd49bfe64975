//! The constants of RCCL's cost model for the boxes that it recognises: latencies in microseconds, rates in GB/s.
//!
//! Source: ROCm/rccl 0cbce2a7 (October 2024), `baseLat`, `tuning_model_4` and `tuning_model_5` of src/graph/tuning.cc,
//! the options and rings of `rome_model_65` and `rome_model_79` in src/graph/rome_models.cc, and the links of
//! src/graph/topo.h.

use unisono_machine::network::Architecture;

/// The version of RCCL that has these constants, for reports.
pub const VERSION: &str = "ROCm/rccl 0cbce2a7 (October 2024)";

/// The number of sizes for which rates have a factor: powers of two from 64 B on.
pub const SIZES: usize = 27;

/// The values for the protocols LL, LL128 and Simple. The value of LL128 is 0 if it is not enabled.
pub type ByProtocol<T> = [T; 3];

/// The microseconds from the call to the first step.
pub const BASE_US: ByProtocol<f64> = [12.0, 12.0, 17.0];

/// The constants of one type of box.
pub struct Constants {
    pub architecture: Architecture,
    pub gpus: u32,
    /// The number of GPUs to which each GPU has a link, if RCCL recognises the box by this number.
    pub joined: Option<usize>,
    /// The bus bandwidth inside a box, in GB/s.
    pub bus: f64,
    /// The number of rings of a box without interfaces, if it is fixed.
    pub rings: Option<u32>,
    pub has_ll128: bool,
    /// True if RCCL has files of MSCCL for allreduces on one box.
    pub has_files: bool,
    /// True if RCCL enables trees with protocol Simple on one box.
    pub has_simple_tree: bool,
    /// The factor on the rate of LL in broadcasts and reduces on one box.
    pub rooted_ll: f64,
    pub tree: Steps,
    pub ring: Steps,
}

/// The times of steps and the rates of an algorithm.
pub struct Steps {
    /// Microseconds of a step to a GPU of the same box.
    pub inside_us: ByProtocol<f64>,
    /// Microseconds of a step to a GPU of another box.
    pub network_us: ByProtocol<f64>,
    /// The factors on the bus bandwidth: the first for up to two boxes, the second for more boxes.
    pub share: [ByProtocol<f64>; 2],
    /// The factors on the rate by size, from 64 B on. The factors of rings apply to several boxes only.
    pub by_size: ByProtocol<[f64; SIZES]>,
}

pub static BOXES: [Constants; 2] = [
    Constants {
        architecture: Architecture::Cdna2,
        gpus: 16,
        joined: None,
        bus: 161.4,
        rings: None,
        has_ll128: true,
        has_files: false,
        has_simple_tree: true,
        rooted_ll: 1.0,
        tree: Steps {
            inside_us: [0.8, 1.4, 2.5],
            network_us: [32.2, 34.4, 47.6],
            share: [[0.16, 1.09, 1.61], [0.16, 1.09, 1.08]],
            by_size: [
                [
                    0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1.0, 0.1, 0.1, 0.2, 0.4, 0.6, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1,
                    0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                ],
                [
                    0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.1, 0.1, 0.2, 1.0, 0.5, 0.2, 0.2, 0.2, 0.2, 0.2,
                    0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2,
                ],
                [
                    1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.8, 0.4, 0.3, 0.3, 0.1, 0.1, 1.0, 1.0, 0.7, 0.5, 0.6, 0.5,
                    0.6, 0.6, 0.5, 0.6, 0.6, 0.6, 0.7,
                ],
            ],
        },
        ring: Steps {
            inside_us: [0.8, 2.2, 3.6],
            network_us: [35.4, 87.8, 209.2],
            share: [[0.15, 0.41, 1.0]; 2],
            by_size: [
                [
                    0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.2, 0.1, 0.3, 0.1, 0.1, 0.1, 0.2, 0.1,
                    0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                ],
                [
                    0.4, 0.5, 0.5, 0.4, 0.4, 0.4, 0.4, 0.2, 0.2, 0.1, 0.3, 1.0, 1.0, 0.7, 0.8, 0.5, 1.0, 1.0, 1.0, 1.0,
                    1.0, 0.9, 0.8, 0.5, 0.4, 0.3, 0.3,
                ],
                [
                    0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1.0, 1.0, 0.8, 0.5, 0.1, 0.7, 0.2, 0.4, 0.4, 0.6, 0.7,
                    0.9, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0,
                ],
            ],
        },
    },
    Constants {
        architecture: Architecture::Cdna3,
        gpus: 8,
        joined: Some(7),
        // Seven links of 48 GB/s have this rate.
        bus: 336.0,
        rings: Some(28),
        has_ll128: false,
        has_files: true,
        has_simple_tree: false,
        rooted_ll: 1.65,
        tree: Steps {
            inside_us: [0.9, 0.0, 2.3],
            network_us: [10.5, 0.0, 25.0],
            share: [[0.06, 0.0, 0.11], [0.06, 0.0, 0.59]],
            by_size: [
                [
                    0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1.0, 1.0, 1.0, 1.0, 1.0, 0.6, 1.0, 0.9, 1.0, 1.0, 0.1, 0.1, 0.1, 0.1,
                    0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                ],
                [0.0; SIZES],
                [
                    0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.7, 1.0, 1.0, 1.0, 1.0,
                    1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.8,
                ],
            ],
        },
        ring: Steps {
            inside_us: [0.8, 0.0, 2.1],
            network_us: [9.5, 0.0, 320.0],
            share: [[0.08, 0.0, 1.0]; 2],
            by_size: [
                [
                    0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1.0, 0.2, 1.0, 0.4, 0.4, 0.1, 0.2, 0.2, 0.1,
                    0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                ],
                [0.0; SIZES],
                [
                    0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                    0.1, 0.1, 0.1, 0.8, 1.0, 1.0, 1.0,
                ],
            ],
        },
    },
];
