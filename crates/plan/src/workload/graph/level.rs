//! The levels of detail at which communication is timed.

use super::super::WorkloadError;

/// The method that times communication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Each collective takes the time that the model of plans predicts.
    Model,
    /// Each group of each collective is a flow, and flows share links.
    Flow,
    /// Each message is simulated, on a network each packet.
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

    /// Returns the level with a name. `origin` is the program that the error names.
    ///
    /// # Errors
    /// Returns an error if no level has the name.
    pub fn named(name: &str, origin: &str) -> Result<Self, WorkloadError> {
        let unknown = || WorkloadError::Level {
            origin: origin.to_owned(),
            found: name.to_owned(),
            accepted: "model, flow and packet",
        };
        Self::ALL.iter().copied().find(|level| level.name() == name).ok_or_else(unknown)
    }
}
