//! A decision table as targets read it: for a collective and a number of ranks, the algorithm for every size in bytes,
//! under the target's names.

use std::collections::BTreeSet;

use unisono_collective::{Choice, DecisionTable, Kind, OperatorClass, Row};

use crate::{Export, Unsaid};

/// The settings of an algorithm, as `(key, value)` with the target's keys.
pub type Settings = Vec<(&'static str, String)>;

/// A function from the parameters of Unisono's algorithm and a number of ranks to the target's settings, or to the
/// reason why the target cannot express them.
pub type Translate = fn(&[(String, String)], u32) -> Result<Settings, String>;

/// The target's own algorithm (`theirs`) for an algorithm of Unisono (`ours`), which may have several counterparts.
#[derive(Clone, Copy)]
pub struct Counterpart {
    pub kind: Kind,
    pub ours: &'static str,
    pub theirs: &'static str,
    pub settings: Translate,
}

/// Returns the counterpart of an algorithm without parameters other than [`DEFAULTS`].
pub const fn same(kind: Kind, ours: &'static str, theirs: &'static str) -> Counterpart {
    with(kind, ours, theirs, plain)
}

pub const fn with(kind: Kind, ours: &'static str, theirs: &'static str, settings: Translate) -> Counterpart {
    Counterpart { kind, ours, theirs, settings }
}

/// The default values of parameters, by algorithm and parameter. A row that states a default value means the same as a
/// row without the parameter.
pub const DEFAULTS: &[(&str, &str, &str)] = &[
    ("binary-tree", "segment", "8192"),
    ("binomial", "radix", "2"),
    ("bruck", "radix", "2"),
    ("dissemination", "ways", "1"),
    ("pipelined-chain", "segment", "8192"),
    ("recursive-exchange", "order", "doubling"),
    ("recursive-exchange", "radix", "2"),
    ("ring", "mapping", "line"),
    ("scatter-allgather", "allgather", "ring"),
];

/// Accepts a broadcast of a scatter and an allgather by recursive doubling, on a power of two of ranks.
pub fn with_doubling(params: &[(String, String)], ranks: u32) -> Result<Settings, String> {
    match params {
        [(name, value)] if (name.as_str(), value.as_str()) == ("allgather", "recursive-doubling") => {
            let reason = "the library runs it on powers of two only, and another one otherwise";
            if ranks.is_power_of_two() { Ok(Settings::new()) } else { Err(reason.to_owned()) }
        }
        _ => Err("the library's allgather has allgather=recursive-doubling".to_owned()),
    }
}

/// Accepts an algorithm without parameters, other than those of [`DEFAULTS`], and returns no settings.
pub fn plain(params: &[(String, String)], _: u32) -> Result<Settings, String> {
    match params.first() {
        None => Ok(Settings::new()),
        Some((name, value)) => Err(format!("its parameter {name}={value} cannot be expressed")),
    }
}

/// Sizes `first ..= last` in bytes as the table counts them, with the target's algorithm; `None` is the library's own
/// choice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    pub first: u64,
    pub last: u64,
    pub algorithm: Option<(&'static str, Settings)>,
}

/// A decision table under a target's names.
pub struct View<'a> {
    target: &'static str,
    /// The algorithms of the user's own library, if the target writes for one library only ([`Tuning::needs_table`]).
    has: Option<&'a BTreeSet<String>>,
    table: DecisionTable,
    names: &'static [Counterpart],
    /// True if the target's rules can distinguish operators that commute from others.
    tells_operators: bool,
    served: BTreeSet<usize>,
    pub left: Vec<String>,
    notes: Vec<String>,
}

/// A function that returns whether a target can express `(ranks, ranks per node)`.
pub type TellsNodes = fn(u32, u32) -> bool;

/// Returns false; for targets that cannot express ranks per node.
pub fn no_nodes(_: u32, _: u32) -> bool {
    false
}

impl<'a> View<'a> {
    /// Makes the view of a table. `has` are the algorithms of the user's own library; `None` means that the library has
    /// all of `names`. `kinds` are the collectives with rules in the library.
    pub fn new(
        target: &'static str,
        table: &DecisionTable,
        names: &'static [Counterpart],
        tells_operators: bool,
        tells_nodes: TellsNodes,
        has: Option<&'a BTreeSet<String>>,
        kinds: impl IntoIterator<Item = Kind>,
    ) -> Self {
        let (left, notes) = (Vec::new(), Vec::new());
        let table = table.clone();
        let mut view = Self { target, has, table, names, tells_operators, served: BTreeSet::new(), left, notes };
        view.place(tells_nodes);
        for row in &view.table.rows().to_vec() {
            if let Err(reason) = view.counterpart(row) {
                view.leave(row, &reason);
            } else if row.class == OperatorClass::Ordered && !view.tells_operators && view.is_hidden(row) {
                view.leave(row, "another row serves operators that commute, and the library does not distinguish them");
            }
        }
        let kinds: Vec<Kind> = kinds.into_iter().collect();
        for row in view.table.rows().to_vec().iter().filter(|r| !kinds.contains(&r.kind)) {
            if view.counterpart(row).is_ok() {
                view.leave(row, "the library has no rules for this collective");
            }
        }
        view
    }

    /// Drops rows for ranks per node that the target cannot express. Of the dropped rows for a collective and a number
    /// of ranks, those with the most ranks per node become rows without ranks per node, unless the table has rows
    /// without them.
    fn place(&mut self, tells_nodes: TellsNodes) {
        let rows = self.table.rows().to_vec();
        let said = |row: &Row| row.per_node.is_none_or(|n| tells_nodes(row.ranks, n));
        let mut placed = Vec::new();
        for row in &rows {
            let others = rows.iter().filter(|r| r.kind == row.kind && r.ranks == row.ranks);
            let most = others.clone().filter(|r| !said(r)).filter_map(|r| r.per_node).max();
            let any = others.clone().any(|r| r.per_node.is_none());
            match row.per_node {
                Some(n) if !said(row) => {
                    if any || Some(n) != most {
                        self.leave(row, "the file cannot express ranks per node, and serves others");
                        continue;
                    }
                    let note = format!(
                        "{} on {} ranks was chosen for {n} ranks a node; the file serves any placement",
                        row.kind, row.ranks
                    );
                    if !self.notes.contains(&note) {
                        self.notes.push(note);
                    }
                    placed.push(Row { per_node: None, ..row.clone() });
                }
                _ => placed.push(row.clone()),
            }
        }
        self.table = DecisionTable::new(placed).expect("rows of one placement do not overlap, and no others stay");
    }

    fn leave(&mut self, row: &Row, reason: &str) {
        let class = if row.class == OperatorClass::Ordered { " (ordered)" } else { "" };
        self.left.push(format!("{row}{class}, {}: {reason}", row.choice));
    }

    /// Returns whether a row for operators that commute serves some of the same calls, by size, as this row.
    fn is_hidden(&self, row: &Row) -> bool {
        self.table.rows().iter().any(|r| {
            let same = (r.kind, r.ranks, r.per_node) == (row.kind, row.ranks, row.per_node);
            let same = same && r.class == OperatorClass::Commutative;
            same && r.first_bytes <= row.last_bytes && row.first_bytes <= r.last_bytes
        })
    }

    /// Returns the target's algorithm for a row, `None` for the library's own choice, or the reason why there is none.
    fn counterpart(&self, row: &Row) -> Result<Option<(&'static str, Settings)>, String> {
        let Choice::Algorithm { name, params } = &row.choice else { return Ok(None) };
        let is_default = |(key, value): &&(String, String)| {
            DEFAULTS
                .iter()
                .any(|&(of, param, usual)| (of, param, usual) == (name.as_str(), key.as_str(), value.as_str()))
        };
        let params: Vec<_> = params.iter().filter(|param| !is_default(param)).cloned().collect();
        // Each of several counterparts accepts different parameters or numbers of ranks.
        let found = self.names.iter().filter(|c| c.kind == row.kind && c.ours == name);
        let mut said = found.map(|c| match self.has {
            Some(has) if !has.contains(c.theirs) => Err(format!("this library has no algorithm {}", c.theirs)),
            _ => (c.settings)(&params, row.ranks).map(|settings| Some((c.theirs, settings))),
        });
        let first = said.next().unwrap_or_else(|| Err("it has no counterpart there".to_owned()));
        if first.is_ok() { first } else { said.find(Result::is_ok).unwrap_or(first) }
    }

    /// Leaves all rows of a collective on `ranks` ranks to the library's own choice, and records the reason for rows
    /// whose algorithm has a counterpart.
    pub fn leave_all(&mut self, kind: Kind, ranks: u32, reason: &str) {
        for (at, row) in
            self.table.rows().to_vec().iter().enumerate().filter(|(_, r)| r.kind == kind && r.ranks == ranks)
        {
            self.served.remove(&at);
            if matches!(self.counterpart(row), Ok(Some(_))) {
                self.leave(row, reason);
            }
        }
    }

    /// Returns the rank counts for which a collective has rows, in ascending order.
    pub fn ranks(&self, kind: Kind) -> Vec<u32> {
        let all: BTreeSet<u32> = self.table.rows().iter().filter(|r| r.kind == kind).map(|r| r.ranks).collect();
        all.into_iter().collect()
    }

    /// Returns `(ranks, ranks per node)` of all rows of a collective, without repetition.
    pub fn placed_ranks(&self, kind: Kind) -> Vec<(u32, Option<u32>)> {
        let of = |ranks| self.placements(kind, ranks).into_iter().map(move |per_node| (ranks, per_node));
        self.ranks(kind).into_iter().flat_map(of).collect()
    }

    /// Returns the numbers of ranks per node for which a collective on `ranks` ranks has rows, largest first; `None`
    /// (any) is last.
    pub fn placements(&self, kind: Kind, ranks: u32) -> Vec<Option<u32>> {
        let rows = self.table.rows().iter().filter(|r| r.kind == kind && r.ranks == ranks);
        let all: BTreeSet<Option<u32>> = rows.map(|r| r.per_node).collect();
        all.into_iter().rev().collect()
    }

    /// Returns the regions, each with one algorithm, that result from the rows without ranks per node. Regions are in
    /// ascending order of size and cover all sizes.
    pub fn regions(&mut self, kind: Kind, ranks: u32, class: OperatorClass) -> Vec<Region> {
        self.regions_on(kind, ranks, None, class)
    }

    /// Returns regions as [`Self::regions`] does. At each size, a row for `per_node` ranks per node has priority over a
    /// row without ranks per node.
    pub fn regions_on(&mut self, kind: Kind, ranks: u32, per_node: Option<u32>, class: OperatorClass) -> Vec<Region> {
        let of = |r: &&Row| r.kind == kind && r.ranks == ranks;
        let mut starts: BTreeSet<u64> = [0].into();
        for row in self.table.rows().iter().filter(of) {
            starts.insert(row.first_bytes);
            starts.extend(row.last_bytes.checked_add(1));
        }
        let mut regions: Vec<Region> = Vec::new();
        for (&first, end) in starts.iter().zip(starts.iter().skip(1).map(|s| s - 1).chain([u64::MAX])) {
            let row = self.table.find(kind, ranks, per_node, first, class);
            let algorithm = row.and_then(|at| {
                let algorithm = self.counterpart(&self.table.rows()[at]).ok().flatten();
                self.served.extend(algorithm.is_some().then_some(at));
                algorithm
            });
            match regions.last_mut() {
                Some(last) if last.algorithm == algorithm => last.last = end,
                _ => regions.push(Region { first, last: end, algorithm }),
            }
        }
        regions
    }

    /// Returns the export without its text, which the target adds.
    ///
    /// # Errors
    /// Returns an error if the table has no row with an algorithm, or if no such row was expressed; the error then has
    /// the reason for the first one.
    pub fn export(self, load: &[&str], mut notes: Vec<String>) -> Result<Export, Unsaid> {
        if self.served.is_empty() {
            let reason = self.left.first().map_or_else(
                || "the table leaves every call to the library, so no file is needed".to_owned(),
                |why| format!("no row can be expressed; {why}"),
            );
            return Err(Unsaid { target: self.target, reason });
        }
        notes.extend(self.notes);
        let load = load.iter().map(|&argument| argument.to_owned()).collect();
        Ok(Export { text: String::new(), load, notes, left: self.left, rows: self.served.len() })
    }
}

/// Returns the class of operators by which a target finds rows if its rules do not distinguish operators.
pub fn any_operator(kind: Kind) -> OperatorClass {
    if kind.reduces() && kind != Kind::Barrier { OperatorClass::Commutative } else { OperatorClass::None }
}

/// Returns the bytes of all ranks together, from those of each rank. `u64::MAX`, which means no limit, stays the same.
pub fn of_all(bytes: u64, ranks: u32) -> u64 {
    bytes.saturating_mul(u64::from(ranks))
}
