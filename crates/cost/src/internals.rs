//! Internal units for the tests of this crate; they are not a public interface.

pub mod fan_out {
    pub use crate::endpoint::bounds::fan_out::broadcast_ticks;
}
