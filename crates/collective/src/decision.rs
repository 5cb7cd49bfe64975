//! Decision tables: the algorithm that serves a collective, by ranks, ranks per node, class of operators, and bytes.
//!
//! Ranks per node are those of the node with the most ranks of the communicator: so that a table can distinguish 96
//! ranks on 2 nodes from 96 ranks on 96 nodes. A row without a number of ranks per node serves calls for which no row
//! has their number of ranks per node. Bytes count as in MPI: the whole vector of a broadcast, reduce, allreduce, scan
//! or message; otherwise the block that one rank contributes, receives or sends to each other rank. A barrier has 0
//! bytes.

use std::fmt;

use crate::{CollectiveError, Kind};

unisono_base::named! {
    /// The property that a schedule requires of the operator of a call, or that a call's operator has.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum OperatorClass {
        /// The collective has no operator: it only moves data, or is a barrier.
        None = "none",
        /// Any associative operator whose operands may be swapped.
        Commutative = "commutative",
        /// In a row: any associative operator, commutative or not. In a call: an operator that does not commute.
        Ordered = "ordered",
    }
}

/// The implementation that serves the calls of a row.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Choice {
    /// The MPI library's own choice.
    Library,
    Algorithm {
        name: String,
        /// The algorithm's parameters as `(name, value)`, sorted by name.
        params: Vec<(String, String)>,
    },
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Library => f.write_str("library"),
            Choice::Algorithm { name, params } => {
                f.write_str(name)?;
                params.iter().try_for_each(|(key, value)| write!(f, " {key}={value}"))
            }
        }
    }
}

/// A row of the table: the choice for `first_bytes ..= last_bytes` of a collective on `ranks` ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub kind: Kind,
    pub ranks: u32,
    /// The number of ranks on the node with the most ranks; `None` serves placements without a row of their own.
    pub per_node: Option<u32>,
    pub class: OperatorClass,
    pub first_bytes: u64,
    /// `u64::MAX` means no upper limit.
    pub last_bytes: u64,
    pub choice: Choice,
}

type Key = (&'static str, u32, Option<u32>, OperatorClass, u64);

impl Row {
    fn key(&self) -> Key {
        (self.kind.name(), self.ranks, self.per_node, self.class, self.first_bytes)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} ranks, ", self.kind, self.ranks)?;
        self.per_node.map_or(Ok(()), |n| write!(f, "{n} a node, "))?;
        write!(f, "{} to ", self.first_bytes)?;
        if self.last_bytes == u64::MAX { f.write_str("any") } else { write!(f, "{}", self.last_bytes) }?;
        f.write_str(" bytes")
    }
}

/// Rows in ascending order. Rows with the same collective, number of ranks, ranks per node and class do not overlap in
/// size. Calls without a row go to the MPI library.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DecisionTable {
    rows: Vec<Row>,
}

impl DecisionTable {
    /// Sorts and checks the rows.
    ///
    /// # Errors
    /// Returns an error if two rows that differ only in sizes and choice share a size, or if a row serves no call or
    /// has a class that does not fit its collective.
    pub fn new(mut rows: Vec<Row>) -> Result<Self, CollectiveError> {
        rows.sort_by(|a, b| a.key().cmp(&b.key()));
        for row in &rows {
            let fits = (row.class == OperatorClass::None) != (row.kind.reduces() && row.kind != Kind::Barrier);
            let placed = row.per_node.is_none_or(|n| (1..=row.ranks).contains(&n));
            if row.first_bytes > row.last_bytes || !fits || row.ranks == 0 || !placed {
                return Err(CollectiveError::EmptyRow { row: row.to_string(), class: row.class.name() });
            }
        }
        for pair in rows.windows(2) {
            let of = |row: &Row| (row.kind, row.ranks, row.per_node, row.class);
            if of(&pair[0]) == of(&pair[1]) && pair[1].first_bytes <= pair[0].last_bytes {
                return Err(CollectiveError::RowsOverlap { one: pair[0].to_string(), other: pair[1].to_string() });
            }
        }
        Ok(Self { rows })
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the index of the row that serves a call, `None` if no row does. A row with the call's ranks per node has
    /// priority over a row without ranks per node. Among rows with the same ranks per node, a row of class
    /// [`OperatorClass::Ordered`] also serves commutative operators if no row of class [`OperatorClass::Commutative`]
    /// does.
    pub fn find(
        &self,
        kind: Kind,
        ranks: u32,
        per_node: Option<u32>,
        bytes: u64,
        class: OperatorClass,
    ) -> Option<usize> {
        let of = |per_node: Option<u32>, class: OperatorClass| {
            let end = self.rows.partition_point(|r| r.key() <= (kind.name(), ranks, per_node, class, bytes));
            let row = end.checked_sub(1)?;
            let r = &self.rows[row];
            let same = r.kind == kind && r.ranks == ranks && r.per_node == per_node && r.class == class;
            (same && bytes <= r.last_bytes).then_some(row)
        };
        let on = |per_node: Option<u32>| {
            let other = (class == OperatorClass::Commutative).then_some(OperatorClass::Ordered);
            of(per_node, class).or_else(|| of(per_node, other?))
        };
        on(per_node).or_else(|| on(None))
    }
}
