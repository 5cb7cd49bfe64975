//! Units that the tests of this crate open. This is not an interface: it may change with any of them.

pub mod labels {
    pub use crate::goal::labels::Labels;
}
pub mod mpich_table {
    pub use crate::tuning::mpich_table::Tree;
}
pub mod ops {
    pub use crate::msccl::ops::{Buffer, End, Op, Place, lower};
}
pub mod order {
    pub use crate::csl::order::Order;
}
pub mod ranges {
    pub use crate::csl::write::ranges::rectangles;
}
