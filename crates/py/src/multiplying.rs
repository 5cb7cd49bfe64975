//! Schedules of recursive multiplying: their cost, their number and the cheapest schedule.

use pyo3::{
    prelude::*,
    types::{IntoPyDict, PyDict},
};
use unisono_algorithms::multiplying::{self, Search, StagePrices, Stages};
use unisono_collective::Collective;

use crate::{
    convert::index,
    errors::{detached, input},
};

/// The largest number of schedules that are listed. More would take gigabytes of memory.
const MOST_LISTED: u64 = 1 << 20;

fn ranks(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let ranks = index("ranks", value)?;
    if ranks == 0 || ranks > Collective::MAX_RANKS {
        return Err(input(format!("ranks is {ranks}; accepted are 1 to {}", Collective::MAX_RANKS)));
    }
    Ok(ranks)
}

/// Checks the cost parameters: the times of a stage, of a message sent and of a message reduced, all in one unit.
fn prices((latency, send, reduce): (f64, f64, f64)) -> PyResult<StagePrices> {
    for price in [latency, send, reduce] {
        if !(price.is_finite() && price >= 0.0) {
            return Err(input(format!("a price is {price}; accepted are finite numbers from 0 on")));
        }
    }
    Ok(StagePrices { latency_ns: latency, send_ns: send, reduce_ns: reduce })
}

/// Returns the cheapest schedule of a kind, or of all kinds for `any`, with its cost. None if the kind has no schedule.
#[pyfunction]
pub fn multiplying_best(
    py: Python<'_>,
    ranks: &Bound<'_, PyAny>,
    prices: (f64, f64, f64),
    kind: &str,
) -> PyResult<Option<(String, f64)>> {
    let search = Search::new(self::ranks(ranks)?, self::prices(prices)?);
    let best = match kind {
        "any" => detached(py, || Some(search.best()))?,
        "factored" => Some(search.factored()),
        "split" => detached(py, || search.split())?,
        "merge" => detached(py, || search.merge())?,
        other => return Err(input(format!("kind is '{other}'; accepted are any, factored, split, merge"))),
    };
    Ok(best.map(|best| (best.stages.to_string(), best.cost_ns)))
}

/// Returns the total time of the stages of a schedule, in the unit of `prices`.
#[pyfunction]
pub fn multiplying_cost(schedule: &str, ranks: &Bound<'_, PyAny>, prices: (f64, f64, f64)) -> PyResult<f64> {
    let stages = Stages::parse(schedule, self::ranks(ranks)?).map_err(input)?;
    Ok(self::prices(prices)?.total_ns(&stages))
}

/// Returns the number of schedules of each kind, at most 2^64 - 1.
#[pyfunction]
pub fn multiplying_count<'py>(py: Python<'py>, ranks: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let ranks = self::ranks(ranks)?;
    let found = detached(py, || multiplying::count(ranks))?;
    [("factored", found.factored), ("split", found.split), ("merge", found.merge)].into_py_dict(py)
}

/// Returns all schedules if there are at most [`MOST_LISTED`]: factored, then split, then merge.
#[pyfunction]
pub fn multiplying_schedules(py: Python<'_>, ranks: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let ranks = self::ranks(ranks)?;
    detached(py, || {
        let found = multiplying::count(ranks);
        let all = found.factored.saturating_add(found.split).saturating_add(found.merge);
        if all > MOST_LISTED {
            return Err(input(format!("{ranks} ranks have {all} schedules; at most {MOST_LISTED} are listed")));
        }
        Ok(multiplying::list(ranks).iter().map(ToString::to_string).collect())
    })?
}

/// Returns the best number of messages that a rank sends at once in a stage, not rounded. `ratio` is alpha_p, the delay
/// of a message, divided by alpha_r, the time for which a message occupies its sender.
#[pyfunction]
pub fn multiplying_fan_out(ratio: f64) -> PyResult<f64> {
    let best = multiplying::best_fan_out(ratio);
    if best.is_nan() { Err(input(format!("ratio is {ratio}; accepted are numbers from 0 on"))) } else { Ok(best) }
}
