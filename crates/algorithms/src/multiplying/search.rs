//! Finds the schedule of least cost, exactly, for any number of ranks.
//!
//! The costs of stages add up, so the best factors of n follow from those of its divisors: cost(n) = min over f | n of
//! cost(n / f) + stage(f). All splits and merges are tried, except those that cost more than a known schedule. A
//! factor, base or group of f costs at least (f - 1) (send + reduce), so few splits and merges remain.

use unisono_base::{limits::spend, narrow};

use super::{StagePrices, Stages, Wrap};

/// A schedule and its cost in ns.
#[derive(Clone, PartialEq, Debug)]
pub struct Best {
    pub stages: Stages,
    pub cost_ns: f64,
}

impl Best {
    fn of(stages: Stages, prices: &StagePrices) -> Self {
        let cost_ns = prices.total_ns(&stages);
        Self { stages, cost_ns }
    }

    /// Returns the cheaper of two schedules, or `self` if their costs are equal up to rounding.
    fn or(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.cost_ns < self.cost_ns * (1.0 - ROUNDING) => other,
            _ => self,
        }
    }
}

/// The most ranks that are set apart in the merges that are tried before the search. A known schedule of low cost makes
/// the search faster.
const FEW: u32 = 32;

/// The name under which the search counts its steps.
const STEPS_OF: &str = "the search for the stages of an exchange";

/// The relative tolerance between sums of the same stage costs in different orders.
const ROUNDING: f64 = 1e-12;

/// Returns the limit of costs for the search: slightly more than the cost of a known schedule.
fn bound(known_ns: f64) -> f64 {
    known_ns * (1.0 + ROUNDING) + f64::MIN_POSITIVE
}

/// Returns the best factored schedule for `ranks` ranks, by a dynamic program over the divisors. Larger factors come
/// first.
pub fn best_factored(ranks: u32, prices: &StagePrices) -> Best {
    Best::of(best_factors(ranks, |factor| prices.factor_ns(factor)), prices)
}

/// Returns the factored schedule of [`best_factored`] for any times of stages, `stage_ns`, by their factor.
pub fn best_factors(ranks: u32, stage_ns: impl Fn(u32) -> f64) -> Stages {
    let ranks = ranks.max(1);
    let mut divisors: Vec<u32> =
        (1..=ranks).take_while(|d| *d <= ranks / d).filter(|d| ranks.is_multiple_of(*d)).collect();
    divisors.extend(divisors.clone().iter().map(|d| ranks / d));
    divisors.sort_unstable();
    divisors.dedup();
    let known = divisors.len() as u64;
    spend(STEPS_OF, u64::from(ranks.isqrt()) + known * known);
    // The least cost of each divisor, and the last factor of a schedule with this cost.
    let mut least = vec![(0.0, 1); divisors.len()];
    for (at, &n) in divisors.iter().enumerate().skip(1) {
        let tried = divisors[..at].iter().zip(&least).filter(|(d, _)| n % **d == 0);
        let costs = tried.map(|(d, &(before, _))| (before + stage_ns(n / d), n / d));
        least[at] = costs.reduce(|a, b| if b.0 < a.0 { b } else { a }).expect("1 divides every number");
    }
    let last_factor = |n: u32| least[divisors.binary_search(&n).expect("a divisor's divisors are there")].1;
    Stages::fitting(ranks, Wrap::Plain, factors(ranks, last_factor))
}

/// Returns the best factors if there are at least two, otherwise the two factors nearest to each other. `None` for a
/// prime number or 1.
fn best_two_factors(n: u32, prices: &StagePrices) -> Option<Vec<u32>> {
    let factors = best_factored(n, prices).stages.factors().to_vec();
    if factors.len() > 1 {
        return Some(factors);
    }
    let small = (2..n).take_while(|d| *d <= n / d).filter(|d| n.is_multiple_of(*d)).last()?;
    Some(vec![n / small, small])
}

/// Returns the best factors of `n`, largest first; `last_factor(m)` is the last of the best factors of m.
fn factors(mut n: u32, last_factor: impl Fn(u32) -> u32) -> Vec<u32> {
    let mut factors = Vec::new();
    while n > 1 {
        factors.push(last_factor(n));
        n /= last_factor(n);
    }
    factors.sort_unstable_by(|a, b| b.cmp(a));
    factors
}

/// The search among all schedules for a number of ranks.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    ranks: u32,
    prices: StagePrices,
    in_order: bool,
}

impl Search {
    /// Creates a search for `ranks` ranks; 0 counts as 1.
    pub fn new(ranks: u32, prices: StagePrices) -> Self {
        Self { ranks: ranks.max(1), prices, in_order: false }
    }

    /// Restricts the search, if `in_order`, to schedules that keep the operands in the order of ranks
    /// ([`Stages::keeps_order`]).
    #[must_use]
    pub fn in_order(self, in_order: bool) -> Self {
        Self { in_order, ..self }
    }

    /// Returns the best schedule of all; among equal costs, a factored schedule, else a merge, else a split.
    pub fn best(&self) -> Best {
        let factored = self.factored();
        let known = factored.clone().or(self.first_split()).or(self.first_merge());
        let table = self.table(&known);
        factored.or(self.merges_from(&table).into_iter().next()).or(self.split_from(&table))
    }

    pub fn factored(&self) -> Best {
        best_factored(self.ranks, &self.prices)
    }

    /// Returns the best split; `None` for one rank.
    pub fn split(&self) -> Option<Best> {
        self.split_from(&self.table(&self.first_split()?))
    }

    /// Returns the merges with the least cost and, among these, the fewest ranks set apart. Fewer than five ranks have
    /// none, and for some numbers of ranks no merge keeps the order. The times of these merges on a machine differ,
    /// because ranks run ahead.
    pub fn merges(&self) -> Vec<Best> {
        self.first_merge().map_or_else(Vec::new, |first| self.merges_from(&self.table(&first)))
    }

    /// Returns the first of [`Self::merges`], if there is one.
    pub fn merge(&self) -> Option<Best> {
        self.merges().into_iter().next()
    }

    /// Returns the split whose cost starts the search: pairs collapse to a power of two, as in recursive doubling.
    /// `None` for one rank.
    fn first_split(&self) -> Option<Best> {
        let n = self.ranks;
        let whole = 1 << n.ilog2();
        let pairs = if n == whole { n / 2 } else { n - whole };
        let wrap = Wrap::Split { threshold: 2 * pairs, base: 2 };
        let factors = best_factored(n - pairs, &self.prices).stages.factors().to_vec();
        (n > 1).then(|| Best::of(Stages::fitting(n, wrap, factors), &self.prices))
    }

    /// Returns the merge whose cost starts the search; `None` if there is no merge. It is the cheapest of the merges
    /// that set up to [`FEW`] ranks apart and the merge that leaves a power of two. If the order must be kept, it is
    /// the merge that sets one rank apart.
    fn first_merge(&self) -> Option<Best> {
        let most = if self.in_order { 1 } else { FEW };
        let beyond = self.ranks.checked_sub(1)?.checked_ilog2().map(|log| self.ranks - (1 << log));
        let rests = (1..=most).chain(beyond.filter(|&rest| rest > most && !self.in_order));
        let merges = rests.take_while(|&rest| rest + 4 <= self.ranks).filter_map(|rest| {
            let mut factors = best_two_factors(self.ranks - rest, &self.prices)?;
            let wrap = Wrap::Merge { rest, first: factors.remove(0), last: factors.pop()? };
            Some(Best::of(Stages::fitting(self.ranks, wrap, factors), &self.prices))
        });
        merges.reduce(|a, b| a.or(Some(b)))
    }

    /// Returns the costs of the plain factors for all wraps that may be cheaper than the schedule `known`.
    fn table(&self, known: &Best) -> Table {
        Table::new(self.ranks, &self.prices, bound(known.cost_ns))
    }

    fn split_from(&self, table: &Table) -> Option<Best> {
        let (n, mut best, mut found) = (self.ranks, table.bound, None);
        for base in 2..=n {
            let around = self.around_ns(Wrap::Split { threshold: base, base });
            if around >= best {
                break;
            }
            spend(STEPS_OF, u64::from(n / base));
            for leaders in 1..=n / base {
                let inner = n - leaders * (base - 1);
                let cost = around + table.cost(inner);
                if cost < best {
                    (best, found) = (cost, Some((Wrap::Split { threshold: leaders * base, base }, inner)));
                }
            }
        }
        found.map(|one| self.found(table, one))
    }

    fn merges_from(&self, table: &Table) -> Vec<Best> {
        let (n, mut best, mut found) = (self.ranks, table.bound, Vec::new());
        let least = if self.in_order { n - 1 } else { 4 };
        let mut apart = u32::MAX;
        // A lower bound on the cost of the two stages, for any number of ranks that are set apart.
        let at_least = |first: u32, last: u32| {
            let both = f64::from(first - 1) + f64::from(last - 1);
            2.0 * self.prices.latency_ns + both * (self.prices.send_ns + self.prices.reduce_ns)
        };
        for first in 2..=n / 2 {
            if at_least(first, 2) > best {
                break;
            }
            for last in 2..=n / first {
                let (outer, room) = (first * last, best - at_least(first, last));
                if room < 0.0 {
                    break;
                }
                // If one more stage would exceed the bound, there are no plain factors, and `inner` is 1.
                let most = if table.least_stage <= room { (n - 1) / outer } else { 1.min((n - 1) / outer) };
                spend(STEPS_OF, u64::from(most));
                for inner in (least.div_ceil(outer)..=most).rev().filter(|&inner| table.cost(inner) <= room) {
                    let rest = n - inner * outer;
                    let wrap = Wrap::Merge { rest, first, last };
                    let cost = self.around_ns(wrap) + table.cost(inner);
                    // Of merges with equal costs, those with the fewest ranks set apart are kept.
                    if cost < best || cost == best && rest < apart {
                        (best, apart) = (cost, rest);
                        found.clear();
                    }
                    if cost == best && rest == apart {
                        found.push((wrap, inner));
                    }
                }
            }
        }
        found.into_iter().map(|one| self.found(table, one)).collect()
    }

    /// Returns the cost of the two stages of a wrap, in ns; 0 for [`Wrap::Plain`].
    fn around_ns(&self, wrap: Wrap) -> f64 {
        let (first, last) = wrap.stages(self.ranks).unzip();
        first.into_iter().chain(last).map(|stage| self.prices.stage_ns(stage)).sum()
    }

    fn found(&self, table: &Table, (wrap, inner): (Wrap, u32)) -> Best {
        let factors = factors(inner, |n| table.least[n as usize].1);
        Best::of(Stages::fitting(self.ranks, wrap, factors), &self.prices)
    }
}

/// The least cost of the plain factors of a wrap, for every product of these factors.
struct Table {
    /// The limit of the cost of a schedule including its wrap.
    bound: f64,
    /// The least cost of a stage, that of factor 2.
    least_stage: f64,
    /// For each product, the least cost of factors with this product, and the last of these factors. A cost above the
    /// bound may be infinite.
    least: Vec<(f64, u32)>,
}

impl Table {
    fn new(ranks: u32, prices: &StagePrices, bound: f64) -> Self {
        let n = ranks as usize;
        let mut least = vec![(f64::INFINITY, 0); n + 1];
        least[1] = (0.0, 1);
        // Each of the two stages of a wrap costs at least a latency and a message.
        let room = bound - 2.0 * (prices.latency_ns + prices.send_ns);
        let cheap: Vec<f64> = (2..=ranks).map(|f| prices.factor_ns(f)).take_while(|&cost| cost <= room).collect();
        for part in 1..=n / 2 {
            let before = least[part].0;
            if before > room {
                continue;
            }
            spend(STEPS_OF, cheap.len().min(n / part) as u64);
            for (factor, stage) in (2..=n / part).zip(&cheap) {
                let cost = before + stage;
                if cost < least[part * factor].0 {
                    least[part * factor] = (cost, narrow::<u32>(factor));
                }
            }
        }
        Self { bound, least_stage: prices.factor_ns(2), least }
    }

    fn cost(&self, n: u32) -> f64 {
        self.least[n as usize].0
    }
}
