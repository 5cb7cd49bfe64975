//! The errors in the placement that a file or a caller states.

use unisono_machine::Grid;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlacementError {
    #[error("placement {grid} is not a grid of 1 to {most} PEs")]
    Grid { grid: Grid, most: u64 },
    #[error("there are {colors} colors for {streams} streams")]
    Colors { colors: usize, streams: usize },
    #[error("the pace or the chunk is 0; accepted are a pace and a chunk of at least 1")]
    Zero,
    #[error("a route is given for stream s{stream}; there are {streams}")]
    NoStream { stream: u32, streams: usize },
    #[error("route of s{stream}: {message}")]
    Route { stream: u32, message: String },
    #[error("there are more channels than the {streams} streams")]
    MoreChannels { streams: usize },
    #[error("there are {channels} channels for {streams} streams")]
    FewerChannels { channels: usize, streams: usize },
}
