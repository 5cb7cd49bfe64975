//! The bitwise properties of the results of a table: `ranks`, `place`, `size` and `ranks-count`.
//!
//! A collective on a number of ranks has `size` if each of its rows has `place` and all rows have the same expression.
//! A schedule over blocks computes each element count with the expressions of its blocks, so `place` of a row holds for
//! every length that the row serves. The compared classes of expressions come from the proofs of the programs, not from
//! the file. Calls that no row serves are left to the MPI library; nothing is known about the bits of their results, so
//! they are listed.
//!
//! A collective has `ranks-count` for a number of logical contributors if its expression, after replacing each rank by
//! the sum of the rank's contributors, is the tree of all contributors ([`crate::verify::Expression`]). Tables for
//! different numbers of ranks are compared with the same tree, so they may be in different files.

use std::collections::BTreeMap;

use serde::Serialize;
use unisono_collective::{Kind, Row};

use super::{PlanFile, PlanFileError};
use crate::{
    stored::{Blocking, Elements},
    verify::{Expression, MOST_CONTRIBUTORS},
};

/// Bitwise properties of the results of one collective on one number of ranks, over all rows of a `.plan` file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename = "PlanBits")]
pub struct TableBits {
    pub collective: &'static str,
    pub ranks: u32,
    /// The properties that hold, each including those before it: `ranks`, all ranks get the same bits; `place`, each
    /// element of a result is the same expression over the ranks; `size`, also at every length and in every row;
    /// `ranks-count`, and this expression is the tree of the given contributors.
    pub bits: Vec<&'static str>,
    /// A sentence that names two elements or sizes whose expressions differ; `None` if `size` holds.
    pub unlike_elements: Option<String>,
    /// Reason why `ranks-count` does not hold, if the number of contributors is given and `size` holds.
    pub unlike_contributors: Option<String>,
    /// Sentences that name the calls left to the MPI library.
    pub left_to_library: Vec<String>,
}

impl PlanFile {
    /// Proves the schedules of all rows, and compares the expressions of their elements. `ranks-count` is evaluated for
    /// `contributors` logical contributors, if given.
    ///
    /// # Errors
    /// Returns the error of a schedule whose proof fails.
    pub fn bits(&self, contributors: Option<u32>) -> Result<Vec<TableBits>, PlanFileError> {
        let mut collectives: BTreeMap<(&str, u32), Vec<usize>> = BTreeMap::new();
        for (at, row) in self.table.rows().iter().enumerate() {
            collectives.entry((row.kind.name(), row.ranks)).or_default().push(at);
        }
        let used: Vec<usize> = collectives.values().flatten().filter_map(|&row| self.uses[row]).collect();
        self.prove_at_once(&used);
        collectives.into_values().map(|rows| self.bits_of(&rows, contributors)).collect()
    }

    /// Returns the properties of the rows of one collective on one number of ranks.
    fn bits_of(&self, rows: &[usize], contributors: Option<u32>) -> Result<TableBits, PlanFileError> {
        let row = |at: usize| &self.table.rows()[at];
        let (kind, ranks) = (row(rows[0]).kind, row(rows[0]).ranks);
        let mut served = Vec::new();
        for &at in rows {
            if let Some(schedule) = self.uses[at] {
                served.push((row(at), self.facts(schedule), self.prove(schedule)?));
            }
        }
        let repeatable = !served.is_empty() && served.iter().all(|(_, facts, _)| facts.repeatable);
        let place = repeatable && served.iter().all(|(.., elements)| elements.class.is_some());
        let mut unlike_elements = served.iter().find_map(|(row, _, elements)| {
            elements.unlike.as_ref().map(|unlike| format!("in the blocks of the row '{row}', {unlike}"))
        });
        let apart = served.windows(2).find(|pair| pair[0].2.class != pair[1].2.class);
        if unlike_elements.is_none()
            && let Some([(one, ..), (other, ..)]) = apart
        {
            let sizes = (one.first_bytes, other.first_bytes);
            unlike_elements = Some(format!(
                "the elements of {} bytes have another expression than those of {} bytes ('{one}', '{other}')",
                sizes.0, sizes.1
            ));
        }
        let size = place && unlike_elements.is_none();
        let lacks_tree = |n| served.first().and_then(|(_, _, elements)| lacks_tree(kind, ranks, elements, n));
        let unlike_contributors = contributors.filter(|_| size).and_then(lacks_tree);
        let of_tree = size && contributors.is_some() && unlike_contributors.is_none();
        let hold = [("ranks", repeatable), ("place", place), ("size", size), ("ranks-count", of_tree)];
        let bits = hold.into_iter().filter(|one| one.1).map(|one| one.0).collect();
        let (collective, left_to_library) = (kind.name(), self.left(rows));
        Ok(TableBits { collective, ranks, bits, unlike_elements, unlike_contributors, left_to_library })
    }

    /// Lists the calls of a collective on its number of ranks that are left to the MPI library.
    fn left(&self, rows: &[usize]) -> Vec<String> {
        let mut left = Vec::new();
        let mut groups: BTreeMap<_, Vec<(&Row, _)>> = BTreeMap::new();
        for &at in rows {
            let row = &self.table.rows()[at];
            groups.entry((row.per_node, row.class)).or_default().push((row, self.uses[at]));
        }
        for ((per_node, class), rows) in &groups {
            let on = per_node.map_or_else(String::new, |n| format!(", {n} ranks a node"));
            let of = if groups.len() > 1 { format!("{on}, operators {}", class.name()) } else { on };
            let mut next = Some(0);
            for (row, used) in rows {
                if let Some(next) = next.filter(|&next| next < row.first_bytes) {
                    left.push(range(next, row.first_bytes - 1, &of));
                }
                match used.map(|schedule| self.facts(schedule)) {
                    None => left.push(range(row.first_bytes, row.last_bytes, &of)),
                    Some(facts) if facts.blocking != Blocking::Any && facts.collective.elements > 1 => {
                        let blocks = facts.collective.elements;
                        let sizes = range(row.first_bytes, row.last_bytes, &of);
                        left.push(format!("{sizes}, counts that {blocks} does not divide"));
                    }
                    Some(_) => {}
                }
                next = row.last_bytes.checked_add(1);
            }
            if let Some(next) = next {
                left.push(range(next, u64::MAX, &of));
            }
        }
        if groups.keys().all(|(per_node, _)| per_node.is_some()) {
            left.push("other numbers of ranks a node".to_owned());
        }
        left
    }
}

/// Returns why elements of a collective on `ranks` ranks are not, or cannot be shown to be, the tree of `n`
/// contributors; `None` if they are, or if the collective combines nothing.
pub fn lacks_tree(kind: Kind, ranks: u32, elements: &Elements, n: u32) -> Option<String> {
    if !kind.reduces() || kind == Kind::Barrier {
        return None;
    }
    if kind == Kind::Scan {
        return Some("a scan has another result on each rank, so it has no tree of all contributors".to_owned());
    }
    if n == 0 || n > MOST_CONTRIBUTORS || !n.is_multiple_of(ranks) {
        return Some(format!("{ranks} ranks do not share {n} contributors equally; accepted are multiples of {ranks}"));
    }
    let Some(expression) = &elements.expression else {
        return Some("its expression has too many combinations to be compared".to_owned());
    };
    let tree = Expression::of_contributors(n);
    (expression.over_contributors(n / ranks) != tree).then(|| {
        format!(
            "{ranks} ranks with {} contributors each do not add them as the tree of {n} contributors does",
            n / ranks
        )
    })
}

/// Describes a range of sizes in bytes, both ends included; `of` is appended to restrict it to some calls.
fn range(first: u64, last: u64, of: &str) -> String {
    if last == u64::MAX { format!("{first} bytes and more{of}") } else { format!("{first} to {last} bytes{of}") }
}
