//! The table of instructions.
//!
//! Instructions that follow each other in a lane are one *run* if they have the same length, phase, streams and kinds
//! of operands, and if all their places in memory change by the same step: a rank of a ring sends `in[128..]`, then
//! `in[64..]`, then `in[0..]` to one stream. So each rank of a ring has a few runs, for any number of blocks. A run is
//! stored as one instruction and a step. Runs are found while instructions are added. If they are short, each
//! instruction gets a row of its own, which is found sooner.

use rustc_hash::FxHashMap;
use unisono_base::{InstrId, PhaseId, StreamId, interrupt::poll, narrow};

use crate::schedule::Operand;

/// Instructions of an average run below which no runs are stored.
const SHORT: usize = 8;
/// Number of instructions after which runs are sought further only if they are long enough so far.
const TRIED: usize = 64;

/// An operand as stored in the table. It takes 5 bytes without padding; [`Operand`] takes 8.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedOperand {
    kind: u8,
    place: [u8; 4],
}

impl From<Operand> for PackedOperand {
    #[inline]
    fn from(operand: Operand) -> Self {
        let (kind, place) = match operand {
            Operand::In(start) => (0, start),
            Operand::Out(start) => (1, start),
            Operand::Tmp(start) => (2, start),
            Operand::Stream(stream) => (3, stream.0),
        };
        Self { kind, place: place.to_ne_bytes() }
    }
}

impl PackedOperand {
    #[inline]
    pub(crate) fn get(self) -> Operand {
        self.moved(0)
    }

    /// Returns the operand `by` elements further in memory, modulo 2^32; a stream stays the same.
    #[inline]
    fn moved(self, by: u32) -> Operand {
        let place = u32::from_ne_bytes(self.place);
        match self.kind {
            0 => Operand::In(place.wrapping_add(by)),
            1 => Operand::Out(place.wrapping_add(by)),
            2 => Operand::Tmp(place.wrapping_add(by)),
            _ => Operand::Stream(StreamId(place)),
        }
    }
}

/// Sources or sinks of an instruction, in order.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    /// Operands of the run.
    places: &'a [PackedOperand],
    /// Distance of the instruction's operands from `places` in memory.
    by: u32,
}

impl<'a> Operands<'a> {
    pub fn len(self) -> usize {
        self.places.len()
    }

    pub fn is_empty(self) -> bool {
        self.places.is_empty()
    }

    #[inline]
    pub(crate) fn get(self, n: usize) -> Operand {
        self.places[n].moved(self.by)
    }

    #[inline]
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Operand> + ExactSizeIterator + Clone + use<'a> {
        self.places.iter().map(move |place| place.moved(self.by))
    }

    pub fn to_vec(self) -> Vec<Operand> {
        self.iter().collect()
    }

    /// Returns the sources and the sinks among all operands of an instruction.
    #[inline]
    pub(crate) fn split(self, instr: Instr) -> (Self, Self) {
        let (sources, sinks) = self.places.split_at(instr.sources.into());
        (Self { places: sources, ..self }, Self { places: sinks, ..self })
    }
}

impl PartialEq for Operands<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl std::fmt::Debug for Operands<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// One `combine` instruction. Its operands are consecutive rows of the table of operands, sources first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Instr {
    pub(crate) first_operand: u32,
    pub(crate) sources: u16,
    pub(crate) sinks: u16,
    pub len: u32,
    pub phase: PhaseId16,
    /// Distance in memory from each instruction of the run to the next one, modulo 2^32; 0 for an instruction alone.
    pub(crate) step: u32,
}

impl Instr {
    /// Returns the number of operands.
    fn operands(&self) -> usize {
        usize::from(self.sources) + usize::from(self.sinks)
    }
}

/// A phase id in 16 bits, as stored in instructions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PhaseId16(pub(crate) u16);

impl From<PhaseId16> for PhaseId {
    fn from(p: PhaseId16) -> PhaseId {
        PhaseId(u32::from(p.0))
    }
}

/// The first instructions of runs among 64 instructions, and the number of runs that begin before these instructions.
#[derive(Clone, Copy, Debug)]
struct Marks {
    bits: u64,
    before: u32,
}

/// The instructions of a schedule, 8 bytes for each run. Instructions with the same numbers of operands, length, phase
/// and step share one row of `shapes`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instrs {
    len: usize,
    /// Row of the first operand of each run, and the index of its shape in `shapes`.
    rows: Vec<(u32, u32)>,
    /// Distinct instructions, with first operand 0.
    shapes: Vec<Instr>,
    /// Operands of runs. Their places are those that instruction 0 of the schedule would have in the run.
    pub operands: Vec<PackedOperand>,
    /// The first instructions of runs. Empty if `is_plain`.
    marks: Vec<Marks>,
    /// True if each instruction is a run, and added instructions continue none.
    is_plain: bool,
}

/// The same instructions may be stored as other runs.
impl PartialEq for Instrs {
    fn eq(&self, other: &Self) -> bool {
        let same = |id: InstrId| {
            let ((one, places), (two, others)) = (self.whole(id), other.whole(id));
            let like_one = Instr { first_operand: one.first_operand, step: one.step, ..two };
            one == like_one && places == others
        };
        self.len == other.len && (0..self.len).map(InstrId::new).all(same)
    }
}

impl Instrs {
    /// Appends an instruction whose operands are the last ones of the table. If `goes_on`, it may continue the run of
    /// the instruction before. `known` has the index of each shape in `shapes`.
    #[inline]
    pub fn push(&mut self, instr: Instr, goes_on: bool, known: &mut FxHashMap<Instr, u32>) {
        if self.is_plain { self.push_row(instr, known) } else { self.push_run(instr, goes_on, known) }
    }

    #[inline(never)]
    fn push_run(&mut self, instr: Instr, goes_on: bool, known: &mut FxHashMap<Instr, u32>) {
        let step = if goes_on { self.step_to(instr) } else { None };
        if self.len.is_multiple_of(64) {
            self.marks.push(Marks { bits: 0, before: narrow(self.rows.len()) });
        }
        match step {
            Some(step) => {
                self.set_step(step, known);
                self.operands.truncate(instr.first_operand as usize);
                self.len += 1;
            }
            None => {
                self.marks[self.len / 64].bits |= 1 << (self.len % 64);
                self.push_row(instr, known);
            }
        }
        if self.len >= TRIED && self.len.is_power_of_two() {
            self.settle(known);
        }
    }

    #[inline]
    fn push_row(&mut self, instr: Instr, known: &mut FxHashMap<Instr, u32>) {
        let shape = self.shape(Instr { first_operand: 0, ..instr }, known);
        self.rows.push((instr.first_operand, shape));
        self.len += 1;
    }

    /// Returns the index of a shape, which is added on first use.
    #[inline]
    fn shape(&mut self, shape: Instr, known: &mut FxHashMap<Instr, u32>) -> u32 {
        let last = self.rows.last().map_or(0, |row| row.1);
        if self.shapes.get(last as usize) == Some(&shape) {
            return last;
        }
        *known.entry(shape).or_insert_with(|| {
            self.shapes.push(shape);
            narrow(self.shapes.len() - 1)
        })
    }

    /// Returns the step by which an instruction continues the last run; `None` if it does not. The second instruction
    /// of a run determines the step.
    fn step_to(&self, instr: Instr) -> Option<u32> {
        let last = InstrId::new(self.len.checked_sub(1)?);
        let (run, operands) = self.whole(last);
        if run != (Instr { first_operand: run.first_operand, step: run.step, ..instr }) {
            return None;
        }
        let mut step = (!self.begins_run(last)).then_some(run.step);
        for (before, next) in operands.iter().zip(&self.operands[instr.first_operand as usize..]) {
            let change = match (before, next.get()) {
                (Operand::In(a), Operand::In(b))
                | (Operand::Out(a), Operand::Out(b))
                | (Operand::Tmp(a), Operand::Tmp(b)) => b.wrapping_sub(a),
                (Operand::Stream(a), Operand::Stream(b)) if a == b => continue,
                _ => return None,
            };
            if *step.get_or_insert(change) != change {
                return None;
            }
        }
        Some(step.unwrap_or(0))
    }

    /// Gives the last run a step, if it has another one: then it has one instruction, the last one.
    fn set_step(&mut self, step: u32, known: &mut FxHashMap<Instr, u32>) {
        let last = InstrId::new(self.len - 1);
        let run = self.get(last);
        if run.step != step {
            let shape = self.shape(Instr { first_operand: 0, step, ..run }, known);
            self.rows.last_mut().unwrap_or_else(|| unreachable!("a run has a row")).1 = shape;
            for operand in self.operands_mut(last) {
                *operand = operand.moved(step.wrapping_mul(last.0).wrapping_neg()).into();
            }
        }
    }

    /// Stores each instruction as a run if runs are short.
    pub fn settle(&mut self, known: &mut FxHashMap<Instr, u32>) {
        if SHORT * self.rows.len() > self.len {
            self.make_plain(known);
        }
    }

    /// Stores each instruction as a run.
    pub fn make_plain(&mut self, known: &mut FxHashMap<Instr, u32>) {
        if self.rows.len() < self.len {
            let mut plain = Self { is_plain: true, ..Self::default() };
            known.clear();
            (0..self.len).for_each(|at| plain.push_from(self, InstrId::new(at), known));
            *self = plain;
        }
        (self.marks, self.is_plain) = (Vec::new(), true);
    }

    /// Appends an instruction of another table.
    pub fn push_from(&mut self, other: &Self, id: InstrId, known: &mut FxHashMap<Instr, u32>) {
        poll();
        let (instr, operands) = other.whole(id);
        let first_operand = narrow(self.operands.len());
        self.operands.extend(operands.iter().map(PackedOperand::from));
        self.push(Instr { first_operand, step: 0, ..instr }, !other.begins_run(id), known);
    }

    /// Returns the index of each shape in `shapes`.
    pub fn known(&self) -> FxHashMap<Instr, u32> {
        self.shapes.iter().copied().zip(0..).collect()
    }

    pub fn reserve(&mut self, count: usize) {
        self.rows.reserve(count);
        self.operands.reserve(3 * count);
    }

    /// Returns the table with instruction `i` in row `to[i]`. Each instruction is a run, in both tables.
    pub fn sorted(&self, to: &[u32]) -> Self {
        // Each lane fills its rows in ascending order, so the written memory stays in the cache. A loop over the new
        // rows would read from random addresses instead.
        let mut rows = vec![(0, 0); self.len()];
        for (&to, &row) in to.iter().zip(&self.rows) {
            poll();
            rows[to as usize] = row;
        }
        let (mut shapes, mut renamed, mut end) = (Vec::new(), vec![None; self.shapes.len()], 0);
        for row in &mut rows {
            poll();
            let shape = self.shapes[row.1 as usize];
            let first = *renamed[row.1 as usize].get_or_insert_with(|| {
                shapes.push(shape);
                narrow(shapes.len() - 1)
            });
            *row = (end, first);
            end += narrow::<u32>(shape.operands());
        }
        let mut operands = vec![PackedOperand::from(Operand::In(0)); self.operands.len()];
        for (&to, &(from, shape)) in to.iter().zip(&self.rows) {
            poll();
            let (from, count) = (from as usize, self.shapes[shape as usize].operands());
            let first = rows[to as usize].0 as usize;
            operands[first..first + count].copy_from_slice(&self.operands[from..from + count]);
        }
        Self { len: self.len, rows, shapes, operands, marks: Vec::new(), is_plain: true }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn runs(&self) -> usize {
        self.rows.len()
    }

    #[inline(always)]
    pub fn get(&self, id: InstrId) -> Instr {
        let row = if self.is_plain { id.index() } else { self.run_of(id) };
        let (first_operand, shape) = self.rows[row];
        Instr { first_operand, ..self.shapes[shape as usize] }
    }

    /// Returns an instruction and its operands, sources first.
    #[inline(always)]
    pub fn whole(&self, id: InstrId) -> (Instr, Operands<'_>) {
        let instr = self.get(id);
        let places = &self.operands[instr.first_operand as usize..][..instr.operands()];
        (instr, Operands { places, by: instr.step.wrapping_mul(id.0) })
    }

    /// Returns the operands of the run of an instruction. Their streams and buffers, but not their places, are those of
    /// the instruction.
    pub fn operands_mut(&mut self, id: InstrId) -> &mut [PackedOperand] {
        let instr = self.get(id);
        &mut self.operands[instr.first_operand as usize..][..instr.operands()]
    }

    #[inline(never)]
    fn run_of(&self, id: InstrId) -> usize {
        let Marks { bits, before } = self.marks[id.index() / 64];
        let begun = bits << (63 - id.0 % 64);
        // Mostly no run begins here, and the bits need not be counted.
        before as usize + if begun == 0 { 0 } else { begun.count_ones() as usize } - 1
    }

    fn begins_run(&self, id: InstrId) -> bool {
        self.is_plain || self.marks[id.index() / 64].bits >> (id.0 % 64) & 1 == 1
    }

    /// Returns the number of all operands, and for each instruction the number of operands before it. The table of
    /// numbers is empty if they are [`Instr::first_operand`].
    pub fn starts(&self) -> (usize, Vec<u32>) {
        if self.is_plain {
            return (self.operands.len(), Vec::new());
        }
        let mut end = 0;
        let next = |at| {
            let start = narrow(end);
            end += self.get(InstrId::new(at)).operands();
            start
        };
        let starts = (0..self.len).map(next).collect();
        (end, starts)
    }

    /// Returns the lengths of all shapes. A change of a length applies to all instructions of the shape.
    pub fn lens_mut(&mut self) -> impl Iterator<Item = &mut u32> {
        self.shapes.iter_mut().map(|shape| &mut shape.len)
    }

    pub fn lens(&self) -> impl Iterator<Item = u32> {
        self.shapes.iter().map(|shape| shape.len)
    }
}
