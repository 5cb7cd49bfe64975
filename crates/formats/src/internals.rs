//! Units that the tests of this crate use. They are not an interface, and may change at any time.

pub mod labels {
    pub use crate::goal::{
        labels::Labels,
        line::{Line, Word},
    };
}
