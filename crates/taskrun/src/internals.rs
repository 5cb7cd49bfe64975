//! Units that only the tests of this crate use. They are not part of the interface and may change at any time.

pub use crate::{
    channel::{CallList, Phase, Polled, Slot},
    order::Order,
    ways::library_call::{LibraryCall, Packed, Packing},
};
