//! The regions of a decision table, from measured times of plans and of the library.

use std::{collections::BTreeMap, sync::Arc};

use unisono_collective::{Dtype, Kind};
use unisono_machine::Machine;

use super::{
    choice::{Contender, Times, between, boundary, choose, deciding},
    proposals::propose,
};
use crate::{Plan, PlanError};

/// The measurement of one contender at one size: a plan, or the library (`None`).
#[derive(Clone)]
pub struct Measured {
    pub plan: Option<Arc<Plan>>,
    pub seconds: f64,
    /// The number of rounds in which the contender was faster than the library.
    pub won: u32,
    /// True if the contender's calls ran as planned. A schedule that does not serve a count leaves the call to the
    /// library instead.
    pub effective: bool,
}

/// The size in bytes up to which calls take as long as empty calls. If the smallest measured size is at most this, its
/// choice serves all smaller sizes.
const SHORTEST: u64 = 64;

fn contender(plan: Option<&Arc<Plan>>) -> Contender {
    plan.map_or(Contender::Library, |plan| Contender::Algorithm(plan.best().algorithm.name()))
}

/// The measurements at one size on one number of ranks, by contender, the library first. An algorithm has at most one
/// plan.
#[derive(Clone)]
pub struct Cell {
    pub rounds: u32,
    pub contenders: Vec<Measured>,
}

impl Cell {
    fn deciding(&self, name: Contender) -> Option<f64> {
        let found = self.contenders.iter().find(|c| c.effective && contender(c.plan.as_ref()) == name)?;
        let library = self.contenders.first().filter(|_| found.plan.is_some());
        Some(library.map_or(found.seconds, |own| deciding(found.seconds, found.won, self.rounds, own.seconds)))
    }
}

fn names(cells: &[Cell]) -> impl Iterator<Item = Contender> {
    cells.iter().flat_map(|cell| cell.contenders.iter().map(|c| contender(c.plan.as_ref())))
}

fn times(cells: &[Cell]) -> Times {
    let column = |name| (name, cells.iter().map(|cell| cell.deciding(name)).collect());
    names(cells).chain([Contender::Library]).map(column).collect()
}

/// Chooses the contender of each size.
pub fn chosen(cells: &[Cell]) -> Vec<Contender> {
    choose(&times(cells))
}

/// A region of a decision table: the sizes, on one number of ranks, that one plan or the library serves.
pub struct Region {
    pub ranks: u32,
    pub per_node: u32,
    pub first_bytes: u64,
    pub last_bytes: Option<u64>,
    pub plan: Option<Arc<Plan>>,
    /// True if this number of ranks was measured; false if its times were interpolated.
    pub measured: bool,
}

/// The plan of each contender at each size; `None` if the contender does not serve.
type Plans = BTreeMap<Contender, Vec<Option<Arc<Plan>>>>;

/// Measured cells of one collective on nodes of `per_node` ranks each, or on part of one node.
pub struct Family<'a> {
    pub kind: Kind,
    pub machine: &'a Machine,
    pub per_node: u32,
    /// The numbers of f32 elements, ascending.
    pub counts: Vec<u64>,
    /// True if, between two measured numbers of ranks, algorithms have their best parameters by the model. False if
    /// they have the parameters of the smaller measured number, as in a library's tuning file.
    pub best: bool,
    /// For each number of ranks, one cell for each of `counts`.
    pub cells: BTreeMap<u32, Vec<Cell>>,
}

impl Family<'_> {
    /// Returns the regions of each number of ranks from the smallest measured number to the largest.
    ///
    /// # Errors
    /// Returns an error if a plan between two measured numbers of ranks cannot be made.
    pub fn regions(&self) -> Result<Vec<Region>, PlanError> {
        let mut found = Vec::new();
        let ends: Vec<_> = self.cells.iter().map(|(&ranks, cells)| (ranks, cells, times(cells))).collect();
        for (at, (low, cells, lows)) in ends.iter().enumerate() {
            self.add(&mut found, *low, lows, &measured(cells), true);
            let Some((high, _, highs)) = ends.get(at + 1) else { continue };
            let both: Vec<_> = lows.keys().copied().filter(|name| highs.contains_key(name)).collect();
            if high - low < 2 {
                continue;
            }
            let own = measured(cells);
            let (model_low, model_high) =
                (model(&self.plans(*low, &both, &own)?), model(&self.plans(*high, &both, &own)?));
            for ranks in low + 1..*high {
                let plans = self.plans(ranks, &both, &own)?;
                let times = between(ranks, (*low, lows), (*high, highs), [&model_low, &model_high, &model(&plans)]);
                self.add(&mut found, ranks, &times, &plans, false);
            }
        }
        Ok(found)
    }

    /// Returns plans of the named algorithms on a number of ranks. `smaller` holds the plans on the next smaller
    /// measured number.
    fn plans(&self, ranks: u32, names: &[Contender], smaller: &Plans) -> Result<Plans, PlanError> {
        let mut plans = Plans::new();
        for &contender in names {
            let Contender::Algorithm(name) = contender else { continue };
            let propose = |(&count, own): (&u64, &Option<Arc<Plan>>)| match own {
                None if !self.best => Ok(None),
                own => {
                    let params = own.as_ref().filter(|_| !self.best).map(|own| &own.best().params);
                    propose(self.kind, self.machine, ranks, count, name, params)
                }
            };
            let made = self.counts.iter().zip(&smaller[&contender]).map(propose);
            plans.insert(contender, made.map(|plan| Ok(plan?.map(Arc::new))).collect::<Result<_, PlanError>>()?);
        }
        Ok(plans)
    }

    /// Adds regions of equal choice. Between two sizes with different choices, the boundary is the size at which both
    /// take equally long. The library serves sizes below the smallest measured size, unless this size is at most
    /// [`SHORTEST`]. A schedule for long vectors can take many times as long as the library for short vectors.
    fn add(&self, to: &mut Vec<Region>, ranks: u32, times: &Times, plans: &Plans, measured: bool) {
        let chosen = choose(times);
        let plan = |at: usize| plans.get(&chosen[at]).and_then(|of| of[at].clone());
        let params = |plan: &Option<Arc<Plan>>| plan.as_ref().map(|plan| plan.best().params.clone());
        let bytes = |at: usize| Dtype::F32.bytes() * self.counts[at];
        let per_node = ranks.min(self.per_node);
        let mut first_bytes = 0;
        if bytes(0) > SHORTEST {
            let last_bytes = Some(bytes(0) - 1);
            to.push(Region { ranks, per_node, first_bytes, last_bytes, plan: None, measured });
            first_bytes = bytes(0);
        }
        for (at, &name) in chosen.iter().enumerate() {
            let (own, mut last_bytes) = (plan(at), None);
            if let Some(&following) = chosen.get(at + 1) {
                if name == following && params(&own) == params(&plan(at + 1)) {
                    continue;
                }
                let ends = |at: usize| Some((times[&name][at]?, times[&following][at]?));
                let (here, there) = match (ends(at), ends(at + 1)) {
                    (Some(here), Some(there)) => (here, there),
                    // If a choice was not timed at both sizes, the boundary is their geometric mean.
                    _ => ((1.0, 1.0), (1.0, 1.0)),
                };
                let sizes = (bytes(at), bytes(at + 1));
                last_bytes = Some(boundary(sizes, (here.0, there.0), (here.1, there.1)));
            }
            to.push(Region { ranks, per_node, first_bytes, last_bytes, plan: own, measured });
            first_bytes = last_bytes.map_or(0, |last| last + 1);
        }
    }
}

fn measured(cells: &[Cell]) -> Plans {
    let plan = |cell: &Cell, name| {
        let mut same = cell.contenders.iter().filter(|c| contender(c.plan.as_ref()) == name);
        same.find_map(|c| c.plan.clone())
    };
    names(cells).map(|name| (name, cells.iter().map(|cell| plan(cell, name)).collect())).collect()
}

fn model(plans: &Plans) -> Times {
    let seconds = |plan: &Option<Arc<Plan>>| plan.as_ref().map(|plan| plan.best().time.seconds);
    plans.iter().map(|(&name, of)| (name, of.iter().map(seconds).collect())).collect()
}
