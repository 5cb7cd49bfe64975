//! Units that only the tests of this crate use. They are not part of the interface and may change at any time.

pub mod mpich_table {
    pub use crate::mpich_table::Tree;
}
