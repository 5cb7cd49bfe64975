//! Reads a `.plan` file: every number is checked before it is used.

use std::{ops::Range, sync::OnceLock};

use unisono_base::parallel;
use unisono_collective::{Choice, Collective, DecisionTable, OperatorClass, Row};

use super::{
    MAGIC, PREAMBLE_BYTES, PlanFile, PlanFileError, Section, VERSION,
    wire::{Got, In, checksum, damaged},
    write::{ANY_PER_NODE, LIBRARY, NO_PLACE},
};
use crate::stored::{Arrival, Blocking, Departure, Facts, Lane, Place, RankProgram, Step, Wait, bounds};

pub fn read(bytes: Vec<u8>) -> Result<PlanFile, PlanFileError> {
    if bytes.len() < MAGIC.len() || bytes[..MAGIC.len()] != *MAGIC {
        return Err(PlanFileError::Magic);
    }
    let truncated = |expected: u64| PlanFileError::Truncated { found: bytes.len() as u64, expected };
    if bytes.len() < PREAMBLE_BYTES {
        return Err(truncated(PREAMBLE_BYTES as u64));
    }
    let mut preamble = In::new(&bytes[MAGIC.len()..PREAMBLE_BYTES]);
    let version = preamble.u32()?;
    if version > VERSION {
        return Err(PlanFileError::Newer { found: version });
    }
    if version == 0 || preamble.u32()? != 0 {
        return damaged("its first numbers are none that a plan has");
    }
    let (header_len, header_checksum) = (preamble.u64()?, preamble.u64()?);
    let programs_start = header_len.saturating_add(PREAMBLE_BYTES as u64);
    if programs_start > bytes.len() as u64 {
        return Err(truncated(programs_start));
    }
    let header = &bytes[PREAMBLE_BYTES..programs_start as usize];
    if checksum(header) != header_checksum {
        return damaged("the checksum of its table does not fit");
    }
    let (table, uses, mut schedules) = parse_header(header, version)?;
    let mut end = programs_start;
    for section in schedules.iter_mut().flat_map(|s| &mut s.1) {
        section.start = section.start.saturating_add(programs_start);
        if section.start != end {
            return damaged("its programs do not follow one another");
        }
        end = end.saturating_add(section.len);
    }
    if end > bytes.len() as u64 {
        return Err(truncated(end));
    }
    if end < bytes.len() as u64 {
        return damaged(format!("{} bytes follow its last program", bytes.len() as u64 - end));
    }
    let is_whole = |s: &Section| checksum(&bytes[s.start as usize..(s.start + s.len) as usize]) == s.checksum;
    for (number, (_, sections)) in schedules.iter().enumerate() {
        if let Some(rank) = parallel::map(sections, is_whole).position(|is_whole| !is_whole) {
            return damaged(format!("the checksum of rank {rank} in schedule {number} does not fit"));
        }
    }
    let proofs = schedules.iter().map(|_| OnceLock::new()).collect();
    Ok(PlanFile { table, uses, schedules, proofs, bytes })
}

type Header = (DecisionTable, Vec<Option<usize>>, Vec<(Facts, Vec<Section>)>);

fn parse_header(bytes: &[u8], version: u32) -> Got<Header> {
    let mut header = In::new(bytes);
    let count = header.count(36)?;
    let (mut rows, mut uses) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for _ in 0..count {
        let kind = header.text()?.parse()?;
        let ranks = header.u32()?;
        let per_node = if version < 2 { ANY_PER_NODE } else { header.u32()? };
        let per_node = (per_node != ANY_PER_NODE).then_some(per_node);
        let class = class(&mut header)?;
        let (first_bytes, last_bytes) = (header.u64()?, header.u64()?);
        let used = header.u32()?;
        let choice = if used == LIBRARY { Choice::Library } else { algorithm(&mut header)? };
        rows.push(Row { kind, ranks, per_node, class, first_bytes, last_bytes, choice });
        uses.push((used != LIBRARY).then_some(used as usize));
    }
    let count = header.count(40)?;
    let mut schedules = Vec::with_capacity(count);
    for _ in 0..count {
        let facts = facts(&mut header, version)?;
        let ranks = facts.collective.ranks as usize;
        if ranks.saturating_mul(24) > bytes.len() {
            return damaged("a schedule has more ranks than the file has room for");
        }
        let mut sections = Vec::with_capacity(ranks);
        for _ in 0..ranks {
            sections.push(Section { start: header.u64()?, len: header.u64()?, checksum: header.u64()? });
        }
        schedules.push((facts, sections));
    }
    header.end()?;
    for (row, used) in rows.iter().zip(&uses) {
        let Some(used) = *used else { continue };
        let fits = schedules.get(used).is_some_and(|(facts, _): &(Facts, _)| {
            (facts.collective.kind, facts.collective.ranks) == (row.kind, row.ranks) && facts.class >= row.class
        });
        if !fits {
            return damaged(format!("the row '{row}' names a schedule that does not serve it"));
        }
    }
    let sorted = rows.clone();
    let table = DecisionTable::new(rows)?;
    if table.rows() != sorted {
        return damaged("the rows of its table are not in order");
    }
    Ok((table, uses, schedules))
}

fn class(from: &mut In<'_>) -> Got<OperatorClass> {
    let name = from.text()?;
    match OperatorClass::ALL.iter().find(|c| c.name() == name) {
        Some(&class) => Ok(class),
        None => damaged(format!("'{name}' is no class of operators")),
    }
}

fn algorithm(from: &mut In<'_>) -> Got<Choice> {
    let name = from.text()?;
    let count = from.count(8)?;
    let mut params = Vec::with_capacity(count);
    for _ in 0..count {
        params.push((from.text()?, from.text()?));
    }
    Ok(Choice::Algorithm { name, params })
}

fn facts(from: &mut In<'_>, version: u32) -> Got<Facts> {
    let kind = from.text()?.parse()?;
    let (ranks, elements, root) = (from.u32()?, from.u32()?, from.u32()?);
    let (operator, dtype) = (from.text()?.parse()?, from.text()?.parse()?);
    let collective = Collective::new(kind, ranks, u64::from(elements), u64::from(root), operator, dtype)?;
    if elements == 0 {
        return damaged("a schedule has no blocks");
    }
    let blocking = if from.u8()? == 0 { Blocking::Any } else { Blocking::Equal };
    let class = class(from)?;
    let repeatable = from.u8()? != 0;
    let in_place = version >= 2 && from.u8()? != 0;
    let (expression, method, origin) = (from.text()?, from.text()?, from.text()?);
    Ok(Facts { collective, blocking, class, repeatable, in_place, expression, method, origin })
}

pub fn program(bytes: &[u8], facts: &Facts, rank: u32) -> Got<RankProgram> {
    let mut from = In::new(bytes);
    let scratch_blocks = from.u32()?;
    let mut lanes: Vec<Lane> = Vec::new();
    for _ in 0..from.count(8)? {
        let (steps, arrivals) = lanes.last().map_or((0, 0), |l| (l.steps.end, l.arrivals.end));
        lanes.push(Lane { steps: steps..from.u32()?, arrivals: arrivals..from.u32()? });
    }
    let count = from.count(47)?;
    let mut steps = Vec::with_capacity(count);
    for _ in 0..count {
        let (len, align) = (from.u32()?, from.u32()?);
        let a = place(&mut from)?;
        let (b, to) = (place(&mut from)?, place(&mut from)?);
        let Some(a) = a else { return damaged("a step has no source") };
        let mut range = || -> Got<Range<u32>> { Ok(from.u32()?..from.u32()?) };
        steps.push(Step { len, align, a, b, to, arrivals: range()?, departures: range()?, waits: range()? });
    }
    let count = from.count(29)?;
    let mut arrivals = Vec::with_capacity(count);
    for _ in 0..count {
        let Departure { peer, tag, place, len, align } = message(&mut from)?;
        arrivals.push(Arrival { peer, tag, place, len, align, waits: from.u32()?..from.u32()? });
    }
    let count = from.count(21)?;
    let mut departures = Vec::with_capacity(count);
    for _ in 0..count {
        departures.push(message(&mut from)?);
    }
    let count = from.count(5)?;
    let mut waits = Vec::with_capacity(count);
    for _ in 0..count {
        waits.push(match from.u8()? {
            0 => Wait::Step(from.u32()?),
            1 => Wait::Departure(from.u32()?),
            _ => return damaged("a wait is of no known kind"),
        });
    }
    from.end()?;
    let program = RankProgram { scratch_blocks, lanes, steps, arrivals, departures, waits };
    match bounds(&program, &facts.collective, facts.blocking, rank) {
        Ok(()) => Ok(program),
        Err(why) => damaged(why.to_string()),
    }
}

fn place(from: &mut In<'_>) -> Got<Option<Place>> {
    let (buffer, start) = (from.u8()?, from.u32()?);
    Ok(Some(match buffer {
        0 => Place::In(start),
        1 => Place::Out(start),
        2 => Place::Tmp(start),
        NO_PLACE => return Ok(None),
        _ => return damaged("a place is in no known buffer"),
    }))
}

fn message(from: &mut In<'_>) -> Got<Departure> {
    let (peer, tag) = (from.u32()?, from.u32()?);
    let Some(place) = place(from)? else { return damaged("a message has no place") };
    Ok(Departure { peer, tag, place, len: from.u32()?, align: from.u32()? })
}
