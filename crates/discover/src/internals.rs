//! Internal units for the tests of this crate; they are not a public interface.

pub mod devices {
    pub use crate::devices::memories::HOST;
}
pub mod exchange {
    pub use crate::exchange::{OwnedRegion, need};
}
pub mod full {
    pub use crate::rules::full::{is_halo, probes, someone_needs};
}
pub mod memories {
    pub use crate::devices::memories::Memories;
}
pub mod region_map {
    pub use crate::region_map::{FEW, RegionMap};
}
pub mod side {
    pub use crate::side::{Form, SideId};
}
pub mod split {
    pub use crate::split::tiles;
}
