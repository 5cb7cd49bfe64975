//! The clock: the PEs that are visited in each cycle. A *row* of a router is one of its colors
//! ([`super::tables::Row`]).
//!
//! PEs are grouped into tiles of whole rows, each with its own list of visits. All tiles run cycle by cycle together
//! while wavelets may cross between them. While no wavelet can cross for some cycles (as in a reduce along all rows at
//! once), each tile runs these cycles separately, so that its PEs stay in the cache. Among tiles that are alike, only
//! the first one runs ([`super::alike`]).

use std::{cmp::Reverse, collections::BinaryHeap, ops::Range};

use unisono_base::{interrupt::poll, limits, narrow, rounded};
use unisono_collective::{Dtype, Operator};
use unisono_lower::wafer::WaferProgram;

use super::{
    Options, Run,
    alike::Crossing,
    blocks::Trial,
    error::SimError,
    moves::{Log, sources},
    pe::Thread,
    queue::LAST_CYCLE,
    steady::Steady,
    tables::{NONE, RAMP, Tables, UNDONE},
    trace::TraceEvent,
    values::Values,
};

/// The approximate number of PEs in a tile. Their state fits in a core's own cache. Of small tiles, more are alike.
const TILE_PES: u32 = 128;

/// The number of cycles in advance for which a visit can be noted. A visit further ahead is noted for an earlier cycle,
/// and then again.
const HORIZON: u32 = 64;

/// Number of cycles in advance for which a wavelet's row is noted in `Clock::arriving`.
pub(super) const SOON: u32 = 8;

/// Future cycles in which the visited PE must be visited again: bit `n` means in `n` cycles.
#[derive(Default)]
pub(super) struct Wakes(u64);

impl Wakes {
    /// Wakes the PE in the next cycle.
    #[inline]
    pub fn next(&mut self) {
        self.0 |= 2;
    }

    /// Wakes the PE in the given cycle. If this cycle cannot be noted, wakes the PE in the latest earlier cycle that
    /// can.
    #[inline]
    pub fn at(&mut self, now: u32, cycle: u32) {
        self.0 |= 1 << (cycle - now).clamp(1, HORIZON - 1);
    }

    /// Returns the wakes with one bit per cycle modulo the horizon. `slot` is the bit of the present cycle.
    #[inline]
    pub fn slots(&self, slot: u32) -> u64 {
        self.0.rotate_left(slot)
    }
}

/// Returns the bit of a cycle in `Clock::noted`.
pub(super) fn slot_of(cycle: u32) -> u32 {
    cycle % HORIZON
}

/// Visits of one tile.
struct Tile {
    pes: Range<u32>,
    /// PEs to visit, by cycle modulo the horizon.
    buckets: Vec<Vec<u32>>,
    /// Bit `n` is set if bucket `n` is not empty.
    filled: u64,
    /// The times at which sleepers wake by themselves, as `(cycle, PE)`.
    alarms: BinaryHeap<Reverse<(u32, u32)>>,
}

impl Tile {
    fn is_idle(&self) -> bool {
        self.filled == 0 && self.alarms.is_empty()
    }

    /// Returns the first cycle, at or after `at`, with a visit; `u32::MAX` if there is none.
    fn next(&self, at: u32) -> u32 {
        let noted = if self.filled == 0 {
            u32::MAX
        } else {
            // The next bucket that is not empty, counted cyclically from `at`.
            at + self.filled.rotate_right(at % HORIZON).trailing_zeros()
        };
        self.alarms.peek().map_or(noted, |Reverse((cycle, _))| noted.min(*cycle))
    }
}

/// Event counts of a PE and its router.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub events: u64,
    pub hops: u64,
    pub stalls: u64,
    /// Control wavelets that the router moved.
    pub controls: u32,
    /// Cycle of the last move or operation.
    pub last: u32,
}

pub struct Clock<'a> {
    pub(super) program: &'a WaferProgram,
    pub(super) options: &'a Options,
    pub(super) tables: Tables,
    pub(super) threads: Vec<Thread>,
    pub(super) pe_threads: Vec<u32>,
    /// Index of the PE's thread that its next visit tries first; `router_turn` is the index of the router row that is
    /// tried first.
    pub(super) thread_turn: Vec<u8>,
    pub(super) router_turn: Vec<u8>,
    /// One bit for each row of a router, set if a wavelet waits in the row.
    pub(super) pending: Vec<u64>,
    /// One bit for each row of a router, by cycle modulo [`SOON`]. From this cycle on, a wavelet of the row may move.
    pub(super) arriving: Vec<[u64; SOON as usize]>,
    /// True if wavelets on a ramp may arrive later than can be noted. Their rows then become pending too early.
    pub(super) arrive_late: bool,
    pub(super) router_log: Log,
    pub(super) ramp_log: Log,
    /// First cycle of each operation, and the cycle after its last one.
    pub(super) op_span: Vec<(u32, u32)>,
    pub(super) finish: Vec<u32>,
    /// True if PEs start at different times or no-ops are inserted.
    pub(super) noisy: bool,
    tiles: Vec<Tile>,
    /// The tile of each PE. It is stored in a table, because a division would take longer than all other work of noting
    /// a visit.
    tile_of: Vec<u32>,
    /// Bit `n` is set if the PE is in bucket `n` of its tile. In a run in blocks, it is set if the PE must be visited
    /// in the cycle that is `n` modulo the horizon.
    pub(super) noted: Vec<u64>,
    /// True if the run continues in blocks, so that tiles list no visits.
    in_blocks: bool,
    pub(super) trial: Trial,
    /// True if the run is packed from the start.
    pub packs_at_once: bool,
    pub(super) crossing: Crossing,
    /// True after an operation in `crossing` has begun. From then on, wavelets may cross between tiles.
    crossed: bool,
    pub(super) cycle: u32,
    pub(super) tallies: Vec<Tally>,
    pub steady: Steady,
    pub(super) unfinished: usize,
    pub(super) trace: Vec<TraceEvent>,
    pub(super) traced: Vec<bool>,
}

impl<'a> Clock<'a> {
    pub fn new(program: &'a WaferProgram, options: &'a Options) -> Result<Self, SimError> {
        check(program, options)?;
        let pes = program.pe_count();
        let tables = Tables::new(program, options.queue_depth, options.ramp_latency)?;
        let mut threads = Vec::new();
        let mut pe_threads = vec![0];
        for pe in 0..pes {
            threads.extend(program.threads(pe).map(|t| Thread::new(program, &tables.op_places, t)));
            pe_threads.push(narrow::<u32>(threads.len()));
        }
        let mut traced = vec![false; if options.trace.pes.is_empty() { 0 } else { pes }];
        for &pe in options.trace.pes.iter().filter(|&&pe| (pe as usize) < pes) {
            traced[pe as usize] = true;
        }
        let rows = (TILE_PES / program.grid.cols).max(1);
        let tile_pes = rows * program.grid.cols;
        let tile = |n: u32| Tile {
            pes: n * tile_pes..((n + 1) * tile_pes).min(narrow::<u32>(pes)),
            buckets: vec![Vec::new(); HORIZON as usize],
            filled: 0,
            alarms: BinaryHeap::new(),
        };
        let mut machine = Self {
            program,
            options,
            unfinished: threads.iter().filter(|t| !t.is_done()).count(),
            threads,
            pe_threads,
            thread_turn: vec![0; pes],
            router_turn: vec![0; pes],
            pending: vec![0; pes],
            arriving: vec![[0; SOON as usize]; pes],
            arrive_late: options.ramp_latency.saturating_add(2) >= SOON,
            router_log: Log::new(tables.rows.len()),
            ramp_log: Log::new(tables.queues.count()),
            op_span: vec![UNDONE; program.op_count()],
            finish: vec![0; pes],
            noisy: options.noop_probability > 0.0 || !options.start.is_empty(),
            tiles: (0..program.grid.rows.div_ceil(rows)).map(tile).collect(),
            tile_of: (0..narrow::<u32>(pes)).map(|pe| pe / tile_pes).collect(),
            noted: vec![0; pes],
            in_blocks: false,
            trial: Trial::default(),
            packs_at_once: false,
            crossing: Crossing::default(),
            crossed: false,
            tables,
            cycle: 0,
            tallies: vec![Tally::default(); pes],
            steady: Steady::default(),
            trace: Vec::new(),
            traced,
        };
        machine.packs_at_once = machine.will_be_restless();
        // A PE that idles at random never repeats a state.
        let skips = options.noop_probability <= 0.0 && !machine.packs_at_once;
        let period = if skips { options.period } else { 0 };
        machine.steady = Steady::new(period, &machine);
        let can_copy = period > 0 && options.blocks_from > 0 && !machine.noisy && machine.traced.is_empty();
        machine.crossing = Crossing::new(&machine, rows, can_copy);
        Ok(machine)
    }

    /// Schedules a visit of a PE in the next cycle.
    #[inline]
    pub(super) fn wake_next(&mut self, pe: u32) {
        let slot = (self.cycle + 1) % HORIZON;
        if self.noted[pe as usize] >> slot & 1 == 0 {
            self.note(pe, slot);
        }
    }

    #[inline]
    pub(super) fn note(&mut self, pe: u32, slot: u32) {
        self.noted[pe as usize] |= 1 << slot;
        if self.in_blocks {
            return;
        }
        let tile = &mut self.tiles[self.tile_of[pe as usize] as usize];
        tile.buckets[slot as usize].push(pe);
        tile.filled |= 1 << slot;
    }

    /// Schedules a visit of a PE in the given cycle. If this cycle cannot be noted, the visit is in the latest earlier
    /// cycle that can.
    pub(super) fn note_at(&mut self, pe: u32, cycle: u32) {
        let slot = (self.cycle + (cycle - self.cycle).min(HORIZON - 1)) % HORIZON;
        if self.noted[pe as usize] >> slot & 1 == 0 {
            self.note(pe, slot);
        }
    }

    /// Adds a PE to the visits of the current cycle.
    pub(super) fn join(&mut self, pe: u32, visits: &mut Vec<u32>) {
        let bit = 1 << (self.cycle % HORIZON);
        if self.noted[pe as usize] & bit == 0 {
            self.noted[pe as usize] |= bit;
            visits.push(pe);
        }
    }

    /// Schedules the wake of a sleeper in a cycle that may be beyond the horizon.
    pub(super) fn alarm(&mut self, pe: u32, cycle: u32) {
        self.tiles[self.tile_of[pe as usize] as usize].alarms.push(Reverse((cycle, pe)));
    }

    pub fn run(mut self) -> Result<Run, SimError> {
        for pe in 0..narrow::<u32>(self.program.pe_count()) {
            if !self.program.threads(pe as usize).is_empty() && self.crossing.runs(pe) {
                self.note(pe, self.start(pe as usize).min(HORIZON - 1));
            }
        }
        let mut now = 0;
        if self.options.blocks_from == 0 || self.packs_at_once {
            now = self.run_blocks(now)?;
        }
        while !self.tiles.iter().all(Tile::is_idle) && now < LAST_CYCLE {
            let window = self.window(now)?;
            for tile in 0..self.tiles.len() {
                self.run_tile(tile, now, window)?;
            }
            now += window;
            if self.crossed && self.is_restless(now) {
                now = self.run_blocks(now)?;
                break;
            }
        }
        if now >= LAST_CYCLE || self.steady.anyone_sleeps() {
            return Err(SimError::Unsupported {
                what: "the run",
                found: format!("longer than {LAST_CYCLE} cycles"),
                accepted: "shorter ones",
            });
        }
        self.copy_tiles(now)?;
        self.end()
    }

    /// Returns a number of cycles in which no wavelet can cross between tiles; 1 if a wavelet can cross in the next
    /// cycle.
    fn window(&mut self, now: u32) -> Result<u32, SimError> {
        if self.crossed {
            return Ok(1);
        }
        let before = |&(pe, thread, op): &(u32, u32, u32)| {
            let t = &self.threads[thread as usize];
            if t.op() >= op as usize {
                return 0;
            }
            let ahead = self.steady.ahead(pe, thread as usize, now, &self.threads);
            t.elements_before(self.program, op as usize).saturating_sub(ahead)
        };
        let free = self.crossing.first.iter().map(before).min();
        if free == Some(0) {
            self.crossed = true;
            self.copy_tiles(now)?;
            self.join_tiles();
        }
        Ok(free.map_or(1 << 16, |f| f.clamp(1, 1 << 16) as u32))
    }

    pub(super) fn leave_tiles(&mut self) {
        self.in_blocks = true;
        self.tiles.clear();
    }

    fn join_tiles(&mut self) {
        let mut rest = self.tiles.split_off(1.min(self.tiles.len()));
        let Some(all) = self.tiles.first_mut() else { return };
        for tile in &mut rest {
            for (to, from) in all.buckets.iter_mut().zip(&mut tile.buckets) {
                to.append(from);
            }
            all.filled |= tile.filled;
            all.alarms.append(&mut tile.alarms);
        }
        all.pes = 0..narrow::<u32>(self.tile_of.len());
        self.tile_of.fill(0);
    }

    /// Runs the visits of a tile in the cycles `from .. from + window`.
    #[expect(clippy::cast_possible_truncation, reason = "the hot loop; slots are a few")]
    fn run_tile(&mut self, tile: usize, from: u32, window: u32) -> Result<(), SimError> {
        let mut at = from;
        loop {
            at = self.tiles[tile].next(at);
            if at >= from + window {
                return Ok(());
            }
            self.cycle = at;
            let slot = (at % HORIZON) as usize;
            let mut visits = std::mem::take(&mut self.tiles[tile].buckets[slot]);
            self.tiles[tile].filled &= !(1 << slot);
            while let Some(&Reverse((cycle, pe))) = self.tiles[tile].alarms.peek()
                && cycle == at
            {
                self.tiles[tile].alarms.pop();
                if self.steady.sleeps(pe) && self.steady.wakes_at(pe, at) {
                    self.join(pe, &mut visits);
                }
            }
            let pes = self.tiles[tile].pes.clone();
            if visits.len() * 4 > pes.len() {
                // Many PEs are visited in the order of memory. All orders give the same result.
                visits.clear();
                visits.extend(pes.filter(|&pe| self.noted[pe as usize] >> slot & 1 == 1));
            }
            let mut n = 0;
            while n < visits.len() {
                self.look(visits[n], &mut visits)?;
                n += 1;
            }
            self.trial.visits += visits.len() as u64;
            for &pe in &visits {
                poll();
                self.noted[pe as usize] &= !(1 << slot);
                if self.steady.sleeps(pe) {
                    continue;
                }
                let mut wakes = Wakes::default();
                let still = self.steady.still(pe);
                if still != 0 {
                    self.feed(pe, still);
                }
                self.visit_router(pe, still, &mut wakes)?;
                self.visit_pe(pe, &mut wakes);
                if still != 0 {
                    self.compare(pe, still, &mut wakes);
                }
                let mut new = wakes.slots(slot as u32) & !self.noted[pe as usize];
                while new != 0 {
                    self.note(pe, new.trailing_zeros());
                    new &= new - 1;
                }
            }
            visits.clear();
            self.tiles[tile].buckets[slot] = visits;
            at += 1;
        }
    }

    pub(super) fn start(&self, pe: usize) -> u32 {
        self.options.start_of(narrow(pe))
    }

    fn end(self) -> Result<Run, SimError> {
        let cycles = self.finish.iter().copied().max().unwrap_or(0);
        if self.unfinished > 0 {
            return Err(self.deadlock());
        }
        self.check_left_over()?;
        let mut trace = self.trace;
        trace.sort_by_key(|e| (e.pe, e.thread, e.start));
        let sum = |of: fn(&Tally) -> u64| self.tallies.iter().map(of).sum();
        let (events, hops, stalls) = (sum(|t| t.events), sum(|t| t.hops), sum(|t| t.stalls));
        let came = sources(&self.tables, self.router_log, self.ramp_log);
        let mut values = Values::new(self.program, &self.tables, &self.op_span, came)?;
        let mismatch = values.mismatch()?;
        Ok(Run {
            cycles: u64::from(cycles),
            events,
            hops,
            stalls,
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
                        found.get_or_insert((narrow::<u32>(pe), row.color));
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
    if !matches!(c.dtype, Dtype::F32 | Dtype::I32 | Dtype::I16) || c.operator == Operator::Ordered {
        let found = format!("{} {}", c.dtype, c.operator);
        return bad("the datatype or operator", found, "f32, i32 and i16, any operator but ordered");
    }
    if options.queue_depth == 0 {
        return bad("the queue depth", options.queue_depth.to_string(), "a depth of 1 or more");
    }
    if options.ramp_latency >= HORIZON - 4 {
        return bad("the ramp latency", options.ramp_latency.to_string(), "a latency below 60 cycles");
    }
    if options.period > 16 {
        return bad("the period", options.period.to_string(), "at most 16 cycles");
    }
    let pes = 0..program.pe_count();
    // Outputs and scratch memory are allocated as a whole. Inputs are computed from a table of all elements.
    let output = |pe: usize| if narrow::<u32>(pe) < c.ranks { c.output_len(narrow::<u32>(pe)) } else { 0 };
    let elements: u128 = pes.clone().map(|pe| u128::from(output(pe)) + u128::from(program.scratch_elements(pe))).sum();
    let inputs = (0..c.ranks).map(|rank| c.input_len(rank)).max().unwrap_or(0);
    let ops = program.op_count() as u128;
    let moved: u128 = (0..program.op_count()).map(|op| u128::from(program.op(op).len)).sum();
    let bytes = 4 * elements + 8 * u128::from(inputs) + BYTES_A_PE * pes.len() as u128 + BYTES_AN_OP * ops;
    // Each operation begins and ends in the run, and its elements are computed after the run. A PE that idles in a
    // fraction p of its cycles is visited 1 / (1 - p) times for every element.
    let p = options.noop_probability;
    let each = if p > 0.0 { STEPS_A_VISIT * u128::from(rounded(1.0 / (1.0 - p)).max(1)) } else { 1 };
    let visits = each.saturating_mul(moved);
    limits::admit("the simulation of the wafer", bytes, visits.saturating_add(STEPS_AN_OP * ops + u128::from(inputs)))?;
    Ok(())
}

/// Estimates: the bytes of a PE with its router and queues, the bytes and steps of an operation, and the steps of a
/// visit of a PE.
const BYTES_A_PE: u128 = 600;
const BYTES_AN_OP: u128 = 160;
const STEPS_AN_OP: u128 = 2000;
const STEPS_A_VISIT: u128 = 60;
