//! Units that the tests of this crate open. This is not an interface: it may change with any of them.

pub mod mpich_table {
    pub use crate::mpich_table::Tree;
}
