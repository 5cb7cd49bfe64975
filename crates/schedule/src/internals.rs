//! Items for the tests of this crate. They are not part of the public interface.

pub mod allowance {
    pub use crate::verify::allowance::Allowance;
}
pub mod expressions {
    pub use crate::verify::expressions::{END, Expressions};

    pub fn expressions(ranks: u32, swaps: bool) -> Expressions {
        Expressions::new(ranks, swaps, &mut crate::verify::Seed::random().generator())
    }
}
pub mod fingerprint {
    pub use crate::verify::fingerprint::Sum;
}
pub mod order {
    pub use crate::{
        order::{Dependents, depth_first, successors},
        runs::Runs,
    };
}
pub mod plan_file {
    pub use crate::plan_file::{
        MAGIC, PREAMBLE_BYTES,
        read::program as read_program,
        wire::{Out, checksum},
        write::program as write_program,
    };
}
pub mod race {
    pub use crate::verify::race::check;
}
pub mod runs {
    pub use crate::stored::runs::Runs;

    pub fn count(schedule: &crate::Schedule) -> usize {
        schedule.instrs.runs()
    }
}
pub mod segments {
    pub use crate::verify::segments::{Memory, Segment, push_merged};
}
