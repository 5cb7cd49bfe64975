//! The events of a plane, ordered by (time, stamp); stamps number events in the order of their creation.
//!
//! Nearly all events happen a fixed delay after their creation: heads arrive after a hop, links become free after a
//! full packet. Events with the same delay are created in the order in which they happen, so each of the first delays
//! has its own queue (a lane), and the next event is the earliest of a few first ones. Arrivals have a queue for each
//! latency of links. Other events are in heaps. The first keys of all queues and heaps form one small sorted table, so
//! that finding the next event reads nothing else. Events are taken from one queue until another has an earlier one.
//!
//! The return of a credit affects the order of events only if a link waits for credits. If no link does, returns are
//! not events: they stay in their queues until the counts that they change are read ([`Events::take_credit`]).

mod credits;
mod regions;

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, VecDeque},
};

use unisono_machine::network::Hop;

use self::{credits::Credit, regions::Incoming};
use super::{Timing, packet::Packet};
use unisono_base::{
    narrow,
    queue::{Event, Queue},
};

/// An event. The `u32` values are indices of links and messages, the `u8` is a virtual channel.
#[derive(Clone, Copy, Debug)]
pub(super) enum Happening {
    /// The head of a packet has arrived over a link.
    Arrival(u32, Packet),
    /// Enough of a packet has arrived that it may continue over a faster link; given by arrival link and next hop.
    Ready(u32, Hop, Packet),
    /// A link is free.
    Free(u32),
    /// A credit of this link and virtual channel has returned.
    Credit(u32, u8),
    /// A credit has returned; the number is `link * virtual channels + virtual channel`.
    LateCredit(u32),
    /// A message is passed to its interface.
    Posted(u32),
    /// A message has arrived completely.
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

/// Events with the same delay, in the order in which they happen.
struct Lane<E> {
    delay: u64,
    events: VecDeque<E>,
    /// Number of events that were read ahead and not taken yet.
    ahead: usize,
}

impl<E> Lane<E> {
    fn new(delay: u64) -> Self {
        Self { delay, events: VecDeque::new(), ahead: 0 }
    }

    /// Returns whether the next events should be read ahead; called after an event was taken.
    #[inline]
    fn is_due(&mut self) -> bool {
        if self.ahead > 0 {
            self.ahead -= 1;
            return false;
        }
        let coming = self.events.len().min(AHEAD);
        self.ahead = coming;
        coming >= FEW
    }
}

/// Sort key of an event: the time in the upper half, the stamp in the lower half.
type Key = u128;

/// Key of an empty queue.
const NEVER: Key = Key::MAX;

fn key(time: u64, stamp: u64) -> Key {
    Key::from(time) << 64 | Key::from(stamp)
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
fn stamp_of(key: Key) -> u64 {
    key as u64
}

/// An arrival or, with `hop`, a packet that becomes ready for this hop.
struct Late {
    arrival: Arrival,
    hop: Option<Hop>,
}

impl Late {
    fn key(&self) -> Key {
        key(self.arrival.time, self.arrival.stamp)
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

/// Reversed, so that the greatest element of a heap is the earliest.
impl Ord for Late {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Greatest number of delays with their own lane, for links that become free and likewise for credits, if all links are
/// alike: each packet length has its delay. [`UNLIKE_LANES`] is the same if links differ.
const LANES: usize = 6;
const UNLIKE_LANES: usize = 16;
/// Greatest number of link latencies with their own lane of arrivals.
const ARRIVAL_LANES: usize = 8;

/// Number of events of a lane that are read ahead at a time: about as many cache misses as a core handles concurrently.
const AHEAD: usize = 16;
/// A lane with fewer events is not read ahead.
const FEW: usize = 4;

#[derive(Default)]
pub(super) struct Events {
    made: u64,
    /// Lane of arrivals for each link speed; an arrival without a lane is put in `late`.
    arrivals_of: Vec<u8>,
    arrivals: Vec<Lane<Arrival>>,
    /// Delay of a hop for each link speed.
    hops_ps: Vec<u64>,
    late: BinaryHeap<Late>,
    most_lanes: usize,
    /// Number of lanes for events that this plane or region itself created.
    own_lanes: usize,
    lanes: Vec<Lane<Event<u64>>>,
    /// Number of lanes in `credits` for credits of this plane or region itself.
    own_credits: usize,
    credits: Vec<Lane<Credit>>,
    /// True if credit returns are events.
    strict: bool,
    others: Queue<u64>,
    /// All queues and lanes, each with the key of its first event, in ascending order of these keys.
    places: Vec<(Key, Place)>,
    /// Lane whose next events should be read ahead.
    due: Option<Place>,
    /// Key of the latest event taken.
    popped: Key,
    /// Lanes of events from other regions.
    incoming: Vec<Incoming>,
}

/// A queue or heap of events; a number is the index of a lane.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Others,
    Late,
    Arrivals(u32),
    Lane(u32),
    Credits(u32),
}

impl Events {
    pub fn new(timing: &Timing) -> Self {
        let hops_ps: Vec<u64> = timing.links.iter().map(|link| link.hop_ps).collect();
        let mut places = vec![(NEVER, Place::Others), (NEVER, Place::Late)];
        let mut arrivals: Vec<Lane<Arrival>> = Vec::new();
        let arrivals_of = hops_ps.iter().map(|&delay| {
            let known = arrivals.iter().position(|lane| lane.delay == delay);
            let lane = known.unwrap_or(arrivals.len());
            if known.is_none() && lane < ARRIVAL_LANES {
                arrivals.push(Lane::new(delay));
                places.push((NEVER, Place::Arrivals(narrow(lane))));
            }
            u8::try_from(lane).unwrap_or(u8::MAX)
        });
        Self {
            arrivals_of: arrivals_of.collect(),
            arrivals,
            hops_ps,
            most_lanes: if timing.links.len() == 1 { LANES } else { UNLIKE_LANES },
            places,
            ..Self::default()
        }
    }

    fn stamp(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Adds the arrival of the head of a packet that starts at `now` on a link of this speed.
    #[inline]
    pub fn arrival(&mut self, now: u64, speed: u8, link: u32, packet: Packet) {
        let at = self.arrivals_of[usize::from(speed)];
        let (time, stamp) = (now + self.hops_ps[usize::from(speed)], self.stamp());
        let arrival = Arrival { time, stamp, link, packet };
        match self.arrivals.get_mut(usize::from(at)) {
            Some(lane) => {
                let is_first = lane.events.is_empty();
                lane.events.push_back(arrival);
                if is_first {
                    self.came(Place::Arrivals(at.into()), key(time, stamp));
                }
            }
            None => self.push_late(Late { arrival, hop: None }),
        }
    }

    /// Records that a queue has an event with this key.
    fn came(&mut self, place: Place, key: Key) {
        let Some(mut at) = self.places.iter().position(|known| known.1 == place) else { return };
        if key >= self.places[at].0 {
            return;
        }
        while at > 0 && key < self.places[at - 1].0 {
            self.places[at] = self.places[at - 1];
            at -= 1;
        }
        self.places[at] = (key, place);
    }

    /// Adds the event that a packet may continue over a faster link, `delay` after `now`.
    pub fn ready(&mut self, now: u64, delay: u64, link: u32, hop: Hop, packet: Packet) {
        let (time, stamp) = (now + delay, self.stamp());
        self.push_late(Late { arrival: Arrival { time, stamp, link, packet }, hop: Some(hop) });
    }

    fn push_late(&mut self, late: Late) {
        self.came(Place::Late, late.key());
        self.late.push(late);
    }

    #[inline]
    pub fn free(&mut self, now: u64, delay: u64, link: u32) {
        self.after(now, delay, FREE | link);
    }

    pub fn posted(&mut self, time: u64, message: u32) {
        self.other(time, POSTED | message);
    }

    pub fn delivered(&mut self, time: u64, message: u32) {
        self.other(time, DELIVERED | message);
    }

    #[inline]
    fn after(&mut self, now: u64, delay: u64, what: u32) {
        let known = self.lanes.iter().position(|lane| lane.delay == delay);
        if known.is_none() && self.own_lanes == self.most_lanes {
            return self.other(now + delay, what);
        }
        let at = known.unwrap_or_else(|| self.add_lane(delay));
        let event = Event { time: now + delay, stamp: self.stamp(), what };
        let lane = &mut self.lanes[at];
        let is_first = lane.events.is_empty();
        lane.events.push_back(event);
        if is_first {
            self.came(Place::Lane(narrow(at)), key(event.time, event.stamp));
        }
    }

    #[cold]
    fn add_lane(&mut self, delay: u64) -> usize {
        let at = self.lanes.len();
        self.own_lanes += 1;
        self.lanes.push(Lane::new(delay));
        self.places.push((NEVER, Place::Lane(narrow(at))));
        at
    }

    fn other(&mut self, time: u64, what: u32) {
        let stamp = self.stamp();
        self.came(Place::Others, key(time, stamp));
        self.others.push(Event { time, stamp, what });
    }

    /// Takes the next event, if it happens by `until`.
    #[inline]
    pub fn pop(&mut self, until: u64) -> Option<(u64, Happening)> {
        let (first, place) = self.places[0];
        if first > key(until, u64::MAX - 1) {
            return None;
        }
        self.popped = first;
        let (head, time, what) = match place {
            Place::Arrivals(at) => {
                let lane = &mut self.arrivals[at as usize];
                let Arrival { time, link, packet, .. } = lane.events.pop_front()?;
                if lane.is_due() {
                    self.due = Some(place);
                }
                let head = lane.events.front().map(|next| key(next.time, next.stamp));
                (head, time, Happening::Arrival(link, packet))
            }
            Place::Late => {
                let Late { arrival: Arrival { time, link, packet, .. }, hop } = self.late.pop()?;
                let what = hop.map_or(Happening::Arrival(link, packet), |hop| Happening::Ready(link, hop, packet));
                (self.late.peek().map(Late::key), time, what)
            }
            Place::Lane(at) => {
                let lane = &mut self.lanes[at as usize];
                let Event { time, what, .. } = lane.events.pop_front()?;
                if lane.is_due() {
                    self.due = Some(place);
                }
                (lane.events.front().map(|next| key(next.time, next.stamp)), time, Happening::Free(what))
            }
            Place::Credits(at) => {
                let lane = &mut self.credits[at as usize];
                let Credit { time, link, vc, .. } = lane.events.pop_front()?;
                let head = lane.events.front().map(|next| key(next.time, next.stamp));
                (head, time, Happening::Credit(link, vc))
            }
            Place::Others => {
                let Event { time, what, .. } = self.others.pop()?;
                (self.others.peek().map(|next| key(next.time, next.stamp)), time, happening(what))
            }
        };
        let head = head.unwrap_or(NEVER);
        let mut at = 0;
        while let Some(&next) = self.places.get(at + 1)
            && next.0 < head
        {
            self.places[at] = next;
            at += 1;
        }
        self.places[at] = (head, place);
        Some((time, what))
    }

    /// Sorts `places` after keys of first events have changed.
    fn sort_places(&mut self) {
        let Self { places, others, late, arrivals, lanes, credits, strict, .. } = self;
        for (head, place) in &mut *places {
            let first = match *place {
                Place::Others => others.peek().map(|next| key(next.time, next.stamp)),
                Place::Late => late.peek().map(Late::key),
                Place::Arrivals(at) => arrivals[at as usize].events.front().map(|next| key(next.time, next.stamp)),
                Place::Lane(at) => lanes[at as usize].events.front().map(|next| key(next.time, next.stamp)),
                Place::Credits(at) => {
                    let first = credits[at as usize].events.front().filter(|_| *strict);
                    first.map(|next| key(next.time, next.stamp))
                }
            };
            *head = first.unwrap_or(NEVER);
        }
        places.sort_unstable_by_key(|&(head, _)| head);
    }

    /// Returns the number of stamps so far.
    #[inline]
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Returns a stamp for an event that happens in another region.
    pub fn made_elsewhere(&mut self) -> u64 {
        self.stamp()
    }

    /// Returns the stamp of the latest event taken.
    #[inline]
    pub fn popped(&self) -> u64 {
        stamp_of(self.popped)
    }

    /// Returns the time of the next event.
    pub fn next_time(&self) -> Option<u64> {
        let first = self.places[0].0;
        u64::try_from(first >> 64).ok().filter(|_| first != NEVER)
    }

    /// Returns the lane whose next events should be read ahead, and clears this mark; `None` if there is no such lane.
    #[inline]
    pub fn take_due(&mut self) -> Option<Place> {
        self.due.take()
    }

    /// Returns up to [`AHEAD`] next arrivals of a lane, each with its link.
    #[inline]
    pub fn coming_arrivals(&self, lane: u32) -> impl Iterator<Item = (u32, Packet)> + '_ {
        self.arrivals[lane as usize].events.iter().take(AHEAD).map(|next| (next.link, next.packet))
    }

    /// Returns up to [`AHEAD`] links that become free next in a lane.
    #[inline]
    pub fn coming_free(&self, lane: u32) -> impl Iterator<Item = u32> + '_ {
        self.lanes[lane as usize].events.iter().take(AHEAD).map(|next| next.what)
    }
}

#[inline]
fn happening(what: u32) -> Happening {
    let number = what & NUMBER;
    match what & !NUMBER {
        FREE => Happening::Free(number),
        CREDIT => Happening::LateCredit(number),
        POSTED => Happening::Posted(number),
        _ => Happening::Delivered(number),
    }
}
