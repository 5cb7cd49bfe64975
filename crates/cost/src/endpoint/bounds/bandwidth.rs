//! Bandwidth: the bytes that some rank must send, or receive, through its one interface, times the time of a byte.
//!
//! An allreduce needs P-1 transfers to combine each byte and P-1 to distribute it, so of the 2(P-1) n bytes some rank
//! sends at least 2(P-1)/P n. Sources: Chan, Heimlich, Purkayastha, van de Geijn, "Collective communication: theory,
//! practice, and experience", 2007, section 2; Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms", 2009,
//! Theorem 1.

use unisono_collective::{Collective, Kind};

use super::{EndpointCase, sure_ns};
use crate::{Bound, Time};

/// Returns `(sent, received)`: in any schedule, some rank sends at least `sent` bytes, and some rank receives at least
/// `received` bytes. `None` for a barrier.
pub(crate) fn least_bytes(c: &Collective) -> Option<(u64, u64)> {
    let (others, n) = (u64::from(c.ranks - 1), u64::from(c.elements));
    // Whatever the division of the work, some rank sends at least this many whole elements of `transfers` vectors.
    let share = |transfers: u64| (n * transfers).div_ceil(others + 1);
    let (sent, received) = match c.kind {
        // A rank other than the root of a reduce, and not the last of a scan, sends its whole vector.
        Kind::Broadcast | Kind::Message | Kind::Reduce | Kind::Scan => (n, n),
        Kind::Allreduce => (share(2 * others), share(2 * others)),
        Kind::Allgather | Kind::Alltoall | Kind::ReduceScatter => (n * others, n * others),
        Kind::Gather => (n, n * others),
        Kind::Scatter => (n * others, n),
        Kind::Barrier => return None,
    };
    Some((sent * c.element_bytes(), received * c.element_bytes()))
}

pub const BANDWIDTH: Bound = Bound {
    name: "bandwidth",
    reference: "Chan, Heimlich, Purkayastha, van de Geijn, 2007, section 2; Patarasuk and Yuan, 2009, Theorem 1",
    assumes: "nothing beyond the model: one interface a rank, bytes neither compressed nor sent twice",
    time: |problem| nanoseconds(&EndpointCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

fn nanoseconds(case: &EndpointCase) -> Option<f64> {
    if case.collective.is_local() {
        return Some(0.0);
    }
    let (sent, received) = least_bytes(&case.collective)?;
    let cheapest = case.prices.cheapest();
    let whole = |bytes: u64| cheapest.ticks_until_received(bytes);
    // A byte costs at least the smaller of two prices: that of a byte in a long message, and that of a single byte.
    let (send_byte, receive_byte) = cheapest.ticks_per_byte();
    // The last message starts after all other bytes. Its time is linear in its length, so the least time is that of the
    // shortest or of the longest last message. The receiver's interface may be busy for longer.
    let last = (whole(1) + (sent - 1) as f64 * send_byte).min(whole(sent));
    let ticks = last.max(whole(1) + (received - 1) as f64 * receive_byte);
    Some(sure_ns(ticks))
}
