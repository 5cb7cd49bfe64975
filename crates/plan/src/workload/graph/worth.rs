//! The collectives of a workload file that are worth a plan.
//!
//! A plan takes up to a hundred times as long as the times of all algorithms in closed form. It shortens a step at most
//! by the time of the collective in closed form.

use std::collections::BTreeMap;

use unisono_workload::{Collected, Compute, RankClass, Work};

/// Collectives that together take at most this share of the work of a rank are not planned.
const SHARE: f64 = 0.1;

/// Returns the rows of the collectives of a class, except for the shortest ones, which together take at most [`SHARE`]
/// of its work. `seconds` is the time of a row; collectives that `is_open` refuses are work alone.
pub(super) fn longest(
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
