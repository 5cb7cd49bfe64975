//! Units that the tests of this crate open. This is not an interface: it may change with any of them.

pub mod order {
    pub use crate::order::Order;
}
pub mod ranges {
    pub use crate::write::ranges::rectangles;
}
