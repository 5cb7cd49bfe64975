//! Internal items that the tests of this crate use. They are not a stable interface.

pub mod reported {
    pub use crate::workload::graph::reported::reported;
}
