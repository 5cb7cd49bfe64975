//! Programs that may be given the memory of their output as that of their input, as `MPI_IN_PLACE` has it.
//!
//! A proven schedule may write its output while it still reads its input. In one memory each such write has to wait for
//! the reads before it: a step for the steps and departures that read the place, a receive likewise before it is posted.
//! [`in_place`] adds these waits; where a read comes after a write of its own lane, none help, and the input has to be
//! copied. Values stay those of the proof, since every read of the input still ends before the place is written. Waits
//! may close a circle, so [`super::store`] asks once more whether the order has one; ranks that do not run in place
//! wait for less, and a mixture has no circle that they all together have not.

use unisono_collective::{Collective, Kind};

use super::{Arrival, Place, RankProgram, Step, Wait};

/// Tables of more entries are not made: the input is copied then.
const MOST_ENTRIES: usize = 1 << 22;

/// Which output block the first input block is, where a collective may be called in place.
pub fn offset(c: &Collective, rank: u32) -> Option<u32> {
    match c.kind {
        Kind::Allgather => Some(rank * c.elements),
        Kind::Allreduce | Kind::Reduce | Kind::ReduceScatter | Kind::Alltoall => Some(0),
        _ => None,
    }
}

/// A read of an input block.
#[derive(Clone, Copy)]
struct Read {
    /// The step that reads, or that sends the departure.
    step: u32,
    departure: Option<u32>,
    /// The input block that the read begins with, and its length: an operation on exactly this span may write it.
    start: u32,
    len: u32,
}

/// The program for a rank whose input lies in its output; none where it needs a copy.
pub fn in_place(program: &RankProgram, c: &Collective, rank: u32) -> Option<RankProgram> {
    let offset = offset(c, rank)?;
    let reads = reads(program, c.input_len(rank))?;
    let lanes: Vec<u32> = (0u32..)
        .zip(&program.lanes)
        .flat_map(|(lane, l)| std::iter::repeat_n(lane, (l.steps.end - l.steps.start) as usize))
        .collect();
    let mut consumers = vec![0; program.arrivals.len()];
    for (s, step) in (0u32..).zip(&program.steps) {
        step.arrivals.clone().for_each(|a| consumers[a as usize] = s);
    }
    // What `write` of a span, done by step `by` or before it, has to wait for.
    let waits = |place: Place, len: u32, by: u32, as_step: bool| -> Option<Vec<Wait>> {
        let Place::Out(start) = place else { return Some(Vec::new()) };
        let mut waits = Vec::new();
        for block in start..start + len {
            let Some(reads) = block.checked_sub(offset).and_then(|b| reads.get(b as usize)) else { continue };
            for read in reads {
                let same_lane = lanes[read.step as usize] == lanes[by as usize];
                match read.departure {
                    None if as_step && read.step == by => {
                        // Element by element, each is read before it is written.
                        if (read.start + offset, read.len) != (start, len) {
                            return None;
                        }
                    }
                    _ if same_lane && read.step >= by => return None,
                    None if same_lane && as_step => {}
                    None => waits.push(Wait::Step(read.step)),
                    Some(departure) => waits.push(Wait::Departure(departure)),
                }
            }
        }
        waits.sort_unstable();
        waits.dedup();
        Some(waits)
    };
    let mut rows = Vec::new();
    let mut with = |old: &std::ops::Range<u32>, more: Vec<Wait>| {
        let first = rows.len() as u32;
        rows.extend_from_slice(&program.waits[old.start as usize..old.end as usize]);
        rows.extend(more);
        first..rows.len() as u32
    };
    let mut steps: Vec<Step> = program.steps.clone();
    for (s, step) in (0u32..).zip(&mut steps) {
        let more = step.to.map_or(Some(Vec::new()), |to| waits(to, step.len, s, true))?;
        step.waits = with(&step.waits, more);
    }
    let mut arrivals: Vec<Arrival> = program.arrivals.clone();
    for (arrival, &consumer) in arrivals.iter_mut().zip(&consumers) {
        let more = waits(arrival.place, arrival.len, consumer, false)?;
        arrival.waits = with(&arrival.waits, more);
    }
    Some(RankProgram { steps, arrivals, waits: rows, ..program.clone() })
}

/// The reads of each input block.
fn reads(program: &RankProgram, blocks: u32) -> Option<Vec<Vec<Read>>> {
    let mut reads: Vec<Vec<Read>> = vec![Vec::new(); blocks as usize];
    let mut entries = 0;
    let mut add = |place: Place, len: u32, step: u32, departure: Option<u32>| {
        let Place::In(start) = place else { return Some(()) };
        entries += len as usize;
        for block in start..start + len {
            reads.get_mut(block as usize)?.push(Read { step, departure, start, len });
        }
        (entries <= MOST_ENTRIES).then_some(())
    };
    for (s, step) in (0u32..).zip(&program.steps) {
        // A step without a target only sends.
        if step.to.is_some() {
            for place in [Some(step.a), step.b].into_iter().flatten() {
                add(place, step.len, s, None)?;
            }
        }
        for d in step.departures.clone() {
            let departure = &program.departures[d as usize];
            add(departure.place, departure.len, s, Some(d))?;
        }
    }
    Some(reads)
}
