//! The events of a plane, ordered by (time, order of creation).
//!
//! Nearly all events happen a fixed time after their creation: heads arrive after a hop, links are free after a full
//! packet. Events of one delay are created in the order in which they happen, so each delay has a queue of its own, and
//! the next event is the first of a few. Arrivals have a queue for each latency of links. Other events are in heaps.
//! The first keys of all queues and heaps are one small table, so that finding the next event reads nothing else.
//! Events are taken from one place until another place has an earlier one.
//!
//! A returning credit has an effect on the order of events only if a link is stalled for want of credits. If none is,
//! credits are not events: they stay in their queues until the counts that they change are read
//! ([`Events::take_credit`]).

mod credits;
mod regions;

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, VecDeque},
};

use unisono_machine::network::Hop;

use self::{credits::Credit, regions::Incoming};
use super::{Timing, packet::Packet};
use crate::queue::{Event, Queue};

/// An event; links, channels (link and virtual channel) and messages are given by number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Happening {
    /// The head of a packet has arrived over a link.
    Arrival(u32, Packet),
    /// Enough of a packet has arrived over a link that it may continue over a faster one.
    Ready(u32, Hop, Packet),
    /// A link is free.
    Free(u32),
    /// A credit of a link and a virtual channel has returned.
    Credit(u32, u8),
    /// A credit has returned, of the virtual channel with this number among those of all links.
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

/// Events of one delay, in the order in which they happen.
struct Lane<E> {
    delay: u64,
    events: VecDeque<E>,
    /// The index of its first key.
    head: usize,
    /// Events that were read ahead and not taken yet.
    ahead: usize,
}

impl<E> Lane<E> {
    fn new(delay: u64, head: usize) -> Self {
        Self { delay, events: VecDeque::new(), head, ahead: 0 }
    }

    /// Returns, after an event was taken, whether to read the next ones ahead.
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

/// The order of events: the time, then the stamp in the lower half.
type Key = u128;

/// The key of a queue without events.
const NEVER: Key = Key::MAX;

fn key(time: u64, stamp: u64) -> Key {
    Key::from(time) << 64 | Key::from(stamp)
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
fn stamp_of(key: Key) -> u64 {
    key as u64
}

/// An arrival or, with a hop, a packet that is ready for it.
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

/// Reversed, so that the greatest of a heap is the earliest.
impl Ord for Late {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// The most delays with a lane of their own: full packets and last ones, as links and as credits, and more if links
/// differ.
const LANES: usize = 6;
const UNLIKE_LANES: usize = 16;
/// The most latencies of links with a lane of their own for arrivals.
const ARRIVAL_LANES: usize = 8;

/// Events of a lane that are read ahead at a time: about as many cache misses as a core has under way at once.
const AHEAD: usize = 16;
/// A lane with fewer events is not read ahead.
const FEW: usize = 4;

pub(super) struct Events {
    made: u64,
    /// The lane of arrivals by the speed of the link; arrivals without a lane are late.
    arrivals_of: Vec<u8>,
    arrivals: Vec<Lane<Arrival>>,
    /// Delays of hops by the speed of the link.
    hops_ps: Vec<u64>,
    late: BinaryHeap<Late>,
    most_lanes: usize,
    /// The number of lanes of this plane's or region's own events.
    own_lanes: usize,
    lanes: Vec<Lane<Event<u64>>>,
    /// Lanes of credits by their delay, in the same way.
    own_credits: usize,
    credits: Vec<Lane<Credit>>,
    /// True if credits are events like others.
    strict: bool,
    others: Queue<u64>,
    /// The key of the first event of each of `places`, in the same order.
    heads: Vec<Key>,
    /// The queues and lanes that hold events.
    places: Vec<Place>,
    /// The lane whose next events are due to be read ahead.
    due: Option<Place>,
    /// The place from which events are taken, by its index in `heads`.
    current: usize,
    /// Lower bound of the keys of all other places.
    bound: Key,
    /// The key of the event that was taken last.
    popped: Key,
    /// Lanes of events from other regions.
    incoming: Vec<Incoming>,
}

/// A queue or heap of events.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Others,
    Late,
    Arrivals(usize),
    Lane(usize),
    Credits(usize),
}

/// The indices of the two places that always exist.
const OTHERS: usize = 0;
const LATE: usize = 1;

impl Events {
    pub fn new(timing: &Timing) -> Self {
        let hops_ps: Vec<u64> = timing.links.iter().map(|link| link.hop_ps).collect();
        let mut places = vec![Place::Others, Place::Late];
        let mut arrivals: Vec<Lane<Arrival>> = Vec::new();
        let arrivals_of = hops_ps.iter().map(|&delay| {
            let known = arrivals.iter().position(|lane| lane.delay == delay);
            let lane = known.unwrap_or(arrivals.len());
            if known.is_none() && lane < ARRIVAL_LANES {
                arrivals.push(Lane::new(delay, places.len()));
                places.push(Place::Arrivals(lane));
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
            own_lanes: 0,
            lanes: Vec::new(),
            own_credits: 0,
            credits: Vec::new(),
            strict: false,
            others: Queue::new(),
            heads: vec![NEVER; places.len()],
            places,
            due: None,
            current: OTHERS,
            bound: 0,
            popped: 0,
            incoming: Vec::new(),
        }
    }

    fn stamp(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Adds the arrival of the head of a packet that starts now on a link of this speed.
    #[inline]
    pub fn arrival(&mut self, now: u64, speed: u8, link: u32, packet: Packet) {
        let speed = usize::from(speed);
        let (time, stamp) = (now + self.hops_ps[speed], self.stamp());
        let arrival = Arrival { time, stamp, link, packet };
        match self.arrivals.get_mut(usize::from(self.arrivals_of[speed])) {
            Some(lane) => {
                lane.events.push_back(arrival);
                let at = lane.head;
                self.came(at, key(time, stamp));
            }
            None => self.push_late(Late { arrival, hop: None }),
        }
    }

    /// Notes that a place has an event of this key.
    #[inline]
    fn came(&mut self, head: usize, key: Key) {
        if key < self.heads[head] {
            self.heads[head] = key;
            self.bound = self.bound.min(key);
        }
    }

    /// Adds the event that a packet may continue over a faster link after a delay.
    pub fn ready(&mut self, now: u64, delay: u64, link: u32, hop: Hop, packet: Packet) {
        let (time, stamp) = (now + delay, self.stamp());
        self.push_late(Late { arrival: Arrival { time, stamp, link, packet }, hop: Some(hop) });
    }

    fn push_late(&mut self, late: Late) {
        self.came(LATE, late.key());
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
        lane.events.push_back(event);
        let at = lane.head;
        self.came(at, key(event.time, event.stamp));
    }

    #[cold]
    fn add_lane(&mut self, delay: u64) -> usize {
        let at = self.lanes.len();
        self.own_lanes += 1;
        self.lanes.push(Lane::new(delay, self.places.len()));
        self.places.push(Place::Lane(at));
        self.heads.push(NEVER);
        at
    }

    fn other(&mut self, time: u64, what: u32) {
        let stamp = self.stamp();
        self.came(OTHERS, key(time, stamp));
        self.others.push(Event { time, stamp, what });
    }

    /// Takes the next event, if it happens by `until`.
    #[inline]
    pub fn pop(&mut self, until: u64) -> Option<(u64, Happening)> {
        let mut best = self.heads[self.current];
        if best >= self.bound {
            best = self.choose_place();
        }
        if best > key(until, u64::MAX - 1) {
            return None;
        }
        self.popped = best;
        let first = self.current;
        let place = self.places[first];
        let (head, time, what) = match place {
            Place::Arrivals(at) => {
                let lane = &mut self.arrivals[at];
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
                let lane = &mut self.lanes[at];
                let Event { time, what, .. } = lane.events.pop_front()?;
                if lane.is_due() {
                    self.due = Some(place);
                }
                (lane.events.front().map(|next| key(next.time, next.stamp)), time, happening(what))
            }
            Place::Credits(at) => {
                let lane = &mut self.credits[at];
                let Credit { time, link, vc, .. } = lane.events.pop_front()?;
                let head = lane.events.front().map(|next| key(next.time, next.stamp));
                (head, time, Happening::Credit(link, vc))
            }
            Place::Others => {
                let Event { time, what, .. } = self.others.pop()?;
                (self.others.peek().map(|next| key(next.time, next.stamp)), time, happening(what))
            }
        };
        self.heads[first] = head.unwrap_or(NEVER);
        Some((time, what))
    }

    /// Finds the place with the next event, and returns its key.
    #[inline]
    fn choose_place(&mut self) -> Key {
        let (mut best, mut second, mut first) = (NEVER, NEVER, 0);
        for (at, &head) in self.heads.iter().enumerate() {
            if head < best {
                (second, best, first) = (best, head, at);
            } else {
                second = second.min(head);
            }
        }
        (self.current, self.bound) = (first, second);
        best
    }

    /// Returns the number of stamps so far.
    #[inline]
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Returns the stamp of an event that happens in another region.
    pub fn made_elsewhere(&mut self) -> u64 {
        self.stamp()
    }

    /// Returns the stamp of the event that was taken last.
    #[inline]
    pub fn popped(&self) -> u64 {
        stamp_of(self.popped)
    }

    /// Returns the time of the next event.
    pub fn next_time(&self) -> Option<u64> {
        let first = self.heads.iter().copied().min().filter(|&head| head != NEVER);
        first.and_then(|head| u64::try_from(head >> 64).ok())
    }

    /// Returns the lane whose next events should be read ahead now, and forgets it; `None` if there is no such lane.
    #[inline]
    pub fn take_due(&mut self) -> Option<Place> {
        self.due.take()
    }

    /// Returns the next events of a lane.
    #[inline]
    pub fn coming(&self, place: Place) -> impl Iterator<Item = Happening> + '_ {
        let (arrivals, lane) = match place {
            Place::Arrivals(at) => (Some(&self.arrivals[at].events), None),
            Place::Lane(at) => (None, Some(&self.lanes[at].events)),
            Place::Others | Place::Late | Place::Credits(_) => (None, None),
        };
        let arrivals = arrivals.into_iter().flat_map(|events| events.iter().take(AHEAD));
        let lane = lane.into_iter().flat_map(|events| events.iter().take(AHEAD));
        let arrivals = arrivals.map(|&Arrival { link, packet, .. }| Happening::Arrival(link, packet));
        arrivals.chain(lane.map(|event| happening(event.what)))
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
