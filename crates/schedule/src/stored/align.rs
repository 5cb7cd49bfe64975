//! Checks that memory holds the input blocks that steps expect. The last blocks of a whole vector may be short or empty
//! ([`super::Blocking::Any`]). So the lengths of a step's blocks depend on its alignment, the index of its first input
//! block.

use unisono_base::{Span, interrupt};

use super::{Place, RankProgram, Unsound, order::Event, runs::Runs, touches::region};

/// Follows the steps of a rank in the order of its `events`, tracks which input block each block of its output and
/// scratch memory holds, and compares it with the alignments of steps and messages.
///
/// # Errors
/// Returns an error if a step or a message uses blocks that differ from its alignment.
pub fn check(p: &RankProgram, rank: u32, events: &[Event]) -> Result<(), Unsound> {
    let held: &mut [Runs<i64>; 2] = &mut Default::default();
    for &event in events {
        interrupt::poll();
        let Event::Step(s) = event else { continue };
        let step = &p.steps[s as usize];
        let put = |held: &mut [Runs<i64>; 2], place: Place, len: u32, align: u32| {
            let (buffer, span) = region(place, len);
            if let Some(runs) = buffer.checked_sub(1).and_then(|n| held.get_mut(n)) {
                runs.set(span, i64::from(align) - i64::from(span.start));
            }
        };
        let holds = |held: &[Runs<i64>; 2], place: Place, len: u32, align: u32| match region(place, len) {
            (0, span) => span.start == align,
            (buffer, span) => alignment(&held[buffer - 1], span) == Some(align),
        };
        // Departures are checked below. Both ends of a message have the same alignment, so arrivals need no check.
        for a in step.arrivals.clone() {
            let arrival = &p.arrivals[a as usize];
            put(held, arrival.place, arrival.len, arrival.align);
        }
        let mut sound = true;
        if let Some(to) = step.to {
            for source in [Some(step.a), step.b].into_iter().flatten() {
                sound &= holds(held, source, step.len, step.align);
            }
            put(held, to, step.len, step.align);
        }
        for d in step.departures.clone() {
            let departure = &p.departures[d as usize];
            sound &= holds(held, departure.place, departure.len, departure.align);
        }
        if !sound {
            return Err(Unsound::Alignment { rank, step: s });
        }
    }
    Ok(())
}

/// Returns the input block at the start of `span`, if `span` holds consecutive input blocks. `shifts` has, for each
/// written block of a buffer, the index of the input block that it holds, minus its own index.
pub fn alignment(shifts: &Runs<i64>, span: Span) -> Option<u32> {
    let mut at = u64::from(span.start);
    let mut shift = None;
    for (from, to, &value) in shifts.over(span) {
        if from != at || shift.is_some_and(|s| s != value) {
            return None;
        }
        (at, shift) = (to, Some(value));
    }
    shift.filter(|_| at == span.end()).and_then(|s| u32::try_from(i64::from(span.start) + s).ok())
}
