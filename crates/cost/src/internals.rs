//! Units that the tests of this crate open. This is not an interface: it may change with any of them.

pub mod fan_out {
    pub use crate::endpoint::bounds::fan_out::broadcast_ticks;
}
