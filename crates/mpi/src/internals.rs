//! Units that only the tests of this crate use. They are not part of the interface and may change at any time.

pub mod abi {
    pub use crate::abi::TYPES;
}
pub mod conditions {
    pub use crate::conditions::name_and_version;
}
pub mod home {
    pub use crate::home::unless_it_panics;
}
pub mod learned {
    pub use crate::learned::{ROWS, Row};
}
pub mod parts {
    pub use crate::parts::{extents, volume};
}
pub mod route {
    pub use crate::route::{Lease, Peer, Route, Tags};
}
pub mod shared {
    pub use crate::shared::{Shared, path};
}
pub mod switch {
    pub use crate::switch::{is_on_value, unknown};
}
pub mod watch {
    pub use crate::watch::{Calls, NOTES, Notes, PATIENCE, Page, TURNS, WORDS, Watch, length};
}
