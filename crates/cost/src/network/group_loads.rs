//! The times of several groups of ranks that run exchanges concurrently, and the load of each group on links.

use rustc_hash::FxHashMap;
use unisono_lower::{Exchange, Flow};

use super::{NetworkModel, loads::Sent, model::are_alike, routed::add};

#[derive(Clone, PartialEq, Debug)]
pub struct GroupLoad {
    /// The time of the group if no other group uses its links.
    pub ns: f64,
    /// Pairs `(link, nanoseconds)`: the time for which all exchanges of the group together keep the link busy.
    pub links: Vec<(u32, f64)>,
}

impl NetworkModel {
    /// Routes the exchanges of all groups together, and sums the load of each group separately. `exchanges` are the
    /// exchanges of all ranks, and `groups` the ranks of each group. If there are more than `most` messages, only a
    /// sample of the messages is routed.
    pub fn group_loads(&self, exchanges: &[Exchange], groups: &[&[u32]], most: u64) -> Vec<GroupLoad> {
        let (outer, inner) = self.sampling(exchanges, most);
        let mut loads = self.loads();
        let (mut ns, mut latency) = (vec![0.0; groups.len()], Vec::<f64>::new());
        let mut links: Vec<FxHashMap<u32, f64>> = vec![FxHashMap::default(); groups.len()];
        let mut of_group = vec![0.0; self.plane().links().len()];
        let mut touched: Vec<u32> = Vec::new();
        for run in exchanges.chunk_by(are_alike) {
            let routed = run.iter().step_by(outer);
            let scale = run.len() as f64 / routed.len() as f64;
            let mut of_run = Vec::new();
            for exchange in routed {
                add(&mut of_run, self.routed_ns(exchange, inner).1, 1.0);
                let flows = || exchange.flows.iter().step_by(inner);
                let bytes = |flow: &Flow| self.flow_bytes(flow);
                let sampled: f64 = flows().map(bytes).sum();
                let all: f64 = exchange.flows.iter().map(bytes).sum();
                let ns_per_byte = self.ns_per_byte * if sampled > 0.0 { all / sampled } else { 1.0 };
                let least = self.host_ns(exchange);
                for (n, group) in groups.iter().enumerate() {
                    for (flow, &rank) in flows().flat_map(|flow| group.iter().map(move |rank| (flow, rank))) {
                        let [from, to] = [rank, flow.to(rank)].map(|rank| self.places()[rank as usize]);
                        loads.route(&Sent { from, to, bytes: bytes(flow) }, 0.0, |link, bytes| {
                            if of_group[link as usize] == 0.0 {
                                touched.push(link);
                            }
                            of_group[link as usize] += bytes;
                        });
                    }
                    let mut busiest = 0.0_f64;
                    for link in touched.drain(..) {
                        let busy = std::mem::take(&mut of_group[link as usize]) * ns_per_byte;
                        busiest = busiest.max(busy);
                        *links[n].entry(link).or_default() += busy * scale;
                    }
                    ns[n] += busiest.max(least) * scale;
                }
                loads.take();
            }
            add(&mut latency, of_run, scale);
        }
        let latency = self.launch_ns + latency.into_iter().fold(0.0, f64::max);
        let load = |(ns, links): (f64, FxHashMap<u32, f64>)| {
            let mut links: Vec<(u32, f64)> = links.into_iter().collect();
            links.sort_unstable_by_key(|&(link, _)| link);
            GroupLoad { ns: ns + latency, links }
        };
        ns.into_iter().zip(links).map(load).collect()
    }
}
