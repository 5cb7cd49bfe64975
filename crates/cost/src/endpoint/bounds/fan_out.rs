//! Fan-out: the data of one rank must reach all other ranks, and each rank that has the data can forward it.
//!
//! Each of the N(t) ranks that have the data at time t sends one message after the other. The bound is the first t with
//! N(t) >= P. A collective with reductions adds the time to reduce one element. A reduce is a broadcast in reverse, in
//! which a rank receives one message after the other. Sources: Bar-Noy, Kipnis, "Designing broadcasting algorithms in
//! the postal model", 1992; Karp, Sahay, Santos, Schauser, "Optimal broadcast and summation in the LogP model", 1993.

use std::collections::BTreeMap;

use unisono_collective::Kind;

use super::EndpointCase;
use crate::endpoint::TICKS_PER_NS;
use crate::{Bound, Time};

pub const FAN_OUT: Bound = Bound {
    name: "fan-out",
    reference: "Bar-Noy and Kipnis, 1992 (postal model); Karp, Sahay, Santos, Schauser, 1993 (LogP)",
    assumes: "nothing beyond the model: shortest messages",
    time: |problem| nanoseconds(&EndpointCase::of(problem)?).map(Time::from_ns),
    ..Bound::OF_MACHINE
};

fn nanoseconds(case: &EndpointCase) -> Option<f64> {
    if case.collective.is_local() {
        return Some(0.0);
    }
    let cheapest = case.prices.cheapest();
    let (send, receive) = (cheapest.send(1), cheapest.receive(1));
    // In LogfP some messages may leave before the gap, so the bound ignores the gap.
    let apart = |cpu: u64, nic: u64| if case.prices.may_run_ahead() { cpu } else { cpu.max(nic) };
    let (issue, accept) = (apart(send.cpu, send.nic), apart(receive.cpu, receive.nic));
    let kind = case.collective.kind;
    let ranks = u64::from(case.collective.ranks);
    let flight = send.flight + receive.cpu;
    let message = broadcast_ticks(2, issue, flight);
    // Either one rank's data reaches all ranks, or one rank needs the data of all ranks, which is a broadcast in
    // reverse.
    let out = if matches!(kind, Kind::Reduce | Kind::Gather | Kind::Message) {
        message
    } else {
        broadcast_ticks(ranks, issue, flight)
    };
    let back = if matches!(kind, Kind::Broadcast | Kind::Scatter | Kind::Message) {
        message
    } else {
        broadcast_ticks(ranks, accept, flight)
    };
    let reduces = kind.reduces() && kind != Kind::Barrier;
    let reduction = if reduces { cheapest.reduce(case.collective.element_bytes()) } else { 0 };
    Some((out.max(back) + reduction) as f64 / TICKS_PER_NS)
}

/// Returns the ticks until `ranks` ranks have the data. A sender issues a message every `issue` ticks, and its receiver
/// has the data `flight` ticks after the issue began.
pub fn broadcast_ticks(ranks: u64, issue: u64, flight: u64) -> u64 {
    if ranks <= 1 {
        return 0;
    }
    if issue == 0 || flight == 0 {
        return flight;
    }
    // The number of future arrivals at each time. The next message of a sender arrives `issue` ticks after its last.
    let mut arrivals = BTreeMap::from([(flight, 1u64)]);
    let mut informed = 1u64;
    while let Some((now, count)) = arrivals.pop_first() {
        informed = informed.saturating_add(count);
        if informed >= ranks {
            return now;
        }
        for next in [now + issue, now + flight] {
            let messages = arrivals.entry(next).or_default();
            *messages = messages.saturating_add(count);
        }
    }
    unreachable!("every arrival brings two more")
}
