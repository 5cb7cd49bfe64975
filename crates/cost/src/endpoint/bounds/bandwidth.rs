//! Bandwidth: the bytes that some rank must send, or receive, through its one interface, times the time of a byte.
//!
//! If levels of the machine have different times, a second bound is the mean over ranks. The messages that enter or
//! leave the members of a level, such as nodes, carry at least the bytes that as many ranks would exchange; a byte of
//! them costs at least the price between members, and any other byte at least the price within them.
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
    Some(sure_ns(ticks.max(mean_ticks(case))))
}

/// Returns a lower bound from the time for which interfaces are busy, on average over all ranks or, in a gather or
/// scatter, over the ranks in the root's member of a level. 0 if the machine has no levels.
fn mean_ticks(case: &EndpointCase) -> f64 {
    let (c, levels) = (&case.collective, case.prices.level_count());
    let is_rooted = matches!(c.kind, Kind::Gather | Kind::Scatter);
    // Lower bounds on the ticks of a byte sent, and received, between members of a level or of outer levels.
    let bytes_between = (0..=levels).map(|level| case.prices.cheapest_of(level..levels + 1).ticks_per_byte());
    let (mut sends, mut receives, mut of_root) = (0.0, 0.0, 0.0_f64);
    let (mut inner, mut latency) = ((0.0, 0.0), f64::INFINITY);
    for (level, (send, receive)) in bytes_between.enumerate().skip(usize::from(levels == 0)) {
        let members = Members::new(case, level);
        let bytes = case.bytes() * members.crossing(c);
        sends += bytes * (send - inner.0);
        receives += bytes * (receive - inner.1);
        inner = (send, receive);
        if members.count > 1.0 {
            // Each rank outside the root's member has, on average over its own member, one block to send or receive.
            let (root_byte, byte) = if c.kind == Kind::Gather { (receive, send) } else { (send, receive) };
            of_root = of_root.max(bytes * root_byte / members.with_root).max(case.bytes() * byte);
        }
        // The last message of a rank, of any length, starts after all other bytes that the rank sends.
        let own = case.prices.cheapest_of(level..level + 1);
        let after = |length: u64| own.ticks_until_received(length) - length as f64 * send;
        latency = latency.min(after(1).min(after(LONGEST)).max(0.0));
    }
    let ranks = f64::from(c.ranks);
    if is_rooted || levels == 0 { of_root } else { (sends / ranks + latency).max(receives / ranks) }
}

/// A length in bytes that no message exceeds.
const LONGEST: u64 = 1 << 54;

/// Division of the ranks into members of a level, such as nodes; at level 0 each rank is a member.
struct Members {
    count: f64,
    /// Number of pairs of ranks, of which both may be the same rank, in one member.
    pairs: f64,
    with_root: f64,
}

impl Members {
    fn new(case: &EndpointCase, level: usize) -> Self {
        let ranks = case.collective.ranks;
        let Some(level) = level.checked_sub(1) else {
            return Self { count: ranks.into(), pairs: ranks.into(), with_root: 1.0 };
        };
        let mut members: Vec<u32> = case.prices.members(level, ranks).collect();
        let of_root = members[case.collective.root as usize];
        members.sort_unstable();
        let sizes = || members.chunk_by(|a, b| a == b).map(|member| member.len() as f64);
        Self {
            count: sizes().count() as f64,
            pairs: sizes().map(|size| size * size).sum(),
            with_root: members.iter().filter(|&&member| member == of_root).count() as f64,
        }
    }

    /// Returns the least number of vectors, or of blocks, that messages between members carry.
    fn crossing(&self, c: &Collective) -> f64 {
        let (ranks, others) = (f64::from(c.ranks), self.count - 1.0);
        match c.kind {
            Kind::Broadcast | Kind::Reduce | Kind::Scan => others,
            Kind::Allreduce => 2.0 * others,
            Kind::Allgather | Kind::ReduceScatter => ranks * others,
            Kind::Alltoall => ranks * ranks - self.pairs,
            Kind::Gather | Kind::Scatter => ranks - self.with_root,
            Kind::Message | Kind::Barrier => 0.0,
        }
    }
}
