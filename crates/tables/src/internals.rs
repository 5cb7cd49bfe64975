//! Units that only the tests of this crate use, not part of the interface.

pub mod mpich_table {
    pub use crate::mpich_table::Tree;
}
