//! The best candidate of a plan as MPI programs run it: a proved schedule over blocks.
//!
//! The algorithm is built for several counts: the requested count, and slightly larger counts that it can divide into
//! pieces of equal length. In each schedule, elements are grouped into the largest blocks that divide all lengths and
//! offsets. The schedule with the fewest blocks is stored, and serves every count, or every multiple of its number of
//! blocks (`Blocking::Equal`). A ring of P ranks thus has P blocks, recursive doubling has one block, and a pipeline
//! has one block per segment.

use unisono_algorithms::{Case, Params};
use unisono_base::narrow;
use unisono_collective::Collective;
use unisono_schedule::{
    Schedule,
    stored::{Stored, condense, store},
    verify::{Method, Verified},
};

use crate::{PlanError, Timed};

/// Builds, proves and stores the schedule of the candidate `best` over the fewest blocks. `asked` builds its schedule
/// for the requested count, which is used if the algorithm supports no count with these parameters.
pub(crate) fn store_best<'a>(
    case: &Case,
    best: &Timed,
    asked: impl FnOnce() -> Result<&'a Schedule, PlanError>,
) -> Result<Stored, PlanError> {
    let c = case.collective;
    let mut fewest: Option<Schedule> = None;
    for elements in counts(&c, &best.params) {
        let case = Case { collective: Collective { elements, ..c }, ..*case };
        if best.algorithm.supports(&case, &best.params).is_err() {
            continue;
        }
        let built = condense(&best.algorithm.build(&case, &best.params)?.schedule);
        let blocks = built.collective().elements;
        if fewest.as_ref().is_none_or(|f| blocks < f.collective().elements) {
            fewest = Some(built);
        }
        if blocks == 1 {
            break;
        }
    }
    let mut schedule = match fewest {
        Some(schedule) => schedule,
        None => condense(asked()?),
    };
    schedule.set_origin(&format!("{} {}", best.algorithm.name(), best.params));
    stored(schedule)
}

/// Proves a schedule and stores it.
///
/// # Errors
/// Returns an error if the proof fails, or message passing cannot run the schedule.
pub fn stored(schedule: Schedule) -> Result<Stored, PlanError> {
    Ok(store(&proved(schedule)?)?)
}

/// Proves a schedule.
pub(crate) fn proved(schedule: Schedule) -> Result<Verified<'static>, PlanError> {
    let origin = schedule.origin().to_owned();
    Verified::new(schedule, Method::Auto).map_err(|proof| PlanError::NotProved {
        algorithm: origin,
        message: proof.diagnostics.first().map_or_else(String::new, ToString::to_string),
    })
}

/// Returns the requested count, and the next larger multiples of the numbers and lengths of pieces into which
/// algorithms divide vectors. These counts exceed the requested count by at most a quarter and 2 P^2 elements on P
/// ranks, so that algorithms with thresholds behave as for the requested count.
fn counts(c: &Collective, params: &Params) -> Vec<u32> {
    let number = |name: &str| params.get(name).and_then(|value| value.parse::<u64>().ok());
    let ranks = u64::from(c.ranks);
    let asked = u64::from(c.elements.max(1));
    let segments = [number("segment"), Some(1 << 10), Some(8 << 10), Some(64 << 10), Some(512 << 10)];
    let pieces = segments.into_iter().flatten().map(|bytes| bytes / c.element_bytes()).chain(number("blocks"));
    let whole = 1 << ranks.ilog2();
    let units = [1, ranks, whole, 2 * ranks, 4 * ranks, ranks * whole].into_iter().chain(pieces);
    let up = units.filter(|&unit| unit > 0).map(|unit| asked.div_ceil(unit) * unit);
    let near = up.filter(|&n| n <= asked + asked / 4 + 2 * ranks * ranks && n * ranks <= u64::from(u32::MAX));
    let mut counts: Vec<u32> = near.map(narrow).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}
