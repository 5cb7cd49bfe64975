//! Units that only the tests of this crate use. They are not an interface, and may change at any time.

pub mod plan_bytes {
    pub use crate::plan_bytes::Parts;
}
