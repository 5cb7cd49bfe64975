//! How programs are read.

use crate::rules::Rules;

/// How programs are read.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of ranks.
    pub nodes: u32,
    /// Whose commands are wanted.
    pub rank: Option<u32>,
    pub rules: Rules,
    /// How many tasks wait for what follows them; only the full rules look ahead.
    pub window: usize,
    /// Whether a range may have fewer dimensions than a buffer, whose other dimensions then are whole.
    pub rows: bool,
    /// Whether to keep forwards and count the traffic of all ranks, which walks them once for each new plan.
    pub report: bool,
}

impl Options {
    /// Tasks that wait by default: more than a loop's body has in most programs, and few enough to start early.
    pub const WINDOW: usize = 16;
    /// More ranks than this are refused.
    pub const MOST_NODES: u32 = 1 << 20;

    /// The report of a program on so many ranks.
    pub fn report(nodes: u32, rules: Rules) -> Self {
        Self { nodes, rank: None, rules, window: Self::WINDOW, rows: false, report: true }
    }

    /// The commands of one rank.
    pub fn commands(nodes: u32, rank: u32, rules: Rules) -> Self {
        Self { nodes, rank: Some(rank), rules, window: Self::WINDOW, rows: false, report: false }
    }
}
