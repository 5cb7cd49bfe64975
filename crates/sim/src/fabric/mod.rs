//! The fabric of a wafer, wavelet by wavelet and cycle by cycle.
//!
//! The simulated rules and their sources (P: "Near-Optimal Wafer-Scale Reduce", section; M: an assumption that
//! [`Options`] may vary):
//!
//! * A router has five ports. A link carries one wavelet a cycle in each direction, over all colors together; a hop
//!   takes one cycle (P 2.2). The ramp between a router and its PE takes T_R cycles each way and one wavelet a cycle (P
//!   2.2).
//! * Each input port has a queue of finite depth for each color (M). A wavelet moves if the next queue had room at the
//!   start of the cycle, so a queue of depth two gives the full rate. A stalled color does not stall other colors.
//! * A wavelet that is multicast moves to all of its ports in one cycle, or waits (M).
//! * The colors that wait for one link take turns (M).
//! * The current position of a color selects the accepted inputs and their outputs; other inputs wait (P 2.2). Two
//!   accepted inputs with a wavelet in one cycle are an error: the hardware leaves it undefined (P 2.2, 8.2).
//! * A control wavelet moves by the current position and then advances the position, at every router on its path. It
//!   reaches no PE.
//! * A PE does one element operation a cycle; its threads take turns. An operation with n sources takes max(1, n - 1)
//!   cycles an element, and combines the sources in the order written. With a chunk, the operation does one step for
//!   all elements of the chunk before the next step; taking a chunk of a first source from the fabric is then a step
//!   too.
//!
//! Cycles count from 0 to the end of the last operation. A wavelet sent in cycle 0 enters its router at 1 + T_R, is `h`
//! hops away at 1 + T_R + h, can be used at 1 + 2 T_R + h, and is stored one cycle later: for B wavelets and T_R = 2
//! that is B + h + 5, the message of P 4.1. Along a chain each PE adds one hop, two ramps and one operation: 6 cycles.
//!
//! The simulator's cost depends on events: a PE is visited only in cycles in which one of its wavelets or operations
//! may move. It is not visited while it repeats the moves of its previous period (`steady`) or the moves of a PE in
//! another row (`alike`). Runs that hardly repeat continue block by block (`blocks`), with their state packed into bit
//! masks if the program allows it (`packed`). No decision depends on values, so the simulation moves no values. Values
//! are computed afterwards, operation by operation, from the recorded moves (`moves`, `values`).

mod alike;
mod blocks;
pub(crate) mod clock;
mod data;
mod error;
mod measure;
mod moves;
pub(crate) mod packed;
mod pe;
mod queue;
mod router;
pub(crate) mod steady;
mod tables;
mod trace;
mod values;

use unisono_lower::wafer::WaferProgram;

pub use error::{SimError, Stuck};
pub use measure::{Calibration, Measurement, measure};
pub use trace::{TraceEvent, TraceRequest};

/// Parameters of the simulated machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// T_R: latency of the ramp between a router and its PE in each direction, in cycles.
    pub ramp_latency: u32,
    /// Capacity of a router's queue in wavelets; there is one queue for each color and input port.
    pub queue_depth: u32,
    /// Probability that a PE inserts a no-op in a cycle, which limits its heat (section 8.1).
    pub noop_probability: f64,
    /// Cycle in which each PE starts; empty if all start in cycle 0.
    pub start: Vec<u32>,
    pub seed: u64,
    /// The number of cycles after which the state of a PE is expected to repeat, so that the PE can be skipped. 0
    /// disables this, and also the skipping of rows that do the same as other rows. Results do not depend on it.
    pub period: u32,
    /// The fewest PEs for which a run that rarely repeats continues in blocks of PEs. If the state of a run can be
    /// packed, 64 PEs suffice, and the run starts in blocks if the program looks suitable. With 0 every program runs in
    /// blocks from the start, with `u32::MAX` no program does. Results do not depend on it.
    pub blocks_from: u32,
    /// The most threads of a packed run. Fewer threads are used if other work uses the cores. Results do not depend on
    /// it.
    pub jobs: u32,
    pub trace: TraceRequest,
}

/// Fewest PEs whose state exceeds a core's own cache.
const BLOCKS_FROM: u32 = 1 << 12;

impl Default for Options {
    fn default() -> Self {
        Self {
            ramp_latency: 2,
            queue_depth: 4,
            noop_probability: 0.0,
            start: Vec::new(),
            seed: 0,
            period: 6,
            blocks_from: BLOCKS_FROM,
            jobs: u32::MAX,
            trace: TraceRequest::default(),
        }
    }
}

/// Results of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Number of cycles until the last operation has ended.
    pub cycles: u64,
    /// Number of cycles until the last operation of each PE has ended; 0 for a PE without operations.
    pub finish: Vec<u32>,
    /// Number of moves of wavelets over links and ramps, plus element operations.
    pub events: u64,
    /// Number of moves over links between routers: the energy.
    pub hops: u64,
    /// The total number of cycles for which wavelets waited at routers, in addition to the cycle that a hop takes.
    pub stalls: u64,
    /// True if every output equals plain arithmetic on the inputs.
    pub result_correct: bool,
    /// Description of the first wrong output; `None` if there is none.
    pub mismatch: Option<String>,
    pub trace: Vec<TraceEvent>,
}

impl Options {
    /// Returns the cycle in which a PE starts.
    fn start_of(&self, pe: u32) -> u32 {
        self.start.get(pe as usize).copied().unwrap_or(0)
    }
}

/// Returns true if a PE inserts a no-op in a cycle.
fn noop(options: &Options, pe: u32, cycle: u32) -> bool {
    if options.noop_probability <= 0.0 {
        return false;
    }
    let x = (u64::from(pe) << 32 | u64::from(cycle)) ^ options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (unisono_base::mix(x) >> 11) as f64 / (1u64 << 53) as f64 <= options.noop_probability
}

/// Runs a program on inputs computed from rank and element.
///
/// # Errors
/// Returns an error on a deadlock, which names the PEs that are stuck, if two wavelets collide, if no PE takes a
/// wavelet, if two threads race, or if the program or its options exceed a limit.
pub fn run(program: &WaferProgram, options: &Options) -> Result<Run, SimError> {
    clock::Clock::new(program, options)?.run().or_else(|error| {
        if options.blocks_from == u32::MAX {
            return Err(error);
        }
        // In blocks, the first error that is found may not be the earliest one. So the program runs again without
        // blocks.
        clock::Clock::new(program, &Options { blocks_from: u32::MAX, ..options.clone() })?.run()
    })
}
