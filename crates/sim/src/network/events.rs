//! The events of a plane, ordered by (time, order of their making).
//!
//! Nearly all happen a fixed time after they are made: heads arrive after a hop, links are free after a full packet. Those of
//! one delay are made in the order in which they happen, so each delay has a queue of its own, and the next event is the first
//! of a few. What has no such delay, and what has one that is rare, lies in a radix heap.

use std::collections::VecDeque;

use super::packets::Packet;
use crate::queue::{Event, Queue};

/// What happens; links, channels (link and virtual channel) and messages by number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Happening {
    /// The head of a packet has come over a link.
    Arrival(u32, Packet),
    /// A link is free.
    Free(u32),
    /// A credit of a channel is back.
    Credit(u32),
    /// A message is handed to its interface.
    Posted(u32),
    /// A message is there whole.
    Delivered(u32),
}

const FREE: u32 = 0;
const CREDIT: u32 = 1 << 30;
const POSTED: u32 = 2 << 30;
const DELIVERED: u32 = 3 << 30;
const NUMBER: u32 = (1 << 30) - 1;

struct Arrival {
    time: u64,
    stamp: u64,
    link: u32,
    packet: Packet,
}

struct Lane {
    delay: u64,
    events: VecDeque<Event<u64>>,
}

/// Delays with a queue of their own: full packets and last ones, as links and as credits.
const LANES: usize = 6;

pub(super) struct Events {
    made: u64,
    hop: u64,
    arrivals: VecDeque<Arrival>,
    lanes: Vec<Lane>,
    others: Queue<u64>,
}

/// Where the next event lies.
#[derive(Clone, Copy)]
enum Place {
    Arrivals,
    Lane(usize),
    Others,
}

impl Events {
    pub fn new(hop: u64) -> Self {
        Self { made: 0, hop, arrivals: VecDeque::new(), lanes: Vec::new(), others: Queue::new() }
    }

    fn stamp(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    #[inline]
    pub fn arrival(&mut self, now: u64, link: u32, packet: Packet) {
        let (time, stamp) = (now + self.hop, self.stamp());
        self.arrivals.push_back(Arrival { time, stamp, link, packet });
    }

    #[inline]
    pub fn free(&mut self, now: u64, delay: u64, link: u32) {
        self.after(now, delay, FREE | link);
    }

    #[inline]
    pub fn credit(&mut self, now: u64, delay: u64, channel: u32) {
        self.after(now, delay, CREDIT | channel);
    }

    pub fn posted(&mut self, time: u64, message: u32) {
        self.other(time, POSTED | message);
    }

    pub fn delivered(&mut self, time: u64, message: u32) {
        self.other(time, DELIVERED | message);
    }

    #[inline]
    fn after(&mut self, now: u64, delay: u64, what: u32) {
        let event = Event { time: now + delay, stamp: self.stamp(), what };
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.delay == delay) {
            lane.events.push_back(event);
        } else if self.lanes.len() < LANES {
            self.lanes.push(Lane { delay, events: VecDeque::from([event]) });
        } else {
            self.others.push(event);
        }
    }

    fn other(&mut self, time: u64, what: u32) {
        let stamp = self.stamp();
        self.others.push(Event { time, stamp, what });
    }

    /// The next event, if it happens by `until`.
    #[inline]
    pub fn pop(&mut self, until: u64) -> Option<(u64, Happening)> {
        let mut best = (u64::MAX, u64::MAX);
        let mut place = Place::Others;
        if let Some(event) = self.others.peek() {
            best = (event.time, event.stamp);
        }
        if let Some(event) = self.arrivals.front()
            && (event.time, event.stamp) < best
        {
            (best, place) = ((event.time, event.stamp), Place::Arrivals);
        }
        for (at, lane) in self.lanes.iter().enumerate() {
            if let Some(event) = lane.events.front()
                && (event.time, event.stamp) < best
            {
                (best, place) = ((event.time, event.stamp), Place::Lane(at));
            }
        }
        if best.0 > until {
            return None;
        }
        let event = match place {
            Place::Arrivals => {
                let Arrival { time, link, packet, .. } = self.arrivals.pop_front()?;
                return Some((time, Happening::Arrival(link, packet)));
            }
            Place::Lane(at) => self.lanes[at].events.pop_front(),
            Place::Others => self.others.pop(),
        }?;
        let number = event.what & NUMBER;
        let what = match event.what & !NUMBER {
            FREE => Happening::Free(number),
            CREDIT => Happening::Credit(number),
            POSTED => Happening::Posted(number),
            _ => Happening::Delivered(number),
        };
        Some((event.time, what))
    }
}
