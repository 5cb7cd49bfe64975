//! Items that only the tests of this crate use. They are not part of the interface.

pub mod ahead {
    pub use crate::network::timetable::unlike::Ahead;
}
pub mod fan_out {
    pub use crate::endpoint::bounds::fan_out::{Pace, broadcast_ticks, families_ticks};
}
pub mod loads {
    pub use crate::network::loads::{Loads, Sent};
}
