//! Eq. 2 of "Accelerating Allreduce with in-network reduction on Intel PIUMA": an allreduce of m elements of s bits
//! takes at least beta m, with beta = max(2 s / BW_link, 2 s / BW_mem). BW_link is the rate of both directions of a
//! link together.

use unisono_collective::Kind;

use super::InNetworkCase;
use crate::in_network::eq2_ns;
use crate::{Bound, Standing, Time};

pub const EQ2: Bound = Bound {
    name: "eq-2",
    reference: "Lakhotia et al., in-network reduction on PIUMA, Eq. 2",
    assumes: "one embedding: the whole vector passes each of its links",
    standing: Standing::OfModel,
    time: |problem| nanoseconds(&InNetworkCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

fn nanoseconds(case: &InNetworkCase) -> Option<f64> {
    let c = &case.collective;
    let per_element = eq2_ns(case.machine, c.element_bytes());
    (c.kind == Kind::Allreduce && !case.collective.is_local()).then(|| per_element * f64::from(c.elements))
}
