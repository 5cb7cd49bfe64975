//! Work: each element takes P-1 reductions of one operand, and at best the P ranks share them evenly.
//!
//! Source: Chan, Heimlich, Purkayastha, van de Geijn, 2007, section 2.

use unisono_collective::Kind;

use super::{EndpointCase, sure_ns};
use crate::{Bound, Time};

pub const WORK: Bound = Bound {
    name: "work",
    reference: "Chan, Heimlich, Purkayastha, van de Geijn, 2007, section 2",
    assumes: "nothing beyond the model: one reduction at a time on a rank",
    time: |problem| nanoseconds(&EndpointCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

fn nanoseconds(case: &EndpointCase) -> Option<f64> {
    let (ranks, n) = (f64::from(case.collective.ranks), case.bytes());
    let bytes = match case.collective.kind {
        Kind::Reduce | Kind::Allreduce => n * (ranks - 1.0) / ranks,
        Kind::ReduceScatter => n * (ranks - 1.0),
        // The result of the last rank alone takes as many reductions as the result of a reduce.
        Kind::Scan => n * (ranks - 1.0) / ranks,
        _ => return None,
    };
    Some(if case.collective.is_local() { 0.0 } else { sure_ns(bytes * case.prices.cheapest().reduce_ticks_per_byte()) })
}
