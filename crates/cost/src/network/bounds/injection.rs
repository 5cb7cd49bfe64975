//! Injection: the bytes that some accelerator must send, or receive, divided by the rate of all its links together.
//!
//! An allreduce of S bytes over k links, each with beta ns a byte, takes 2 S beta / k x (P-1)/P. Sources:
//! "HammingMesh", section 4; the least bytes of each collective as in the bound `bandwidth` among endpoints (Patarasuk,
//! Yuan, 2009, Theorem 1).
//!
//! If the ranks' accelerators have different rates, each rank has its own bound: the bytes that it must send, or
//! receive, in any schedule, divided by its rate. In an allreduce each rank sends and receives at least one vector, and
//! all ranks together send 2(P-1) S bytes at the sum of their rates. On networks whose switches copy or reduce, only
//! the first of these bounds holds for an allreduce.

use unisono_collective::{Collective, Kind};

use super::NetworkCase;
use crate::endpoint::bounds::bandwidth::least_bytes;
use crate::{Bound, Time};

pub const INJECTION: Bound = Bound {
    name: "injection",
    reference: "HammingMesh, section 4; Patarasuk and Yuan, 2009, Theorem 1",
    assumes: "bytes neither compressed nor sent twice; switches reduce only where the machine states it",
    // A rank sends and receives at least the bytes of a contained collective; those of a barrier are few.
    of_contained: false,
    time: |problem| nanoseconds(&NetworkCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

fn nanoseconds(case: &NetworkCase) -> Option<f64> {
    if case.collective.is_local() {
        return Some(0.0);
    }
    let (sent, received) = least_bytes(&case.collective)?;
    let rates: Vec<f64> = (0..case.collective.ranks).map(|rank| case.injection(rank)).collect();
    let in_switches = !case.fabric.switches().are_plain();
    if case.collective.kind == Kind::Allreduce && in_switches {
        let own = |(rank, rate): (u32, &f64)| own_bytes(&case.collective, rank) as f64 / rate;
        return Some((0..).zip(&rates).map(own).fold(0.0, f64::max));
    }
    if rates.iter().all(|rate| *rate == rates[0]) {
        return Some(sent.max(received) as f64 * (1.0 / rates[0]));
    }
    let c = &case.collective;
    let own = |(rank, rate): (u32, &f64)| own_bytes(c, rank) as f64 / rate;
    let slowest = (0..).zip(&rates).map(own).fold(0.0, f64::max);
    let together = match c.kind {
        Kind::Allreduce => 2.0 * f64::from(c.ranks - 1) * c.bytes() as f64,
        _ => 0.0,
    };
    Some(slowest.max(together / rates.iter().sum::<f64>()))
}

/// Returns the larger of the least bytes that a rank must send and the least bytes that the rank must receive.
fn own_bytes(c: &Collective, rank: u32) -> u64 {
    let (others, n) = (u64::from(c.ranks - 1), u64::from(c.elements));
    let elements = match c.kind {
        Kind::Broadcast | Kind::Reduce | Kind::Allreduce | Kind::Scan => n,
        Kind::Message if rank == c.root || rank == c.sender() => n,
        Kind::Allgather | Kind::Alltoall | Kind::ReduceScatter => n * others,
        Kind::Gather | Kind::Scatter if rank == c.root => n * others,
        Kind::Gather | Kind::Scatter => n,
        Kind::Message | Kind::Barrier => 0,
    };
    elements * c.element_bytes()
}
