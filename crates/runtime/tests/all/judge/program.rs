//! The stored programs of all ranks for one number of elements, as small integers.

use std::ops::Range;

use unisono_collective::Collective;
use unisono_schedule::stored::{self, Blocking, Facts, Place, RankProgram, Wait};

/// An interval of elements in the memory of all ranks, which is stored rank by rank.
pub type Span = Range<usize>;

pub struct Step {
    pub a: Span,
    pub b: Option<Span>,
    pub to: Option<Span>,
    pub arrivals: Range<usize>,
    pub departures: Range<usize>,
    pub waits: Vec<Before>,
}

/// One end of a message. Only a receive has waits.
pub struct End {
    pub rank: usize,
    pub peer: usize,
    pub tag: u32,
    pub span: Span,
    pub waits: Vec<Before>,
    /// The step that sends the message, or that waits for it.
    pub step: usize,
}

#[derive(Clone, Copy)]
pub enum Before {
    Step(usize),
    Departure(usize),
}

pub struct Lane {
    pub steps: Range<usize>,
    pub arrivals: Range<usize>,
}

pub struct Program {
    pub collective: Collective,
    pub lanes: Vec<Lane>,
    pub steps: Vec<Step>,
    pub arrivals: Vec<End>,
    pub departures: Vec<End>,
    /// The index of the first element of each rank's input, output and scratch memory; an input that is used in place
    /// begins inside the output.
    pub first: Vec<[usize; 3]>,
    pub memory: usize,
    /// The number of elements of a block.
    pub pitch: usize,
}

impl Program {
    /// Returns the programs for `elements` elements; ranks in the bit set `aliased` have their input in their output.
    pub fn new(facts: &Facts, ranks: &[&RankProgram], elements: usize, aliased: u8) -> Result<Self, String> {
        let c = facts.collective;
        let blocks = c.elements as usize;
        let pitch = elements.div_ceil(blocks);
        let before = |block: u32| match facts.blocking {
            Blocking::Any => (pitch * block as usize).min(elements),
            Blocking::Equal => pitch * block as usize,
        };
        let whole = Collective::new(c.kind, c.ranks, elements as u64, u64::from(c.root), c.operator, c.dtype)
            .map_err(|e| e.to_string())?;
        let mut p = Program {
            collective: whole,
            lanes: Vec::new(),
            steps: Vec::new(),
            arrivals: Vec::new(),
            departures: Vec::new(),
            first: Vec::new(),
            memory: 0,
            pitch,
        };
        for (rank, program) in ranks.iter().enumerate() {
            let sizes = [
                whole.input_len(rank as u32) as usize,
                whole.output_len(rank as u32) as usize,
                pitch * program.scratch_blocks as usize,
            ];
            let output = p.memory + sizes[0];
            let alias = (aliased >> rank & 1 == 1).then(|| stored::offset(&c, rank as u32)).flatten();
            // An output that contains the input is long enough for both.
            let room = alias.map_or(sizes[1], |blocks| sizes[1].max(before(blocks) + sizes[0]));
            let first = [alias.map_or(p.memory, |blocks| output + before(blocks)), output, output + room];
            p.first.push(first);
            p.memory += sizes[0] + room + sizes[2];
            p.rank(program, rank, &before, first, sizes)?;
        }
        Ok(p)
    }

    fn rank(
        &mut self,
        program: &RankProgram,
        rank: usize,
        before: &dyn Fn(u32) -> usize,
        first: [usize; 3],
        sizes: [usize; 3],
    ) -> Result<(), String> {
        let pitch = self.pitch;
        let span = |place: Place, len: u32, align: u32| {
            let (buffer, start) = match place {
                Place::In(block) => (0, before(block)),
                Place::Out(block) => (1, before(block)),
                Place::Tmp(block) => (2, pitch * block as usize),
            };
            let count = before(align + len) - before(align);
            match start + count <= sizes[buffer] {
                true => Ok(first[buffer] + start..first[buffer] + start + count),
                false => Err(format!("{place:?} and {len} blocks lie outside the memory of rank {rank}")),
            }
        };
        let (s0, a0, d0) = (self.steps.len(), self.arrivals.len(), self.departures.len());
        let shift = |r: &Range<u32>, by: usize| r.start as usize + by..r.end as usize + by;
        let waits = |rows: &Range<u32>| {
            let rows = &program.waits[rows.start as usize..rows.end as usize];
            let number = |w: &Wait| match *w {
                Wait::Step(s) => Before::Step(s0 + s as usize),
                Wait::Departure(d) => Before::Departure(d0 + d as usize),
            };
            rows.iter().map(number).collect::<Vec<_>>()
        };
        let there = |w: &Wait| match *w {
            Wait::Step(s) => (s as usize) < program.steps.len(),
            Wait::Departure(d) => (d as usize) < program.departures.len(),
        };
        if !program.waits.iter().all(there) {
            return Err("a wait names a row that does not exist".into());
        }
        let (mut consumer, mut producer) = (vec![None; program.arrivals.len()], vec![None; program.departures.len()]);
        for (n, s) in program.steps.iter().enumerate() {
            s.arrivals.clone().for_each(|a| consumer[a as usize] = Some(s0 + n));
            s.departures.clone().for_each(|d| producer[d as usize] = Some(s0 + n));
            self.steps.push(Step {
                a: span(s.a, s.len, s.align)?,
                b: s.b.map(|b| span(b, s.len, s.align)).transpose()?,
                to: s.to.map(|to| span(to, s.len, s.align)).transpose()?,
                arrivals: shift(&s.arrivals, a0),
                departures: shift(&s.departures, d0),
                waits: waits(&s.waits),
            });
        }
        for (n, a) in program.arrivals.iter().enumerate() {
            let step = consumer[n].ok_or("no step waits for a message")?;
            let span = span(a.place, a.len, a.align)?;
            self.arrivals.push(End { rank, peer: a.peer as usize, tag: a.tag, span, waits: waits(&a.waits), step });
        }
        for (n, d) in program.departures.iter().enumerate() {
            let step = producer[n].ok_or("no step sends a message")?;
            let span = span(d.place, d.len, d.align)?;
            self.departures.push(End { rank, peer: d.peer as usize, tag: d.tag, span, waits: Vec::new(), step });
        }
        for lane in &program.lanes {
            self.lanes.push(Lane { steps: shift(&lane.steps, s0), arrivals: shift(&lane.arrivals, a0) });
        }
        let steps: usize = program.lanes.iter().map(|l| l.steps.len()).sum();
        let arrivals: usize = program.lanes.iter().map(|l| l.arrivals.len()).sum();
        let all = steps == program.steps.len() && arrivals == program.arrivals.len();
        if all { Ok(()) } else { Err(format!("lanes of rank {rank} leave steps or receives out")) }
    }
}
