//! What messages of one time put on each link of a plane.
//!
//! A message is cut into equal parts, and each part goes step by step over the hop, of those that the routing allows, whose
//! link has least on it: what packets do that follow credits, while all messages are under way. Where the routing's source
//! chooses among ways (Valiant), the parts are spread over them evenly. Messages are taken in the order of ranks, so the same
//! messages give the same loads.

use unisono_machine::network::{Header, Hop, Plane, Routing};

/// Of a message with a choice; more even out the loads better and take longer.
const PARTS: u32 = 8;

/// More steps than any way has: a fault of a routing.
const LONGEST: u32 = 1 << 16;

pub struct Loads<'a> {
    plane: &'a Plane,
    routing: &'a dyn Routing,
    bytes: Vec<f64>,
    touched: Vec<u32>,
    hops: Vec<Hop>,
    way: Vec<u32>,
}

impl<'a> Loads<'a> {
    pub fn new(plane: &'a Plane, routing: &'a dyn Routing) -> Self {
        let bytes = vec![0.0; plane.links().len()];
        Self { plane, routing, bytes, touched: Vec::new(), hops: Vec::new(), way: Vec::new() }
    }

    /// Adds a message between accelerators; the links of its longest part.
    pub fn add(&mut self, from: u32, to: u32, bytes: f64) -> u32 {
        if from == to {
            return 0;
        }
        let choices = self.routing.choices(from, to);
        let parts = PARTS.min(PARTS.max(choices.len() as u32));
        let mut longest = 0;
        for part in 0..parts {
            let choice = choices[(part as usize * choices.len() / parts as usize).min(choices.len() - 1)];
            let chose = self.walk(from, to, choice);
            // A way without any choice is that of all parts.
            let alone = part == 0 && !chose && choices.len() == 1;
            let share = if alone { bytes } else { bytes / f64::from(parts) };
            longest = longest.max(self.way.len() as u32);
            for &link in &self.way {
                if self.bytes[link as usize] == 0.0 {
                    self.touched.push(link);
                }
                self.bytes[link as usize] += share;
            }
            if alone {
                break;
            }
        }
        longest
    }

    /// One way from end to end, into `self.way`; whether there was any other.
    fn walk(&mut self, from: u32, to: u32, way: u32) -> bool {
        self.way.clear();
        let (mut at, mut header, mut chose) = (from, Header { to, vc: 0, way }, false);
        while at != to {
            self.hops.clear();
            self.routing.hops(at, header, &mut self.hops);
            chose |= self.hops.len() > 1;
            let on = |hop: &&Hop| self.bytes[hop.link as usize];
            let least = self.hops.iter().min_by(|a, b| on(a).total_cmp(&on(b)));
            let hop = *least.expect("a routing leads to every accelerator");
            self.way.push(hop.link);
            assert!((self.way.len() as u32) < LONGEST, "a way from {from} to {to} does not end");
            (at, header.vc) = (self.plane.link(hop.link).to, hop.vc);
        }
        chose
    }

    /// The bytes of the busiest link; all links are empty again.
    pub fn take(&mut self) -> f64 {
        let busiest = self.touched.iter().map(|&l| self.bytes[l as usize]).fold(0.0, f64::max);
        self.touched.drain(..).for_each(|l| self.bytes[l as usize] = 0.0);
        busiest
    }
}
