//! Messages that may choose among links of different rates or latencies.

use std::{cmp::Reverse, collections::BinaryHeap};

use rustc_hash::FxHashMap;
use unisono_machine::network::{Header, Hop};

use super::NetworkModel;

/// Finds out if messages between two accelerators may choose among links of different speeds.
pub(super) struct Unlike<'a> {
    model: &'a NetworkModel,
    /// The results by `(from, to)`.
    known: FxHashMap<(u32, u32), bool>,
}

impl<'a> Unlike<'a> {
    pub(super) fn new(model: &'a NetworkModel) -> Self {
        Self { model, known: FxHashMap::default() }
    }

    pub(super) fn between(&mut self, from: u32, to: u32) -> bool {
        let NetworkModel { speeds, plane, .. } = self.model;
        let alike = speeds.is_even() && speeds.same_ns().is_some();
        if alike || from == to || from.max(to) >= plane.accelerators() {
            return false;
        }
        if let Some(&found) = self.known.get(&(from, to)) {
            return found;
        }
        let found = self.search(from, to);
        self.known.insert((from, to), found);
        found
    }

    /// Returns true if a node has hops of different speeds, among the nodes on the paths of one choice of the source
    /// (that for random bits 0).
    fn search(&self, from: u32, to: u32) -> bool {
        let NetworkModel { routing, plane, .. } = self.model;
        let way = routing.choose(from, to, 0);
        let (mut seen, mut open, mut hops) = (vec![(from, 0)], vec![(from, 0)], Vec::<Hop>::new());
        while let Some((at, vc)) = open.pop() {
            hops.clear();
            routing.hops(at, Header { to, vc, way }, &mut hops);
            let speed = |hop: &Hop| plane.link(hop.link).speed;
            if hops.iter().any(|hop| speed(hop) != speed(&hops[0])) {
                return true;
            }
            for hop in &hops {
                let next = (plane.link(hop.link).to, hop.vc);
                if next.0 != to && !seen.contains(&next) {
                    seen.push(next);
                    open.push(next);
                }
            }
        }
        false
    }
}

/// The packets ahead of a new packet on each link, as far as the node before the link knows: packets that wait for the
/// link, are on the link, or wait at its end.
#[derive(Default)]
pub struct Ahead {
    /// For each link, the number of packets before a new packet.
    packets: Vec<u32>,
    /// Packets that left a link: the time at which the node before the link knows this, the link, and the number of
    /// packets.
    gone: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// For each link, the times at which packets left the node before the link, and the number of packets.
    left: Vec<Vec<(u64, u32)>>,
    /// The number of packets that fit into a buffer.
    places: u64,
}

impl Ahead {
    pub fn new(links: usize, places: u64) -> Self {
        Self { packets: vec![0; links], gone: BinaryHeap::new(), left: vec![Vec::new(); links], places }
    }

    pub fn add(&mut self, link: u32, packets: u32) {
        self.packets[link as usize] += packets;
    }

    /// Records that packets have left the node before a link at `time`.
    pub fn leave(&mut self, time: u64, link: u32, packets: u32) {
        self.left[link as usize].push((time, packets));
    }

    /// Records that packets leave the end of a link. The node before the link knows this at `time`.
    pub fn go_on(&mut self, time: u64, link: u32, packets: u32) {
        self.gone.push(Reverse((time, link, packets)));
    }

    /// Removes packets that have left their links, as the nodes before the links know at time `now`.
    pub fn settle(&mut self, now: u64) {
        while let Some(&Reverse((time, link, packets))) = self.gone.peek()
            && time <= now
        {
            self.gone.pop();
            self.packets[link as usize] -= packets;
        }
    }

    /// Returns the number of packets of a link including the next packet.
    pub fn with_next(&self, link: u32) -> f64 {
        f64::from(self.packets[link as usize]) + 1.0
    }

    /// Returns the number of [`Ahead::with_next`] without packets that left the node less than a round trip of the link
    /// ago. As in the simulator, these packets do not count as long as the buffer has a place.
    pub fn beyond_trip(&self, now: u64, link: u32, trip: u64) -> f64 {
        let packets = self.packets[link as usize];
        if u64::from(packets) >= self.places {
            return self.with_next(link);
        }
        let left = self.left[link as usize].iter().rev();
        let on_way: u32 =
            left.take_while(|(time, _)| time.saturating_add(trip) > now).map(|(_, packets)| packets).sum();
        f64::from(packets.saturating_sub(on_way)) + 1.0
    }
}
