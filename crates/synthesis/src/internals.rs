//! Internal units for the tests of this crate; they are not a public interface.

pub mod arrivals {
    pub use crate::arrivals::grow;
}
pub mod grower {
    pub use crate::scatter::grower::Grower;
}
pub mod growth {
    pub use crate::growth::{Growth, grow, time_of_whole};
}
pub mod jobs {
    pub use crate::jobs::{Jobs, Work};
}
pub mod least_price {
    pub use crate::least_price::{NONE, Table, least_price};
}
pub mod loads {
    pub use crate::loads::Links;
}
pub mod tree_cache {
    pub use crate::tree_cache::{MOST_EDGES, PACKINGS, forget, growth, packing};
}
pub mod router {
    pub use crate::concurrent::router::Router;
}
pub mod scatter {
    pub use crate::scatter::{Trees, batches};
}
pub mod slots {
    pub use crate::slots::{Reservation, SLOTS, Slots};
}
pub mod spanning {
    pub use crate::spanning::spanning;
}
pub mod symmetry {
    pub use crate::symmetry::Symmetry;
}
