//! The levels of detail at which communication is timed.

use super::super::WorkloadError;

unisono_base::named! {
    /// The method that times communication.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Level {
        /// Each collective takes the time that the model of plans predicts.
        Model = "model",
        /// Each group of each collective is a flow, and flows share links.
        Flow = "flow",
        /// Each message is simulated, on a network each packet.
        Packet = "packet",
    }
}

impl Level {
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
