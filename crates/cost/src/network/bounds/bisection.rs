//! Bisection: in each direction, about a quarter of an alltoall's blocks cross a cut into halves.
//!
//! From a set of h of P accelerators, h (P - h) blocks leave over the links at its border. The topology states the cut,
//! which need not be the least. Source: "HammingMesh", section 3.1 (relative bisection bandwidth).

use unisono_collective::Kind;
use unisono_machine::network::cut::Cut;

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
        let Cut { inside, rate } = case.topology.halves()?;
        let crosses = f64::from(inside) * f64::from(all - inside) * c.bytes() as f64;
        Some(crosses / rate * case.model.ns_per_byte)
    }
}
