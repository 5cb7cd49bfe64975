//! Decision tables: which algorithm serves a collective, by ranks and bytes.
//!
//! Bytes count as MPI counts: the whole vector of a broadcast, reduce, allreduce or scan; what one rank gives, keeps or
//! sends to each other rank elsewhere. A barrier has 0 bytes.

use std::fmt;

use crate::{CollectiveError, Kind};

/// What a schedule may ask of the operator it is run with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OperatorClass {
    /// The collective moves data and has no operator.
    None,
    /// Any associative operator whose operands may be swapped.
    Commutative,
    /// Any associative operator.
    Ordered,
}

impl OperatorClass {
    pub const ALL: &[OperatorClass] = &[OperatorClass::None, OperatorClass::Commutative, OperatorClass::Ordered];

    pub fn name(self) -> &'static str {
        match self {
            OperatorClass::None => "none",
            OperatorClass::Commutative => "commutative",
            OperatorClass::Ordered => "ordered",
        }
    }
}

impl fmt::Display for OperatorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Who serves the calls of a row.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Choice {
    /// The MPI library as it is.
    Library,
    Algorithm {
        name: String,
        /// Sorted by name.
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

/// One region of the table: `first_bytes ..= last_bytes` of a collective on so many ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub kind: Kind,
    pub ranks: u32,
    pub class: OperatorClass,
    pub first_bytes: u64,
    /// `u64::MAX` is "and beyond".
    pub last_bytes: u64,
    pub choice: Choice,
}

impl Row {
    fn key(&self) -> (&'static str, u32, OperatorClass, u64) {
        (self.kind.name(), self.ranks, self.class, self.first_bytes)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} ranks, {} to ", self.kind, self.ranks, self.first_bytes)?;
        if self.last_bytes == u64::MAX { f.write_str("any") } else { write!(f, "{}", self.last_bytes) }?;
        f.write_str(" bytes")
    }
}

/// Rows in ascending order, of which no two serve the same call. What no row serves is the library's own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DecisionTable {
    rows: Vec<Row>,
}

impl DecisionTable {
    /// # Errors
    /// Two rows serve the same call, a row serves none, or its class does not fit the collective.
    pub fn new(mut rows: Vec<Row>) -> Result<Self, CollectiveError> {
        rows.sort_by(|a, b| a.key().cmp(&b.key()));
        for row in &rows {
            let fits = (row.class == OperatorClass::None) != (row.kind.reduces() && row.kind != Kind::Barrier);
            if row.first_bytes > row.last_bytes || !fits || row.ranks == 0 {
                return Err(CollectiveError::EmptyRow { row: row.to_string(), class: row.class.name() });
            }
        }
        for pair in rows.windows(2) {
            let same = pair[0].key().0 == pair[1].key().0 && pair[0].ranks == pair[1].ranks;
            if same && pair[0].class == pair[1].class && pair[1].first_bytes <= pair[0].last_bytes {
                return Err(CollectiveError::RowsOverlap { one: pair[0].to_string(), other: pair[1].to_string() });
            }
        }
        Ok(Self { rows })
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The row that serves a call. An operator that commutes is served by rows for any operator too.
    pub fn find(&self, kind: Kind, ranks: u32, bytes: u64, class: OperatorClass) -> Option<usize> {
        let of = |class: OperatorClass| {
            let end = self.rows.partition_point(|r| r.key() <= (kind.name(), ranks, class, bytes));
            let row = end.checked_sub(1)?;
            let r = &self.rows[row];
            let serves = r.kind == kind && r.ranks == ranks && r.class == class && bytes <= r.last_bytes;
            serves.then_some(row)
        };
        of(class).or_else(|| if class == OperatorClass::Commutative { of(OperatorClass::Ordered) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ranks: u32, class: OperatorClass, first_bytes: u64, last_bytes: u64) -> Row {
        Row { kind: Kind::Allreduce, ranks, class, first_bytes, last_bytes, choice: Choice::Library }
    }

    #[test]
    fn calls_find_their_row() {
        use OperatorClass::{Commutative, Ordered};
        let rows = vec![row(4, Commutative, 0, 64), row(4, Ordered, 0, 4096), row(4, Commutative, 128, u64::MAX)];
        let table = DecisionTable::new(rows).unwrap();
        let find = |bytes, class| table.find(Kind::Allreduce, 4, bytes, class).map(|r| table.rows()[r].last_bytes);
        assert_eq!(find(64, Commutative), Some(64));
        assert_eq!(find(65, Commutative), Some(4096), "rows for any operator serve one that commutes");
        assert_eq!(find(1 << 40, Commutative), Some(u64::MAX));
        assert_eq!(find(1 << 40, Ordered), None);
        assert_eq!(table.find(Kind::Allreduce, 5, 8, Commutative), None);
        assert_eq!(table.find(Kind::Reduce, 4, 8, Commutative), None);
    }

    #[test]
    fn wrong_tables_are_named() {
        use OperatorClass::{Commutative, None};
        let e = DecisionTable::new(vec![row(4, Commutative, 0, 64), row(4, Commutative, 64, 65)]).unwrap_err();
        assert_eq!(
            e.to_string(),
            "two rows serve the same calls: allreduce on 4 ranks, 0 to 64 bytes, and allreduce on 4 ranks, 64 to 65 bytes"
        );
        for wrong in [row(4, Commutative, 2, 1), row(4, None, 0, 1), row(0, Commutative, 0, 1)] {
            DecisionTable::new(vec![wrong]).unwrap_err();
        }
    }
}
