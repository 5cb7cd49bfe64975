//! Units that only the tests of this crate use. They are not part of the interface and may change at any time.

pub mod ops {
    pub use crate::msccl::ops::{Buffer, End, Op, Place, lower};
}
