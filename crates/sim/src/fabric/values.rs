//! Values of a run: every operation is computed over its whole vector, from the elements that arrived in the run.
//!
//! The pairing of elements does not depend on values, so the simulation moves no values. Afterwards each operation
//! takes the elements that arrived at its PE, as recorded, and reduces them in the order written, element by element:
//! the same expressions as in the simulated run. An operation is computed when another operation needs the elements
//! that the former sent. Operations of one PE are computed in the order of their times. If operations of two threads
//! access the same memory of a PE at the same time, their order is undefined, which is an error.

use unisono_base::{interrupt::check, narrow};
use unisono_lower::wafer::WaferProgram;

use super::{
    data::Data,
    error::SimError,
    moves::SentRun,
    tables::{Place, Tables, UNDONE},
};

/// Greatest total size of all outputs, in wavelets.
const MOST_WAVELETS: u64 = 1 << 30;

pub struct Values<'a> {
    program: &'a WaferProgram,
    tables: &'a Tables,
    data: Data,
    /// First cycle of each operation, and the cycle after its last step.
    spans: &'a [(u32, u32)],
    /// The elements that arrived from the fabric at each place. `part_starts` has the start of each place's entries.
    parts: Vec<SentRun>,
    part_starts: Vec<u32>,
    pe_of: Vec<u32>,
    thread_of: Vec<u32>,
    /// Number of computed elements of each operation.
    done: Vec<u32>,
    /// The elements that each operation sent. They are kept until all are taken; `to_take` counts the elements that
    /// remain to be taken.
    sent: Vec<Vec<u32>>,
    to_take: Vec<u64>,
    outputs: Vec<Vec<u32>>,
    /// Scratch memory of each PE, allocated while the PE has operations to compute.
    scratch: Vec<Vec<u32>>,
    to_compute: Vec<u32>,
}

impl<'a> Values<'a> {
    /// Prepares the computation of all operations.
    ///
    /// # Errors
    /// Returns an error if the outputs are too large, or if two operations race.
    pub fn new(
        program: &'a WaferProgram,
        tables: &'a Tables,
        spans: &'a [(u32, u32)],
        (parts, part_starts): (Vec<SentRun>, Vec<u32>),
    ) -> Result<Self, SimError> {
        let (c, pes, ops) = (program.collective, program.pe_count(), program.op_count());
        let output =
            |pe: usize| if narrow::<u32>(pe) < c.ranks { u64::from(c.output_len(narrow::<u32>(pe))) } else { 0 };
        let all: u64 = (0..pes).map(output).sum();
        if all > MOST_WAVELETS {
            return Err(SimError::Unsupported {
                what: "the memory of all outputs",
                found: format!("{} bytes", 4 * all),
                accepted: "at most 4 GiB",
            });
        }
        let mut values = Self {
            program,
            tables,
            data: Data::new(c),
            spans,
            to_take: vec![0; ops],
            parts,
            part_starts,
            pe_of: vec![0; ops],
            thread_of: vec![0; ops],
            done: vec![0; ops],
            sent: vec![Vec::new(); ops],
            outputs: (0..pes).map(|pe| vec![0; narrow::<usize>(output(pe))]).collect(),
            scratch: vec![Vec::new(); pes],
            to_compute: vec![0; pes],
        };
        for part in &values.parts {
            values.to_take[part.op as usize] += u64::from(part.count);
        }
        for pe in 0..pes {
            for thread in program.threads(pe) {
                for op in program.thread_ops(thread) {
                    (values.pe_of[op], values.thread_of[op]) = (narrow::<u32>(pe), narrow::<u32>(thread));
                    values.to_compute[pe] += 1;
                }
            }
            values.check_races(pe)?;
        }
        Ok(values)
    }

    /// Computes all operations. Returns a description of the first output that differs from plain arithmetic; `None` if
    /// all outputs are right.
    pub fn mismatch(&mut self) -> Result<Option<String>, SimError> {
        for op in 0..self.program.op_count() {
            self.compute(narrow::<u32>(op));
        }
        Ok(self.data.check(|rank| &self.outputs[rank as usize]))
    }

    /// Computes an operation, and first all operations that it needs.
    fn compute(&mut self, op: u32) {
        let mut asked = vec![(op, self.program.op(op as usize).len)];
        while let Some(&(op, end)) = asked.last() {
            check();
            if self.done[op as usize] >= end {
                asked.pop();
            } else if let Some(first) = self.needs(op, end) {
                asked.push(first);
            } else {
                self.advance(op, end);
                asked.pop();
            }
        }
    }

    /// Returns a computation that must precede the elements up to `end` of an operation and is not done yet, as
    /// `(operation, end of its elements)`. `None` if all such computations are done.
    fn needs(&self, op: u32, end: u32) -> Option<(u32, u32)> {
        let done = self.done[op as usize];
        if done == 0 {
            let own = self.thread_of[op as usize] as usize;
            for thread in self.program.threads(self.pe_of[op as usize] as usize) {
                let ops = self.program.thread_ops(thread);
                let start = self.spans[op as usize].0;
                let ended = if thread == own {
                    op as usize - ops.start
                } else {
                    self.spans[ops.clone()].partition_point(|s| s.1 <= start && *s != UNDONE)
                };
                // A thread runs in order, so it suffices to require its last completed operation, which requires all
                // earlier ones.
                if let Some(last) = (ops.start..ops.start + ended).last()
                    && self.done[last] < self.program.op(last).len
                {
                    return Some((narrow::<u32>(last), self.program.op(last).len));
                }
            }
        }
        let places = self.tables.op_places[op as usize] as usize..self.tables.op_places[op as usize + 1] as usize;
        for place in places {
            let mut at = 0;
            for part in self.parts_of(place) {
                // Number of elements of this part that are needed.
                let wanted = end.saturating_sub(at).min(part.count);
                if at + part.count > done && wanted > 0 && self.done[part.op as usize] < part.first + wanted {
                    return Some((part.op, part.first + wanted));
                }
                at += part.count;
            }
        }
        None
    }

    fn parts_of(&self, place: usize) -> &[SentRun] {
        &self.parts[self.part_starts[place] as usize..self.part_starts[place + 1] as usize]
    }

    /// Computes the elements of an operation up to `end`; its inputs must be computed.
    fn advance(&mut self, op: u32, end: u32) {
        let pe = self.pe_of[op as usize] as usize;
        if self.scratch[pe].is_empty() {
            self.scratch[pe] = vec![0; self.program.scratch_elements(pe) as usize];
        }
        let (sources, sinks) = self.places(op);
        let stride = if overlap(sources, sinks) { 1 } else { end };
        while self.done[op as usize] < end {
            self.advance_at_once(op, end.min(self.done[op as usize].saturating_add(stride)));
        }
        if end == self.program.op(op as usize).len {
            self.to_compute[pe] -= 1;
            if self.to_compute[pe] == 0 {
                self.scratch[pe] = Vec::new();
            }
        }
    }

    fn places(&self, op: u32) -> (&'a [Place], &'a [Place]) {
        let places = self.tables.op_places[op as usize] as usize..self.tables.op_places[op as usize + 1] as usize;
        self.tables.places[places].split_at(self.program.sources(op as usize).len())
    }

    fn advance_at_once(&mut self, op: u32, end: u32) {
        let (from, first_place) = (self.done[op as usize], self.tables.op_places[op as usize] as usize);
        let (sources, sinks) = self.places(op);
        let pe = self.pe_of[op as usize] as usize;
        let mut values = vec![0; (end - from) as usize];
        let mut next = Vec::new();
        for (n, source) in sources.iter().enumerate() {
            let into = if n == 0 {
                &mut values
            } else {
                next.resize((end - from) as usize, 0);
                &mut next
            };
            let memory = |of: &[u32], at: u32, into: &mut [u32]| {
                let at = (at + from) as usize;
                into.copy_from_slice(&of[at..at + into.len()]);
            };
            match *source {
                Place::In(at) => self.data.fill(narrow::<u32>(pe), at + from, into),
                Place::Out(at) => memory(&self.outputs[pe], at, into),
                Place::Tmp(at) => memory(&self.scratch[pe], at, into),
                Place::Queue(_) => self.take(first_place + n, from, into),
            }
            if n > 0 {
                self.data.reduce(&mut values, &next);
            }
        }
        for sink in sinks {
            let (memory, at) = match *sink {
                Place::In(_) | Place::Queue(_) => continue,
                Place::Out(at) => (&mut self.outputs[pe], at + from),
                Place::Tmp(at) => (&mut self.scratch[pe], at + from),
            };
            memory[at as usize..at as usize + values.len()].copy_from_slice(&values);
        }
        if self.to_take[op as usize] > 0 {
            let sent = &mut self.sent[op as usize];
            if from == 0 { *sent = values } else { sent.extend(&values) }
        }
        self.done[op as usize] = end;
    }

    /// Takes elements that arrived at a place, starting with element `from`.
    fn take(&mut self, place: usize, from: u32, into: &mut [u32]) {
        let (mut at, mut filled) = (0, 0);
        let parts = self.part_starts[place] as usize..self.part_starts[place + 1] as usize;
        for part in &self.parts[parts] {
            let skipped = from.saturating_sub(at).min(part.count);
            let count = ((part.count - skipped) as usize).min(into.len() - filled);
            at += part.count;
            if count == 0 {
                continue;
            }
            let first = (part.first + skipped) as usize;
            let sent = &mut self.sent[part.op as usize];
            into[filled..filled + count].copy_from_slice(&sent[first..first + count]);
            filled += count;
            let to_take = &mut self.to_take[part.op as usize];
            *to_take -= count as u64;
            if *to_take == 0 {
                *sent = Vec::new();
            }
        }
    }

    /// Checks that operations of different threads that run at the same time do not race in memory.
    fn check_races(&self, pe: usize) -> Result<(), SimError> {
        let threads = self.program.threads(pe);
        for (a, b) in threads.clone().flat_map(|a| (a + 1..threads.end).map(move |b| (a, b))) {
            let (a, b) = (self.program.thread_ops(a), self.program.thread_ops(b));
            let mut first = b.start;
            for one in a {
                let span = self.spans[one];
                while first < b.end && self.spans[first].1 <= span.0 {
                    first += 1;
                }
                for other in (first..b.end).take_while(|&o| self.spans[o].0 < span.1) {
                    if self.meet(narrow::<u32>(one), narrow::<u32>(other)) {
                        let (row, col) = self.program.grid.row_col(narrow::<u32>(pe));
                        let instr = |op: usize| self.program.op(op).instr.0;
                        return Err(SimError::Race { row, col, one: instr(one), other: instr(other) });
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns true if one operation writes memory that the other operation reads or writes.
    fn meet(&self, one: u32, other: u32) -> bool {
        let (a, b) = (self.places(one), self.places(other));
        let lens = (self.program.op(one as usize).len, self.program.op(other as usize).len);
        let meets = |x: &Place, y: &Place| {
            let (x, y) = match (x, y) {
                (Place::Out(x), Place::Out(y)) | (Place::Tmp(x), Place::Tmp(y)) => (*x, *y),
                _ => return false,
            };
            x < y + lens.1 && y < x + lens.0
        };
        let any = |xs: &[Place], ys: &[Place]| xs.iter().any(|x| ys.iter().any(|y| meets(x, y)));
        any(a.1, b.0) || any(a.1, b.1) || any(a.0, b.1)
    }
}

/// Returns true if an operation writes a buffer at another offset than it reads. It may then read elements that it
/// wrote itself.
fn overlap(sources: &[Place], sinks: &[Place]) -> bool {
    let shifted = |x: &Place, y: &Place| match (x, y) {
        (Place::Out(x), Place::Out(y)) | (Place::Tmp(x), Place::Tmp(y)) => x != y,
        _ => false,
    };
    sources.iter().any(|x| sinks.iter().any(|y| shifted(x, y)))
}
