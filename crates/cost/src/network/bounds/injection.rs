//! Injection: what some accelerator must send, or receive, over all of its links.
//!
//! An allreduce of S over k links of price beta: 2 S beta / k x (P-1)/P. Sources: "HammingMesh", section 4; the least bytes
//! of each collective as in the bound `bandwidth` among endpoints (Patarasuk, Yuan, 2009, Theorem 1).

use super::NetworkCase;
use crate::endpoint::bounds::bandwidth::least_bytes;
use crate::{Bound, CostProblem, Time};

pub struct Injection;

impl Bound for Injection {
    fn name(&self) -> &'static str {
        "injection"
    }

    fn reference(&self) -> &'static str {
        "HammingMesh, section 4; Patarasuk and Yuan, 2009, Theorem 1"
    }

    fn assumes(&self) -> &'static str {
        "bytes neither compressed nor sent twice, nothing reduced in switches"
    }

    fn time(&self, problem: &CostProblem) -> Option<Time> {
        Self::nanoseconds(&NetworkCase::of(problem)?).map(Time::from_ns)
    }
}

impl Injection {
    fn nanoseconds(case: &NetworkCase) -> Option<f64> {
        if case.collective.is_local() {
            return Some(0.0);
        }
        let (sent, received) = least_bytes(&case.collective)?;
        Some(sent.max(received) as f64 * case.injection_ns_per_byte())
    }
}
