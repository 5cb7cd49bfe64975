//! Internal items that the tests of this crate use. They are not an interface, and may change at any time.

pub mod group {
    pub use crate::fabric::packed::group::{Counters, MOST, add, count_slices, equal, nonzero, set, sub};
}
pub mod clock {
    pub use crate::fabric::clock::Clock;
}
pub mod packet {
    pub use crate::network::packet::Packet;
}
pub mod steady {
    pub use crate::fabric::steady::Steady;
}
pub mod waiting {
    pub use crate::network::waiting::{Ring, Waiting};
}
