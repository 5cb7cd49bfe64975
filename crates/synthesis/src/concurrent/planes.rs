//! Prices of classes of arcs by cutting planes (Kelley, 1960).
//!
//! The loads L of the shortest paths from a source at some prices limit the source's sum of distances z at all prices
//! p: z is at most the sum of L x p. The program maximizes the sum of all z under the planes found so far, with the sum
//! of rate times price equal to 1. Prices are mixed with those of the best bound (Wentges, 1997), which takes fewer
//! rounds.

use microlp::{ComparisonOp, OptimizationDirection, Problem};
use unisono_base::rounded;

use super::{alike::Alike, router::Router};
use crate::{Graph, NoForest, packing::optimum};

/// The largest price; sums of prices along paths stay far from overflow.
pub const SCALE: f64 = (1 << 20) as f64;

/// The maximum number of rounds of adding planes.
const MOST_ROUNDS: usize = 300;
/// The weight of the best bound's prices in the mix, from 0 to 1.
const SMOOTHING: f64 = 0.3;
/// The relative difference up to which a bound counts as optimal.
const CLOSE: f64 = 1e-7;

/// The linear program of the cutting planes found so far.
pub(super) struct Planes<'a> {
    alike: &'a Alike,
    /// The total rate of each class of arcs, divided by the largest such total.
    rates: Vec<f64>,
    /// For each plane, the index of its class of ranks, and its loads as pairs (class of arcs, units).
    planes: Vec<(usize, Vec<(u32, f64)>)>,
    /// The present price of each class of arcs.
    prices: Vec<f64>,
    /// The present sum of distances from one rank of each class.
    values: Vec<f64>,
}

impl<'a> Planes<'a> {
    pub(super) fn new(graph: &'a Graph, alike: &'a Alike) -> Self {
        let mut rates = alike.rates(graph);
        let most = rates.iter().copied().fold(1.0, f64::max);
        rates.iter_mut().for_each(|rate| *rate /= most);
        let prices = rates.iter().map(|rate| 1.0 / rate / rates.len() as f64).collect();
        Self { alike, rates, planes: Vec::new(), prices, values: vec![f64::INFINITY; alike.sources.len()] }
    }

    pub(super) fn solve(mut self, router: &mut Router) -> Result<Vec<u64>, NoForest> {
        let mut best: (f64, Vec<f64>) = (0.0, self.prices.clone());
        let mut whole_best = whole(&self.prices, SCALE);
        let (mut exact, mut most) = (false, f64::INFINITY);
        for _ in 0..MOST_ROUNDS {
            let mixed = |(old, new): (&f64, &f64)| SMOOTHING * old + (1.0 - SMOOTHING) * new;
            let prices: Vec<f64> =
                if exact { self.prices.clone() } else { best.1.iter().zip(&self.prices).map(mixed).collect() };
            let rounded = whole(&prices, SCALE);
            let (bound, found) = self.price(router, &rounded, true)?;
            if bound > best.0 {
                best = (bound, prices);
                whole_best = rounded;
            }
            if best.0 >= most * (1.0 - CLOSE) {
                break;
            }
            if found == 0 {
                if exact {
                    break;
                }
                exact = true;
                continue;
            }
            exact = false;
            most = self.maximize()?;
        }
        // Optimal prices are often multiples of a common unit, so whole prices can be exact.
        let least = self.prices.iter().copied().filter(|&p| p > 1e-6 * max(&self.prices)).fold(f64::INFINITY, f64::min);
        for times in 1..=24 {
            let scaled = |price: f64| price / least * f64::from(times);
            let near = |&price: &f64| (scaled(price) - scaled(price).round()).abs() < 1e-4;
            if self.prices.iter().all(near) {
                let small: Vec<u64> = self.prices.iter().map(|&price| rounded(scaled(price).round())).collect();
                if small.iter().all(|&price| price < 1 << 20) {
                    let (bound, _) = self.price(router, &small, false)?;
                    if bound >= best.0 {
                        whole_best = small;
                    }
                }
                break;
            }
        }
        Ok(whole_best)
    }

    /// Returns the bound at integer prices of classes, multiplied by the largest total rate of a class, and the number
    /// of planes added. With `keep`, the planes that the present solution violates are added; otherwise no plane is
    /// added.
    pub(super) fn price(&mut self, router: &mut Router, prices: &[u64], keep: bool) -> Result<(f64, usize), NoForest> {
        let of_arcs = self.alike.of_arcs(prices);
        let capacity: f64 = self.rates.iter().zip(prices).map(|(rate, &price)| rate * price as f64).sum();
        let (mut sum, mut found) = (0.0, 0);
        for (at, &(rank, weight)) in self.alike.sources.iter().enumerate() {
            let mut load = vec![0.0; self.alike.classes];
            let class = &self.alike.class;
            let distances = router.route(&of_arcs, rank, |arc, units| load[class[arc as usize] as usize] += units)?;
            sum += distances as f64 * weight as f64;
            let cost: f64 = load.iter().zip(&self.prices).map(|(load, price)| load * price).sum();
            if keep && cost < self.values[at] * (1.0 - 1e-9) {
                let plane = (0..).zip(load).filter(|&(_, units)| units > 0.0).collect();
                self.planes.push((at, plane));
                found += 1;
            }
        }
        Ok((sum / capacity, found))
    }

    /// Finds the prices at which the planes allow the largest sum of distances, and returns that sum.
    pub(super) fn maximize(&mut self) -> Result<f64, NoForest> {
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let prices: Vec<_> = self.prices.iter().map(|_| problem.add_var(0.0, (0.0, f64::INFINITY))).collect();
        let sources = &self.alike.sources;
        let values: Vec<_> = sources.iter().map(|&(_, n)| problem.add_var(n as f64, (0.0, f64::INFINITY))).collect();
        let all: Vec<_> = prices.iter().copied().zip(self.rates.iter().copied()).collect();
        problem.add_constraint(&all[..], ComparisonOp::Eq, 1.0);
        for (at, plane) in &self.planes {
            let mut row: Vec<_> = plane.iter().map(|&(class, units)| (prices[class as usize], -units)).collect();
            row.push((values[*at], 1.0));
            problem.add_constraint(&row[..], ComparisonOp::Le, 0.0);
        }
        let solution = optimum(problem.solve())?;
        self.prices = prices.iter().map(|&price| solution.var_value(price).max(0.0)).collect();
        self.values = values.iter().map(|&value| solution.var_value(value)).collect();
        Ok(solution.objective())
    }
}

pub(super) fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::MIN_POSITIVE, f64::max)
}

/// Returns prices scaled so that the largest becomes `scale`, and rounded to integers.
pub(super) fn whole(prices: &[f64], scale: f64) -> Vec<u64> {
    let most = max(prices);
    prices.iter().map(|price| rounded((price / most * scale).round())).collect()
}
