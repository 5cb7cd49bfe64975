//! Units that the tests of this crate open. This is not an interface: it may change with any of them.

pub mod reported {
    pub use crate::workload::graph::reported::reported;
}
