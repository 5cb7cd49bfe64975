//! The options of a discovery.

use crate::rules::Rules;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of ranks.
    pub nodes: u32,
    /// The rank whose commands are computed; `None` for no commands.
    pub rank: Option<u32>,
    pub rules: Rules,
    /// The number of tasks in the look-ahead window, which only the full rules use.
    pub window: usize,
    /// True if a range may have fewer dimensions than a buffer. A chunk then covers the remaining dimensions entirely.
    pub rows: bool,
    /// True if forwards are recorded and the traffic of all ranks is counted. Each new plan then visits every rank
    /// once.
    pub report: bool,
}

impl Options {
    /// The default size of the window: longer than the loop body of most programs, and short enough to start early.
    pub const WINDOW: usize = 16;
    /// The largest accepted number of ranks.
    pub const MOST_NODES: u32 = 1 << 20;

    pub fn report(nodes: u32, rules: Rules) -> Self {
        Self { nodes, rank: None, rules, window: Self::WINDOW, rows: false, report: true }
    }

    pub fn commands(nodes: u32, rank: u32, rules: Rules) -> Self {
        Self { nodes, rank: Some(rank), rules, window: Self::WINDOW, rows: false, report: false }
    }
}
