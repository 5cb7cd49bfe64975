//! The rows of a plan that serve the calls of one communicator.

use std::{
    ffi::c_int,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use unisono_collective::{Kind, OperatorClass};
use unisono_schedule::{plan_file::PlanFile, stored::in_place};

use crate::{
    call::Call,
    conditions::{Conditions, stated},
};

/// A row for the communicator's number of ranks.
pub(crate) struct Entry {
    row: usize,
    per_node: Option<u32>,
    class: OperatorClass,
    first_bytes: u64,
    last_bytes: u64,
    /// None: the library's own.
    pub schedule: Option<usize>,
    /// The row was measured under other conditions than those here, and so the library serves it.
    is_elsewhere: bool,
    /// Where its executors are in [`crate::Planned`].
    pub number: usize,
}

impl Entry {
    fn serves(&self, class: OperatorClass, bytes: u64) -> bool {
        let fits = self.class == class || (class == OperatorClass::Commutative && self.class == OperatorClass::Ordered);
        fits && self.first_bytes <= bytes && bytes <= self.last_bytes
    }
}

/// Why no row serves a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unserved {
    /// The plan has no row for the collective.
    Collective,
    /// No row of the collective covers the bytes.
    Size,
    /// Rows cover the bytes, but for other operators.
    Operator,
    /// The row leaves the call to the library.
    Library,
    /// A message counts bytes by an `int`.
    TooLong,
    /// The row's schedule serves another root, or combines in the order of ranks from another one.
    Root,
    /// The row's schedule does not divide the elements.
    Count,
    /// The row was measured where ranks wait in another way.
    Elsewhere,
}

impl Unserved {
    /// One word, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Collective => "collective",
            Self::Size => "size",
            Self::Operator => "operator",
            Self::Library => "library",
            Self::TooLong => "too-long",
            Self::Root => "root",
            Self::Count => "count",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// The rows never change, so threads may share them.
pub struct Rows {
    pub(crate) plan: Arc<PlanFile>,
    pub(crate) ranks: u32,
    /// By kind; those that come first serve first.
    pub(crate) entries: Vec<Vec<Entry>>,
    /// Kinds of which a schedule serves some calls: a bit each.
    kinds: u32,
    /// The number of tags that this rank receives by.
    pub(crate) tags: c_int,
    /// The conditions that a row states and that do not hold here.
    elsewhere: Option<String>,
}

/// Calls beyond are the library's own: a message's length is an `int`.
const MOST_BYTES: usize = i32::MAX as usize;

impl Rows {
    /// The rows for so many ranks, of which so many share a node; none if one of its programs cannot be decoded. Rows
    /// that were measured under other `conditions` leave their calls to the library.
    pub fn new(
        plan: &Arc<PlanFile>,
        ranks: u32,
        rank: u32,
        per_node: Option<u32>,
        conditions: Option<&Conditions>,
    ) -> Option<Self> {
        let mut elsewhere = None;
        let mut entries: Vec<Vec<Entry>> = Kind::ALL.iter().map(|_| Vec::new()).collect();
        let mut tags = 1;
        let rows = plan.table().rows().iter().enumerate().filter(|(_, row)| row.ranks == ranks);
        for (number, row) in rows.filter(|(_, row)| row.per_node.is_none() || row.per_node == per_node) {
            let stated = stated(&row.choice).filter(|text| {
                let holds = |conditions: &Conditions| text.parse().is_ok_and(|stated| conditions.permit(&stated));
                conditions.is_some_and(|conditions| !holds(conditions))
            });
            if let Some(text) = stated {
                elsewhere.get_or_insert_with(|| text.to_owned());
            }
            let schedule = plan.schedule(number).filter(|_| stated.is_none());
            if let Some(schedule) = schedule {
                let facts = plan.facts(schedule);
                // Any rank may be the root, and then this one plays another part.
                let parts = if row.kind.has_root() { 0..ranks } else { rank..rank + 1 };
                for part in parts {
                    let program = plan.program(schedule, part).ok()?;
                    let last = program.arrivals.iter().map(|arrival| arrival.tag).max();
                    tags = tags.max(c_int::try_from(last.unwrap_or(0)).ok()?.checked_add(1)?);
                    if facts.in_place {
                        in_place(&program, &facts.collective, part)?;
                    }
                }
            }
            entries[row.kind as usize].push(Entry {
                row: number,
                per_node: row.per_node,
                class: row.class,
                first_bytes: row.first_bytes,
                last_bytes: row.last_bytes,
                schedule,
                is_elsewhere: stated.is_some(),
                number: 0,
            });
        }
        for kind in &mut entries {
            // As DecisionTable::find has it: rows for these ranks per node, then those for operators that commute.
            kind.sort_by_key(|entry| (entry.per_node.is_none(), entry.class, entry.first_bytes));
        }
        for (number, entry) in entries.iter_mut().flatten().enumerate() {
            entry.number = number;
        }
        let is_served = |kind: &Vec<Entry>| kind.iter().any(|entry| entry.schedule.is_some());
        let kinds = entries.iter().rev().fold(0, |bits, kind| bits << 1 | u32::from(is_served(kind)));
        Some(Self { plan: Arc::clone(plan), ranks, entries, kinds, tags, elsewhere })
    }

    /// The conditions that a row states and that do not hold here, if there is such a row.
    pub fn elsewhere(&self) -> Option<&str> {
        self.elsewhere.as_deref()
    }

    /// A digest of the entries in their order: ranks that have the same one choose the same entries.
    pub(crate) fn digest(&self) -> u64 {
        let mut digest = DefaultHasher::new();
        (env!("CARGO_PKG_VERSION"), self.ranks).hash(&mut digest);
        for (kind, entry) in self.entries.iter().enumerate().flat_map(|(kind, of)| of.iter().map(move |e| (kind, e))) {
            (kind, entry.row, entry.per_node, entry.schedule).hash(&mut digest);
            (entry.class, entry.first_bytes, entry.last_bytes).hash(&mut digest);
        }
        digest.finish()
    }

    /// Whether any call of this kind may be served.
    #[inline]
    pub fn has(&self, kind: Kind) -> bool {
        self.kinds >> kind as u32 & 1 == 1
    }

    /// Which entry serves a call; the answer is the same on all ranks. None: the library's own.
    #[inline]
    pub fn find(&self, call: &Call) -> Option<usize> {
        let (class, bytes) = (call.class(), call.bytes());
        let found = self.entries[call.kind as usize].iter().position(|entry| entry.serves(class, bytes))?;
        let schedule = self.entries[call.kind as usize][found].schedule?;
        let facts = self.plan.facts(schedule);
        let (given, got) = call.sizes(self.ranks)?;
        // Messages and sums count bytes and elements by `int`.
        let fits = call.element_bytes > 0 && given.max(got) <= MOST_BYTES;
        // Counting ranks from another root turns their order.
        let turned = class == OperatorClass::Ordered && call.kind.has_root() && call.root != facts.collective.root;
        // And with it the pieces of the ranks, which lie in the order of the communicator.
        let has_pieces = matches!(call.kind, Kind::Gather | Kind::Scatter) && call.root != facts.collective.root;
        let known = !call.kind.has_root() || call.root < self.ranks;
        (fits && known && !turned && !has_pieces && facts.serves(call.elements as u64)).then_some(found)
    }

    /// Why [`Rows::find`] finds no entry for a call; none where it finds one.
    #[cold]
    pub fn unserved(&self, call: &Call) -> Option<Unserved> {
        if self.find(call).is_some() {
            return None;
        }
        let (entries, bytes) = (&self.entries[call.kind as usize], call.bytes());
        if entries.is_empty() {
            return Some(Unserved::Collective);
        }
        let Some(entry) = entries.iter().find(|entry| entry.serves(call.class(), bytes)) else {
            let has_size = entries.iter().any(|entry| entry.first_bytes <= bytes && bytes <= entry.last_bytes);
            return Some(if has_size { Unserved::Operator } else { Unserved::Size });
        };
        if entry.is_elsewhere {
            return Some(Unserved::Elsewhere);
        }
        let Some(schedule) = entry.schedule else { return Some(Unserved::Library) };
        let is_long = call.sizes(self.ranks).is_none_or(|(given, got)| given.max(got) > MOST_BYTES);
        let has_count = self.plan.facts(schedule).serves(call.elements as u64);
        Some(match (is_long, has_count) {
            (true, _) => Unserved::TooLong,
            (_, false) => Unserved::Count,
            _ => Unserved::Root,
        })
    }

    /// The row of the plan's table that an entry is.
    pub fn row(&self, kind: Kind, entry: usize) -> usize {
        self.entries[kind as usize][entry].row
    }

    /// Whether all ranks end an entry's calls with the same bits.
    pub fn is_repeatable(&self, kind: Kind, entry: usize) -> bool {
        self.entries[kind as usize][entry].schedule.is_some_and(|s| self.plan.facts(s).repeatable)
    }

    /// Whether an entry takes the input where the output goes, without a copy.
    pub fn runs_in_place(&self, kind: Kind, entry: usize) -> bool {
        self.entries[kind as usize][entry].schedule.is_some_and(|s| self.plan.facts(s).in_place)
    }
}
