//! The load of concurrent messages on each link of a plane, in bytes. On a link of another rate, the bytes are
//! multiplied by the machine's own rate of a link divided by that rate.
//!
//! A message is cut into equal parts, and each part takes, node by node, one of the hops that the routing allows. Real
//! packets, which follow credits, change to another hop only when their link is busy. So messages are routed twice, and
//! the result with the smaller largest load counts, unless the messages have no choice or the first result is the least
//! possible. First, each part takes the hop with the least loaded link. Then, each part takes the first hop whose link
//! has room: a load up to the longest message. If the source chooses among paths (Valiant), it distributes the parts
//! evenly. Messages are routed in their order, so the same messages give the same loads.

use unisono_base::{interrupt::poll, narrow};
use unisono_machine::network::{Header, Hop, Plane, Routing};

use super::Speeds;

/// The most parts of a message that can take several paths; more parts balance loads better and take longer.
const PARTS: u32 = 8;
/// The number of parts of all messages of a sender together, within the limits of one message, [`LEAST_PARTS`] and
/// [`PARTS`]. Few suffice because many messages balance each other: an alltoall of 1,024 accelerators differs by at
/// most 0.4 % from one with 8 parts of each message.
const PARTS_OF_SENDER: u32 = 256;
/// The least parts of a message that can take several paths.
const LEAST_PARTS: u32 = 2;

/// A number of links above the length of any path; a longer path is a fault of a routing.
const LONGEST: u32 = 1 << 16;

/// Bytes from one accelerator to another.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub from: u32,
    pub to: u32,
    pub bytes: f64,
}

pub struct Loads<'a> {
    plane: &'a Plane,
    routing: &'a dyn Routing,
    speeds: &'a Speeds,
    /// The load of each link in bytes, times the weight of its rate.
    bytes: Vec<f64>,
    touched: Vec<u32>,
    hops: Vec<Hop>,
    way: Vec<u32>,
    /// The number of parts of a message whose source has only one choice.
    parts: u32,
}

impl<'a> Loads<'a> {
    pub fn new(plane: &'a Plane, routing: &'a dyn Routing, speeds: &'a Speeds) -> Self {
        let bytes = vec![0.0; plane.links().len()];
        Self { plane, routing, speeds, bytes, touched: Vec::new(), hops: Vec::new(), way: Vec::new(), parts: PARTS }
    }

    /// Returns the load of the busiest link during these messages, in bytes as the head of the file counts them.
    pub fn busiest(&mut self, messages: &[Sent]) -> f64 {
        let longest = messages.iter().map(|m| m.bytes).fold(0.0, f64::max) * self.speeds.least_weight();
        let messages_of_sender = narrow::<u32>(messages.len()) / self.plane.accelerators();
        self.parts = (PARTS_OF_SENDER / messages_of_sender.max(1)).clamp(LEAST_PARTS, PARTS);
        let mut chose = false;
        for m in messages {
            chose |= self.add(m, 0.0);
        }
        let even = self.take();
        if !chose || even <= longest.max(self.least(messages)) * (1.0 + 1e-9) {
            return even;
        }
        for m in messages {
            self.add(m, longest);
        }
        even.min(self.take())
    }

    /// Returns a lower bound on the load of the busiest link: the links of a sender carry all bytes that it sends.
    fn least(&self, messages: &[Sent]) -> f64 {
        let mut sent = vec![0.0; self.plane.accelerators() as usize];
        messages.iter().filter(|m| m.from != m.to).for_each(|m| sent[m.from as usize] += m.bytes);
        let load = |(from, bytes): (u32, &f64)| {
            if *bytes > 0.0 { bytes / self.speeds.injection(self.plane, from) } else { 0.0 }
        };
        (0..).zip(&sent).map(load).fold(0.0, f64::max)
    }

    /// Returns the largest latency of the paths that a message may take, one path for each choice of its source; 0 from
    /// an accelerator to itself.
    pub fn latency_ns(&mut self, from: u32, to: u32) -> f64 {
        let choices = if from == to { Vec::new() } else { self.routing.choices(from, to) };
        let of = |way| {
            self.walk(from, to, way, 0.0, 0.0);
            self.speeds.way_ns(self.way.iter().map(|&link| self.plane.link(link).speed))
        };
        choices.into_iter().map(of).fold(0.0, f64::max)
    }

    /// Adds the load of a message, and returns whether the message could take several paths.
    fn add(&mut self, message: &Sent, room: f64) -> bool {
        self.route(message, room, |_, _| ())
    }

    /// Adds the load of a message, calls `on` with each link and its added load, and returns whether the message could
    /// take several paths. `room` is the load up to which the first hop is taken; 0: always the least loaded.
    pub fn route(&mut self, message: &Sent, room: f64, mut on: impl FnMut(u32, f64)) -> bool {
        let &Sent { from, to, bytes } = message;
        if from == to {
            return false;
        }
        let choices = self.routing.choices(from, to);
        let mut any = choices.len() > 1;
        // The source chooses a way for each part.
        let parts = if choices.len() > 1 { PARTS } else { self.parts };
        for part in 0..parts {
            let choice = choices[part as usize * choices.len() / parts as usize];
            let share = bytes / f64::from(parts);
            any |= self.walk(from, to, choice, share, room);
            // Without a choice all parts take the same way, so they are routed as one.
            let share = if any { share } else { bytes };
            for &link in &self.way {
                if self.bytes[link as usize] == 0.0 {
                    self.touched.push(link);
                }
                let bytes = share * self.weight(link);
                self.bytes[link as usize] += bytes;
                on(link, bytes);
            }
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

    /// Stores the links of a path for a part of a message in `self.way`, and returns whether some node had several
    /// hops. `way` is the choice of the source, and `share` are the bytes of the part.
    fn walk(&mut self, from: u32, to: u32, way: u32, share: f64, room: f64) -> bool {
        self.way.clear();
        let (mut at, mut header, mut chose) = (from, Header { to, vc: 0, way }, false);
        while at != to {
            poll();
            self.hops.clear();
            self.routing.hops(at, header, &mut self.hops);
            chose |= self.hops.len() > 1;
            let hop = *self.best(share, room).expect("a routing leads to every accelerator");
            self.way.push(hop.link);
            assert!(narrow::<u32>(self.way.len()) < LONGEST, "a way from {from} to {to} does not end");
            (at, header.vc) = (self.plane.link(hop.link).to, hop.vc);
        }
        chose
    }

    /// Returns the first listed hop whose link has room for a part of a message, or else the hop with the least loaded
    /// link.
    #[inline]
    fn best(&self, share: f64, room: f64) -> Option<&Hop> {
        // If links have different rates, the load includes the part.
        let is_even = self.speeds.is_even();
        let on = |hop: &Hop| {
            let more = if is_even { 0.0 } else { share * self.weight(hop.link) };
            self.bytes[hop.link as usize] + more
        };
        if room > 0.0 {
            let part = if is_even { share } else { 0.0 };
            let most = room * (1.0 + 1e-9) - part;
            if let Some(roomy) = self.hops.iter().find(|hop| on(hop) <= most) {
                return Some(roomy);
            }
        }
        let (first, others) = self.hops.split_first()?;
        let mut best = (first, on(first));
        for hop in others {
            let load = on(hop);
            if load < best.1 {
                best = (hop, load);
            }
        }
        Some(best.0)
    }

    /// Returns the load of the busiest link in weighted bytes, and clears all loads.
    pub fn take(&mut self) -> f64 {
        let busiest = self.touched.iter().map(|&l| self.bytes[l as usize]).fold(0.0, f64::max);
        self.touched.drain(..).for_each(|l| self.bytes[l as usize] = 0.0);
        busiest
    }
}
