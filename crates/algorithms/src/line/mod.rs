//! Reduces on a line of PEs: a tree in pre-order on each side of the root.

mod emit;
mod side;
mod unit;

pub use emit::{Keep, broadcast, copy_to_output, own_input, reduce};
pub use side::{Side, Sides};
pub use unit::{Line, LineTree, line_case, reduce_along, reduce_estimate};
