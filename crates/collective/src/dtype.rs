//! Element types.

use std::str::FromStr;

use crate::{CollectiveError, kind::names};

unisono_base::named! {
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum Dtype {
        F32 = "f32",
        F64 = "f64",
        F16 = "f16",
        Bf16 = "bf16",
        I16 = "i16",
        I32 = "i32",
        I64 = "i64",
    }
}

impl Dtype {
    /// Returns the size of one element in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Dtype::F16 | Dtype::Bf16 | Dtype::I16 => 2,
            Dtype::F32 | Dtype::I32 => 4,
            Dtype::F64 | Dtype::I64 => 8,
        }
    }

    pub fn is_integer(self) -> bool {
        matches!(self, Dtype::I16 | Dtype::I32 | Dtype::I64)
    }
}

impl FromStr for Dtype {
    type Err = CollectiveError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Dtype::ALL.iter().copied().find(|d| d.name() == text).ok_or_else(|| CollectiveError::UnknownName {
            what: "datatype",
            found: text.to_owned(),
            accepted: names(Dtype::ALL.iter().map(|d| d.name())),
        })
    }
}
