//! The transfer of messages in a timetable: interfaces start the parts of messages, and parts go from link to link.

use std::collections::VecDeque;

use unisono_base::{mix, narrow, rounded_up};
use unisono_machine::network::{Header, Hop, MachinesPer};

use super::{super::Speeds, NONE, PS_PER_NS, Run, events::Event};

/// A message: the data that one instruction pushes to one sink of a stream.
pub(super) struct Message {
    /// The node of the plane that sends.
    pub(super) from: u32,
    /// The node of the plane that receives.
    pub(super) to: u32,
    /// The first instruction that reads the message.
    pub(super) reader: u32,
    /// The time of a part on a link of the machine's own rate.
    pub(super) part_ps: f64,
    /// The number of packets of a part, rounded up.
    pub(super) packets: u32,
    /// The packets of the message divided by its parts.
    pub(super) mean_packets: f64,
    /// The time of a part, or of a packet if the packet is shorter. Multiplied by the difference of weights, it is the
    /// delay of a part that goes from a slower link to a faster link.
    pub(super) gap_ps: f64,
    /// The time of a full packet on a link of the machine's own rate.
    pub(super) packet_ps: f64,
    /// The number of parts that have not started.
    pub(super) unmade: u32,
    /// The number of parts whose time of arrival is not known yet.
    pub(super) missing: u32,
    /// The latest known arrival of a part, in ps.
    pub(super) latest: u64,
}

/// A part of a message that is under way.
#[derive(Clone, Copy, Default)]
pub(super) struct Part {
    pub(super) message: u32,
    pub(super) vc: u8,
    pub(super) way: u32,
    /// The link that the part crosses last, at whose end it arrives.
    pub(super) link: u32,
    /// The time in ps at which the tail of the part arrives at the end of `link`.
    pub(super) tail: u64,
}

pub(super) struct LinkPrice {
    latency_ps: u64,
    round_trip_ps: u64,
    /// The machine's own rate divided by the rate of the link.
    weight: f64,
}

impl LinkPrice {
    pub(super) fn new(speed: u8, speeds: &Speeds) -> Self {
        let weight = if speeds.is_even() { 1.0 } else { speeds.weight(speed) };
        let [latency_ps, round_trip_ps] =
            [speeds.alpha_ns(speed), speeds.round_trip_ns(speed)].map(|ns| rounded_up(ns * PS_PER_NS));
        Self { latency_ps, round_trip_ps, weight }
    }

    pub(super) fn latency_ps(&self) -> u64 {
        self.latency_ps
    }
}

/// The send machines of an accelerator or of one of its links, each of which sends one message at a time.
#[derive(Default)]
pub(super) struct Interface {
    busy: u32,
    waiting: VecDeque<u32>,
}

impl Run<'_> {
    /// Returns true if a switch that computes sends or receives the message. The message then crosses only one link.
    fn is_direct(&self, from: u32, to: u32) -> bool {
        from.max(to) >= self.model.plane.accelerators()
    }

    /// Returns the source's choice of a path for a message, which the routing makes by random bits. 0 if the message
    /// crosses only one link.
    fn way(&self, from: u32, to: u32, random: u64) -> u32 {
        if self.is_direct(from, to) { 0 } else { self.model.routing.choose(from, to, mix(random)) }
    }

    fn list_hops(&mut self, node: u32, from: u32, header: Header) {
        self.hops.clear();
        if self.is_direct(from, header.to) {
            self.hops.extend(self.model.plane.links_between(node, header.to).map(|link| Hop { link, vc: 0 }));
        } else {
            self.model.routing.hops(node, header, &mut self.hops);
        }
    }

    /// Returns the index of the interface of a message: the interface of its accelerator, or of the first link that the
    /// message may take.
    fn interface(&mut self, at: u32) -> usize {
        let Message { from, to, .. } = self.messages[at as usize];
        let accelerators = self.model.plane.accelerators();
        let by_link = self.model.send_machines_per == MachinesPer::Link;
        if !by_link && from < accelerators {
            return from as usize;
        }
        let way = self.way(from, to, u64::from(at) << 32);
        self.list_hops(from, from, Header { to, vc: 0, way });
        let of_nodes = if by_link { 0 } else { accelerators as usize };
        of_nodes + self.hops[0].link as usize
    }

    pub(super) fn post(&mut self, now: u64, at: u32) {
        let Message { from, to, .. } = self.messages[at as usize];
        if from == to {
            self.events.add(now, Event::There(at));
            return;
        }
        let interface = self.interface(at);
        let machines = self.model.send_machines;
        let interface = &mut self.interfaces[interface];
        if interface.busy < machines {
            interface.busy += 1;
            self.make(now, at);
        } else {
            interface.waiting.push_back(at);
        }
    }

    /// Starts parts of message `at` until a part must wait. A send machine that has started all parts of a message
    /// continues with the next message.
    pub(super) fn make(&mut self, now: u64, mut at: u32) {
        loop {
            let message = &mut self.messages[at as usize];
            if message.unmade == 0 {
                let interface = self.interface(at);
                let interface = &mut self.interfaces[interface];
                let Some(next) = interface.waiting.pop_front() else {
                    interface.busy -= 1;
                    return;
                };
                at = next;
                continue;
            }
            message.unmade -= 1;
            let (from, to) = (message.from, message.to);
            let random = u64::from(at) << 32 | u64::from(message.unmade);
            let way = self.way(from, to, random);
            let (start, held) = self.go(now, from, Part { message: at, vc: 0, way, link: NONE, tail: now }, None);
            // The send machine can take the next message when the last packet of the last part starts.
            let made = if self.messages[at as usize].unmade == 0 { start.saturating_add(held) } else { start };
            if made > now {
                self.events.add(made, Event::Part(at));
                return;
            }
        }
    }

    /// Sends a part over its next link. Returns the time at which the part starts on the link, and the ps from this
    /// time to the start of its last packet. `place` is the part's index in `parts`, if the part has already crossed a
    /// link.
    fn go(&mut self, now: u64, node: u32, part: Part, place: Option<u32>) -> (u64, u64) {
        let plane = &self.model.plane;
        let Message { from, to, part_ps, gap_ps, packet_ps, packets, mean_packets, .. } =
            self.messages[part.message as usize];
        self.list_hops(node, from, Header { to, vc: part.vc, way: part.way });
        let weight = |link: u32| self.links[link as usize].weight;
        let latency = |link: u32| self.links[link as usize].latency_ps;
        let through = |hop: &&Hop| {
            let free = self.free[hop.link as usize].max(self.windows.as_ref().map_or(0, |windows| windows.free(**hop)));
            let known_free = if free == 0 { 0 } else { free.saturating_add(latency(hop.link).saturating_mul(2)) };
            known_free.max(now).saturating_add(rounded_up(part_ps * weight(hop.link)))
        };
        let hop = match (&self.hops[..], &mut self.ahead) {
            ([only], _) => Some(only),
            (several, Some(ahead)) => {
                ahead.settle(now);
                let trip = |hop: &Hop| self.links[hop.link as usize].round_trip_ps;
                let has_unlike_trips = several.iter().any(|hop| trip(hop) != trip(&several[0]));
                let takes = |hop: &&Hop| {
                    if !has_unlike_trips {
                        return ahead.with_next(hop.link) * weight(hop.link);
                    }
                    let busy = self.free[hop.link as usize].saturating_sub(now);
                    ahead.beyond_trip(now, hop.link, trip(hop)) * packet_ps * weight(hop.link) + busy as f64
                };
                several.iter().min_by(|a, b| takes(a).total_cmp(&takes(b)))
            }
            (several, None) => several.iter().min_by_key(through),
        };
        let hop = *hop.expect("a routing leads to every accelerator");
        let behind = if part.link == NONE { 0.0 } else { gap_ps * (weight(part.link) - weight(hop.link)).max(0.0) };
        let earliest = now.saturating_add(rounded_up(behind));
        let start = self.free[hop.link as usize].max(earliest);
        let busy = rounded_up(part_ps * weight(hop.link));
        let ends = start.saturating_add(busy);
        // While a channel waits for places, other channels can use the link.
        self.free[hop.link as usize] = ends;
        let until_last = rounded_up((part_ps - gap_ps) * weight(hop.link));
        let (start, ends, held) = match &mut self.windows {
            Some(windows) => {
                let (start, ends) = windows.send(hop, start, busy, mean_packets);
                if part.link != NONE {
                    // `waited` is the mean of two waits: of the first packet, which could start at once, and of the
                    // last packet, which could start when the tail arrives.
                    let waited = (start - earliest).saturating_add(ends.saturating_sub(part.tail)) / 2;
                    windows.hold(Hop { link: part.link, vc: part.vc }, waited, mean_packets);
                }
                (start, ends, (ends - start).saturating_sub(busy - until_last))
            }
            None => (start, ends, until_last),
        };
        let before = if part.link == NONE { 0 } else { latency(part.link) };
        let latency = latency(hop.link);
        let tail = ends.max(part.tail).saturating_add(latency);
        if let Some(ahead) = &mut self.ahead {
            ahead.add(hop.link, packets);
            if self.model.speeds.same_ns().is_none() {
                ahead.leave(ends, hop.link, packets);
            }
            if part.link != NONE {
                ahead.go_on(ends.saturating_add(before), part.link, packets);
            }
            if plane.link(hop.link).to == to {
                ahead.go_on(tail.saturating_add(latency), hop.link, packets);
            }
        }
        if plane.link(hop.link).to == to {
            self.unused.extend(place);
            self.arrive(part.message, tail);
            return (start, held);
        }
        let went = Part { vc: hop.vc, link: hop.link, tail, ..part };
        let place = place.or_else(|| self.unused.pop()).unwrap_or_else(|| {
            self.parts.push(went);
            narrow::<u32>(self.parts.len()) - 1
        });
        self.parts[place as usize] = went;
        self.events.add(start.saturating_add(latency), Event::Head(place));
        (start, held)
    }

    /// Records the arrival of a part. The time `tail` is known when the part starts on its last link.
    fn arrive(&mut self, at: u32, tail: u64) {
        let message = &mut self.messages[at as usize];
        message.latest = message.latest.max(tail);
        message.missing -= 1;
        if message.missing == 0 {
            let to_rank = message.to < self.model.plane.accelerators();
            let signal_ns = if to_rank { self.model.signal_ns } else { 0.0 };
            let known = message.latest.saturating_add(rounded_up(signal_ns * PS_PER_NS));
            self.events.add(known, Event::There(at));
        }
    }

    /// Sends a part, whose head is at an intermediate node, over its next link.
    pub(super) fn go_on(&mut self, now: u64, at: u32) {
        let part = self.parts[at as usize];
        let node = self.model.plane.link(part.link).to;
        self.go(now, node, part, Some(at));
    }
}
