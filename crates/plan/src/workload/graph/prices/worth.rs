//! The choice of collectives of a workload file that are worth a plan.
//!
//! A plan takes up to a hundred times as long as timing all algorithms in closed form. It shortens a step by at most
//! the time of the collective in closed form.

use std::collections::BTreeMap;

use unisono_base::parallel;
use unisono_workload::{Collected, Compute, RankClass, Work};

use super::{MOST_PLANNED, ProgramPrices};
use crate::PlanError;

/// The shortest collectives are not planned as long as their total time is at most this fraction of a rank's work.
const SHARE: f64 = 0.03;

impl ProgramPrices<'_> {
    /// Plans the collectives of a workload file, except for the shortest. `rows` holds the row of each node's
    /// communication, by class.
    ///
    /// # Errors
    /// Returns the errors of [`ProgramPrices::row`].
    pub(in super::super) fn settle(&mut self, rows: &[Vec<Option<usize>>]) -> Result<(), PlanError> {
        for (class, rows) in self.graph.classes.iter().zip(rows) {
            let seconds = |row: usize| self.rows[row].seconds;
            let longest = longest(class, rows, seconds, |collected| self.is_open(collected));
            self.settled.extend(longest.iter().map(|(_, collected)| *collected));
            let planned = {
                let prices = &*self;
                let plan = |(_, collected): &(usize, Collected)| prices.collective(collected);
                parallel::map_long(&longest, plan).collect::<Result<Vec<_>, _>>()?
            };
            for ((row, _), planned) in longest.into_iter().zip(planned) {
                (self.rows[row], self.chosen[row]) = planned;
            }
        }
        Ok(())
    }

    /// Returns true if a collective of a workload file could be planned, but is still timed in closed form. Only
    /// collectives of a single group of at most [`MOST_PLANNED`] ranks on a network can be planned.
    pub(super) fn is_open(&self, collected: &Collected) -> bool {
        let table = collected.groups as usize;
        let groups = &self.graph.groups[table];
        let could_be_planned = groups.len() == 1 && groups.group(0).len() <= MOST_PLANNED as usize;
        let is_on_network = self.shared.is_some();
        is_on_network
            && could_be_planned
            && self.graph.choices.get(table).is_some()
            && !self.settled.contains(collected)
    }
}

/// Returns the rows of the open collectives of a class. The shortest of these are left out, as long as together they
/// take at most [`SHARE`] of the class's work. `seconds` returns the time of a row. Collectives that `is_open` refuses
/// are part of the work, but are not returned.
fn longest(
    class: &RankClass,
    rows: &[Option<usize>],
    seconds: impl Fn(usize) -> f64,
    is_open: impl Fn(&Collected) -> bool,
) -> Vec<(usize, Collected)> {
    let (mut work, mut of_rows) = (0.0, BTreeMap::<usize, (f64, Collected)>::new());
    for (node, row) in class.nodes.iter().zip(rows) {
        let taken = match (node.work, row) {
            (Work::Compute(Compute::Measured { seconds }), _) => seconds,
            (_, Some(row)) => seconds(*row),
            _ => 0.0,
        };
        work += taken;
        if let (Work::Collective(collected), Some(row)) = (node.work, row)
            && is_open(&collected)
        {
            of_rows.entry(*row).or_insert((0.0, collected)).0 += taken;
        }
    }
    let mut shortest: Vec<_> = of_rows.into_iter().collect();
    shortest.sort_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b));
    let mut left = SHARE * work;
    shortest.retain(|(_, (taken, _))| {
        left -= taken;
        left < 0.0
    });
    shortest.into_iter().map(|(row, (_, collected))| (row, collected)).collect()
}
