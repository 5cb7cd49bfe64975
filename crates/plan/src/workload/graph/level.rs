//! The levels of detail at which communication is simulated.

use super::super::WorkloadError;

/// The source of the time of communication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Each collective takes what the model of plans predicts for it.
    Model,
    /// Every group of every collective is a flow, and flows share the links.
    Flow,
    /// Every message is simulated, on a network every packet.
    Packet,
}

impl Level {
    pub const ALL: &[Self] = &[Self::Model, Self::Flow, Self::Packet];

    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Flow => "flow",
            Self::Packet => "packet",
        }
    }

    /// The level of a name; `origin` is the program, for the message.
    ///
    /// # Errors
    /// A name that no level has.
    pub fn named(name: &str, origin: &str) -> Result<Self, WorkloadError> {
        let unknown = || WorkloadError::Level {
            origin: origin.to_owned(),
            found: name.to_owned(),
            accepted: "model, flow and packet",
        };
        Self::ALL.iter().copied().find(|level| level.name() == name).ok_or_else(unknown)
    }
}
