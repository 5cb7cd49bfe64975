//! Covers a set of PEs by few loops: rectangles whose columns and rows are arithmetic progressions.

use std::collections::BTreeMap;

use unisono_base::narrow;

/// The `count` numbers `start, start + step, ...`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Progression {
    pub start: u32,
    pub count: u32,
    pub step: u32,
}

/// Splits an ascending list greedily into progressions of at least three numbers, and single numbers.
fn progressions(sorted: &[u32]) -> Vec<Progression> {
    let mut runs = Vec::new();
    let mut at = 0;
    while at < sorted.len() {
        let rest = &sorted[at..];
        let step = rest.get(1).map_or(1, |next| next - rest[0]);
        let mut count = rest.windows(2).take_while(|w| w[1] - w[0] == step).count() + 1;
        if count < 3 {
            count = 1;
        }
        runs.push(Progression { start: rest[0], count: narrow(count), step: if count == 1 { 1 } else { step } });
        at += count;
    }
    runs
}

/// Returns rectangles `(columns, rows)` that cover each of `cells`, ascending `(row, column)`, exactly once.
pub fn rectangles(cells: &[(u32, u32)]) -> Vec<(Progression, Progression)> {
    let mut rows_of: BTreeMap<Progression, Vec<u32>> = BTreeMap::new();
    for row in cells.chunk_by(|a, b| a.0 == b.0) {
        let columns: Vec<u32> = row.iter().map(|c| c.1).collect();
        for run in progressions(&columns) {
            rows_of.entry(run).or_default().push(row[0].0);
        }
    }
    let each =
        rows_of.into_iter().flat_map(|(columns, rows)| progressions(&rows).into_iter().map(move |r| (columns, r)));
    each.collect()
}
