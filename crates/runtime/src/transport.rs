//! The interface of a run to messages and memory.

/// A buffer of a rank. `In` is read only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffer {
    In,
    Out,
    Scratch,
}

/// Elements `start .. start + len` of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    pub buffer: Buffer,
    pub start: usize,
    pub len: usize,
}

/// Messages and memory of one rank.
///
/// Messages with the same sender, receiver and tag arrive in the order in which they were sent. Until a request has
/// ended, the executor does not write the slice of a send, and does not access the slice of a receive. The executor
/// uses only the buffers of a [`crate::Blocks`].
pub trait Transport {
    type Request;
    type Error;

    /// # Errors
    /// Returns the errors of the message layer.
    fn send(&mut self, peer: u32, tag: u32, from: Slice) -> Result<Self::Request, Self::Error>;

    /// # Errors
    /// Returns the errors of the message layer.
    fn receive(&mut self, peer: u32, tag: u32, into: Slice) -> Result<Self::Request, Self::Error>;

    /// Returns whether a request has ended. The executor does not use a request again after true or an error.
    ///
    /// # Errors
    /// Returns the errors of the message layer.
    fn test(&mut self, request: &mut Self::Request) -> Result<bool, Self::Error>;

    /// Blocks until the request has ended.
    ///
    /// # Errors
    /// Returns the errors of the message layer.
    fn wait(&mut self, request: &mut Self::Request) -> Result<(), Self::Error>;

    /// Waits briefly. [`crate::Executor::run`] calls it repeatedly while no step can run before a message ends.
    ///
    /// # Errors
    /// Returns an error if the messages will never arrive.
    fn idle(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Cancels a receive: its slice is not written to afterwards, and its request is not used again.
    fn give_up(&mut self, request: &mut Self::Request);

    fn copy(&mut self, from: Slice, to: Slice);

    /// Computes `to = left op right`, element by element; `to` may be `left` or `right`.
    ///
    /// # Errors
    /// Returns an error if the operator is not defined for the elements.
    fn combine(&mut self, left: Slice, right: Slice, to: Slice) -> Result<(), Self::Error>;
}
