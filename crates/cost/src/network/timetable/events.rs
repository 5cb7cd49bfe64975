//! Events of a timetable, in the order of their times.

use std::{cmp::Reverse, collections::BinaryHeap};

use unisono_base::narrow;

#[derive(Clone, Copy)]
pub(super) enum Event {
    /// An instruction can begin.
    Begin(u32),
    /// The host passes a message to its interface.
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
    /// The events, packed. From the highest bit: 64 bits for the time in ps, 32 for the number of the insertion, 3 for
    /// the kind, 29 for the instruction, message or part.
    queue: BinaryHeap<Reverse<u128>>,
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
        self.queue.push(Reverse(u128::from(time) << 64 | u128::from(self.made) << 32 | kind << 29 | u128::from(at)));
    }

    pub(super) fn next(&mut self) -> Option<(u64, Event)> {
        let Reverse(next) = self.queue.pop()?;
        let at = narrow::<u32>(next & u128::from(MOST_NUMBERED - 1));
        let event = match next >> 29 & 7 {
            0 => Event::Begin(at),
            1 => Event::Posted(at),
            2 => Event::Part(at),
            3 => Event::Head(at),
            _ => Event::There(at),
        };
        Some((narrow(next >> 64), event))
    }
}
