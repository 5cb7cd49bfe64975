//! Fan-out: the data of one rank must reach all other ranks, and each rank that has the data can forward it.
//!
//! Each of the N(t) ranks that have the data at time t sends one message after the other. The bound is the first t with
//! N(t) >= P. A collective with reductions adds the time to reduce one element. A reduce is a broadcast in reverse, in
//! which a rank receives one message after the other. Sources: Bar-Noy, Kipnis, "Designing broadcasting algorithms in
//! the postal model", 1992; Karp, Sahay, Santos, Schauser, "Optimal broadcast and summation in the LogP model", 1993.
//!
//! If a machine has levels, messages between members of a level, such as nodes, cost more than those within a member.
//! A *family* is a rank that receives the data from another member, with the ranks of its own member that it informs
//! directly or through others. A family grows at most as fast as an optimal broadcast within a member, up to the ranks
//! of one. The bound lets each rank send to its own member and to others at the same time, and is the first time with
//! as many families as members and as many ranks as needed.

use std::collections::BTreeMap;

use unisono_collective::Kind;

use super::EndpointCase;
use crate::endpoint::{TICKS_PER_NS, prices::Linear};
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
    let (kind, cheapest) = (case.collective.kind, case.prices.cheapest());
    // Either one rank's data reaches all ranks, or one rank needs the data of all ranks, which is a broadcast in
    // reverse.
    let is_out = !matches!(kind, Kind::Reduce | Kind::Gather | Kind::Message);
    let is_back = !matches!(kind, Kind::Broadcast | Kind::Scatter | Kind::Message);
    let mut ticks = Pace::new(case, &cheapest, false).flight;
    for reversed in [false, true] {
        if if reversed { is_back } else { is_out } {
            ticks = ticks.max(reach(case, reversed));
        }
    }
    let reduces = kind.reduces() && kind != Kind::Barrier;
    let reduction = if reduces { cheapest.reduce(case.collective.element_bytes()) } else { 0 };
    Some((ticks + reduction) as f64 / TICKS_PER_NS)
}

/// Returns the ticks until one rank's data reaches all ranks, or, reversed, until one rank has the data of all.
fn reach(case: &EndpointCase, reversed: bool) -> u64 {
    let ranks = case.collective.ranks;
    let pace = |levels| Pace::new(case, &case.prices.cheapest_of(levels), reversed);
    let levels = case.prices.level_count();
    let Pace { issue, flight } = pace(0..levels + 1);
    let through_level = |level: usize| {
        let mut members: Vec<u32> = case.prices.members(level, ranks).collect();
        members.sort_unstable();
        let sizes = || members.chunk_by(|a, b| a == b).map(|member| member.len() as u64);
        let (count, most) = (sizes().count() as u64, sizes().max().unwrap_or(1));
        families_ticks(ranks.into(), (count, pace(level + 1..levels + 1)), (most, pace(0..level + 1)))
    };
    (0..levels).map(through_level).fold(broadcast_ticks(ranks.into(), issue, flight), u64::max)
}

/// The ticks between two messages that a rank sends, and those from the begin of a message until its receiver has the
/// data.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub issue: u64,
    pub flight: u64,
}

impl Pace {
    /// Returns the pace of shortest messages with these prices; if `reversed`, `issue` is the time between receives.
    fn new(case: &EndpointCase, prices: &Linear, reversed: bool) -> Self {
        let (send, receive) = (prices.send(1), prices.receive(1));
        // In LogfP some messages may leave before the gap, so the bound ignores the gap.
        let apart = |cpu: u64, nic: u64| if case.prices.may_run_ahead() { cpu } else { cpu.max(nic) };
        let issue = if reversed { apart(receive.cpu, receive.nic) } else { apart(send.cpu, send.nic) };
        Self { issue, flight: send.flight + receive.cpu }
    }
}

/// Returns the ticks until `ranks` ranks have the data. A sender issues a message every `issue` ticks, and its receiver
/// has the data `flight` ticks after the issue began.
pub fn broadcast_ticks(ranks: u64, issue: u64, flight: u64) -> u64 {
    let pace = Pace { issue, flight };
    families_ticks(ranks, (ranks, pace), (1, pace))
}

/// Greatest number of times at which a family grows. Later ranks of a family count from the last of these times on.
const MOST_BIRTHS: usize = 32;

/// Returns the times after its first rank at which a family gets further ranks, with their numbers.
fn births(most: u64, Pace { issue, flight }: Pace) -> Vec<(u64, u64)> {
    if most <= 1 {
        return Vec::new();
    }
    if issue == 0 || flight == 0 {
        return vec![(flight, most - 1)];
    }
    let mut births: Vec<(u64, u64)> = Vec::new();
    let (mut arrivals, mut left) = (BTreeMap::from([(flight, 1u64)]), most - 1);
    while let Some((now, count)) = arrivals.pop_first().filter(|_| left > 0) {
        let born = if births.len() + 1 < MOST_BIRTHS { count.min(left) } else { left };
        births.push((now, born));
        left -= born;
        for next in [now + issue, now + flight] {
            *arrivals.entry(next).or_default() += count;
        }
    }
    births
}

/// Returns a lower bound on the ticks until `ranks` ranks in members of at most `most` ranks have the data of one rank,
/// at one pace between members and at another within them.
pub fn families_ticks(ranks: u64, (members, between): (u64, Pace), (most, within): (u64, Pace)) -> u64 {
    if members <= 1 || between.issue == 0 || between.flight == 0 {
        return if members <= 1 { 0 } else { between.flight };
    }
    let births = births(most, within);
    // The number of events at each time and stage. Stage 0: a message from another member arrives and makes a family.
    // Stage k: the k-th births in families.
    let mut events = BTreeMap::from([((between.flight, 0), 1u64)]);
    let add = |events: &mut BTreeMap<(u64, usize), u64>, key, count| {
        let events = events.entry(key).or_default();
        *events = events.saturating_add(count);
    };
    if let Some(&(after, _)) = births.first() {
        add(&mut events, (after, 1), 1);
    }
    let (mut families, mut informed, mut now) = (1u64, 1u64, 0);
    while families < members || informed < ranks {
        let ((time, stage), count) = events.pop_first().expect("every sender has a next message");
        now = time;
        let (age, each) = stage.checked_sub(1).map_or((0, 1), |at| births[at]);
        let born = count.saturating_mul(each);
        informed = informed.saturating_add(born);
        add(&mut events, (now + between.flight, 0), born);
        if stage == 0 {
            families = families.saturating_add(count);
            add(&mut events, (now + between.issue, 0), count);
        }
        if let Some(&(after, _)) = births.get(stage) {
            add(&mut events, (now - age + after, stage + 1), count);
        }
    }
    now
}
