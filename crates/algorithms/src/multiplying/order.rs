//! The order of stages. By the model every order of the plain factors has the same cost, but on a machine with levels,
//! or if ranks run ahead, the times differ.

use std::collections::BTreeMap;

use super::{Stages, Wrap};

/// Returns the schedules with all orders of the plain factors, each once, in lexicographic order.
pub fn orders(stages: &Stages) -> impl Iterator<Item = Stages> + use<> {
    let (stages, mut next) = (stages.clone(), Some(stages.factors().to_vec()));
    if let Some(factors) = &mut next {
        factors.sort_unstable();
    }
    std::iter::from_fn(move || {
        let now = next.take()?;
        next = after(&now);
        Some(stages.with_factors(now))
    })
}

/// Returns the next order of a list in lexicographic order, if there is one.
fn after(factors: &[u32]) -> Option<Vec<u32>> {
    let mut factors = factors.to_vec();
    let rise = factors.windows(2).rposition(|pair| pair[0] < pair[1])?;
    let larger = factors.iter().rposition(|&f| f > factors[rise])?;
    factors.swap(rise, larger);
    factors[rise + 1..].reverse();
    Some(factors)
}

/// Returns the schedule of least `cost`, for example the time of a simulator, with its cost; of equal costs the first,
/// `None` without schedules.
///
/// # Errors
/// Returns the first error of `cost`.
pub fn best_of<E>(
    schedules: impl IntoIterator<Item = Stages>,
    mut cost: impl FnMut(&Stages) -> Result<f64, E>,
) -> Result<Option<(Stages, f64)>, E> {
    let mut best: Option<(Stages, f64)> = None;
    for stages in schedules {
        let cost = cost(&stages)?;
        if best.as_ref().is_none_or(|(_, least)| cost < *least) {
            best = Some((stages, cost));
        }
    }
    Ok(best)
}

/// Reorders the stages so that early stages stay inside nodes of `node_ranks` consecutive ranks: first come the plain
/// factors whose product, multiplied by the base of a split or the first factor of a merge, is the largest that divides
/// `node_ranks` (section 8 of "Generalisation of recursive doubling for AllReduce" proposes this for ARCHER). A stage
/// exchanges inside blocks of as many ranks as the product of the factors up to and including that stage, and a block
/// whose size divides `node_ranks` is inside a node. This is exact for factored schedules and splits of all ranks;
/// merges and other splits shift a few blocks across nodes.
pub fn within_nodes(stages: &Stages, node_ranks: u32) -> Stages {
    let factors = stages.factors();
    let block = match stages.wrap() {
        Wrap::Plain => 1,
        Wrap::Split { base, .. } => base,
        Wrap::Merge { first, .. } => first,
    };
    // For each product that divides `node_ranks`, one set of factors as a bit mask. A schedule has at most 31 factors.
    let mut chosen: BTreeMap<u32, u32> = BTreeMap::from([(block, 0)]);
    for (at, &factor) in factors.iter().enumerate() {
        let longer = chosen.iter().filter_map(|(product, bits)| Some((product.checked_mul(factor)?, bits | 1 << at)));
        for (product, bits) in longer.filter(|(product, _)| node_ranks.is_multiple_of(*product)).collect::<Vec<_>>() {
            chosen.entry(product).or_insert(bits);
        }
    }
    let inside = chosen.last_key_value().map_or(0, |(_, bits)| *bits);
    let pick = |wanted: bool| {
        factors.iter().enumerate().filter(move |(at, _)| (inside >> at & 1 == 1) == wanted).map(|(_, &factor)| factor)
    };
    stages.with_factors(pick(true).chain(pick(false)).collect())
}
