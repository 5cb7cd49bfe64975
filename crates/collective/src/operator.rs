//! Reduction operators. All are associative; `commutative` reports whether operands may be swapped.

use std::str::FromStr;

use crate::{CollectiveError, Dtype, kind::names};

unisono_base::named! {
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum Operator {
        Sum = "sum",
        Prod = "prod",
        Min = "min",
        Max = "max",
        And = "and",
        Or = "or",
        Xor = "xor",
        /// Any associative operator that does not commute (MPI's `commute = false`). In the interpreter of
        /// `unisono-schedule` an `i64` packs an affine map as `(a << 32) | b`, modulo the prime 2^31 - 1, and maps
        /// compose left to right.
        Ordered = "ordered",
    }
}

impl Operator {
    pub fn commutative(self) -> bool {
        self != Operator::Ordered
    }

    /// Checks that the operator is defined for the datatype: bitwise operators for integers, as in MPI, and
    /// [`Operator::Ordered`] for `i64`.
    pub fn check(self, dtype: Dtype) -> Result<(), CollectiveError> {
        let accepted = match self {
            Operator::And | Operator::Or | Operator::Xor if !dtype.is_integer() => "i16, i32, i64",
            Operator::Ordered if dtype != Dtype::I64 => "i64",
            _ => return Ok(()),
        };
        Err(CollectiveError::OperatorDtype { operator: self.name(), dtype: dtype.name(), accepted })
    }
}

impl FromStr for Operator {
    type Err = CollectiveError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Operator::ALL.iter().copied().find(|o| o.name() == text).ok_or_else(|| CollectiveError::UnknownName {
            what: "operator",
            found: text.to_owned(),
            accepted: names(Operator::ALL.iter().map(|o| o.name())),
        })
    }
}
