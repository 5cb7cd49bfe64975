//! Units that the tests of this crate use. They are not an interface, and may change at any time.

pub mod order {
    pub use crate::order::Order;
}
pub mod ranges {
    pub use crate::write::ranges::rectangles;
}
