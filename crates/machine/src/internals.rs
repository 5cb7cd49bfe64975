//! Units that the tests of this crate open. This is not an interface: it may change with any of them.

pub mod place {
    pub use crate::network::allocate::place::shapes;
}
pub mod spread {
    pub use crate::network::spread::Spread;
}
