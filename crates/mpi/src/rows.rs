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

/// A row of the plan for the communicator's number of ranks.
pub(crate) struct Entry {
    row: usize,
    per_node: Option<u32>,
    class: OperatorClass,
    first_bytes: u64,
    last_bytes: u64,
    /// The schedule's index; None if the library makes the call.
    pub schedule: Option<usize>,
    /// True if the row was measured under other conditions than those here. The library then makes the call.
    is_elsewhere: bool,
    /// The index of this entry's executors in [`crate::Planned`], counted over the entries of all collectives.
    pub number: usize,
}

impl Entry {
    fn serves(&self, class: OperatorClass, bytes: u64) -> bool {
        let fits = self.class == class || (class == OperatorClass::Commutative && self.class == OperatorClass::Ordered);
        fits && self.first_bytes <= bytes && bytes <= self.last_bytes
    }
}

/// The reason why no row serves a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unserved {
    /// The plan has no row for the collective on this number of ranks.
    Collective,
    /// No row of the collective covers the bytes.
    Size,
    /// Rows cover the bytes, but none of them both these bytes and this operator.
    Operator,
    /// The row leaves the call to the library.
    Library,
    /// The input or the output has more bytes than an `int` holds.
    TooLong,
    /// The row's schedule has another root than the call, and would therefore use the ranks' operands or pieces in
    /// another order. Also returned for an invalid root, and for elements of 0 bytes.
    Root,
    /// The row's schedule does not serve this number of elements.
    Count,
    /// The row was measured under other [`Conditions`].
    Elsewhere,
}

impl Unserved {
    /// Returns the reason as one word, for programs.
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

/// The rows of a communicator. Rows never change, so threads may share them.
pub struct Rows {
    pub(crate) plan: Arc<PlanFile>,
    pub(crate) ranks: u32,
    /// Entries by kind; earlier entries take precedence.
    pub(crate) entries: Vec<Vec<Entry>>,
    /// Bit `k` is set if a schedule serves calls of the [`Kind`] with index `k`.
    kinds: u32,
    /// The number of tags with which this rank receives.
    pub(crate) tags: c_int,
    /// The conditions of the first row whose conditions do not hold here.
    elsewhere: Option<String>,
}

/// The largest number of bytes of a planned call's input and of its output, because MPI's counts are `int`.
const MOST_BYTES: usize = i32::MAX as usize;

impl Rows {
    /// Returns the rows for `ranks` ranks: those for `per_node`, the number of ranks on the fullest node, and those for
    /// any number per node. Returns None if a program that `rank` may run cannot be decoded. If `conditions` are given,
    /// rows that were measured under other conditions leave their calls to the library.
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
                // Any rank may be the root. This rank may therefore run the program of any rank of the schedule.
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
            // The order is that of DecisionTable::find: rows for this number of ranks per node come first, and among
            // equal ones, rows for commutative operators.
            kind.sort_by_key(|entry| (entry.per_node.is_none(), entry.class, entry.first_bytes));
        }
        for (number, entry) in entries.iter_mut().flatten().enumerate() {
            entry.number = number;
        }
        let is_served = |kind: &Vec<Entry>| kind.iter().any(|entry| entry.schedule.is_some());
        let kinds = entries.iter().rev().fold(0, |bits, kind| bits << 1 | u32::from(is_served(kind)));
        Some(Self { plan: Arc::clone(plan), ranks, entries, kinds, tags, elsewhere })
    }

    /// Returns the conditions of the first row that was measured under conditions that do not hold here, if there is
    /// one.
    pub fn elsewhere(&self) -> Option<&str> {
        self.elsewhere.as_deref()
    }

    /// Returns a digest of the entries in order. Ranks with equal digests choose the same entries.
    pub(crate) fn digest(&self) -> u64 {
        let mut digest = DefaultHasher::new();
        (env!("CARGO_PKG_VERSION"), self.ranks).hash(&mut digest);
        for (kind, entry) in self.entries.iter().enumerate().flat_map(|(kind, of)| of.iter().map(move |e| (kind, e))) {
            (kind, entry.row, entry.per_node, entry.schedule).hash(&mut digest);
            (entry.class, entry.first_bytes, entry.last_bytes).hash(&mut digest);
        }
        digest.finish()
    }

    /// Returns whether a schedule serves some calls of this kind.
    #[inline]
    pub fn has(&self, kind: Kind) -> bool {
        self.kinds >> kind as u32 & 1 == 1
    }

    /// Returns the entry that serves a call, which is the same on all ranks; None if the library makes the call.
    #[inline]
    pub fn find(&self, call: &Call) -> Option<usize> {
        let (class, bytes) = (call.class(), call.bytes());
        let found = self.entries[call.kind as usize].iter().position(|entry| entry.serves(class, bytes))?;
        let schedule = self.entries[call.kind as usize][found].schedule?;
        let facts = self.plan.facts(schedule);
        let (given, got) = call.sizes(self.ranks)?;
        // Messages and sums count bytes and elements with an `int`.
        let fits = call.element_bytes > 0 && given.max(got) <= MOST_BYTES;
        // For a root other than its own root, the schedule would combine the operands in another order of ranks.
        let turned = class == OperatorClass::Ordered && call.kind.has_root() && call.root != facts.collective.root;
        // In a gather or scatter, the pieces of the ranks would also be in an order that differs from the order of the
        // communicator.
        let has_pieces = matches!(call.kind, Kind::Gather | Kind::Scatter) && call.root != facts.collective.root;
        let known = !call.kind.has_root() || call.root < self.ranks;
        (fits && known && !turned && !has_pieces && facts.serves(call.elements as u64)).then_some(found)
    }

    /// Returns the reason why no schedule serves any call of a kind; None if one serves some calls.
    #[cold]
    pub fn unserved_kind(&self, kind: Kind) -> Option<Unserved> {
        let entries = &self.entries[kind as usize];
        match entries.first() {
            _ if self.has(kind) => None,
            None => Some(Unserved::Collective),
            Some(_) if entries.iter().any(|entry| entry.is_elsewhere) => Some(Unserved::Elsewhere),
            Some(_) => Some(Unserved::Library),
        }
    }

    /// Returns the reason why [`Rows::find`] finds no entry for a call; None if it finds one.
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

    /// Returns the row of the plan's table for an entry.
    pub fn row(&self, kind: Kind, entry: usize) -> usize {
        self.entries[kind as usize][entry].row
    }

    /// Returns whether an entry's schedule is repeatable: after each call all ranks have the same bits.
    pub fn is_repeatable(&self, kind: Kind, entry: usize) -> bool {
        self.entries[kind as usize][entry].schedule.is_some_and(|s| self.plan.facts(s).repeatable)
    }

    /// Returns whether an entry's schedule can run in place, with its input in the output's memory.
    pub fn runs_in_place(&self, kind: Kind, entry: usize) -> bool {
        self.entries[kind as usize][entry].schedule.is_some_and(|s| self.plan.facts(s).in_place)
    }
}
