//! The time of messages between pairs, one at a time or many at once.

use std::{collections::BTreeMap, sync::Arc};

use unisono_algorithms::Params;
use unisono_collective::Kind;
use unisono_cost::endpoint::seconds;
use unisono_discover::whole_elements;
use unisono_workload::Groups;

use super::{
    super::{super::shared::SharedNetwork, routes::messages_at_once},
    Communication, Key, ProgramPrices, larger,
};
use crate::{PlanError, Problem, Request, plan_best, report::tightest_report};

impl ProgramPrices<'_> {
    /// Returns the row of a message between a pair. Messages of one length and time share a row.
    pub(super) fn message(&mut self, key: Key, [from, to]: [u32; 2], bytes: u64) -> Result<usize, PlanError> {
        if let Some(shared) = &self.shared {
            self.ports.entry((from, to)).or_insert_with(|| shared.ports(from, to));
        }
        // On a network, pairs with equal times share a row. On other machines all pairs share a row.
        let shared = self.shared.as_ref().map(|shared| shared.message_seconds(from, to, bytes));
        let alike = (bytes, shared.map(f64::to_bits));
        if let Some(&row) = self.messages.get(&alike) {
            self.known.insert(key, row);
            return Ok(row);
        }
        let (part, bound) = (self.target.among(&[from, to]).0, bytes > 0);
        let (dtype, elements) = whole_elements(1, bytes.max(1));
        let problem = Problem::new(&Request { dtype, ..Request::new(Kind::Message, self.machine, part, elements) })?;
        let bound = bound.then(|| tightest_report(&problem)).flatten();
        let seconds = shared.map_or_else(|| self.alone(&[from, to], bytes), Ok)?;
        let latency_seconds = match &self.shared {
            Some(shared) => shared.message_seconds(from, to, 0),
            None => self.alone(&[from, to], 1)?,
        };
        let nothing = Communication::nothing(Kind::Message, bytes);
        let overhead_seconds = self.overhead_seconds([from, to]);
        let (ranks, groups, algorithm) = (2, 1, "send".to_owned());
        let priced =
            Communication { ranks, groups, algorithm, seconds, bound, latency_seconds, overhead_seconds, ..nothing };
        let row = self.keep(key, priced, Vec::new());
        self.messages.insert(alike, row);
        Ok(row)
    }

    /// Returns the seconds of a message between ranks that share no links: the time of a broadcast between two ranks.
    fn alone(&self, pair: &[u32; 2], bytes: u64) -> Result<f64, PlanError> {
        let (dtype, elements) = whole_elements(1, bytes.max(1));
        let part = self.target.among(pair).0;
        let problem = Problem::new(&Request { dtype, ..Request::new(Kind::Broadcast, self.machine, part, elements) })?;
        Ok(plan_best(problem, None, &Params::new())?.best().time.seconds)
    }

    /// Returns the seconds for which the shortest message occupies the hosts of a pair: at each end the longer of the
    /// times of CPU and interface. On a network, this is the host's overhead.
    fn overhead_seconds(&self, [from, to]: [u32; 2]) -> [f64; 2] {
        let Some(prices) = self.prices() else {
            return [self.network().map_or(0.0, |network| network.host_overhead_ns * 1e-9); 2];
        };
        let (send, receive) = (prices.send(from, to, 1), prices.receive(from, to, 1));
        [send.cpu.max(send.nic), receive.cpu.max(receive.nic)].map(seconds)
    }

    /// Returns the communication in which every rank sends `bytes` bytes to each of its receivers at once.
    pub(super) fn permute(&self, bytes: u64, receivers: u32) -> Result<Communication, PlanError> {
        let pairs: Vec<(u32, u32)> = self.graph.pairs(receivers).collect();
        let Some(&(from, to)) = pairs.first() else { return Ok(Communication::nothing(Kind::Message, bytes)) };
        let tables = &self.graph.receivers[receivers as usize];
        // The bound of each pair holds for all pairs together. The slowest pair has the largest bound.
        let slowest = |shared: &SharedNetwork| {
            let seconds = pairs.iter().map(|&(from, to)| shared.message_seconds(from, to, bytes));
            let slowest = seconds.enumerate().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
            slowest.map_or((from, to), |(at, _)| pairs[at])
        };
        let (first, last) = self.shared.as_ref().map_or((from, to), slowest);
        let part = self.target.among(&[first, last]).0;
        let (dtype, elements) = whole_elements(1, bytes);
        let problem = Problem::new(&Request { dtype, ..Request::new(Kind::Message, self.machine, part, elements) })?;
        let alone = tightest_report(&problem);
        let together = self.shared.as_ref().map(|shared| shared.messages_bound(bytes, &pairs));
        let bound = larger(alone, together);
        let seconds = match &self.shared {
            Some(shared) => {
                shared.seconds(&[messages_at_once(tables, bytes)], &Arc::new(Groups::all(self.graph.ranks)))
            }
            // A rank sends one message at a time.
            None => self.alone(&[from, to], bytes)? * tables.len() as f64,
        };
        Ok(Communication {
            kind: if tables.len() > 1 { "exchange" } else { "permute" },
            ranks: 2,
            groups: pairs.len(),
            bytes,
            algorithm: "send".to_owned(),
            params: BTreeMap::new(),
            seconds,
            bound,
            latency_seconds: 0.0,
            overhead_seconds: [0.0; 2],
        })
    }
}
