//! Events of a timetable, in the order of their times.

use unisono_base::{
    narrow,
    queue::{self, Queue},
};

#[derive(Clone, Copy)]
pub(super) enum Event {
    /// An instruction can begin.
    Begin(u32),
    /// The host has passed a message to its interface.
    Posted(u32),
    /// A message can start its next part.
    Part(u32),
    /// The head of a part is at the end of its link.
    Head(u32),
    /// A message has arrived.
    There(u32),
}

/// A queue of events by time, then by order of insertion.
#[derive(Default)]
pub(super) struct Events {
    /// The events. The key of an event is its time in ps, then the number of its insertion. The highest 3 bits of the
    /// description are the kind of event; the other bits are the instruction, message or part.
    queue: Queue,
    made: u32,
}

/// The exclusive limit of the indices of instructions, messages and parts.
pub(super) const MOST_NUMBERED: u64 = 1 << 29;

impl Events {
    pub(super) fn add(&mut self, time: u64, event: Event) {
        let (kind, at) = match event {
            Event::Begin(id) => (0, id),
            Event::Posted(message) => (1, message),
            Event::Part(message) => (2, message),
            Event::Head(part) => (3, part),
            Event::There(message) => (4, message),
        };
        self.made += 1;
        self.queue.push(queue::Event { time, stamp: self.made, what: kind << 29 | at });
    }

    pub(super) fn next(&mut self) -> Option<(u64, Event)> {
        let queue::Event { time, what, .. } = self.queue.pop()?;
        let at = what & narrow::<u32>(MOST_NUMBERED - 1);
        let event = match what >> 29 {
            0 => Event::Begin(at),
            1 => Event::Posted(at),
            2 => Event::Part(at),
            3 => Event::Head(at),
            _ => Event::There(at),
        };
        Some((time, event))
    }
}
