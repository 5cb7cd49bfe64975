//! The load of concurrent messages on each link of a plane, in bytes. On a link of another rate, the bytes are
//! multiplied by the machine's own rate of a link divided by that rate.
//!
//! A message is cut into equal parts. At each node, a part takes one of the hops that the routing allows. Real packets,
//! which follow credits, change to another hop only when their link is busy. So messages are routed twice, and the
//! routing whose busiest link has the smaller load is used. In the first routing, each part takes the hop with the
//! least loaded link. In the second, each part takes the first hop whose link has room, that is, a load up to the
//! longest message. The second routing is omitted if the messages have no choice or the first result is the least
//! possible. If the source chooses among paths (Valiant), it distributes the parts evenly. Messages are routed in their
//! order, so the same messages give the same loads.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use unisono_base::{interrupt::poll, narrow, parallel};
use unisono_machine::network::{Header, Hop, Plane, Routing};

use super::Speeds;

/// The most parts of a message that can take several paths. More parts balance loads better and take longer to route.
const PARTS: u32 = 8;
/// The number of parts of all messages of a sender together, within the limits of one message, [`LEAST_PARTS`] and
/// [`PARTS`]. Few parts suffice, because many messages balance each other: the loads of an alltoall of 1,024
/// accelerators differ by at most 0.4 % from loads with 8 parts per message.
const PARTS_OF_SENDER: u32 = 256;
/// The least parts of a message that can take several paths.
const LEAST_PARTS: u32 = 2;

/// The number of messages whose routing takes about as long as the start of a few threads.
const MANY: usize = 1 << 12;

/// A number of links above the length of any path; a longer path is a fault of a routing.
const LONGEST: u32 = 1 << 16;

/// Bytes from one accelerator to another.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub from: u32,
    pub to: u32,
    pub bytes: f64,
}

/// The loads of the messages routed so far.
#[derive(Default)]
struct Routed {
    /// The load of each link in bytes, multiplied by the weight of its rate.
    bytes: Vec<f64>,
    /// The load of the busiest link.
    most: f64,
    /// The number of routed messages of a list. `chose` is true if one of them could take several paths.
    count: usize,
    chose: bool,
    /// For the first link of each run of hops, the position of the search in the run: `most`, `level`, `next`, and the
    /// number of links. Memory of zeros costs no time before its first use.
    cursors: Vec<(f64, f64, u32, u32)>,
    /// The first links of the runs whose cursors have moved.
    moved: Vec<u32>,
    touched: Vec<u32>,
}

impl Routed {
    fn new(links: usize) -> Self {
        Self { bytes: vec![0.0; links], cursors: vec![(0.0, 0.0, 0, 0); links], ..Self::default() }
    }
}

pub struct Loads<'a> {
    plane: &'a Plane,
    routing: &'a dyn Routing,
    speeds: &'a Speeds,
    now: Routed,
    /// A second routing of the same messages.
    other: Option<Box<Self>>,
    hops: Vec<Hop>,
    way: Vec<u32>,
    /// The number of parts of a message whose source has no choice of paths.
    parts: u32,
    is_layered: bool,
}

impl<'a> Loads<'a> {
    pub fn new(plane: &'a Plane, routing: &'a dyn Routing, speeds: &'a Speeds) -> Self {
        let (now, other) = (Routed::new(plane.links().len()), None);
        let (hops, way, is_layered) = (Vec::new(), Vec::new(), routing.is_layered());
        Self { plane, routing, speeds, now, other, hops, way, parts: PARTS, is_layered }
    }

    /// Returns the load of the busiest link during these messages, in weighted bytes (see the head of this file).
    pub fn busiest(&mut self, messages: &[Sent]) -> f64 {
        let longest = messages.iter().map(|m| m.bytes).fold(0.0, f64::max) * self.speeds.least_weight();
        let messages_of_sender = narrow::<u32>(messages.len()) / self.plane.accelerators();
        self.parts = (PARTS_OF_SENDER / messages_of_sender.max(1)).clamp(LEAST_PARTS, PARTS);
        let least = longest.max(self.least(messages)) * (1.0 + 1e-9);
        // Often the second result is the least possible, and the first exceeds the least possible load after few
        // messages. So on one core the first routing pauses when it exceeds this load.
        if messages.len() < MANY || !parallel::with_idle(2, |threads| threads > 1) {
            self.route_on(messages, 0.0, |most| most > least);
            if !self.now.chose || self.now.most <= least {
                return self.take();
            }
        }
        let (plane, routing, speeds, parts) = (self.plane, self.routing, self.speeds, self.parts);
        let mut other = self.other.take().unwrap_or_else(|| Box::new(Self::new(plane, routing, speeds)));
        other.parts = parts;
        // The smallest largest load of a finished routing, as bits. Loads only grow, so a routing stops when it reaches
        // this load.
        let known = AtomicU64::new(f64::INFINITY.to_bits());
        let is_worse = |most: f64| most >= f64::from_bits(known.load(Relaxed));
        let [room, even] = [&mut *other, &mut *self].map(Mutex::new);
        parallel::both(
            || {
                let mut room = room.lock().unwrap_or_else(PoisonError::into_inner);
                room.route_on(messages, longest, is_worse);
                known.fetch_min(room.now.most.to_bits(), Relaxed);
            },
            || {
                let mut even = even.lock().unwrap_or_else(PoisonError::into_inner);
                even.route_on(messages, 0.0, |most| most > least && is_worse(most));
                let is_enough = !even.now.chose || even.now.most <= least;
                known.fetch_min(if is_enough { 0 } else { even.now.most.to_bits() }, Relaxed);
            },
        );
        let is_enough = !self.now.chose || self.now.most <= least;
        let (even, room) = (self.take(), other.take());
        self.other = Some(other);
        if is_enough { even } else { even.min(room) }
    }

    /// Routes the messages of a list that are not yet routed. Stops after a message if a message so far could take
    /// several paths and `stops` returns true for the largest load.
    fn route_on(&mut self, messages: &[Sent], room: f64, stops: impl Fn(f64) -> bool) {
        while let Some(message) = messages.get(self.now.count) {
            self.now.count += 1;
            self.now.chose |= self.route(message, room, |_, _| ());
            if self.now.chose && stops(self.now.most) {
                break;
            }
        }
    }

    /// Returns a lower bound on the load of the busiest link: the links of a sender carry all bytes that the sender
    /// sends.
    fn least(&self, messages: &[Sent]) -> f64 {
        let mut sent = vec![0.0; self.plane.accelerators() as usize];
        messages.iter().filter(|m| m.from != m.to).for_each(|m| sent[m.from as usize] += m.bytes);
        let load = |(from, bytes): (u32, &f64)| {
            if *bytes > 0.0 { bytes / self.speeds.injection(self.plane, from) } else { 0.0 }
        };
        (0..).zip(&sent).map(load).fold(0.0, f64::max)
    }

    /// Returns the largest latency of a message over the paths among which its source may choose. At every node of a
    /// path, this is the path over the first hop that the routing lists. 0 from an accelerator to itself.
    pub fn latency_ns(&mut self, from: u32, to: u32) -> f64 {
        if from == to {
            return 0.0;
        }
        let choices = self.routing.choices(from, to);
        let of = |&way: &u32| {
            self.follow((from, to), way, true);
            self.speeds.way_ns(self.way.iter().map(|&link| self.plane.link(link).speed))
        };
        choices.iter().map(of).fold(0.0, f64::max)
    }

    /// Returns the number of links on the first of the paths that [`Self::latency_ns`] compares.
    pub fn crossed(&mut self, from: u32, to: u32) -> usize {
        if from == to {
            return 0;
        }
        self.follow((from, to), self.routing.choices(from, to)[0], true);
        self.way.len()
    }

    /// Adds the load of a message, calls `on` with each link and each load that it adds to the link, and returns
    /// whether the message could take several paths. `room` is the load up to which the first hop is taken; 0: always
    /// the least loaded. Until [`Loads::take`], all messages have rooms of 0, or none has.
    pub fn route(&mut self, message: &Sent, room: f64, mut on: impl FnMut(u32, f64)) -> bool {
        let &Sent { from, to, .. } = message;
        if from == to {
            return false;
        }
        let choices = self.routing.choices(from, to);
        // The source chooses a path for each part.
        let chooses = choices.len() > 1;
        let parts = if chooses { PARTS } else { self.parts };
        let together = if chooses || !self.is_layered { 1 } else { parts };
        let mut any = chooses;
        for first in (0..parts).step_by(together as usize) {
            let way = choices[first as usize * choices.len() / parts as usize];
            any = self.walk(message, way, (together, parts), any, room, &mut on);
            if !any {
                break;
            }
        }
        any
    }

    #[inline]
    fn weight(&self, link: u32) -> f64 {
        if self.speeds.is_even() { 1.0 } else { self.speeds.weight(self.plane.link(link).speed) }
    }

    /// Routes `together` of the `parts` parts of a message, link by link, and returns true if the message could take
    /// several paths; `any` is true if this is already known. `way` is the choice of the source. If the routing is
    /// layered, each node sees the parts in the same order as if they were routed one after the other.
    fn walk(
        &mut self,
        &Sent { from, to, bytes }: &Sent,
        way: u32,
        (together, parts): (u32, u32),
        any: bool,
        room: f64,
        on: &mut impl FnMut(u32, f64),
    ) -> bool {
        let share = bytes / f64::from(parts);
        let is_even = self.speeds.is_even();
        // If `room` is 0, the least loaded link is taken; a link without load is the first such link.
        let most = if room > 0.0 { room * (1.0 + 1e-9) - if is_even { share } else { 0.0 } } else { 0.0 };
        let (at, vc) = self.follow((from, to), way, false);
        let mut listed = std::mem::take(&mut self.hops);
        let any = any || at != to;
        // Without a choice all parts take the same path, so they are routed as one part.
        let (first, times) = if any { (share, together) } else { (bytes, 1) };
        for index in 0..self.way.len() {
            self.load(self.way[index], first, (times, f64::INFINITY), on);
        }
        // The place of each part. `open` has a bit for each part that has not arrived.
        let mut places = [(at, vc); PARTS as usize];
        let mut open = if at == to { 0 } else { (1_u32 << together) - 1 };
        let mut steps = narrow::<u32>(self.way.len());
        while open > 0 {
            steps += 1;
            assert!(steps < LONGEST, "a way from {from} to {to} does not end");
            let mut left = open;
            while left > 0 {
                let (at, vc) = places[left.trailing_zeros() as usize];
                let mut here = 0;
                for part in left.trailing_zeros()..together {
                    let place = places[part as usize];
                    if left >> part & 1 == 0 || place.0 != at {
                        continue;
                    }
                    // A part on another virtual channel may have other hops, so it is routed after this part.
                    if place.1 != vc {
                        break;
                    }
                    here |= 1 << part;
                }
                left &= !here;
                let hops = self.hops_at(at, vc, (to, way), &mut listed);
                // A link with room remains the chosen link until it is full.
                let full = match hops.len() {
                    1 => f64::INFINITY,
                    _ if is_even => most,
                    _ => f64::NEG_INFINITY,
                };
                while here > 0 {
                    let hop = self.best(hops, share, most);
                    let place = (self.plane.end(hop.link), hop.vc);
                    for _ in 0..self.load(hop.link, share, (here.count_ones(), full), on) {
                        places[here.trailing_zeros() as usize] = place;
                        if place.0 == to {
                            open &= !(1 << here.trailing_zeros());
                        }
                        here &= here - 1;
                    }
                }
            }
        }
        self.hops = listed;
        any
    }

    /// Adds the load of one part of a message to a link, and of further parts while the load of the link is at most
    /// `full`. Returns the number of parts added, at most `parts`.
    #[inline]
    fn load(&mut self, link: u32, share: f64, (parts, full): (u32, f64), on: &mut impl FnMut(u32, f64)) -> u32 {
        let more = share * self.weight(link);
        let load = &mut self.now.bytes[link as usize];
        if *load == 0.0 {
            self.now.touched.push(link);
        }
        let mut added = 0;
        while added == 0 || added < parts && *load <= full {
            *load += more;
            on(link, more);
            added += 1;
        }
        self.now.most = self.now.most.max(*load);
        added
    }

    /// Stores the links of a path in `self.way`: up to the first node with several hops or, if the path takes the first
    /// hop at each node, up to its end. Returns the last node and virtual channel.
    fn follow(&mut self, (from, to): (u32, u32), way: u32, takes_first: bool) -> (u32, u8) {
        poll();
        self.way.clear();
        let (mut at, mut vc, mut has_rule) = (from, 0, true);
        let mut listed = std::mem::take(&mut self.hops);
        while at != to {
            if has_rule {
                match self.routing.only_way(at, Header { to, vc, way }, &mut self.way) {
                    Some(end) if end.0 == to => {
                        (at, vc) = end;
                        break;
                    }
                    Some(end) => (at, vc) = end,
                    None => has_rule = false,
                }
            }
            let hops = self.hops_at(at, vc, (to, way), &mut listed);
            if hops.len() > 1 && !takes_first {
                break;
            }
            let hop = hops.hop(0);
            self.way.push(hop.link);
            assert!(narrow::<u32>(self.way.len()) < LONGEST, "a way from {from} to {to} does not end");
            (at, vc) = (self.plane.end(hop.link), hop.vc);
        }
        self.hops = listed;
        (at, vc)
    }

    /// Returns the hops at a node. `listed` stores them if they are not a run.
    #[inline]
    fn hops_at<'h>(&self, at: u32, vc: u8, (to, way): (u32, u32), listed: &'h mut Vec<Hop>) -> Hops<'h> {
        // Each call takes a new header, since a copy of a header reads the byte of the channel in a longer word.
        if let Some((first, count)) = self.routing.run(at, Header { to, vc, way }) {
            return Hops::Run(first, count);
        }
        listed.clear();
        self.routing.hops(at, Header { to, vc, way }, listed);
        Hops::List(listed)
    }

    /// Returns the first hop whose link has a load of at most `most`, or else the hop with the least loaded link. If
    /// links have different rates, the compared load includes the next part of `share` bytes.
    #[inline]
    fn best(&mut self, hops: Hops, share: f64, most: f64) -> Hop {
        if hops.len() == 1 {
            return hops.hop(0);
        }
        let is_even = self.speeds.is_even();
        if is_even && let Hops::Run(first, count) = hops {
            return hops.hop(self.best_of_run(first.link, count, most));
        }
        let on = |index: usize| {
            let link = hops.hop(index).link;
            let more = if is_even { 0.0 } else { share * self.weight(link) };
            self.now.bytes[link as usize] + more
        };
        let mut best = (0, f64::INFINITY);
        for index in 0..hops.len() {
            let load = on(index);
            if load <= most {
                return hops.hop(index);
            }
            if load < best.1 {
                best = (index, load);
            }
        }
        hops.hop(best.0)
    }

    /// Returns the index of the first link of a run with a load of at most `most`, or else of the first of the least
    /// loaded links. Loads only grow until they are cleared, so a search continues where the previous search ended: all
    /// links before `next` have loads above `level`. Once `level` is above `most`, no link of the run has a load below
    /// it.
    #[inline]
    fn best_of_run(&mut self, first: u32, count: u32, most: f64) -> usize {
        let loads = &self.now.bytes[first as usize..][..count as usize];
        let (of, level, next, known) = &mut self.now.cursors[first as usize];
        if *known == 0 {
            self.now.moved.push(first);
        }
        if *known != count || *of != most {
            (*of, *level, *next, *known) = (most, most, 0, count);
        }
        let from = *next as usize;
        let index = match loads[from..].iter().position(|load| load <= level) {
            Some(more) => from + more,
            None => {
                let (index, least) = first_of_least(loads);
                *level = least;
                index
            }
        };
        *next = narrow(index);
        index
    }

    /// Returns the load of the busiest link in weighted bytes, and clears all loads.
    pub fn take(&mut self) -> f64 {
        let Routed { bytes, most, count, chose, cursors, moved, touched } = &mut self.now;
        (*count, *chose) = (0, false);
        touched.drain(..).for_each(|l| bytes[l as usize] = 0.0);
        moved.drain(..).for_each(|l| cursors[l as usize] = (0.0, 0.0, 0, 0));
        std::mem::take(most)
    }
}

/// The hops of a node, of which a part of a message takes one.
#[derive(Clone, Copy)]
enum Hops<'a> {
    List(&'a [Hop]),
    /// The first of consecutive links of one virtual channel, and their number.
    Run(Hop, u32),
}

impl Hops<'_> {
    #[inline]
    fn len(self) -> usize {
        match self {
            Self::List(hops) => hops.len(),
            Self::Run(_, count) => count as usize,
        }
    }

    /// # Panics
    /// Panics if a list is empty: a routing leads to every accelerator.
    #[inline]
    fn hop(self, index: usize) -> Hop {
        match self {
            Self::List(hops) => hops[index],
            Self::Run(first, _) => Hop { link: first.link + narrow::<u32>(index), ..first },
        }
    }
}

/// Returns the index of the first of the smallest loads, and this load.
fn first_of_least(loads: &[f64]) -> (usize, f64) {
    let mut best = (0, loads[0]);
    for (index, &load) in loads.iter().enumerate().skip(1) {
        if load < best.1 {
            best = (index, load);
        }
    }
    best
}
