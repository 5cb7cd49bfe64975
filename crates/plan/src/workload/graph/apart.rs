//! Groups that meet neither on links nor in switches: each makes the collective by a plan of its own, where switches
//! compute.
//!
//! Schedules of several groups at once are timed by their exchanges in closed form, which forests and schedules in
//! switches do not state. If no message of one group may travel over a link that a message of another group may travel
//! over, and no switch reduces for two groups, then each group takes the time of its own plan, and all together that of
//! the slowest.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use unisono_algorithms::Params;
use unisono_base::interrupt::check;
use unisono_lower::Placement;
use unisono_workload::Groups;

use super::{Chosen, Prices, prices::MOST_PLANNED};
use crate::{PlanError, Problem, TimeSource, Timed, plan_best};

/// Plans of all groups take their time, so they are made only where the first gains 5 %.
const WORTH: f64 = 1.05;

/// The plans of all groups.
pub(super) struct Apart {
    pub chosen: Vec<Chosen>,
    /// The best candidate of the slowest group.
    pub slowest: Timed,
}

impl Prices<'_> {
    /// Plans every group alone; `None` if groups meet, a plan gains nothing over `most_seconds` or cannot be made,
    /// there are too many ranks, or no switch computes: forests of every group take seconds to plan. `problem` is the
    /// collective of a group.
    pub(super) fn apart(
        &self,
        groups: &Arc<Groups>,
        most_seconds: f64,
        problem: impl Fn(&[u32]) -> Result<Problem, PlanError>,
    ) -> Option<Apart> {
        let ranks: usize = groups.iter().map(<[u32]>::len).sum();
        let shared = self.shared().filter(|shared| shared.switches_compute() && ranks <= MOST_PLANNED as usize)?;
        let (mut links, mut switches) = (FxHashSet::default(), FxHashSet::default());
        let (mut chosen, mut slowest) = (Vec::new(), None::<Timed>);
        for group in groups.iter() {
            check();
            let problem = problem(group).ok()?;
            let planned = match &slowest {
                None => plan_best(problem, None, &Params::new()),
                // Groups that lie alike have the same best algorithm.
                Some(other) => plan_best(problem, Some(other.algorithm.name()), &other.params),
            };
            let planned = planned.ok()?;
            let best = planned.best().clone();
            // Algorithms that state their exchanges were timed among all groups.
            if best.source == TimeSource::Exchanges || best.time.seconds * WORTH > most_seconds {
                return None;
            }
            let places = planned.built().ok()?.placement.as_ref().and_then(Placement::nodes)?;
            // A switch may be several nodes of a schedule.
            let reducing: FxHashSet<u32> = places.get(group.len()..).unwrap_or_default().iter().copied().collect();
            let used = shared.used_links(planned.schedule().ok()?, places);
            if !links.is_disjoint(&used) || !switches.is_disjoint(&reducing) {
                return None;
            }
            links.extend(used);
            switches.extend(reducing);
            let own = Groups::new(groups.ranks(), [group.to_vec()]).expect("one of the groups");
            chosen.push(Chosen::planned(planned, Arc::new(own)));
            slowest = match slowest {
                Some(other) if other.time.seconds >= best.time.seconds => Some(other),
                _ => Some(best),
            };
        }
        Some(Apart { chosen, slowest: slowest? })
    }
}
