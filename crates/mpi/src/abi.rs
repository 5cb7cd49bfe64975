//! The constants of the three ABIs of MPI libraries.
//!
//! Handles are 32-bit integers in MPICH, small numbers as pointers in the MPI 5 standard ABI, and addresses of objects
//! in Open MPI. Source: `mpi.h` of MPICH 5.0.2, `mpi_abi.h` (MPI 5.0, chapter 20), `mpi.h` of Open MPI 5.

use std::{
    ffi::{CStr, CString, c_int},
    sync::OnceLock,
};

use crate::{learned::candidates, symbols::Scope};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Abi {
    Mpich,
    Standard,
    OpenMpi,
}

/// The kind of an element. The kind and the size together decide which operators MPI defines, and which kernel combines
/// elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    Signed,
    Unsigned,
    /// An INTEGER of Fortran, or an integer for several languages such as `MPI_AINT`: no logical operators.
    Integer,
    Float,
    /// Bits that are not a number: `MPI_BYTE`.
    Bits,
    /// A truth value, of C or C++.
    Logical,
    /// `long double`, which only the MPI library combines.
    LongDouble,
    Complex,
    /// A printable character, which no operator takes.
    Character,
}

/// The kind and the size of an element of a predefined datatype without gaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element {
    pub number: Number,
    pub bytes: usize,
}

impl Number {
    /// Returns whether MPI defines an operator for elements of this kind (MPI 4.1, section 6.9.2).
    pub const fn takes(self, op: Op) -> bool {
        use Op::{And, BitAnd, BitOr, BitXor, Max, Min, Or, Prod, Sum, Xor};
        match self {
            Self::Signed | Self::Unsigned => true,
            Self::Integer => !matches!(op, And | Or | Xor),
            Self::Float | Self::LongDouble => matches!(op, Max | Min | Sum | Prod),
            Self::Complex => matches!(op, Sum | Prod),
            Self::Logical => matches!(op, And | Or | Xor),
            Self::Bits => matches!(op, BitAnd | BitOr | BitXor),
            Self::Character => false,
        }
    }

    /// Returns true if the bits of results do not depend on the order of combination, for any operator.
    pub const fn is_exact(self) -> bool {
        !matches!(self, Self::Float | Self::LongDouble | Self::Complex)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Sum,
    Prod,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    And,
    Or,
    Xor,
}

pub struct Constants {
    pub abi: Abi,
    pub in_place: usize,
    pub comm_null: usize,
    pub comm_world: usize,
    pub comm_self: usize,
    pub type_null: usize,
    /// `MPI_ERRORS_RETURN`.
    pub errors_return: usize,
    /// The key of the attribute `MPI_TAG_UB`.
    pub tag_ub: c_int,
    /// The error class `MPI_ERR_TRUNCATE`.
    pub truncated: c_int,
    /// The offset of the error code in an `MPI_Status`, in bytes.
    pub status_error: usize,
    pub info_null: usize,
    /// `MPI_COMM_TYPE_SHARED`.
    pub type_shared: c_int,
    pub byte: usize,
    pub uint64: usize,
    pub min: usize,
    pub max: usize,
    pub sum: usize,
    pub combiner_named: c_int,
    /// The operators of [`OPS`] with their handles, sorted by handle.
    ops: Vec<(usize, Op)>,
    /// Open MPI's handles of the null operator and of the predefined operators that [`Op`] does not list. Empty for
    /// other ABIs: there the value of a handle shows whether the operator is predefined.
    other_ops: Vec<usize>,
    types: Vec<(usize, Element)>,
    /// The handles and kinds of datatypes whose sizes are not in the ABI; the running library reports them.
    pub(crate) candidates: Vec<(usize, Number)>,
    /// The datatypes of [`Self::candidates`] that passed the library's test (`Library::learn_types`), sorted by
    /// handle.
    learned: OnceLock<Vec<(usize, Element)>>,
}

/// The part of Open MPI's symbol after `ompi_mpi_op_`, operator, handle of MPICH, handle of the standard ABI.
type OpRow = (&'static str, Op, usize, usize);

const OPS: [OpRow; 10] = [
    ("max", Op::Max, 0x5800_0001, 0x23),
    ("min", Op::Min, 0x5800_0002, 0x22),
    ("sum", Op::Sum, 0x5800_0003, 0x21),
    ("prod", Op::Prod, 0x5800_0004, 0x24),
    ("land", Op::And, 0x5800_0005, 0x30),
    ("band", Op::BitAnd, 0x5800_0006, 0x28),
    ("lor", Op::Or, 0x5800_0007, 0x31),
    ("bor", Op::BitOr, 0x5800_0008, 0x29),
    ("lxor", Op::Xor, 0x5800_0009, 0x32),
    ("bxor", Op::BitXor, 0x5800_000a, 0x2a),
];

const fn of(number: Number, bytes: usize) -> Element {
    Element { number, bytes }
}

type TypeRow = (&'static str, Element, usize, usize);

#[rustfmt::skip]
pub const TYPES: [TypeRow; 27] = [
    ("char", of(Number::Character, 1), 0x4c00_0101, 0x243),
    ("signed_char", of(Number::Signed, 1), 0x4c00_0118, 0x244),
    ("unsigned_char", of(Number::Unsigned, 1), 0x4c00_0102, 0x245),
    ("byte", of(Number::Bits, 1), 0x4c00_010d, 0x247),
    ("short", of(Number::Signed, 2), 0x4c00_0203, 0x208),
    ("unsigned_short", of(Number::Unsigned, 2), 0x4c00_0204, 0x20c),
    ("int", of(Number::Signed, 4), 0x4c00_0405, 0x209),
    ("unsigned", of(Number::Unsigned, 4), 0x4c00_0406, 0x20d),
    ("long", of(Number::Signed, 8), 0x4c00_0807, 0x20a),
    ("unsigned_long", of(Number::Unsigned, 8), 0x4c00_0808, 0x20e),
    ("long_long_int", of(Number::Signed, 8), 0x4c00_0809, 0x20b),
    ("unsigned_long_long", of(Number::Unsigned, 8), 0x4c00_0819, 0x20f),
    ("float", of(Number::Float, 4), 0x4c00_040a, 0x210),
    ("double", of(Number::Float, 8), 0x4c00_080b, 0x214),
    ("long_double", of(Number::LongDouble, 16), 0x4c00_100c, 0x220),
    ("int8_t", of(Number::Signed, 1), 0x4c00_0137, 0x240),
    ("int16_t", of(Number::Signed, 2), 0x4c00_0238, 0x248),
    ("int32_t", of(Number::Signed, 4), 0x4c00_0439, 0x250),
    ("int64_t", of(Number::Signed, 8), 0x4c00_083a, 0x258),
    ("uint8_t", of(Number::Unsigned, 1), 0x4c00_013b, 0x241),
    ("uint16_t", of(Number::Unsigned, 2), 0x4c00_023c, 0x249),
    ("uint32_t", of(Number::Unsigned, 4), 0x4c00_043d, 0x251),
    ("uint64_t", of(Number::Unsigned, 8), 0x4c00_083e, 0x259),
    ("c_bool", of(Number::Logical, 1), 0x4c00_013f, 0x238),
    ("c_float_complex", of(Number::Complex, 8), 0x4c00_0840, 0x212),
    ("c_double_complex", of(Number::Complex, 16), 0x4c00_1041, 0x216),
    ("aint", of(Number::Integer, 8), 0x4c00_0843, 0x201),
];

impl Constants {
    /// Returns the constants of an ABI. Open MPI's handles are addresses of symbols in `scope`; returns None if one for
    /// a field of [`Constants`] is missing. Other missing operators and datatypes are left out.
    pub fn new(abi: Abi, scope: &Scope) -> Option<Self> {
        let object = |name: String| {
            let name = CString::new(name).unwrap_or_default();
            scope.find(&name).map(|address| address as usize)
        };
        let pick = |name: String, mpich: usize, standard: usize| match abi {
            Abi::Mpich => Some(mpich),
            Abi::Standard => Some(standard),
            Abi::OpenMpi => object(name),
        };
        let mut ops: Vec<(usize, Op)> =
            OPS.iter().filter_map(|r| Some((pick(format!("ompi_mpi_op_{}", r.0), r.2, r.3)?, r.1))).collect();
        let mut types: Vec<(usize, Element)> =
            TYPES.iter().filter_map(|r| Some((pick(format!("ompi_mpi_{}", r.0), r.2, r.3)?, r.1))).collect();
        ops.sort_by_key(|row| row.0);
        types.sort_by_key(|row| row.0);
        let op = |wanted: Op| ops.iter().find(|row| row.1 == wanted).map(|row| row.0);
        let named = |name: &str| pick(format!("ompi_mpi_{name}"), type_row(name).2, type_row(name).3);
        let (in_place, combiner_named, type_shared) = match abi {
            Abi::Mpich => (usize::MAX, 1, 1),
            Abi::Standard => (1, 101, 221),
            Abi::OpenMpi => (1, 0, 0),
        };
        let (tag_ub, truncated, status_error) = match abi {
            Abi::Mpich => (0x6440_0001, 14, 16),
            Abi::Standard => (501, 15, 8),
            Abi::OpenMpi => (0, 15, 8),
        };
        let others = ["null", "minloc", "maxloc", "replace", "no_op"];
        Some(Self {
            abi,
            in_place,
            combiner_named,
            comm_null: pick("ompi_mpi_comm_null".to_owned(), 0x0400_0000, 0x100)?,
            comm_world: pick("ompi_mpi_comm_world".to_owned(), 0x4400_0000, 0x101)?,
            comm_self: pick("ompi_mpi_comm_self".to_owned(), 0x4400_0001, 0x102)?,
            type_null: pick("ompi_mpi_datatype_null".to_owned(), 0x0c00_0000, 0x200)?,
            errors_return: pick("ompi_mpi_errors_return".to_owned(), 0x5400_0001, 0x143)?,
            tag_ub,
            truncated,
            status_error,
            info_null: pick("ompi_mpi_info_null".to_owned(), 0x1c00_0000, 0x130)?,
            type_shared,
            byte: named("byte")?,
            uint64: named("uint64_t")?,
            min: op(Op::Min)?,
            max: op(Op::Max)?,
            sum: op(Op::Sum)?,
            other_ops: others.iter().filter_map(|name| object(format!("ompi_mpi_op_{name}"))).collect(),
            ops,
            types,
            candidates: candidates(abi, scope),
            learned: OnceLock::new(),
        })
    }

    /// Returns the handle in a register word. Handles of MPICH have 32 bits, and the upper half of the word is
    /// undefined.
    #[inline]
    pub fn handle(&self, word: usize) -> usize {
        if self.abi == Abi::Mpich { word & 0xffff_ffff } else { word }
    }

    /// Returns the operator of a handle. Returns None for the program's own operators, and for predefined operators
    /// that [`Op`] does not list, such as `MPI_MINLOC`.
    #[inline]
    pub fn op(&self, handle: usize) -> Option<Op> {
        self.ops.binary_search_by_key(&handle, |row| row.0).ok().map(|row| self.ops[row].1)
    }

    /// Returns whether the program made this operator with `MPI_Op_create`. Predefined operators are numbers below 1024
    /// in the standard ABI, and have the kind "built in" in their two highest bits in MPICH. In Open MPI, every handle
    /// is the program's except 0 and the known handles of predefined operators.
    pub fn is_users(&self, op: usize) -> bool {
        match self.abi {
            Abi::Mpich => !matches!(op >> 30, 0 | 1),
            Abi::Standard => op >= 1024,
            Abi::OpenMpi => op != 0 && self.op(op).is_none() && !self.other_ops.contains(&op),
        }
    }

    pub fn op_handle(&self, op: Op) -> usize {
        self.ops.iter().find(|row| row.1 == op).map_or(self.sum, |row| row.0)
    }

    /// Returns the element of a datatype. Returns None if the datatype is neither in `TYPES` nor learned; derived
    /// datatypes and `MPI_OFFSET` are examples.
    #[inline]
    pub fn element(&self, handle: usize) -> Option<Element> {
        let find =
            |types: &[(usize, Element)]| types.binary_search_by_key(&handle, |row| row.0).map(|row| types[row].1);
        find(&self.types).ok().or_else(|| find(self.learned.get()?).ok())
    }

    /// Stores the datatypes that passed the library's test. `types` must be sorted by handle. Only the first call has
    /// an effect.
    pub(crate) fn learn(&self, types: Vec<(usize, Element)>) {
        self.learned.get_or_init(|| types);
    }

    /// Returns the bytes of an INTEGER of Fortran; None if the library lacks it, or before `Library::learn_types` was
    /// called.
    pub fn fortran_integer_bytes(&self) -> Option<usize> {
        let (handle, _) = self.candidates.first()?;
        self.element(*handle).map(|element| element.bytes)
    }
}

fn type_row(name: &str) -> &'static TypeRow {
    TYPES.iter().find(|row| row.0 == name).unwrap_or(&TYPES[0])
}

/// Detects the ABI of a library from its symbols in `scope` and its path `file`; MPICH if neither shows another ABI.
pub fn detect(scope: &Scope, file: &str) -> Abi {
    const OPEN_MPI: &CStr = c"ompi_mpi_comm_world";
    if scope.find(OPEN_MPI).is_some() {
        Abi::OpenMpi
    } else if file.contains("libmpi_abi") {
        Abi::Standard
    } else {
        Abi::Mpich
    }
}
