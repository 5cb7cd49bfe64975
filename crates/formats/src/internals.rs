//! Units that the tests of this crate open. This is not an interface: it may change with any of them.

pub mod labels {
    pub use crate::goal::labels::Labels;
}
