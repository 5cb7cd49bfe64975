//! Programs whose input and output may be the same memory, as with `MPI_IN_PLACE`.
//!
//! A proven schedule may write its output while it still reads its input. If input and output are the same memory, each
//! such write must wait for the earlier reads: a step waits for the steps and departures that read the overwritten
//! blocks, and a receive waits for them before it is posted. [`in_place`] adds these waits. If a read follows a write
//! of its own lane, waits do not help, and the input must be copied. Ranks that do not run in place have fewer waits.
//! So if there is no cycle when all ranks run in place, there is none when only some do. The proof checks programs with
//! these waits like any others (`prove.rs`).

use unisono_base::Span;
use unisono_collective::{Collective, Kind};

use super::{Arrival, Place, RankProgram, Step, Wait, runs::Runs, touches::region};

/// The most entries in the table of reads, and the most reads with which writes are compared. A rank that needs more
/// copies its input.
const MOST_ENTRIES: usize = 1 << 22;

/// Returns the block of the rank's output that holds the first block of its input, if the collective can be called in
/// place.
pub fn offset(c: &Collective, rank: u32) -> Option<u32> {
    match c.kind {
        Kind::Allgather => Some(rank * c.elements),
        // Only the root has an output.
        Kind::Gather => Some(if rank == c.root { rank * c.elements } else { 0 }),
        Kind::Allreduce | Kind::Reduce | Kind::ReduceScatter | Kind::Alltoall | Kind::Scan => Some(0),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct Read {
    /// Step that reads, or that precedes the departure that reads.
    step: u32,
    departure: Option<u32>,
    span: Span,
}

/// Returns the program for a rank whose input is in its output, or `None` if the rank needs a copy of its input.
pub fn in_place(program: &RankProgram, c: &Collective, rank: u32) -> Option<RankProgram> {
    let offset = offset(c, rank)?;
    let reads = reads(program)?;
    let lanes: Vec<u32> = (0u32..)
        .zip(&program.lanes)
        .flat_map(|(lane, l)| std::iter::repeat_n(lane, (l.steps.end - l.steps.start) as usize))
        .collect();
    let mut consumers = vec![0; program.arrivals.len()];
    for (s, step) in (0u32..).zip(&program.steps) {
        step.arrivals.clone().for_each(|a| consumers[a as usize] = s);
    }
    let mut entries = 0;
    // Returns the waits of a write to `place`: a write by step `by` if `as_step`, otherwise by a message that step `by`
    // consumes.
    let mut waits = |place: Place, len: u32, by: u32, as_step: bool| -> Option<Vec<Wait>> {
        let (1, span) = region(place, len) else { return Some(Vec::new()) };
        let mut waits = Vec::new();
        // The range of input blocks that the write overwrites.
        let start = u64::from(span.start).max(u64::from(offset)) - u64::from(offset);
        let end = span.end().saturating_sub(u64::from(offset));
        let over = Span::new(u32::try_from(start).ok()?, u32::try_from(end.saturating_sub(start)).ok()?);
        for (_, _, reads) in reads.over(over).filter(|_| !over.is_empty()) {
            entries += reads.len();
            for read in reads {
                let same_lane = lanes[read.step as usize] == lanes[by as usize];
                match read.departure {
                    None if as_step && read.step == by => {
                        // If a step reads and writes the same positions, it reads each element before it writes the
                        // element.
                        let moved = u64::from(read.span.start) + u64::from(offset);
                        if (moved, read.span.len) != (u64::from(span.start), len) {
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
        (entries <= MOST_ENTRIES).then_some(waits)
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

/// Returns the reads of each range of the input, or `None` if there are more than [`MOST_ENTRIES`].
fn reads(program: &RankProgram) -> Option<Runs<Vec<Read>>> {
    let mut reads: Runs<Vec<Read>> = Runs::default();
    let mut entries = 0;
    let mut add = |place: Place, len: u32, step: u32, departure: Option<u32>| {
        let (0, span) = region(place, len) else { return Some(()) };
        reads.update(span, Vec::new, |here| {
            here.push(Read { step, departure, span });
            entries += 1;
        });
        (entries <= MOST_ENTRIES).then_some(())
    };
    for (s, step) in (0u32..).zip(&program.steps) {
        // A step without a target only sends, so this step does not read its source.
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
