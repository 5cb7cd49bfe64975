//! The links over which the messages of a schedule may travel.

use rustc_hash::FxHashSet;
use unisono_base::interrupt::poll;
use unisono_machine::network::Header;
use unisono_schedule::Schedule;

use super::NetworkModel;

impl NetworkModel {
    /// The links of all ways that the routing allows the messages of a schedule. `places` are those of its ranks and of
    /// the switches after them.
    pub fn used_links(&self, schedule: &Schedule, places: &[u32]) -> FxHashSet<u32> {
        let mut pairs = FxHashSet::default();
        for id in (0..schedule.stream_count()).map(unisono_base::StreamId::new) {
            let from = places[schedule.stream(id).source.index()];
            pairs.extend(schedule.stream_sinks(id).iter().map(|sink| (from, places[sink.index()])));
        }
        let mut links = FxHashSet::default();
        for (from, to) in pairs.into_iter().filter(|(from, to)| from != to) {
            if from.max(to) >= self.plane().accelerators() {
                // A switch sends and receives over the links to its neighbors.
                links.extend(self.plane().links_between(from, to));
            } else {
                self.add_ways(from, to, &mut links);
            }
        }
        links
    }

    /// Adds the links of all ways between two accelerators.
    fn add_ways(&self, from: u32, to: u32, links: &mut FxHashSet<u32>) {
        let mut hops = Vec::new();
        for way in self.routing().choices(from, to) {
            let (mut open, mut seen) = (vec![(from, 0)], FxHashSet::default());
            while let Some((at, vc)) = open.pop() {
                poll();
                if at == to || !seen.insert((at, vc)) {
                    continue;
                }
                hops.clear();
                self.routing().hops(at, Header { to, vc, way }, &mut hops);
                for hop in &hops {
                    links.insert(hop.link);
                    open.push((self.plane().link(hop.link).to, hop.vc));
                }
            }
        }
    }
}
