//! What a run needs of the outside.

/// The memory of a rank. `In` is only read.
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
/// Messages of one sender, receiver and tag arrive in the order sent. A slice that is sent or received stays untouched
/// until its request has ended. The executor asks for nothing outside the buffers of a [`crate::Blocks`].
pub trait Transport {
    type Request;
    type Error;

    /// # Errors
    /// Those of the message layer.
    fn send(&mut self, peer: u32, tag: u32, from: Slice) -> Result<Self::Request, Self::Error>;

    /// # Errors
    /// Those of the message layer.
    fn receive(&mut self, peer: u32, tag: u32, into: Slice) -> Result<Self::Request, Self::Error>;

    /// Whether a request has ended. It is not asked again once it has.
    ///
    /// # Errors
    /// Those of the message layer.
    fn test(&mut self, request: &mut Self::Request) -> Result<bool, Self::Error>;

    /// Returns when the request has ended.
    ///
    /// # Errors
    /// Those of the message layer.
    fn wait(&mut self, request: &mut Self::Request) -> Result<(), Self::Error>;

    /// Called again and again by a run that waits for messages and can do nothing else.
    ///
    /// # Errors
    /// The messages will never come.
    fn idle(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Ends a receive for good: afterwards nothing is written to its slice. It is not asked again.
    fn give_up(&mut self, request: &mut Self::Request);

    fn copy(&mut self, from: Slice, to: Slice);

    /// `to = left op right`, element by element; `to` may be one of them.
    ///
    /// # Errors
    /// The operator has no meaning for the elements.
    fn combine(&mut self, left: Slice, right: Slice, to: Slice) -> Result<(), Self::Error>;
}
