//! Units that the tests of this crate open. This is not an interface: it may change with any of them.

pub mod route {
    pub use crate::route::dimension_ordered;
}
