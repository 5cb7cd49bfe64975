//! The concurrent flow of an all-to-all: prices of links that bound its time from below.
//!
//! Every rank sends one unit to each other rank, along any paths, also through other ranks. Let every arc have a price
//! p. A unit from s to t pays at least the distance d(s, t) at these prices, and all arcs together earn at most the sum
//! of p x rate in each unit of time. The time is therefore at least
//!
//!   (sum over pairs of d(s, t)) / (sum over arcs of p x rate).
//!
//! This holds for any prices. The largest ratio is the least time of the flow, by the duality of linear programs
//! (maximum concurrent flow: Shahrokhi and Matula, 1990). Prices are found by cutting planes (Kelley, 1960): the loads
//! of shortest paths at some prices limit the sum of distances at all prices. Equivalent arcs get one price (refinement
//! of colors; Grohe et al., 2014), which keeps the programs small. If too many arcs differ, each arc's weight is
//! multiplied according to its load instead (Plotkin, Shmoys and Tardos, 1995), which gives nearly the largest bound.
//!
//! Prices are whole numbers, and the bound is computed from them without rounding.

mod alike;
mod planes;
pub(crate) mod router;

use std::sync::{Arc as Shared, OnceLock};

use unisono_base::{interrupt, rounded};

pub(crate) use self::router::{Entering, Search};
use self::{
    alike::Alike,
    planes::{Planes, SCALE},
    router::Router,
};
use crate::{Certificate, CertificateError, Fabric, Graph, NoForest, fabric::size, translated::Steps};

/// Prices of arcs, and the lower bound on the time of an all-to-all that follows from them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConcurrentFlow {
    /// The price of each arc of the graph.
    pub prices: Vec<u64>,
    /// The sum of distances, and the sum of price times rate. Their quotient is a lower bound on the time in which
    /// every rank sends one unit to each other rank.
    pub time: (u128, u128),
}

/// A cache of the flow of a graph, or of the reason why it was not found.
pub(crate) type Known = OnceLock<Result<Shared<ConcurrentFlow>, NoForest>>;

/// The largest product of ranks and arcs for which the flow is computed, unless the network looks alike from all ranks.
const MOST_PRICED: u64 = 1 << 23;

impl Fabric {
    /// Returns the prices that bound an all-to-all.
    ///
    /// # Errors
    /// Returns an error if a rank cannot be reached, the network is too large or the solver fails.
    pub fn concurrent_flow(&self) -> Result<Shared<ConcurrentFlow>, NoForest> {
        let found = size(self.graph());
        let find = || match self.steps() {
            Some(steps) => of_steps(self.graph(), steps),
            None if found > MOST_PRICED => {
                Err(NoForest::TooMany { what: "ranks times links", found, most: MOST_PRICED })
            }
            None => of_graph(self.graph()),
        };
        self.known_flow().get_or_init(|| find().map(Shared::new)).clone()
    }
}

impl ConcurrentFlow {
    /// Returns the lower bound on the time of one unit from every rank to each other rank.
    pub fn time(&self) -> f64 {
        self.time.0 as f64 / self.time.1 as f64
    }
}

impl Certificate {
    pub fn of_flow(graph: &Graph, flow: &ConcurrentFlow) -> Self {
        let arcs = graph.arcs().iter().zip(&flow.prices).filter(|&(_, &price)| price > 0);
        let mut prices: Vec<_> =
            arcs.map(|(arc, &price)| (graph.place(arc.from), graph.place(arc.to), price)).collect();
        prices.sort_unstable();
        Self { prices }
    }

    /// Returns, as a fraction, the time that the prices prove for one unit from every rank to each other rank.
    ///
    /// # Errors
    /// Returns an error if the prices do not fit the network, or a rank cannot be reached.
    pub fn flow_bound(&self, graph: &Graph) -> Result<(u128, u128), CertificateError> {
        let prices = self.of_arcs(graph)?;
        proved(graph, &prices, 0..graph.ranks()).ok_or(CertificateError::Unreachable)
    }

    /// Returns, as a fraction, the time that the prices prove for one unit from `root` to each other rank.
    ///
    /// # Errors
    /// Returns an error if the prices do not fit the network, or a rank cannot be reached.
    pub fn scatter_bound(&self, graph: &Graph, root: u32) -> Result<(u128, u128), CertificateError> {
        let prices = self.of_arcs(graph)?;
        proved(graph, &prices, std::iter::once(root)).ok_or(CertificateError::Unreachable)
    }
}

/// Returns the sum of distances from the ranks `from` to all ranks, and the sum of price times rate; `None` if a rank
/// cannot be reached.
pub fn proved(graph: &Graph, prices: &[u64], from: impl Iterator<Item = u32>) -> Option<(u128, u128)> {
    let capacity = graph.arcs().iter().zip(prices).map(|(arc, &p)| u128::from(arc.rate) * u128::from(p)).sum();
    let mut search = Search::new(graph);
    let mut sum = 0_u128;
    for rank in from {
        interrupt::check();
        search.run(graph, prices, rank);
        for &found in &search.price[..graph.ranks() as usize] {
            sum += u128::from((found != u64::MAX).then_some(found)?);
        }
    }
    Some((sum, capacity))
}

/// The largest product of classes of arcs and classes of ranks for which cutting planes are used.
const MOST_EXACT: usize = 1 << 14;
/// The maximum number of rounds in which classes are split by the loads at the best prices.
const MOST_SPLITS: usize = 3;

/// Computes the flow of a network that looks alike from all ranks: ranks form one class, and so do the arcs of each
/// step.
fn of_steps(graph: &Graph, steps: &Steps) -> Result<ConcurrentFlow, NoForest> {
    let alike = Alike {
        class: graph.arcs().iter().map(|arc| steps.step(arc.from, arc.to)).collect(),
        classes: steps.count(),
        sources: vec![(0, u64::from(graph.ranks()))],
    };
    let prices = Planes::new(graph, &alike).solve(&mut Router::new(graph))?;
    let prices = alike.of_arcs(&prices);
    let (sum, capacity) = proved(graph, &prices, 0..1).ok_or(NoForest::Unreachable)?;
    Ok(ConcurrentFlow { prices, time: (sum * u128::from(graph.ranks()), capacity) })
}

/// Computes the flow of any network.
///
/// # Errors
/// Returns an error if a rank cannot be reached or the solver fails.
pub fn of_graph(graph: &Graph) -> Result<ConcurrentFlow, NoForest> {
    let mut router = Router::new(graph);
    let fastest = graph.arcs().iter().map(|arc| arc.rate).max().unwrap_or(1);
    // Initially an arc's price is inversely proportional to its rate.
    let mut prices: Vec<u64> = graph.arcs().iter().map(|arc| (16 * fastest / arc.rate).clamp(1, 1 << 20)).collect();
    let mut alike = Alike::refine(graph, &router.entering, vec![0; graph.arcs().len()]);
    let mut best: Option<ConcurrentFlow> = None;
    for solved in 0..=MOST_SPLITS {
        let mut load = vec![0.0; graph.arcs().len()];
        let mut sum = 0;
        for rank in 0..graph.ranks() {
            sum += u128::from(router.route(&prices, rank, |arc, units| load[arc as usize] += units)?);
        }
        let capacity = graph.arcs().iter().zip(&prices).map(|(arc, &p)| u128::from(arc.rate) * u128::from(p)).sum();
        let found = ConcurrentFlow { prices: prices.clone(), time: (sum, capacity) };
        if best.as_ref().is_none_or(|best| found.time() > best.time()) {
            best = Some(found);
        }
        let finer = alike.split(graph, &router.entering, &load);
        if solved > 0 && finer.classes == alike.classes {
            break;
        }
        alike = finer;
        if alike.classes * alike.sources.len() > MOST_EXACT {
            return multiplied(&mut router, best.expect("the flow of the first prices"));
        }
        prices = alike.of_arcs(&Planes::new(graph, &alike).solve(&mut router)?);
    }
    Ok(best.expect("the flow of the first prices"))
}

/// The number of rounds in which weights are multiplied.
const MOST_MULTIPLIED: u32 = 120;
/// The largest change of the logarithm of a weight in the first round.
const FIRST_STEP: f64 = 0.5;

/// Improves prices: multiplies the weight of every arc (price times rate) according to the load that shortest paths put
/// on it. Returns the best prices found.
///
/// # Errors
/// Returns an error if a rank cannot be reached.
pub fn multiplied(router: &mut Router, mut best: ConcurrentFlow) -> Result<ConcurrentFlow, NoForest> {
    let graph = router.graph;
    let arcs = graph.arcs();
    let rate = |at: usize| arcs[at].rate as f64;
    let mut logs: Vec<f64> = (0..arcs.len()).map(|at| (best.prices[at].max(1) as f64 * rate(at)).ln()).collect();
    for round in 1..=MOST_MULTIPLIED {
        let most = logs.iter().enumerate().map(|(at, log)| log - rate(at).ln()).fold(f64::NEG_INFINITY, f64::max);
        let price = |(at, log): (usize, &f64)| rounded((SCALE * (log - rate(at).ln() - most).exp()).round());
        let prices: Vec<u64> = logs.iter().enumerate().map(price).collect();
        let mut load = vec![0.0; arcs.len()];
        let mut sum = 0;
        for rank in 0..graph.ranks() {
            sum += u128::from(router.route(&prices, rank, |arc, units| load[arc as usize] += units)?);
        }
        let capacity = arcs.iter().zip(&prices).map(|(arc, &p)| u128::from(arc.rate) * u128::from(p)).sum();
        let found = ConcurrentFlow { prices, time: (sum, capacity) };
        let time = found.time();
        let busiest = (0..arcs.len()).map(|at| load[at] / rate(at)).fold(0.0, f64::max);
        let step = FIRST_STEP / f64::from(round).sqrt();
        if found.time() > best.time() {
            best = found;
        }
        // The bound is the mean of the busy times of arcs, weighted by the weights of the arcs.
        for (at, log) in logs.iter_mut().enumerate() {
            *log += step * (load[at] / rate(at) - time) / (busiest - time).max(time * 1e-6);
        }
    }
    Ok(best)
}
