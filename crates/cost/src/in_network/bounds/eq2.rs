//! Eq. 2 of "Accelerating Allreduce with in-network reduction on Intel PIUMA": an allreduce of m elements of s bits
//! takes at least beta m, with beta = max(2 s / BW_link, 2 s / BW_mem). BW_link is the rate of both directions of a
//! link together.

use unisono_collective::Kind;

use super::InNetworkCase;
use crate::in_network::eq2_ns;
use crate::{Bound, CostProblem, Standing, Time};

pub struct Eq2;

impl Bound for Eq2 {
    fn name(&self) -> &'static str {
        "eq-2"
    }

    fn reference(&self) -> &'static str {
        "Lakhotia et al., in-network reduction on PIUMA, Eq. 2"
    }

    fn assumes(&self) -> &'static str {
        "one embedding: the whole vector passes each of its links"
    }

    fn standing(&self) -> Standing {
        Standing::OfModel
    }

    fn time(&self, problem: &CostProblem) -> Option<Time> {
        Self::nanoseconds(&InNetworkCase::of(problem)?).map(Time::from_ns)
    }
}

impl Eq2 {
    fn nanoseconds(case: &InNetworkCase) -> Option<f64> {
        let c = &case.collective;
        let per_element = eq2_ns(case.machine, c.element_bytes());
        (c.kind == Kind::Allreduce && !case.collective.is_local()).then(|| per_element * f64::from(c.elements))
    }
}
