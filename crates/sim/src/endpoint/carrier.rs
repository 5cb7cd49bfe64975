//! The transport of messages from rank to rank: at a price, or by another simulator.

use super::SimError;

/// A report of a carrier about a message. `Begun` and `Left` are reported for the sends of `Options::leaving`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carried {
    /// The sender begins to work on the message.
    Begun,
    /// The message has left, or will have left at a time that is not before those reported so far.
    Left,
    Arrived,
}

/// The transport of messages from rank to rank.
pub(crate) trait Carrier {
    /// True if messages only take their price, so that nothing is reported.
    const PRICED: bool;

    /// Accepts message `id`, which leaves its sender at `time`. `time` is not before any time passed to `report`.
    fn carry(&mut self, time: u64, id: u32, from: u32, to: u32, bytes: u64);

    /// Returns the next report about a message, with its time and id. Arrivals are reported if they are by `until`, in
    /// their order.
    fn report(&mut self, until: u64) -> Option<(u64, u32, Carried)>;

    /// Notes that a rank began and made `made` stamps.
    fn began(&mut self, _rank: u32, _made: u32) {}

    /// Notes that an event of the ranks ended and made `made` stamps.
    fn stepped(&mut self, _time: u64, _stamp: u32, _made: u32) {}

    /// Returns an error about messages that never arrive, after the last event.
    fn jam(&self) -> Option<SimError>;
}

/// The carrier of messages that take their price.
pub(super) struct AsPriced;

impl Carrier for AsPriced {
    const PRICED: bool = true;

    fn carry(&mut self, _time: u64, _id: u32, _from: u32, _to: u32, _bytes: u64) {}

    fn report(&mut self, _until: u64) -> Option<(u64, u32, Carried)> {
        None
    }

    fn jam(&self) -> Option<SimError> {
        None
    }
}
