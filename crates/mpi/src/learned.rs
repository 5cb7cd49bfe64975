//! Predefined datatypes whose size only the running library knows: those of Fortran, and `MPI_COUNT`.
//!
//! The size of an INTEGER or a REAL depends on the compiler options of the library's build, and a library built without
//! Fortran may refuse them. Each datatype is therefore tested when MPI runs: the library reports the size of an element
//! and, unless the element is a character, combines one element. `MPI_OFFSET` is left to the library: Open MPI 5.0.11
//! compares its elements as unsigned. Source of the handles: `mpi.h` of MPICH 5.0.2 and Open MPI 5, `mpi_abi.h` (MPI
//! 5.0, chapter 20).

use crate::{
    abi::{Abi, Element, Number, Op},
    library::{Library, Outcome, check},
    symbols::Scope,
};

/// The part of Open MPI's symbol after `ompi_mpi_`, kind of element, handle of MPICH, handle of the standard ABI.
pub type Row = (&'static str, Number, usize, usize);

#[rustfmt::skip]
pub const ROWS: [Row; 20] = [
    ("integer", Number::Integer, 0x4c00_041b, 0x219),
    ("integer1", Number::Integer, 0x4c00_012d, 0x2c1),
    ("integer2", Number::Integer, 0x4c00_022f, 0x2c9),
    ("integer4", Number::Integer, 0x4c00_0430, 0x2d1),
    ("integer8", Number::Integer, 0x4c00_0831, 0x2d9),
    ("real", Number::Float, 0x4c00_041c, 0x21a),
    ("real4", Number::Float, 0x4c00_0427, 0x2d2),
    ("real8", Number::Float, 0x4c00_0829, 0x2da),
    ("dblprec", Number::Float, 0x4c00_081f, 0x21c),
    ("cplex", Number::Complex, 0x4c00_081e, 0x21b),
    ("dblcplex", Number::Complex, 0x4c00_1022, 0x21d),
    ("complex8", Number::Complex, 0x4c00_0828, 0x2db),
    ("complex16", Number::Complex, 0x4c00_102a, 0x2e3),
    ("logical", Number::Logical, 0x4c00_041d, 0x218),
    ("logical1", Number::Logical, 0x4c00_0147, 0x2c0),
    ("logical2", Number::Logical, 0x4c00_0248, 0x2c8),
    ("logical4", Number::Logical, 0x4c00_0449, 0x2d0),
    ("logical8", Number::Logical, 0x4c00_084a, 0x2d8),
    ("character", Number::Character, 0x4c00_011a, 0x21e),
    ("count", Number::Integer, 0x4c00_0845, 0x202),
];

/// Returns an ABI's handles of [`ROWS`], with the kinds of elements. Open MPI's are addresses of symbols in `scope`.
pub(crate) fn candidates(abi: Abi, scope: &Scope) -> Vec<(usize, Number)> {
    let handle = |row: &Row| match abi {
        Abi::Mpich => Some(row.2),
        Abi::Standard => Some(row.3),
        Abi::OpenMpi => {
            let name = std::ffi::CString::new(format!("ompi_mpi_{}", row.0)).ok()?;
            scope.find(&name).map(|address| address as usize)
        }
    };
    ROWS.iter().filter_map(|row| Some((handle(row)?, row.1))).collect()
}

/// The size of the largest element that is tested, in bytes.
const MOST_BYTES: usize = 16;

impl Library {
    /// Tests the datatypes of unknown size, and stores those that pass and whose handle is in no other list. MPI must
    /// run; only the first call stores datatypes.
    ///
    /// # Errors
    /// Returns errors of the library when its error handlers are read or set.
    pub(crate) fn learn_types(&self) -> Outcome {
        let c = &self.constants;
        let try_all = || {
            let tried = c.candidates.iter().filter_map(|&(handle, number)| Some((handle, self.tried(handle, number)?)));
            let mut learned: Vec<(usize, Element)> = tried.filter(|row| c.element(row.0).is_none()).collect();
            learned.sort_by_key(|row| row.0);
            learned
        };
        // An error with a datatype has no communicator, so libraries call the handler of MPI_COMM_WORLD or
        // MPI_COMM_SELF.
        let learned = self.without_handler(c.comm_world, || self.without_handler(c.comm_self, try_all))??;
        c.learn(learned);
        Ok(())
    }

    /// Returns the element of a datatype; None if the library lacks the datatype, an element of this `number` cannot
    /// have its size, the size exceeds [`MOST_BYTES`], or the library fails to combine one element.
    fn tried(&self, handle: usize, number: Number) -> Option<Element> {
        let mut size = 0;
        // SAFETY: one integer is written.
        check(unsafe { (self.functions.Type_size)(handle, &raw mut size) }).ok()?;
        let bytes = usize::try_from(size).ok().filter(|bytes| (1..=MOST_BYTES).contains(bytes))?;
        let known = match number {
            Number::Float => matches!(bytes, 4 | 8),
            Number::Complex => matches!(bytes, 8 | 16),
            _ => bytes.is_power_of_two(),
        };
        let op = [Op::Sum, Op::Or].into_iter().find(|&op| number.takes(op));
        let adds = op.is_none_or(|op| {
            let (from, mut to) = ([0u128; 1], [0u128; 1]);
            let (from, to) = (from.as_ptr() as usize, to.as_mut_ptr() as usize);
            // SAFETY: both arrays have room for the largest element tested, and this one is not larger.
            unsafe { (self.functions.Reduce_local)(from, to, 1, handle, self.constants.op_handle(op)) == 0 }
        });
        (known && adds).then_some(Element { number, bytes })
    }
}
