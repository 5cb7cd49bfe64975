//! Units that only the tests of this crate use. They are not part of the interface and may change at any time.

pub mod shapes {
    pub use crate::network::allocate::shapes::shapes;
}
pub mod wiring {
    pub use crate::network::wiring::Wiring;
}
