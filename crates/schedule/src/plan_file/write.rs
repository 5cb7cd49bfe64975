//! Writes a `.plan` file.

use std::io;

use unisono_collective::Choice;

use super::{
    MAGIC, Plan, VERSION,
    wire::{Out, checksum},
};
use crate::stored::{Blocking, Facts, Place, RankProgram, Wait};

/// Schedule number of a row that the MPI library's own algorithm serves.
pub(super) const LIBRARY: u32 = u32::MAX;
/// Stands for any number of ranks per node of a row.
pub(super) const ANY_PER_NODE: u32 = 0;
/// The buffer number that stands for a missing place: `b` or `to` of a step is `None`.
pub(super) const NO_PLACE: u8 = 3;

/// # Errors
/// Returns the errors of the writer.
///
/// # Panics
/// Panics if the plan does not have one use for each row.
pub fn write(plan: &Plan, to: &mut impl io::Write) -> io::Result<()> {
    assert_eq!(plan.table.rows().len(), plan.uses.len(), "each row says which schedule serves it");
    let mut header = Out::default();
    header.u32(plan.uses.len() as u32);
    for (row, used) in plan.table.rows().iter().zip(&plan.uses) {
        header.text(row.kind.name());
        header.u32(row.ranks);
        header.u32(row.per_node.unwrap_or(ANY_PER_NODE));
        header.text(row.class.name());
        header.u64(row.first_bytes);
        header.u64(row.last_bytes);
        header.u32(used.map_or(LIBRARY, |n| n as u32));
        if let Choice::Algorithm { name, params } = &row.choice {
            header.text(name);
            header.u32(params.len() as u32);
            for (key, value) in params {
                header.text(key);
                header.text(value);
            }
        }
    }
    let mut programs = Vec::new();
    header.u32(plan.schedules.len() as u32);
    for stored in &plan.schedules {
        facts(stored.facts(), &mut header);
        for p in stored.programs() {
            let mut section = Out::default();
            program(p, &mut section);
            header.u64(programs.len() as u64);
            header.u64(section.0.len() as u64);
            header.u64(checksum(&section.0));
            programs.append(&mut section.0);
        }
    }
    let mut preamble = Out::default();
    preamble.0.extend_from_slice(MAGIC);
    preamble.u32(VERSION);
    preamble.u32(0);
    preamble.u64(header.0.len() as u64);
    preamble.u64(checksum(&header.0));
    to.write_all(&preamble.0)?;
    to.write_all(&header.0)?;
    to.write_all(&programs)
}

fn facts(facts: &Facts, out: &mut Out) {
    let c = &facts.collective;
    out.text(c.kind.name());
    out.u32(c.ranks);
    out.u32(c.elements);
    out.u32(c.root);
    out.text(c.operator.name());
    out.text(c.dtype.name());
    out.u8(u8::from(facts.blocking == Blocking::Equal));
    out.text(facts.class.name());
    out.u8(u8::from(facts.repeatable));
    out.u8(u8::from(facts.in_place));
    out.text(&facts.expression);
    out.text(&facts.method);
    out.text(&facts.origin);
}

/// Returns the number of bytes that a program takes in a file.
pub fn program_bytes(p: &RankProgram) -> u64 {
    let rows = [p.lanes.len(), p.steps.len(), p.arrivals.len(), p.departures.len(), p.waits.len()];
    // `program` writes the number of scratch blocks and five counts, then rows of these lengths.
    24 + rows.iter().zip([8, 47, 29, 21, 5]).map(|(&rows, bytes)| rows as u64 * bytes).sum::<u64>()
}

pub fn program(p: &RankProgram, out: &mut Out) {
    out.u32(p.scratch_blocks);
    out.u32(p.lanes.len() as u32);
    for lane in &p.lanes {
        out.u32(lane.steps.end);
        out.u32(lane.arrivals.end);
    }
    out.u32(p.steps.len() as u32);
    for s in &p.steps {
        out.u32(s.len);
        out.u32(s.align);
        for place in [Some(s.a), s.b, s.to] {
            place_of(place, out);
        }
        for range in [&s.arrivals, &s.departures, &s.waits] {
            out.u32(range.start);
            out.u32(range.end);
        }
    }
    out.u32(p.arrivals.len() as u32);
    for a in &p.arrivals {
        message(a.peer, a.tag, a.place, a.len, a.align, out);
        out.u32(a.waits.start);
        out.u32(a.waits.end);
    }
    out.u32(p.departures.len() as u32);
    for d in &p.departures {
        message(d.peer, d.tag, d.place, d.len, d.align, out);
    }
    out.u32(p.waits.len() as u32);
    for wait in &p.waits {
        let (kind, number) = match wait {
            Wait::Step(n) => (0, n),
            Wait::Departure(n) => (1, n),
        };
        out.u8(kind);
        out.u32(*number);
    }
}

fn place_of(place: Option<Place>, out: &mut Out) {
    let (buffer, start) = match place {
        Some(Place::In(start)) => (0, start),
        Some(Place::Out(start)) => (1, start),
        Some(Place::Tmp(start)) => (2, start),
        None => (NO_PLACE, 0),
    };
    out.u8(buffer);
    out.u32(start);
}

fn message(peer: u32, tag: u32, place: Place, len: u32, align: u32, out: &mut Out) {
    out.u32(peer);
    out.u32(tag);
    place_of(Some(place), out);
    out.u32(len);
    out.u32(align);
}
