//! Prices of links that prove a bound.
//!
//! Let every arc have a price p. Whatever a forest does, the block of each root pays at least the price of a cheapest
//! arborescence over the cheapest ways between ranks. All arcs together take in at most the sum of p x rate in every unit of
//! time. So blocks of one unit need at least
//!
//!   (sum over roots of the cheapest arborescence) / (sum over arcs of p x rate).
//!
//! This holds for any prices. A checker needs no solver, no cuts and no forest, only the network and the prices.

use serde::{Deserialize, Serialize};

use crate::{
    Graph,
    arborescence::{Price, Prices, cheapest, price_of},
    cut::Cut,
};

/// Prices of arcs, named by the nodes of the plane that they join. All others cost nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    pub prices: Vec<(u32, u32, u64)>,
}

/// A certificate that proves nothing.
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

/// Prices and sums of them stay far from the ends of their types.
const MOST_PRICE: u64 = 1 << 40;

impl Certificate {
    /// The prices of a cut: one for every arc that leaves it.
    pub fn of(graph: &Graph, cut: &Cut) -> Self {
        let leaves = graph.arcs().iter().filter(|arc| cut.inside[arc.from as usize] && !cut.inside[arc.to as usize]);
        let mut prices: Vec<_> = leaves.map(|arc| (graph.place(arc.from), graph.place(arc.to), 1)).collect();
        prices.sort_unstable();
        Self { prices }
    }

    /// The time of blocks of one unit at each root that the prices prove, as a fraction.
    ///
    /// # Errors
    /// The prices do not fit the network.
    pub fn bound(&self, graph: &Graph, roots: &[u32]) -> Result<(u128, u128), CertificateError> {
        let of = self.of_arcs(graph)?;
        let capacity = of.iter().zip(graph.arcs()).map(|(&p, arc)| u128::from(arc.rate) * u128::from(p)).sum();
        let ranks = graph.ranks() as usize;
        let mut prices = Prices::<u128>::new(ranks);
        for from in 0..graph.ranks() {
            for (to, price) in
                distances(graph, from, &of).into_iter().enumerate().filter(|&(to, _)| to != from as usize)
            {
                prices.set(from as usize, to, price);
            }
        }
        let mut sum = 0;
        for &root in roots {
            let parent = cheapest(&prices, root as usize).ok_or(CertificateError::Unreachable)?;
            sum += price_of(&prices, &parent);
        }
        Ok((sum, capacity))
    }

    /// The price of each arc.
    pub(crate) fn of_arcs(&self, graph: &Graph) -> Result<Vec<u64>, CertificateError> {
        let mut of = vec![0_u64; graph.arcs().len()];
        let mut seen = vec![false; of.len()];
        for &(from, to, price) in &self.prices {
            let joins = |arc: &crate::Arc| graph.place(arc.from) == from && graph.place(arc.to) == to;
            let at = graph.arcs().iter().position(joins).ok_or(CertificateError::NoLink { from, to })?;
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

/// The price of the cheapest way from a rank to each other one, over relays only.
fn distances(graph: &Graph, from: u32, prices: &[u64]) -> Vec<u128> {
    let mut price = vec![u128::NONE; graph.nodes() as usize];
    let mut queue = std::collections::BinaryHeap::from([(std::cmp::Reverse(0_u128), from)]);
    price[from as usize] = 0;
    while let Some((std::cmp::Reverse(paid), at)) = queue.pop() {
        unisono_base::interrupt::poll();
        if paid > price[at as usize] || (at != from && at < graph.ranks()) {
            continue;
        }
        for &arc in graph.leaving(at) {
            let to = graph.arcs()[arc as usize].to;
            let found = paid + u128::from(prices[arc as usize]);
            if found < price[to as usize] {
                price[to as usize] = found;
                queue.push((std::cmp::Reverse(found), to));
            }
        }
    }
    price.truncate(graph.ranks() as usize);
    price
}
