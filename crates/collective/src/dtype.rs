//! Element types.

use std::{fmt, str::FromStr};

use crate::{CollectiveError, kind::names};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dtype {
    F32,
    F64,
    F16,
    Bf16,
    I16,
    I32,
    I64,
}

impl Dtype {
    pub const ALL: &[Dtype] = &[Dtype::F32, Dtype::F64, Dtype::F16, Dtype::Bf16, Dtype::I16, Dtype::I32, Dtype::I64];

    pub fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::F64 => "f64",
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
            Dtype::I16 => "i16",
            Dtype::I32 => "i32",
            Dtype::I64 => "i64",
        }
    }

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

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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
