//! Units that only the tests of this crate use, not part of the interface.

pub mod route {
    pub use crate::route::dimension_ordered;
}
