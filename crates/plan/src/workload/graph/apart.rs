//! Collectives of several groups by schedules without exchanges in closed form: forests, and switches that compute.
//!
//! Candidates are timed for the first group alone. All groups together take at least as long. So no candidate is used
//! if none of them is faster than the best algorithm in closed form for all groups, or if this algorithm is near the
//! bound.
//!
//! * A schedule of ranks alone serves every group: in every group, its messages go between ranks at the same positions.
//!   Each group takes the time of its own messages. This time equals that of the first group if the paths have the same
//!   shape. If the times of groups differ, no such schedule is used. If messages of two groups may share a link, a
//!   further time is added: the time for which all groups occupy the busiest link, minus the time for which one group
//!   occupies its busiest link.
//! * A schedule in switches is planned for each group, because the ranks of each group have different switches. No link
//!   may carry messages of two groups, and no switch that limits the rate of sums may reduce for two groups. A switch
//!   that reduces as fast as messages arrive may serve groups on different links.

use std::{collections::BTreeMap, sync::Arc};

use rustc_hash::{FxHashMap, FxHashSet};
use unisono_algorithms::{Params, Profile};
use unisono_base::interrupt::check;
use unisono_cost::{
    Time,
    network::{GroupLoad, message_pairs},
};
use unisono_lower::Placement;
use unisono_workload::Groups;

use super::{
    super::shared::SharedNetwork,
    Chosen, ProgramPrices,
    groves::{FOREST, Groves},
    prices::MOST_PLANNED,
};
use crate::{Plan, PlanError, Problem, Timed, candidates::candidates_among, plan_at};

/// A schedule is used only if it is faster by this factor, because it needs a plan of its own.
pub(super) const WORTH: f64 = 1.05;

/// The relative difference up to which the times of groups count as equal.
const ALIKE: f64 = 0.01;

/// Plans of all groups for a collective.
pub(super) struct Apart {
    pub chosen: Vec<Chosen>,
    /// The best candidate, with the time of the slowest group.
    pub slowest: Timed,
}

impl ProgramPrices<'_> {
    /// Returns plans of groups by schedules without a closed form; `None` if none is [`WORTH`] times as fast as
    /// `seconds`, groups that reduce in switches share links, or ranks are too many. `bound_seconds` is a lower bound
    /// of the time of each group. `problem` returns the collective of a group.
    pub(super) fn apart(
        &self,
        groups: &Arc<Groups>,
        [seconds, bound_seconds]: [f64; 2],
        problem: impl Fn(&[u32]) -> Result<Problem, PlanError>,
    ) -> Option<Apart> {
        let most_seconds = seconds / WORTH;
        let ranks: usize = groups.iter().map(<[u32]>::len).sum();
        let shared = self.shared().filter(|_| ranks <= MOST_PLANNED as usize && bound_seconds < most_seconds)?;
        let first = problem(groups.group(0)).ok()?;
        let forest = Groves { shared, groups, problem: &first, bound_seconds }.best(most_seconds);
        let least = forest.as_ref().map_or(most_seconds, |forest| forest.time.seconds);
        let other = best_of_others(&first, least);
        // The faster candidate is first.
        [other, forest].into_iter().flatten().find_map(|best| {
            let planned = plan_at(first.clone(), best.algorithm.name(), &best.params).ok()?;
            if planned.schedule().ok()?.check_ranks_only().is_ok() {
                alike(shared, planned, groups, most_seconds)
            } else {
                in_switches(shared, planned, groups, most_seconds, &problem)
            }
        })
    }
}

/// Returns the fastest candidate of a single group that is not a forest, has no exchanges in closed form, and takes at
/// most `most_seconds`.
fn best_of_others(problem: &Problem, most_seconds: f64) -> Option<Timed> {
    let (target, collective) = (&problem.target, problem.collective);
    let case = target.case(collective);
    let mut best: Option<Timed> = None;
    for (algorithm, params) in candidates_among(&case, &Params::new(), false, |algorithm| algorithm.name() != FOREST) {
        check();
        let is_closed = matches!(algorithm.profile(&case, &params), Some(Profile::Exchanges(_) | Profile::Rounds(_)));
        if is_closed || !target.simulates(algorithm) || target.is_slow(collective, algorithm, &params) {
            continue;
        }
        let most = best.as_ref().map_or(most_seconds, |best| best.time.seconds);
        let timed = target.time_within(collective, algorithm, params, Some(Time::from_ns(most * 1e9)));
        if let Ok(Some(found)) = timed
            && found.time.seconds <= most
        {
            best = Some(found);
        }
    }
    best
}

/// Returns the plan in which every group uses the first group's schedule; `None` if it takes longer than
/// `most_seconds`, or the groups' times differ.
fn alike(shared: &SharedNetwork, planned: Plan, groups: &Arc<Groups>, most_seconds: f64) -> Option<Apart> {
    let mut slowest = planned.best().clone();
    let schedule = planned.schedule().ok()?;
    let pairs = message_pairs(schedule);
    let places = |group: &[u32]| -> Vec<u32> { group.iter().map(|&rank| shared.places()[rank as usize]).collect() };
    let (mut links, mut meet) = (FxHashSet::default(), false);
    // The index of the first group of each shape.
    let mut shapes = BTreeMap::new();
    for (n, group) in groups.iter().enumerate() {
        check();
        let used = shared.used_links(&pairs, &places(group));
        meet |= !links.is_disjoint(&used.links);
        links.extend(used.links);
        shapes.entry(used.shape).or_insert(n);
    }
    if shapes.len() > 1 {
        let seconds = |n: usize| shared.schedule_seconds(schedule, &places(groups.group(n)));
        let alone = seconds(0)?;
        let mut most: f64 = 1.0;
        for &n in shapes.values().filter(|&&n| n > 0) {
            check();
            let ratio = seconds(n)? / alone;
            if (ratio - 1.0).abs() > ALIKE {
                return None;
            }
            most = most.max(ratio);
        }
        slowest.time.seconds *= most;
    }
    if meet {
        let case = planned.problem.target.case(planned.problem.collective);
        let exchanges = SharedNetwork::exchanges(slowest.algorithm, &case, &slowest.params).ok()?;
        slowest.time.seconds += shared_seconds(&shared.group_loads(&exchanges, groups));
    }
    let is_worth = slowest.time.seconds <= most_seconds;
    is_worth.then(|| Apart { chosen: vec![Chosen::planned(planned, Arc::clone(groups))], slowest })
}

/// Returns the seconds for which all groups together occupy the busiest link, minus the seconds for which one group
/// occupies its busiest link.
pub(super) fn shared_seconds(loads: &[GroupLoad]) -> f64 {
    let mut all = FxHashMap::<u32, f64>::default();
    let mut own: f64 = 0.0;
    for &(link, ns) in loads.iter().flat_map(|load| &load.links) {
        *all.entry(link).or_default() += ns;
        own = own.max(ns);
    }
    (all.into_values().fold(0.0, f64::max) - own) * 1e-9
}

/// Returns a plan for each group. `None` if a plan takes too long, or groups share links or switches with a limited
/// rate.
fn in_switches(
    shared: &SharedNetwork,
    first: Plan,
    groups: &Arc<Groups>,
    most_seconds: f64,
    problem: impl Fn(&[u32]) -> Result<Problem, PlanError>,
) -> Option<Apart> {
    let (mut links, mut switches) = (FxHashSet::default(), FxHashSet::default());
    let (mut chosen, mut slowest) = (Vec::new(), first.best().clone());
    let mut first = Some(first);
    for group in groups.iter() {
        check();
        let planned = match first.take() {
            Some(planned) => planned,
            // All groups use the algorithm and the parameters of the first group's plan.
            None => plan_at(problem(group).ok()?, slowest.algorithm.name(), &slowest.params).ok()?,
        };
        let best = planned.best().clone();
        if best.time.seconds > most_seconds {
            return None;
        }
        let places = planned.built().ok()?.placement.as_ref().and_then(Placement::nodes)?;
        // Several nodes of a schedule may be on one switch.
        let on_switches = places.get(group.len()..).unwrap_or_default().iter().copied();
        let computing = shared.computing();
        let reducing: FxHashSet<u32> = on_switches.filter(|&at| computing.reduce_ns_per_byte(at) > 0.0).collect();
        let used = shared.used_links(&message_pairs(planned.schedule().ok()?), places).links;
        if !links.is_disjoint(&used) || !switches.is_disjoint(&reducing) {
            return None;
        }
        links.extend(used);
        switches.extend(reducing);
        let own = Groups::new(groups.ranks(), [group.to_vec()]).expect("one of the groups");
        chosen.push(Chosen::planned(planned, Arc::new(own)));
        if best.time.seconds > slowest.time.seconds {
            slowest = best;
        }
    }
    Some(Apart { chosen, slowest })
}
