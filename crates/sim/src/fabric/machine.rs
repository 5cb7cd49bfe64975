//! The clock: which PEs are visited in which cycle.
//!
//! PEs are grouped into tiles of whole rows, each with its own list of visits. All tiles run cycle by cycle together
//! while wavelets may cross between them; while none can for some cycles (a reduce along all rows at once), each tile
//! runs these cycles on its own, so that its PEs stay in the cache.

use unisono_collective::{Dtype, Operator};
use unisono_lower::wafer::{End, Port, WaferProgram};

use super::{
    Options, Run,
    data::Data,
    error::SimError,
    pe::Thread,
    queue::LAST_CYCLE,
    tables::{NONE, RAMP, Tables},
    trace::TraceEvent,
};

/// The most memory that outputs and scratch may take together, in wavelets.
const MOST_WAVELETS: u64 = 1 << 30;

/// PEs of a tile, about: their state fits a core's own cache.
const TILE_PES: u32 = 1024;

/// Cycles ahead for which a visit can be noted; farther ones are noted again on the way.
const HORIZON: u32 = 64;

/// Later cycles in which the PE under visit wants to be visited: bit `n` is `n` cycles ahead.
#[derive(Default)]
pub(super) struct Wakes(u64);

impl Wakes {
    /// In the next cycle.
    #[inline]
    pub fn next(&mut self) {
        self.0 |= 2;
    }

    /// In a later cycle, as far ahead as can be noted.
    #[inline]
    pub fn at(&mut self, now: u32, cycle: u32) {
        self.0 |= 1 << (cycle - now).clamp(1, HORIZON - 1);
    }
}

/// The visits of one tile.
struct Tile {
    /// PEs by cycle modulo the horizon.
    buckets: Vec<Vec<u32>>,
    /// Bit `n`: bucket `n` holds something.
    filled: u64,
}

pub struct Machine<'a> {
    pub(super) program: &'a WaferProgram,
    pub(super) options: &'a Options,
    pub(super) tables: Tables,
    pub(super) data: Data,
    pub(super) threads: Vec<Thread>,
    pub(super) pe_threads: Vec<u32>,
    /// The thread that comes first in a PE's next turn, and the router row likewise.
    pub(super) thread_turn: Vec<u8>,
    pub(super) router_turn: Vec<u8>,
    /// Output and scratch memory, PE after PE; where each PE's starts.
    pub(super) memory: Vec<u32>,
    pub(super) out_start: Vec<usize>,
    pub(super) tmp_start: Vec<usize>,
    pub(super) op_done: Vec<bool>,
    pub(super) finish: Vec<u32>,
    /// Starts differ or no-ops are inserted.
    pub(super) noisy: bool,
    tiles: Vec<Tile>,
    /// The tile of each PE; looked up, for a division would cost more than the rest of noting a visit.
    tile_of: Vec<u32>,
    /// Bit `n`: the PE stands in bucket `n` of its tile.
    noted: Vec<u64>,
    /// Operations that send over the edge of a tile, by thread: `(thread, operation)`, sorted.
    crossing: Vec<(u32, u32)>,
    /// One of them has begun, so wavelets may cross from now on.
    crossed: bool,
    pub(super) cycle: u32,
    pub(super) hops: u64,
    pub(super) events: u64,
    pub(super) stalls: u64,
    pub(super) unfinished: usize,
    pub(super) trace: Vec<TraceEvent>,
    pub(super) traced: Vec<bool>,
}

impl<'a> Machine<'a> {
    pub fn new(program: &'a WaferProgram, options: &'a Options) -> Result<Self, SimError> {
        check(program, options)?;
        let c = program.collective;
        let pes = program.pe_count();
        let (mut out_start, mut tmp_start, mut at) = (Vec::with_capacity(pes), Vec::with_capacity(pes), 0u64);
        for pe in 0..pes {
            out_start.push(at as usize);
            at += u64::from(if (pe as u32) < c.ranks { c.output_len(pe as u32) } else { 0 });
            tmp_start.push(at as usize);
            at += u64::from(program.scratch_elements(pe));
        }
        if at > MOST_WAVELETS {
            return Err(SimError::Unsupported {
                what: "the memory of all outputs and scratch",
                found: format!("{} bytes", 4 * at),
                accepted: "at most 4 GiB",
            });
        }
        let tables = Tables::new(program, options.queue_depth, options.ramp_latency)?;
        let mut threads = Vec::new();
        let mut pe_threads = vec![0];
        for pe in 0..pes {
            threads.extend(program.threads(pe).map(|t| Thread::new(program, &tables.op_places, t)));
            pe_threads.push(threads.len() as u32);
        }
        let mut traced = vec![false; if options.trace.pes.is_empty() { 0 } else { pes }];
        for &pe in options.trace.pes.iter().filter(|&&pe| (pe as usize) < pes) {
            traced[pe as usize] = true;
        }
        let rows = (TILE_PES / program.grid.cols).max(1);
        let tile_pes = rows * program.grid.cols;
        let tile = || Tile { buckets: vec![Vec::new(); HORIZON as usize], filled: 0 };
        Ok(Self {
            program,
            options,
            data: Data::new(c),
            unfinished: threads.iter().filter(|t| !t.is_done()).count(),
            threads,
            pe_threads,
            thread_turn: vec![0; pes],
            router_turn: vec![0; pes],
            memory: vec![0; at as usize],
            out_start,
            tmp_start,
            op_done: vec![false; program.op_count()],
            finish: vec![0; pes],
            noisy: options.noop_probability > 0.0 || !options.start.is_empty(),
            tiles: (0..program.grid.rows.div_ceil(rows)).map(|_| tile()).collect(),
            tile_of: (0..pes as u32).map(|pe| pe / tile_pes).collect(),
            noted: vec![0; pes],
            crossing: crossing(program, &tables, rows),
            crossed: false,
            tables,
            cycle: 0,
            hops: 0,
            events: 0,
            stalls: 0,
            trace: Vec::new(),
            traced,
        })
    }

    /// Visits a PE in the next cycle.
    #[inline]
    pub(super) fn wake_next(&mut self, pe: u32) {
        let slot = (self.cycle + 1) % HORIZON;
        if self.noted[pe as usize] >> slot & 1 == 0 {
            self.note(pe, slot);
        }
    }

    #[inline]
    fn note(&mut self, pe: u32, slot: u32) {
        self.noted[pe as usize] |= 1 << slot;
        let tile = &mut self.tiles[self.tile_of[pe as usize] as usize];
        tile.buckets[slot as usize].push(pe);
        tile.filled |= 1 << slot;
    }

    pub fn run(mut self) -> Result<Run, SimError> {
        for pe in 0..self.program.pe_count() as u32 {
            if !self.program.threads(pe as usize).is_empty() {
                self.note(pe, self.start(pe as usize).min(HORIZON - 1));
            }
        }
        let mut now = 0;
        while self.tiles.iter().any(|t| t.filled != 0) {
            let window = self.window();
            for tile in 0..self.tiles.len() {
                self.run_tile(tile, now, window)?;
            }
            now += window;
            if now >= LAST_CYCLE {
                return Err(SimError::Unsupported {
                    what: "the run",
                    found: format!("longer than {LAST_CYCLE} cycles"),
                    accepted: "shorter ones",
                });
            }
        }
        self.cycle = now;
        self.end()
    }

    /// Cycles for which no wavelet can cross between tiles, at least 1.
    fn window(&mut self) -> u32 {
        if self.crossed {
            return 1;
        }
        let before = |&(thread, op): &(u32, u32)| {
            let t = &self.threads[thread as usize];
            if t.op() >= op as usize { 0 } else { t.elements_before(self.program, op as usize) }
        };
        let free = self.crossing.iter().map(before).min();
        self.crossed = free == Some(0);
        free.map_or(1 << 16, |f| f.clamp(1, 1 << 16) as u32)
    }

    /// Runs the visits of a tile in the cycles `from .. from + window`.
    fn run_tile(&mut self, tile: usize, from: u32, window: u32) -> Result<(), SimError> {
        let mut at = from;
        while at < from + window && self.tiles[tile].filled != 0 {
            // The next bucket that holds something, counted round from this cycle.
            let ahead = self.tiles[tile].filled.rotate_right(at % HORIZON).trailing_zeros();
            at += ahead;
            if at >= from + window {
                break;
            }
            self.cycle = at;
            let slot = (at % HORIZON) as usize;
            let mut visits = std::mem::take(&mut self.tiles[tile].buckets[slot]);
            self.tiles[tile].filled &= !(1 << slot);
            for &pe in &visits {
                self.noted[pe as usize] &= !(1 << slot);
                let mut wakes = Wakes::default();
                self.visit_router(pe, &mut wakes)?;
                self.visit_pe(pe, &mut wakes);
                let mut new = wakes.0.rotate_left(slot as u32) & !self.noted[pe as usize];
                while new != 0 {
                    self.note(pe, new.trailing_zeros());
                    new &= new - 1;
                }
            }
            visits.clear();
            self.tiles[tile].buckets[slot] = visits;
            at += 1;
        }
        Ok(())
    }

    pub(super) fn start(&self, pe: usize) -> u32 {
        self.options.start.get(pe).copied().unwrap_or(0)
    }

    fn end(self) -> Result<Run, SimError> {
        let cycles = self.finish.iter().copied().max().unwrap_or(0);
        if self.unfinished > 0 {
            return Err(self.deadlock());
        }
        self.check_left_over()?;
        let c = self.program.collective;
        let output = |rank: u32| {
            let start = self.out_start[rank as usize];
            &self.memory[start..start + c.output_len(rank) as usize]
        };
        let mismatch = self.data.check(output);
        let mut trace = self.trace;
        trace.sort_by_key(|e| (e.pe, e.thread, e.start));
        Ok(Run {
            cycles: u64::from(cycles),
            events: self.events,
            hops: self.hops,
            stalls: self.stalls,
            result_correct: mismatch.is_none(),
            mismatch,
            finish: self.finish,
            trace,
        })
    }

    fn check_left_over(&self) -> Result<(), SimError> {
        let mut found = None;
        let mut count = 0;
        for pe in 0..self.program.pe_count() {
            for row in &self.tables.rows[self.tables.pe_rows[pe] as usize..self.tables.pe_rows[pe + 1] as usize] {
                let pe_side = std::iter::once(row.outputs[RAMP]);
                for queue in row.inputs.into_iter().chain(pe_side).filter(|&q| q != NONE) {
                    let left = self.tables.queues.len(queue) as u64;
                    count += left;
                    if left > 0 {
                        found.get_or_insert((pe as u32, row.color));
                    }
                }
            }
        }
        let Some((pe, color)) = found else { return Ok(()) };
        let (row, col) = self.program.grid.row_col(pe);
        Err(SimError::LeftOver { count, row, col, color })
    }
}

fn check(program: &WaferProgram, options: &Options) -> Result<(), SimError> {
    let c = program.collective;
    let bad = |what, found: String, accepted| Err(SimError::Unsupported { what, found, accepted });
    if !matches!(c.dtype, Dtype::F32 | Dtype::I32) || c.operator == Operator::Ordered {
        let found = format!("{} {}", c.dtype, c.operator);
        return bad("the datatype or operator", found, "f32 and i32, any operator but ordered");
    }
    if options.queue_depth == 0 || options.ramp_latency >= HORIZON - 4 {
        let found = format!("{} or {}", options.queue_depth, options.ramp_latency);
        return bad("the queue depth or ramp latency", found, "a depth of 1 or more, a latency below 60 cycles");
    }
    if let Some(op) = (0..program.op_count()).find(|&o| program.op(o).chunk > 1) {
        return bad("the chunk of an operation", program.op(op).chunk.to_string(), "chunks of one element");
    }
    Ok(())
}

/// Operations that send on a color with a link over the edge of a tile somewhere.
fn crossing(program: &WaferProgram, tables: &Tables, rows: u32) -> Vec<(u32, u32)> {
    let mut colors = [false; 256];
    for pe in 0..program.pe_count() {
        let row = program.grid.row_col(pe as u32).0;
        for r in &tables.rows[tables.pe_rows[pe] as usize..tables.pe_rows[pe + 1] as usize] {
            let over = |port: Port, edge: u32| r.outputs[port.index()] != NONE && row % rows == edge;
            if over(Port::North, 0) || over(Port::South, rows - 1) {
                colors[usize::from(r.color)] = true;
            }
        }
    }
    let mut crossing = Vec::new();
    for pe in 0..program.pe_count() {
        for thread in program.threads(pe) {
            let sends = |op: &usize| {
                program.sinks(*op).iter().any(|e| if let End::Fabric(c) = e { colors[usize::from(*c)] } else { false })
            };
            // The first one closes the window for good.
            crossing.extend(program.thread_ops(thread).find(sends).map(|op| (thread as u32, op as u32)));
        }
    }
    crossing
}
