//! Interface to the transport of messages between ranks: arrivals follow from the prices of a cost model, or from
//! another simulator.

use super::SimError;

/// An event of a message. `Begun` and `Left` are reported only for the sends of `Options::leaving`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carried {
    /// The sender begins to work on the message.
    Begun,
    /// The message has left, or will leave at the given time, which is not before any earlier report.
    Left,
    Arrived,
}

/// Transport of messages between ranks.
pub(crate) trait Carrier {
    /// True if the engine itself computes arrivals from prices, so that the carrier reports nothing.
    const PRICED: bool;

    /// Accepts message `id`, which leaves its sender at `time`. This time is not before the `until` of any earlier call
    /// of `report`.
    fn carry(&mut self, time: u64, id: u32, from: u32, to: u32, bytes: u64);

    /// Returns the next event of a message, with its time and the message id. Arrivals up to `until` are reported in
    /// order of time. `None` if no event up to `until` is left.
    fn report(&mut self, until: u64) -> Option<(u64, u32, Carried)>;

    /// Records that a rank began, and that this used `made` stamps.
    fn began(&mut self, _rank: u32, _made: u32) {}

    /// Records that an event of the ranks was executed and used `made` stamps.
    fn stepped(&mut self, _time: u64, _stamp: u32, _made: u32) {}

    /// Returns an error if messages never arrive, or if the carrier failed. It is called after the last event.
    fn jam(&self) -> Option<SimError>;
}

/// Carrier for messages whose arrival follows from prices alone.
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
