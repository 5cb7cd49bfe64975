//! Units that only the tests of this crate use. They are not part of the interface and may change at any time.

pub mod ahead {
    pub use crate::network::timetable::unlike::Ahead;
}
pub mod fan_out {
    pub use crate::endpoint::bounds::fan_out::broadcast_ticks;
}
