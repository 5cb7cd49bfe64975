//! Units that the tests of this crate open. This is not an interface: it may change with any of them.

pub mod ops {
    pub use crate::msccl::ops::{Buffer, End, Op, Place, lower};
}
