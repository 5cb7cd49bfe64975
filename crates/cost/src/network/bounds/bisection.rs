//! Bisection: in each direction, about a quarter of an alltoall's blocks cross a cut into halves.
//!
//! From a set of h of P accelerators, h (P - h) blocks leave over the links at the border of the set. The topology
//! states the cut, which need not be the smallest cut. Source: "HammingMesh", section 3.1 (relative bisection
//! bandwidth).

use unisono_collective::Kind;
use unisono_machine::network::cut::Cut;

use super::NetworkCase;
use crate::{Bound, Time};

pub const BISECTION: Bound = Bound {
    name: "bisection",
    reference: "HammingMesh, section 3.1",
    assumes: "every accelerator has a rank; bytes not compressed",
    time: |problem| nanoseconds(&NetworkCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

fn nanoseconds(case: &NetworkCase) -> Option<f64> {
    let (c, all) = (&case.collective, case.topology.accelerators());
    if c.kind != Kind::Alltoall || c.ranks != all || all < 2 {
        return None;
    }
    let Cut { inside, rate } = case.topology.halves()?;
    let crosses = f64::from(inside) * f64::from(all - inside) * c.bytes() as f64;
    Some(crosses / rate * case.model.ns_per_byte)
}
