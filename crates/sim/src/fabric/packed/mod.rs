//! A run in blocks whose state is packed into bit masks, one bit for each color of a router.
//!
//! Where every color of a router has one position and one input, no wavelet is stored. A queue is the number of
//! wavelets in it that may move, and the number of wavelets for which it has room. Both change by at most 1 in a cycle,
//! so the counts of all colors of a router are counted together ([`Counters`]), and the colors that can move in a cycle
//! are those whose two counts are not 0. What a PE does for another one, or for itself later on, is a bit in a word of
//! [`Cell::mail`] that the other one reads in a later cycle:
//!
//! * a wavelet that arrives at the router, one cycle after it left the neighbor or `1 + T_R` cycles after the PE sent;
//! * a wavelet that arrives at the PE, `T_R` cycles after it left the router;
//! * room in the queue of the neighbor that was sent to, one cycle after a wavelet left that queue.
//!
//! The order of the wavelets needs no record either. A router's color has one input, so the number of its moves is its
//! whole log. If all operations on a queue of the ramp belong to one thread, their lengths are the log of that queue.
//! Stalls are the sum over all wavelets of the cycle in which one moved less the cycle from which it could. Who
//! sends a wavelet subtracts the one, who moves it adds the other; the sum over all PEs is right when all have moved.
//!
//! Rows with several outputs (a multicast) have a bit for each output; the bits beyond the first one count room only.

mod build;
mod counters;
mod visit;

use super::{blocks, error::SimError, machine::Machine, queue::LAST_CYCLE, tables::RAMP};
use counters::Counters;
use visit::Cycle;

/// Cycles for which mail waits at most, a power of two.
const AHEAD: u32 = 8;
/// Words of [`Cell::mail`]: wavelets for the router and for the PE, by cycle modulo [`AHEAD`]; room at neighbors, by
/// cycle modulo 2; and room in the ramp to the router, of this cycle.
const TO_ROUTER: usize = 0;
const TO_PE: usize = 8;
const ROOM: usize = 16;
const RAMP_ROOM: usize = 18;
const MAIL: usize = 19;

/// A PE with its router. A bit of a mask stands for a row of the router, or for one more output of a row.
#[derive(Clone, Default)]
#[repr(align(64))]
struct Cell {
    mail: [u32; MAIL],
    /// Wavelets that may move, and room where they go.
    waiting: Counters,
    room: Counters,
    /// The same at the PE: wavelets that it may take, and room in the ramp to the router.
    inbox: Counters,
    ramp_room: Counters,
    /// The rows that send to each port, and the rows with several outputs.
    rows_to: [u32; RAMP + 1],
    several: u32,
    first_row: u32,
    first_thread: u32,
    rows: u8,
    threads: u8,
    router_turn: u8,
    thread_turn: u8,
    /// The cycle of the last move or operation.
    last: u32,
    /// Steps of operations; and the cycles in which wavelets moved less those from which they could, modulo 2^64.
    steps: u64,
    stalls: u64,
}

/// One bit of a cell: a row of its router, or one more output of a row.
#[derive(Clone, Copy, Default)]
struct Row {
    /// Moves since the beginning of this run.
    moves: u32,
    /// The port of its input, and the bit that stands for that input's room at the neighbor.
    from: u8,
    from_bit: u8,
    /// The port of its output, and the bit that stands for the row there.
    to: u8,
    to_bit: u8,
    /// The bit of the row's next output; 0: there is none.
    next: u8,
}

/// What the next step of a thread needs.
#[derive(Clone, Copy, Default)]
struct Need {
    /// Queues of the ramps from which it takes and to which it sends.
    takes: u32,
    sends: u32,
    /// The first cycle in which it may be done.
    earliest: u32,
    /// Queues to which it sends.
    sends_count: u8,
    /// The operation may have to wait for others of its PE.
    waits: bool,
}

/// A step of a thread's operation: the queues from which it takes and to which it sends.
#[derive(Clone, Copy, Default)]
struct Step {
    takes: u32,
    sends: u32,
    sends_count: u8,
}

struct Packed {
    cells: Vec<Cell>,
    rows: Vec<Row>,
    needs: Vec<Need>,
    /// The steps of each thread's operation, and where each thread's start.
    steps: Vec<Step>,
    first_step: Vec<u32>,
    /// The bit of each queue of a ramp.
    bit_of: Vec<u8>,
    /// What to add to a PE's number for the neighbor at a port.
    toward: [u32; RAMP + 1],
    ramp_latency: u32,
}

impl Machine<'_> {
    /// Whether the program can be packed.
    pub(super) fn can_be_packed(&self) -> bool {
        build::is_plain(self)
    }

    /// Runs all cycles from `now` on, if the program can be packed, and returns the cycle after the last one.
    pub(super) fn run_packed(&mut self, now: u32) -> Result<Option<u32>, SimError> {
        let Some(mut packed) = Packed::new(self, now) else { return Ok(None) };
        // Only an unpacked run needs them.
        self.tables.queues.empty();
        (self.arriving, self.pending) = (Vec::new(), Vec::new());
        let mut at = now;
        let mut active = true;
        while active && at < LAST_CYCLE {
            active = false;
            blocks::sweep(self.program.grid, at, |cycle, pes| {
                let cycle = Cycle::new(cycle, packed.ramp_latency);
                for pe in pes {
                    active |= packed.visit(self, pe, &cycle);
                }
                Ok::<(), SimError>(())
            })?;
            at += blocks::CYCLES;
            active = active || packed.will_wake(self, at);
        }
        packed.unpack(self)?;
        Ok(Some(at))
    }
}

#[cfg(test)]
mod tests {
    use unisono_algorithms::{Case, Params, resolve};
    use unisono_collective::{Collective, Dtype, Kind, Operator};
    use unisono_lower::wafer::prove_and_lower;
    use unisono_machine::{Grid, Wafer};

    use super::super::{Options, machine::Machine};

    fn packs(kind: Kind, name: &str, options: &Options) -> bool {
        let preset = unisono_machine::Machine::preset("wse2").unwrap();
        let grid = Grid::new(9, 12);
        let c = Collective::new(kind, grid.count() as u32, 64, 0, Operator::Sum, Dtype::F32).unwrap();
        let case = Case::on_grid(c, grid, 5.0);
        let (algorithm, params) = resolve(name, &case, &Params::new()).unwrap();
        let placed = algorithm.build(&case, &params).unwrap();
        let program = prove_and_lower(&placed, preset.get::<Wafer>().unwrap()).unwrap();
        Machine::new(&program, options).unwrap().can_be_packed()
    }

    #[test]
    fn trees_over_a_grid_can_be_packed() {
        for kind in [Kind::Reduce, Kind::Allreduce] {
            for name in ["kd-tree", "slack-tree", "quad-chain", "quad-two-phase", "xy-yx"] {
                assert!(packs(kind, name, &Options::default()), "{name}");
            }
        }
    }

    #[test]
    fn deep_queues_and_long_ramps_cannot_be_counted() {
        assert!(packs(Kind::Reduce, "kd-tree", &Options { queue_depth: 11, ..Options::default() }));
        assert!(!packs(Kind::Reduce, "kd-tree", &Options { queue_depth: 12, ..Options::default() }));
        assert!(packs(Kind::Reduce, "kd-tree", &Options { ramp_latency: 6, ..Options::default() }));
        assert!(!packs(Kind::Reduce, "kd-tree", &Options { ramp_latency: 7, ..Options::default() }));
    }
}
