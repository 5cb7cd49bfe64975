//! Bisection: half of an alltoall's blocks cross any cut into halves, in each direction.
//!
//! (P/2)^2 blocks over the share of the injection of P/2 accelerators that the smallest cut carries. Source:
//! "HammingMesh", section 3.1 (relative bisection bandwidth).

use unisono_collective::Kind;

use super::NetworkCase;
use crate::{Bound, CostProblem, Time};

pub struct Bisection;

impl Bound for Bisection {
    fn name(&self) -> &'static str {
        "bisection"
    }

    fn reference(&self) -> &'static str {
        "HammingMesh, section 3.1"
    }

    fn assumes(&self) -> &'static str {
        "every accelerator has a rank; bytes not compressed"
    }

    fn time(&self, problem: &CostProblem) -> Option<Time> {
        Self::nanoseconds(&NetworkCase::of(problem)?).map(Time::from_ns)
    }
}

impl Bisection {
    fn nanoseconds(case: &NetworkCase) -> Option<f64> {
        let (c, all) = (&case.collective, case.topology.accelerators());
        if c.kind != Kind::Alltoall || c.ranks != all || all < 2 {
            return None;
        }
        // An odd number is cut into parts that differ by one.
        let (small, large) = (f64::from(all / 2), f64::from(all.div_ceil(2)));
        let block = (u64::from(c.elements) * c.dtype.bytes()) as f64;
        let crosses = small * large * block;
        let share = case.topology.bisection_share()?;
        Some(crosses * case.injection_ns_per_byte() / (large * share))
    }
}
