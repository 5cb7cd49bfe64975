//! Units that only the tests of this crate use. They are not part of the interface and may change at any time.

pub mod route {
    pub use crate::route::dimension_ordered;
}
