//! The transport of messages from rank to rank: at a price, or by another simulator.

use super::SimError;

/// What a carrier reports of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carried {
    /// Its sender begins to work on it. Of sends that are done when they have left.
    Begun,
    /// It has left, or will have left at a time that is not before what was reported. Of the same.
    Left,
    Arrived,
}

/// What brings messages from rank to rank, where that is more than a price.
pub(crate) trait Carrier {
    /// Nothing does: a message is there when its price says.
    const PRICED: bool;

    /// Message `id` leaves its sender at `time`, which is not before any time that `arrival` was asked about.
    fn carry(&mut self, time: u64, id: u32, from: u32, to: u32, bytes: u64);

    /// The next that is known of a message, with its time and id. Arrivals are reported if they are by `until`, in
    /// their order.
    fn report(&mut self, until: u64) -> Option<(u64, u32, Carried)>;

    /// A rank began, which made so many stamps of the ranks' events.
    fn began(&mut self, _rank: u32, _made: u32) {}

    /// An event of the ranks is over, which made so many stamps of the ranks' events.
    fn stepped(&mut self, _time: u64, _stamp: u32, _made: u32) {}

    /// What is under way for ever, once nothing more happens.
    fn jam(&self) -> Option<SimError>;
}

/// Messages take what their prices say.
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
