//! Prices of links that prove a bound on the time of a forest.
//!
//! Let every arc have a price p. In any forest, the block of each root pays at least the price of a cheapest
//! arborescence of cheapest paths between ranks. All arcs together earn at most the sum of p x rate in each unit of
//! time. Blocks of one unit therefore need at least the time
//!
//!   (sum over roots of the cheapest arborescence) / (sum over arcs of p x rate).
//!
//! The bound holds for any prices. A checker therefore needs only the network and the prices, not a solver, cuts or a
//! forest.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use unisono_base::{interrupt::poll, limits};

use crate::{
    Graph,
    cut::Cut,
    least_price::{Components, NONE, Table, least_price},
};

/// Prices of arcs: the arc's start and end, as nodes of the plane, and its price. All other arcs have price 0.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    pub prices: Vec<(u32, u32, u64)>,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("the certificate has a price for a link from node {from} to node {to}, which the network does not have")]
    NoLink { from: u32, to: u32 },
    #[error("the certificate has two prices for the link from node {from} to node {to}")]
    Twice { from: u32, to: u32 },
    #[error("the price {price} is too large; accepted are at most {MOST_PRICE}")]
    TooLarge { price: u64 },
    #[error("no link has a price")]
    Empty,
    #[error("a rank cannot be reached")]
    Unreachable,
}

/// The largest price; it keeps sums of prices far from overflow.
const MOST_PRICE: u64 = 1 << 40;

impl Certificate {
    /// Returns the prices of a cut: 1 for every arc that leaves it.
    pub fn of(graph: &Graph, cut: &Cut) -> Self {
        let leaves = graph.arcs().iter().filter(|arc| cut.inside[arc.from as usize] && !cut.inside[arc.to as usize]);
        let mut prices: Vec<_> = leaves.map(|arc| (graph.place(arc.from), graph.place(arc.to), 1)).collect();
        prices.sort_unstable();
        Self { prices }
    }

    /// Returns the time that the prices prove for a block of one unit at each root, as a fraction.
    ///
    /// # Errors
    /// Returns an error if the prices do not fit the network, or a rank cannot be reached.
    pub fn bound(&self, graph: &Graph, roots: &[u32]) -> Result<(u128, u128), CertificateError> {
        let of = self.of_arcs(graph)?;
        let capacity = of.iter().zip(graph.arcs()).map(|(&p, arc)| u128::from(arc.rate) * u128::from(p)).sum();
        let groups = Groups::new(graph, &of);
        let table = groups.table(graph, &of);
        // The roots of a group have the same price.
        let mut count: BTreeMap<usize, u128> = BTreeMap::new();
        roots.iter().for_each(|&root| *count.entry(groups.of[root as usize]).or_default() += 1);
        let mut sum = 0;
        for (group, roots) in count {
            sum += roots * least_price(&table, group).ok_or(CertificateError::Unreachable)?;
        }
        Ok((sum, capacity))
    }

    pub(crate) fn of_arcs(&self, graph: &Graph) -> Result<Vec<u64>, CertificateError> {
        let at: FxHashMap<_, _> =
            (0..).zip(graph.arcs()).map(|(at, arc)| ((graph.place(arc.from), graph.place(arc.to)), at)).collect();
        let mut of = vec![0_u64; graph.arcs().len()];
        let mut seen = vec![false; of.len()];
        for &(from, to, price) in &self.prices {
            let at: usize = *at.get(&(from, to)).ok_or(CertificateError::NoLink { from, to })?;
            if std::mem::replace(&mut seen[at], true) {
                return Err(CertificateError::Twice { from, to });
            }
            if price > MOST_PRICE {
                return Err(CertificateError::TooLarge { price });
            }
            of[at] = price;
        }
        if of.iter().all(|&price| price == 0) {
            return Err(CertificateError::Empty);
        }
        Ok(of)
    }
}

/// Groups of ranks that reach each other at price 0. A certificate made from a cut has few groups.
struct Groups {
    of: Vec<usize>,
    members: Vec<Vec<u32>>,
}

impl Groups {
    fn new(graph: &Graph, prices: &[u64]) -> Self {
        let mut free = vec![Vec::new(); graph.nodes() as usize];
        for (arc, _) in graph.arcs().iter().zip(prices).filter(|&(_, &price)| price == 0) {
            free[arc.from as usize].push(arc.to as usize);
        }
        let components = Components::of(free);
        let mut number: FxHashMap<usize, usize> = FxHashMap::default();
        let mut groups = Self { of: Vec::new(), members: Vec::new() };
        for rank in 0..graph.ranks() {
            let next = number.len();
            let group = *number.entry(components.of[rank as usize]).or_insert(next);
            if group == next {
                groups.members.push(Vec::new());
            }
            groups.of.push(group);
            groups.members[group].push(rank);
        }
        groups
    }

    /// Returns the prices of the cheapest paths between groups; the paths contain only relays.
    fn table(&self, graph: &Graph, prices: &[u64]) -> Table {
        limits::take("the check of a certificate", Table::bytes(self.members.len()));
        let mut table = Table::new(self.members.len());
        for (from, members) in self.members.iter().enumerate() {
            limits::spend("the check of a certificate", 16 * u64::from(graph.nodes()) + 16 * graph.arcs().len() as u64);
            for (rank, price) in distances(graph, members, prices).into_iter().enumerate() {
                if self.of[rank] != from && price < NONE {
                    table.add(from, self.of[rank], price);
                }
            }
        }
        table
    }
}

/// Returns the price of the cheapest path from any of the ranks `from`, which are ascending, to each rank, through
/// relays and ranks of `from`; [`NONE`] without a path.
fn distances(graph: &Graph, from: &[u32], prices: &[u64]) -> Vec<u128> {
    let mut price = vec![NONE; graph.nodes() as usize];
    let mut queue: BinaryHeap<_> = from.iter().map(|&rank| (Reverse(0_u128), rank)).collect();
    from.iter().for_each(|&rank| price[rank as usize] = 0);
    while let Some((Reverse(paid), at)) = queue.pop() {
        poll();
        // A path ends at the first rank that is not in `from`.
        if paid > price[at as usize] || (at < graph.ranks() && from.binary_search(&at).is_err()) {
            continue;
        }
        for &arc in graph.leaving(at) {
            let to = graph.arcs()[arc as usize].to;
            let found = paid + u128::from(prices[arc as usize]);
            if found < price[to as usize] {
                price[to as usize] = found;
                queue.push((Reverse(found), to));
            }
        }
    }
    price.truncate(graph.ranks() as usize);
    price
}
