//! What is wrong with a machine that was asked for.

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MachineError {
    #[error("'{found}' is neither a machine preset nor a machine file; presets are {presets}")]
    UnknownPreset { found: String, presets: String },
    #[error("{origin}: {message}")]
    Toml { origin: String, message: String },
    #[error("{origin}: {key} is {found}; accepted is {accepted}")]
    Value { origin: String, key: &'static str, found: String, accepted: &'static str },
    #[error("'{found}' is not a shape; accepted are N (a row of N PEs) and MxN (M rows, N columns), each at least 1")]
    Shape { found: String },
    #[error("shape {found} does not fit on {machine}, which has {max} PEs in either orientation")]
    TooLarge { found: String, machine: String, max: String },
    #[error("{machine} is a grid of PEs: say which part of it to use with a shape, N or MxN, up to {max}")]
    NoShape { machine: String, max: String },
    #[error("ranks is {found}; say how many ranks of {machine} to use, at least 1")]
    NoRanks { machine: String, found: String },
    #[error("the network has {found} cables in a plane; at most {most} fit")]
    TooManyCables { found: usize, most: usize },
    #[error("{origin}: topology.name is '{found}'; accepted are {families}")]
    UnknownTopology { origin: String, found: String, families: String },
}
