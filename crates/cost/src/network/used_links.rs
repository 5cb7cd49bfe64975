//! The links over which the messages of a schedule may travel.

use std::hash::{DefaultHasher, Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet};
use unisono_base::interrupt::poll;
use unisono_machine::network::Header;
use unisono_schedule::Schedule;

use super::NetworkModel;

/// The links of all paths that the routing allows for a set of messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsedLinks {
    pub links: FxHashSet<u32>,
    /// A hash of the paths: the speeds of their links, and the links and nodes that paths share. The same messages take
    /// equally long on two sets of accelerators with equal shapes.
    pub shape: u64,
}

/// Returns the sorted pairs `(from, to)` of nodes of a schedule between which it has streams.
pub fn message_pairs(schedule: &Schedule) -> Vec<(u32, u32)> {
    let mut pairs = FxHashSet::default();
    for id in (0..schedule.stream_count()).map(unisono_base::StreamId::new) {
        let from = schedule.stream(id).source.0;
        pairs.extend(schedule.stream_sinks(id).iter().map(|sink| (from, sink.0)));
    }
    let mut pairs = Vec::from_iter(pairs);
    pairs.sort_unstable();
    pairs
}

/// The links and nodes of paths, numbered by first use, and the hash of these numbers.
#[derive(Default)]
struct Numbered {
    links: FxHashMap<u32, usize>,
    nodes: FxHashMap<u32, usize>,
    shape: DefaultHasher,
}

impl Numbered {
    fn link(&mut self, link: u32, speed: u8) {
        let next = self.links.len();
        (self.links.entry(link).or_insert(next), speed).hash(&mut self.shape);
    }

    fn node(&mut self, node: u32) {
        let next = self.nodes.len();
        self.nodes.entry(node).or_insert(next).hash(&mut self.shape);
    }
}

impl NetworkModel {
    /// Returns the links that messages between the nodes of `pairs` ([`message_pairs`]) may use. `places` has the nodes
    /// of the network for the ranks, then for the switches of the schedule.
    pub fn used_links(&self, pairs: &[(u32, u32)], places: &[u32]) -> UsedLinks {
        let mut used = Numbered::default();
        for (from, to) in pairs.iter().map(|&(from, to)| (places[from as usize], places[to as usize])) {
            used.node(from);
            used.node(to);
            if from == to {
                continue;
            }
            if from.max(to) >= self.plane().accelerators() {
                // A switch sends and receives over the links to its neighbors.
                for link in self.plane().links_between(from, to) {
                    used.link(link, self.plane().link(link).speed);
                }
            } else {
                self.add_ways(from, to, &mut used);
            }
        }
        UsedLinks { links: used.links.into_keys().collect(), shape: used.shape.finish() }
    }

    /// Adds the links of all paths between two accelerators.
    fn add_ways(&self, from: u32, to: u32, used: &mut Numbered) {
        let mut hops = Vec::new();
        for &way in &*self.routing().choices(from, to) {
            let (mut open, mut seen) = (vec![(from, 0)], FxHashSet::default());
            while let Some((at, vc)) = open.pop() {
                poll();
                if at == to || !seen.insert((at, vc)) {
                    continue;
                }
                hops.clear();
                self.routing().hops(at, Header { to, vc, way }, &mut hops);
                hops.len().hash(&mut used.shape);
                for hop in &hops {
                    let link = self.plane().link(hop.link);
                    used.link(hop.link, link.speed);
                    used.node(link.to);
                    open.push((link.to, hop.vc));
                }
            }
        }
    }
}
