//! The events of a plane, ordered by (time, order of their making).
//!
//! Nearly all happen a fixed time after they are made: heads arrive after a hop, links are free after a full packet. Those of
//! one delay are made in the order in which they happen, so each delay has a queue of its own, and the next event is the first
//! of a few. Arrivals have a queue for each latency of links. Other events lie in heaps.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, VecDeque},
};

use unisono_machine::network::Hop;

use super::{Timing, packet::Packet};
use crate::queue::{Event, Queue};

/// What happens; links, channels (link and virtual channel) and messages by number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Happening {
    /// The head of a packet has come over a link.
    Arrival(u32, Packet),
    /// So much of a packet has come over a link that it may go on over a faster one.
    Ready(u32, Hop, Packet),
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

struct Arrivals {
    delay: u64,
    events: VecDeque<Arrival>,
}

struct Lane {
    delay: u64,
    events: VecDeque<Event<u64>>,
}

/// An arrival, or with a hop a packet that is ready for it.
struct Late {
    arrival: Arrival,
    hop: Option<Hop>,
}

impl Late {
    fn key(&self) -> (u64, u64) {
        (self.arrival.time, self.arrival.stamp)
    }
}

impl PartialEq for Late {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Late {}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The greatest of a heap is the earliest.
impl Ord for Late {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Delays with a queue of their own: full packets and last ones, as links and as credits, and more where links are unlike.
const LANES: usize = 6;
const UNLIKE_LANES: usize = 16;
/// Latencies of links with a queue of their own for arrivals.
const ARRIVAL_LANES: usize = 8;

pub(super) struct Events {
    made: u64,
    /// By the speed of the link; what has no queue is late.
    arrivals_of: Vec<u8>,
    arrivals: Vec<Arrivals>,
    /// By the speed of the link.
    hops_ps: Vec<u64>,
    late: BinaryHeap<Late>,
    most_lanes: usize,
    lanes: Vec<Lane>,
    others: Queue<u64>,
}

/// Where the next event lies.
#[derive(Clone, Copy)]
enum Place {
    Arrivals(usize),
    Late,
    Lane(usize),
    Others,
}

impl Events {
    pub fn new(timing: &Timing) -> Self {
        let hops_ps: Vec<u64> = timing.links.iter().map(|link| link.hop_ps).collect();
        let mut arrivals: Vec<Arrivals> = Vec::new();
        let arrivals_of = hops_ps.iter().map(|&delay| {
            let known = arrivals.iter().position(|lane| lane.delay == delay);
            let lane = known.unwrap_or(arrivals.len());
            if known.is_none() && lane < ARRIVAL_LANES {
                arrivals.push(Arrivals { delay, events: VecDeque::new() });
            }
            u8::try_from(lane).unwrap_or(u8::MAX)
        });
        Self {
            made: 0,
            arrivals_of: arrivals_of.collect(),
            arrivals,
            hops_ps,
            late: BinaryHeap::new(),
            most_lanes: if timing.links.len() == 1 { LANES } else { UNLIKE_LANES },
            lanes: Vec::new(),
            others: Queue::new(),
        }
    }

    fn stamp(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// The head of a packet that starts now on a link of this speed.
    #[inline]
    pub fn arrival(&mut self, now: u64, speed: u8, link: u32, packet: Packet) {
        let speed = usize::from(speed);
        let (time, stamp) = (now + self.hops_ps[speed], self.stamp());
        let arrival = Arrival { time, stamp, link, packet };
        match self.arrivals.get_mut(usize::from(self.arrivals_of[speed])) {
            Some(lane) => lane.events.push_back(arrival),
            None => self.late.push(Late { arrival, hop: None }),
        }
    }

    /// A packet that a link brought may go on over a faster one after a delay.
    pub fn ready(&mut self, now: u64, delay: u64, link: u32, hop: Hop, packet: Packet) {
        let (time, stamp) = (now + delay, self.stamp());
        self.late.push(Late { arrival: Arrival { time, stamp, link, packet }, hop: Some(hop) });
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
        } else if self.lanes.len() < self.most_lanes {
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
        for (at, lane) in self.arrivals.iter().enumerate() {
            if let Some(event) = lane.events.front()
                && (event.time, event.stamp) < best
            {
                (best, place) = ((event.time, event.stamp), Place::Arrivals(at));
            }
        }
        if let Some(event) = self.late.peek()
            && event.key() < best
        {
            (best, place) = (event.key(), Place::Late);
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
            Place::Arrivals(at) => {
                let Arrival { time, link, packet, .. } = self.arrivals[at].events.pop_front()?;
                return Some((time, Happening::Arrival(link, packet)));
            }
            Place::Late => {
                let Late { arrival: Arrival { time, link, packet, .. }, hop } = self.late.pop()?;
                let what = hop.map_or(Happening::Arrival(link, packet), |hop| Happening::Ready(link, hop, packet));
                return Some((time, what));
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
