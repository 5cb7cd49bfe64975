//! The clock: which PEs are visited in which cycle.

use unisono_collective::{Dtype, Operator};
use unisono_lower::wafer::WaferProgram;

use super::{
    Options, Run, data::Data, error::SimError, pe::Thread, queue::LAST_CYCLE, tables::Tables, trace::TraceEvent,
};

/// The most memory that outputs and scratch may take together, in wavelets.
const MOST_WAVELETS: u64 = 1 << 30;

pub struct Machine<'a> {
    pub(super) program: &'a WaferProgram,
    pub(super) options: &'a Options,
    pub(super) tables: Tables,
    pub(super) data: Data,
    pub(super) threads: Vec<Thread>,
    /// The thread that comes first in a PE's next turn, and the router row likewise.
    pub(super) thread_turn: Vec<u8>,
    pub(super) router_turn: Vec<u8>,
    /// Output and scratch memory, PE after PE; where each PE's starts.
    pub(super) memory: Vec<u32>,
    pub(super) out_start: Vec<usize>,
    pub(super) tmp_start: Vec<usize>,
    pub(super) op_done: Vec<bool>,
    pub(super) finish: Vec<u32>,
    /// PEs to visit, by cycle modulo the number of buckets, and which buckets a PE is in.
    buckets: Vec<Vec<u32>>,
    in_bucket: Vec<u64>,
    pub(super) cycle: u32,
    pub(super) hops: u64,
    pub(super) events: u64,
    pub(super) stalls: u64,
    pub(super) unfinished: usize,
    pub(super) trace: Vec<TraceEvent>,
    pub(super) traced: Vec<bool>,
}

/// Cycles ahead for which a visit can be noted; farther ones are noted again on the way.
const HORIZON: u32 = 64;

impl<'a> Machine<'a> {
    pub fn new(program: &'a WaferProgram, options: &'a Options) -> Result<Self, SimError> {
        let c = program.collective;
        let bad = |what, found: String, accepted| Err(SimError::Unsupported { what, found, accepted });
        if !matches!(c.dtype, Dtype::F32 | Dtype::I32) || c.operator == Operator::Ordered {
            return bad(
                "the datatype or operator",
                format!("{} {}", c.dtype, c.operator),
                "f32 and i32, any operator but ordered",
            );
        }
        if options.queue_depth == 0 || options.ramp_latency >= HORIZON - 4 {
            return bad(
                "the queue depth or ramp latency",
                format!("{} or {}", options.queue_depth, options.ramp_latency),
                "a depth of 1 or more, a latency below 60 cycles",
            );
        }
        if let Some(op) = (0..program.op_count()).find(|&o| program.op(o).chunk > 1) {
            return bad("the chunk of an operation", program.op(op).chunk.to_string(), "chunks of one element");
        }
        let pes = program.pe_count();
        let (mut out_start, mut tmp_start, mut at) = (Vec::with_capacity(pes), Vec::with_capacity(pes), 0u64);
        for pe in 0..pes {
            out_start.push(at as usize);
            at += u64::from(if (pe as u32) < c.ranks { c.output_len(pe as u32) } else { 0 });
            tmp_start.push(at as usize);
            at += u64::from(program.scratch_elements(pe));
        }
        if at > MOST_WAVELETS {
            return bad("the memory of all outputs and scratch", format!("{} bytes", 4 * at), "at most 4 GiB");
        }
        let threads: Vec<Thread> =
            (0..pes).flat_map(|pe| program.threads(pe)).map(|t| Thread::new(program, t)).collect();
        let mut traced = vec![false; if options.trace.pes.is_empty() { 0 } else { pes }];
        for &pe in options.trace.pes.iter().filter(|&&pe| (pe as usize) < pes) {
            traced[pe as usize] = true;
        }
        Ok(Self {
            program,
            options,
            tables: Tables::new(program, options.queue_depth, options.ramp_latency)?,
            data: Data::new(c),
            unfinished: threads.iter().filter(|t| !t.is_done()).count(),
            threads,
            thread_turn: vec![0; pes],
            router_turn: vec![0; pes],
            memory: vec![0; at as usize],
            out_start,
            tmp_start,
            op_done: vec![false; program.op_count()],
            finish: vec![0; pes],
            buckets: vec![Vec::new(); HORIZON as usize],
            in_bucket: vec![0; pes],
            cycle: 0,
            hops: 0,
            events: 0,
            stalls: 0,
            trace: Vec::new(),
            traced,
        })
    }

    /// Visits a PE in a later cycle, as far ahead as can be noted.
    #[inline]
    pub(super) fn wake(&mut self, pe: u32, cycle: u32) {
        let slot = cycle.min(self.cycle + HORIZON - 1) % HORIZON;
        let noted = &mut self.in_bucket[pe as usize];
        if *noted >> slot & 1 == 0 {
            *noted |= 1 << slot;
            self.buckets[slot as usize].push(pe);
        }
    }

    pub fn run(mut self) -> Result<Run, SimError> {
        for pe in 0..self.program.pe_count() {
            if !self.program.threads(pe).is_empty() {
                self.wake(pe as u32, self.start(pe));
            }
        }
        let mut idle = 0;
        // Nothing is noted farther ahead than the horizon, so that many empty cycles in a row are the end.
        while idle < HORIZON {
            let slot = (self.cycle % HORIZON) as usize;
            let mut visits = std::mem::take(&mut self.buckets[slot]);
            idle = if visits.is_empty() { idle + 1 } else { 0 };
            for &pe in &visits {
                self.in_bucket[pe as usize] &= !(1 << slot);
                self.visit_router(pe)?;
                self.visit_pe(pe);
            }
            visits.clear();
            if self.buckets[slot].is_empty() {
                self.buckets[slot] = visits;
            }
            if self.cycle >= LAST_CYCLE {
                return Err(SimError::Unsupported {
                    what: "the run",
                    found: format!("longer than {LAST_CYCLE} cycles"),
                    accepted: "shorter ones",
                });
            }
            self.cycle += 1;
        }
        self.end()
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
        Ok(Run {
            cycles: u64::from(cycles),
            events: self.events,
            hops: self.hops,
            stalls: self.stalls,
            result_correct: mismatch.is_none(),
            mismatch,
            finish: self.finish,
            trace: self.trace,
        })
    }

    fn check_left_over(&self) -> Result<(), SimError> {
        let mut found = None;
        let mut count = 0;
        for pe in 0..self.program.pe_count() {
            for row in &self.tables.rows[self.tables.pe_rows[pe] as usize..self.tables.pe_rows[pe + 1] as usize] {
                let pe_side = std::iter::once(row.outputs[super::tables::RAMP]);
                for queue in row.inputs.into_iter().chain(pe_side).filter(|&q| q != super::tables::NONE) {
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
