//! Interfaces take messages in the order in which they were posted, and cut them into packets. Each *send machine*
//! of an interface sends one message at a time.

use unisono_base::{TaskId, mix};
use unisono_machine::network::{Header, Hop};

use super::{
    messages::{NONE, Sending},
    packet::{MOST_WAYS, Packet},
    packets::Packets,
};
use crate::endpoint::carrier::Carried;

/// An interface: of an accelerator, of a link that leaves an accelerator, or of a link that leaves a computing switch.
pub(super) struct Interface {
    idle_machines: u32,
    /// First message that waits for a send machine, `NONE` if none waits; `last` is the last such message.
    first: u32,
    last: u32,
}

impl Interface {
    pub fn new(machines: u32) -> Self {
        Self { idle_machines: machines, first: NONE, last: NONE }
    }
}

impl Packets<'_> {
    /// Returns the index of the interface that sends a message; `None` if the routing names no link.
    fn interface(&mut self, at: u32) -> Option<usize> {
        let Sending { id, from, to, .. } = *self.messages.sending(at);
        if !self.per_link && from < self.plane.accelerators() {
            return Some(from as usize);
        }
        self.candidates.clear();
        if self.is_direct(from, to) {
            self.direct(from, to);
        } else {
            let way = self.routing.choose(from, to, mix(self.seed ^ mix(u64::from(id) << 32)));
            self.routing.hops(from, Header { to, vc: 0, way }, &mut self.candidates);
        }
        let of_nodes = if self.per_link { 0 } else { self.plane.accelerators() as usize };
        let first = self.candidates.first().map(|hop| of_nodes + hop.link as usize);
        if first.is_none() {
            self.fault = Some(format!("at node {from} it names no link for a packet to {to} on channel 0"));
        }
        first
    }

    /// Returns whether a message goes over a single link, because a switch sends or receives it.
    pub(super) fn is_direct(&self, from: u32, to: u32) -> bool {
        from.max(to) >= self.plane.accelerators()
    }

    /// Adds the links from one node to another to `candidates`.
    pub(super) fn direct(&mut self, from: u32, to: u32) {
        self.candidates.extend(self.plane.links_between(from, to).map(|link| Hop { link, vc: 0 }));
    }

    /// Assigns a message to an idle send machine of its interface, or queues it until one is idle.
    pub(super) fn post(&mut self, now: u64, at: u32) {
        let Some(interface) = self.interface(at) else { return };
        let interface = &mut self.interfaces[interface];
        if interface.idle_machines > 0 {
            interface.idle_machines -= 1;
            self.begin(now, at);
            self.inject(now, at);
        } else if interface.first == NONE {
            (interface.first, interface.last) = (at, at);
        } else {
            self.messages.sending_mut(interface.last).next = at;
            interface.last = at;
        }
    }

    /// Makes packets of a message, and then of the queued messages, until a packet must wait.
    pub(super) fn inject(&mut self, now: u64, mut at: u32) {
        let node = self.messages.sending(at).from;
        loop {
            let Some(packet) = self.next_packet(at) else {
                let Some(interface) = self.interface(at) else { return };
                let interface = &mut self.interfaces[interface];
                at = interface.first;
                if at == NONE {
                    interface.idle_machines += 1;
                    return;
                }
                interface.first = std::mem::replace(&mut self.messages.sending_mut(at).next, NONE);
                self.begin(now, at);
                continue;
            };
            let Some(hop) = self.choose_first(now, node, packet) else { return };
            if !self.offer(now, hop, packet, None) {
                return;
            }
        }
    }

    fn next_packet(&mut self, at: u32) -> Option<Packet> {
        let message = self.messages.sending_mut(at);
        message.unmade = message.unmade.checked_sub(1)?;
        let length = if message.unmade == 0 { message.length } else { 0 };
        let random = mix(self.seed ^ mix(u64::from(message.id) << 32 | u64::from(message.unmade)));
        let (from, to) = (message.from, message.to);
        let is_direct = from.max(to) >= self.plane.accelerators();
        let way = if is_direct { 0 } else { self.routing.choose(from, to, random) };
        if way >= MOST_WAYS {
            self.fault = Some(format!("it chooses way {way} of a packet; accepted are ways below {MOST_WAYS}"));
        }
        self.packets += 1;
        self.under_way = self.under_way.wrapping_add(1);
        Some(Packet::new(at, to, length, way))
    }

    /// Reports that a send machine begins with a message.
    fn begin(&mut self, now: u64, at: u32) {
        if !self.leaving.is_empty() {
            self.note(now, self.messages.sending(at).id, Carried::Begun);
        }
    }

    /// Queues a report about a message, if reports were requested for it.
    pub(super) fn note(&mut self, time: u64, id: u32, carried: Carried) {
        if self.leaving.binary_search(&TaskId(id)).is_ok() {
            self.news.push((time, id, carried));
        }
    }
}
