//! Reasons why a run fails.

use std::fmt;

use unisono_base::limits::OverLimit;

/// One PE that waits for ever.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stuck {
    pub pe: u32,
    pub row: u32,
    pub col: u32,
    /// Instruction of the operation that waits.
    pub instr: u32,
    pub why: String,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PE {},{} (i{}) {}", self.row, self.col, self.instr, self.why)
    }
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SimError {
    #[error(transparent)]
    OverLimit(#[from] OverLimit),
    #[error("deadlock at cycle {cycle}: {count} PEs wait for ever, among them {}", stuck.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Deadlock { cycle: u64, count: usize, stuck: Vec<Stuck> },
    #[error(
        "at cycle {cycle} two wavelets of color {color} arrive at the router of PE {row},{col} from inputs that its position both accepts; the hardware leaves that undefined"
    )]
    Collision { cycle: u64, row: u32, col: u32, color: u8 },
    #[error(
        "{count} wavelets are left over, the first of color {color} at PE {row},{col}: they were sent and nobody took them"
    )]
    LeftOver { count: u64, row: u32, col: u32, color: u8 },
    #[error(
        "i{one} and i{other} run at the same time in two threads of PE {row},{col} and meet in its memory; their order must be fixed"
    )]
    Race { row: u32, col: u32, one: u32, other: u32 },
    #[error("the operation of i{instr} at PE {row},{col} uses color {color}, for which its router has no route")]
    NoRoute { row: u32, col: u32, color: u8, instr: u32 },
    #[error("color {color} leaves the router of PE {row},{col} to the {port} where no router takes it")]
    NoNeighbor { row: u32, col: u32, color: u8, port: &'static str },
    #[error("{what} is {found}; the simulator takes {accepted}")]
    Unsupported { what: &'static str, found: String, accepted: &'static str },
}
