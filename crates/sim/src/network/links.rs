//! Links: packets arrive, choose a link, wait for it, and start on it when they have a credit.

use std::collections::VecDeque;

use unisono_base::narrow;
use unisono_machine::network::{Hop, Link};

use super::{messages::Sending, packet::Packet, packets::Packets, waiting::Ring};
use crate::endpoint::carrier::Carried;

/// A link with its state in the simulation.
pub(super) struct Wire {
    pub sent: u64,
    to: u32,
    /// Index of the link among the inputs of `to`.
    input: u32,
    /// Index of the first of the link's queues. There are `inputs` queues for each virtual channel, one for each input
    /// of the node that the link leaves.
    queues: u32,
    inputs: u32,
    /// Bit for each virtual channel: whether packets wait for it.
    filled: u64,
    pub busy: bool,
    /// True if packets wait for the link and for its credits.
    stalled: bool,
    /// Virtual channel that is tried first.
    turn: u8,
    /// Index of the link's times in [`super::Timing::links`].
    speed: u8,
}

impl Wire {
    pub fn new(link: &Link, input: u32, queues: u32, inputs: u32) -> Self {
        let Link { to, speed, .. } = *link;
        Self { sent: 0, to, input, queues, inputs, filled: 0, busy: false, stalled: false, turn: 0, speed }
    }
}

/// Returns the first virtual channel from `turn` on, or from 0 on if there is none, whose bit is set in `filled`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the number of a bit")]
fn next_in_turn(filled: u64, turn: u8) -> u8 {
    let later = filled & u64::MAX << turn;
    (if later == 0 { filled } else { later }).trailing_zeros() as u8
}

/// The times at which the latest packets of a link have left it completely, in ascending order.
pub(super) type Left = VecDeque<u64>;

/// State of a virtual channel of a link.
#[derive(Clone, Copy)]
pub(super) struct Channel {
    credits: u32,
    ring: Ring,
}

impl Channel {
    pub fn new(credits: u32) -> Self {
        Self { credits, ring: Ring::EMPTY }
    }
}

impl Packets<'_> {
    #[inline]
    pub(super) fn arrive(&mut self, now: u64, link: u32, packet: Packet) {
        let node = self.wires[link as usize].to;
        if node == packet.to {
            self.take_in(now, link, packet);
            return;
        }
        if let Some(hop) = self.choose(now, node, packet) {
            if self.is_unlike {
                let [before, next] = [link, hop.link].map(|link| self.serialization_ps(link, packet));
                if before > next {
                    self.events.ready(now, before - next, link, hop, packet);
                    return;
                }
            }
            self.offer(now, hop, packet, Some(link));
        }
    }

    /// Removes a packet at its destination, and delivers its message if this packet is the last missing one.
    fn take_in(&mut self, now: u64, link: u32, packet: Packet) {
        let ps = self.serialization_ps(link, packet);
        let back_ps = self.credit_ps(link);
        self.give_credit(now, ps + back_ps, link, packet.vc());
        // The packet may come from another region, so this count wraps.
        self.under_way = self.under_way.wrapping_sub(1);
        let latest = match &mut self.border {
            Some(border) if self.messages.is_foreign(packet.message) => border.arrive(packet.message, now + ps),
            _ => self.messages.arrive(packet.message, now + ps),
        };
        if let Some(latest) = latest {
            let to_rank = packet.to < self.plane.accelerators();
            let signal_ps = if to_rank { self.timing.signal_ps } else { 0 };
            self.events.delivered(latest + signal_ps, packet.message);
        }
    }

    /// Returns the index of a link's times.
    #[inline]
    fn speed(&self, link: u32) -> u8 {
        // If all links are alike, this reads no table of links.
        if self.is_unlike { self.wires[link as usize].speed } else { 0 }
    }

    #[inline]
    fn serialization_ps(&self, link: u32, packet: Packet) -> u64 {
        let speed = self.speed(link);
        self.lengths.ps(packet.length(), speed).unwrap_or_else(|| {
            let bytes = self.messages.sending(packet.message).last_bytes;
            self.timing.links[usize::from(speed)].serialization_ps(bytes)
        })
    }

    /// Returns the picoseconds that a credit of a link takes to return.
    #[inline]
    fn credit_ps(&self, link: u32) -> u64 {
        self.timing.links[usize::from(self.speed(link))].link_ps
    }

    /// Chooses the first hop of a packet; `None` if the routing names no link.
    pub(super) fn choose_first(&mut self, now: u64, node: u32, packet: Packet) -> Option<Hop> {
        if !self.is_direct(node, packet.to) {
            return self.choose(now, node, packet);
        }
        self.candidates.clear();
        self.direct(node, packet.to);
        self.best(now, node, packet)
    }

    #[inline]
    fn choose(&mut self, now: u64, node: u32, packet: Packet) -> Option<Hop> {
        if !self.is_unlike
            && !self.has_detours
            && let Some((first, count @ 1..)) = self.routing.run(node, packet.header())
        {
            if count == 1 {
                return Some(first);
            }
            self.take_credits();
            let best = (first.link..first.link + count).min_by_key(|&link| self.ahead[link as usize])?;
            return Some(Hop { link: best, ..first });
        }
        self.candidates.clear();
        self.routing.hops(node, packet.header(), &mut self.candidates);
        self.best(now, node, packet)
    }

    /// Returns the hop in `candidates` with the fewest packets ahead or, if links have different speeds, with the least
    /// time for them; the first of equal hops. Sets `fault` and returns `None` if there is no candidate.
    #[inline]
    fn best(&mut self, now: u64, node: u32, packet: Packet) -> Option<Hop> {
        match &self.candidates[..] {
            [only] => return Some(*only),
            [] => {
                let to = packet.to;
                self.fault =
                    Some(format!("at node {node} it names no link for a packet to {to} on channel {}", packet.vc()));
                return None;
            }
            _ => self.take_credits(),
        }
        if !self.is_unlike && !self.has_detours {
            return self.candidates.iter().min_by_key(|hop| self.ahead[hop.link as usize]).copied();
        }
        let header = packet.header();
        let mut trips = self.candidates.iter().map(|hop| self.round_trip_ps(hop.link));
        let first_ps = if self.left.is_empty() { None } else { trips.next() };
        let has_unlike_trips = first_ps.is_some_and(|first_ps| trips.any(|ps| ps != first_ps));
        let times = |hop: &Hop, ahead: u32| {
            if self.has_detours { ahead.saturating_mul(self.routing.detour(header, *hop)) } else { ahead }
        };
        let ahead = |hop: &&Hop| times(hop, self.ahead[hop.link as usize]);
        let through_ps = |hop: &&Hop| {
            let full = self.lengths.ps(0, self.speed(hop.link)).unwrap_or(0);
            if has_unlike_trips {
                let (waiting, sending_ps) = self.before(now, **hop);
                return u64::from(times(hop, waiting) + 1).saturating_mul(full) + sending_ps;
            }
            (u64::from(ahead(hop)) + 1).saturating_mul(full)
        };
        let several = self.candidates.iter();
        if self.is_unlike { several.min_by_key(through_ps).copied() } else { several.min_by_key(ahead).copied() }
    }

    /// Returns the time for which a packet's place is occupied at least, without the time of its bytes.
    #[inline]
    fn round_trip_ps(&self, link: u32) -> u64 {
        self.timing.of(self.plane.link(link)).round_trip_ps()
    }

    /// Returns the number of packets before the next one on a link, and the time until the link is free. Packets count
    /// that wait, and those whose places were occupied longer than the round trip of the link. If the next packet must
    /// wait for their credits, all count whose places are occupied.
    fn before(&self, now: u64, Hop { link, vc }: Hop) -> (u32, u64) {
        let (left, ahead) = (&self.left[link as usize], self.ahead[link as usize]);
        let sending_ps = left.back().map_or(0, |&ps| ps.saturating_sub(now));
        if self.channels[link as usize * usize::from(self.vcs) + usize::from(vc)].credits == 0 {
            return (ahead, sending_ps);
        }
        let trip_ps = self.round_trip_ps(link);
        let on_way: u32 = narrow(left.len() - left.partition_point(|&ps| ps + trip_ps <= now));
        (ahead - on_way, sending_ps)
    }

    /// Executes the event that a link is free.
    #[inline]
    pub(super) fn free(&mut self, now: u64, link: u32) {
        self.wires[link as usize].busy = false;
        self.start_waiting(now, link);
    }

    /// Starts a packet on a link, or queues it for the link; returns whether it started. `from` is the link that
    /// brought the packet, `None` for packets of the node's own interface.
    #[inline]
    pub(super) fn offer(&mut self, now: u64, hop: Hop, packet: Packet, from: Option<u32>) -> bool {
        let at = hop.link as usize * usize::from(self.vcs) + usize::from(hop.vc);
        if self.channels[at].credits == 0 {
            self.take_credits();
        }
        let channel = &mut self.channels[at];
        let wire = &mut self.wires[hop.link as usize];
        self.ahead[hop.link as usize] += 1;
        // While a link is free, no packet that has a credit waits for it.
        if !wire.busy && channel.credits > 0 {
            self.depart(now, hop, packet, from);
            return true;
        }
        let Wire { queues, inputs, busy, .. } = *wire;
        let input = from.map_or(inputs - 1, |link| self.wires[link as usize].input);
        self.waiting.push(&mut channel.ring, queues + u32::from(hop.vc) * inputs + input, packet);
        self.wires[hop.link as usize].filled |= 1 << hop.vc;
        if !busy {
            self.stall(hop.link);
        }
        false
    }

    /// Marks a free link whose packets wait for credits; credit returns then become events.
    #[cold]
    fn stall(&mut self, link: u32) {
        let wire = &mut self.wires[link as usize];
        if !wire.stalled {
            wire.stalled = true;
            self.stalled += 1;
            if !self.events.is_strict() {
                self.take_credits();
                self.events.set_strict(true);
            }
        }
    }

    /// Marks a link as not stalled.
    #[cold]
    fn go_on(&mut self, link: u32) {
        self.wires[link as usize].stalled = false;
        self.stalled -= 1;
        if self.stalled == 0 {
            self.events.set_strict(false);
        }
    }

    /// Starts a packet on a free link that has a credit.
    #[inline]
    fn depart(&mut self, now: u64, hop: Hop, packet: Packet, from: Option<u32>) {
        let vcs = u32::from(self.vcs);
        let wire = &mut self.wires[hop.link as usize];
        wire.busy = true;
        let stalled = wire.stalled;
        wire.turn = if hop.vc + 1 == self.vcs { 0 } else { hop.vc + 1 };
        wire.sent += 1;
        self.hops += 1;
        if stalled {
            self.go_on(hop.link);
        }
        self.channels[(hop.link * vcs + u32::from(hop.vc)) as usize].credits -= 1;
        let ps = self.serialization_ps(hop.link, packet);
        let speed = self.speed(hop.link);
        let arriving = packet.on(hop.vc);
        match &mut self.border {
            Some(border) if border.crosses(hop.link) => {
                let hop_ps = self.timing.links[usize::from(speed)].hop_ps;
                border.arrival(now, hop_ps, self.events.made_elsewhere(), hop.link, arriving);
            }
            _ => self.events.arrival(now, speed, hop.link, arriving),
        }
        self.events.free(now, ps, hop.link);
        if !self.left.is_empty() {
            let trip_ps = self.round_trip_ps(hop.link);
            let left = &mut self.left[hop.link as usize];
            while left.front().is_some_and(|&ps| ps + trip_ps <= now) {
                left.pop_front();
            }
            left.push_back(now + ps);
        }
        if let Some(link) = from {
            let back_ps = self.credit_ps(link);
            self.give_credit(now, ps + back_ps, link, packet.vc());
        } else if !self.leaving.is_empty() {
            let message = self.messages.sending(packet.message);
            if message.unmade == 0 {
                let id = message.id;
                self.note(now + ps, id, Carried::Left);
            }
        }
    }

    /// Gives back the credit of a packet that arrived over `link`; the credit returns `delay` after `now`.
    #[inline]
    fn give_credit(&mut self, now: u64, delay: u64, link: u32, vc: u8) {
        match &mut self.border {
            Some(border) if border.crosses(link) => {
                let channel = link * u32::from(self.vcs) + u32::from(vc);
                border.credit(now, delay, self.events.made_elsewhere(), link, channel);
            }
            _ => self.events.credit(now, delay, link, vc, self.vcs),
        }
    }

    /// Executes the event that a credit has returned.
    pub(super) fn credit(&mut self, now: u64, link: u32, vc: u8) {
        let channel = self.count_credit(link, vc);
        if !self.wires[link as usize].busy && self.channels[channel].credits == 1 {
            self.start_waiting(now, link);
        }
    }

    /// Counts the credits that returned before the present event and were not events, because no link waited for them.
    #[inline]
    pub(super) fn take_credits(&mut self) {
        for lane in 0..self.events.credit_lanes() {
            while let Some((link, vc)) = self.events.take_credit(lane) {
                self.count_credit(link, vc);
            }
        }
    }

    #[inline]
    fn count_credit(&mut self, link: u32, vc: u8) -> usize {
        let channel = link as usize * usize::from(self.vcs) + usize::from(vc);
        self.channels[channel].credits += 1;
        self.ahead[link as usize] -= 1;
        channel
    }

    /// Starts on a free link the next waiting packet, in turn, whose channel has a credit, if any.
    #[inline]
    pub(super) fn start_waiting(&mut self, now: u64, link: u32) {
        let Wire { turn, mut filled, .. } = self.wires[link as usize];
        let first = link as usize * usize::from(self.vcs);
        let mut is_stalled = false;
        while filled != 0 {
            let vc = next_in_turn(filled, turn);
            filled &= !(1 << vc);
            if self.channels[first + usize::from(vc)].credits == 0 {
                self.take_credits();
            }
            let channel = &mut self.channels[first + usize::from(vc)];
            if channel.credits == 0 {
                is_stalled = true;
                continue;
            }
            let (from, packet) = self.waiting.pop(&mut channel.ring);
            if channel.ring.is_empty() {
                self.wires[link as usize].filled &= !(1 << vc);
            }
            self.depart(now, Hop { link, vc }, packet, from);
            if from.is_none() {
                self.inject(now, packet.message);
            }
            return;
        }
        if is_stalled {
            self.stall(link);
        }
    }

    /// Reads the next packet that waits for a link, to load it into the cache. The returned value has no meaning.
    #[inline]
    pub(super) fn read_waiting(&self, link: u32) -> u32 {
        let Wire { turn, filled, .. } = self.wires[link as usize];
        if filled == 0 {
            return 0;
        }
        let first = link as usize * usize::from(self.vcs);
        self.waiting.read_ahead(self.channels[first + usize::from(next_in_turn(filled, turn))].ring)
    }

    /// Reads the count of missing packets of an arriving packet's message, if the packet is at its destination, to load
    /// it into the cache. The returned value has no meaning.
    #[inline]
    pub(super) fn read_arrival(&self, link: u32, packet: Packet) -> u32 {
        let is_there = self.wires[link as usize].to == packet.to;
        self.messages.read_ahead(if is_there { packet.message } else { 0 })
    }

    /// Describes the link that a queued packet waits for.
    pub(super) fn describe(&self, queue: u32, packet: Packet) -> String {
        let link = self.wires.partition_point(|wire| wire.queues <= queue) - 1;
        let wire = &self.wires[link];
        let vc = (queue - wire.queues) / wire.inputs;
        let node = self.plane.link(narrow::<u32>(link)).from;
        let Sending { from, to, .. } = *self.messages.sending(packet.message);
        format!("a packet from {from} to {to} waits at node {node} for the link to node {} on channel {vc}", wire.to)
    }
}
