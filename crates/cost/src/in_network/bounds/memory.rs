//! Memory, the term of Eq. 2 for the memory: every core that contributes reads a vector, and every core that receives a
//! result writes one.

use unisono_collective::Kind;

use super::InNetworkCase;
use crate::{Bound, Time};

pub const MEMORY: Bound = Bound {
    name: "memory",
    reference: "Lakhotia et al., in-network reduction on PIUMA, Eq. 2, second term",
    assumes: "vectors lie in the cores' memories",
    time: |problem| nanoseconds(&InNetworkCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

fn nanoseconds(case: &InNetworkCase) -> Option<f64> {
    let c = &case.collective;
    let accesses = match c.kind {
        Kind::Allreduce | Kind::Barrier | Kind::Scan => 2.0,
        Kind::Broadcast | Kind::Reduce => 1.0,
        _ => return None,
    };
    let bits = 8.0 * c.element_bytes() as f64 * f64::from(c.elements);
    let ns = (accesses * bits / case.machine.memory_gbps).max(bits / case.machine.memory_port_gbps);
    (!case.collective.is_local()).then_some(ns)
}
