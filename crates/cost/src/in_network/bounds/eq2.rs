//! Eq. 2: beta m with beta = max(2 s / BW_link, 2 s / BW_mem).

use unisono_collective::Kind;

use super::{InNetworkBound, InNetworkCase};
use crate::LowerBound;
use crate::in_network::eq2_ns;

pub struct Eq2;

impl LowerBound for Eq2 {
    fn name(&self) -> &'static str {
        "eq-2"
    }

    fn reference(&self) -> &'static str {
        "Lakhotia et al., in-network reduction on PIUMA, Eq. 2"
    }

    fn assumes(&self) -> &'static str {
        "one embedding: the whole vector passes each of its links"
    }
}

impl InNetworkBound for Eq2 {
    fn is_general(&self) -> bool {
        false
    }

    fn nanoseconds(&self, case: &InNetworkCase) -> Option<f64> {
        let c = &case.collective;
        let per_element = eq2_ns(case.machine, c.dtype.bytes());
        (c.kind == Kind::Allreduce && !case.is_local()).then(|| per_element * f64::from(c.elements))
    }
}
