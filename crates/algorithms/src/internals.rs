//! Items that only the tests of this crate use. They are not part of the interface.

pub mod auto_gen {
    pub use crate::catalog::auto_gen::{best, energy, tree};
}
pub mod halving {
    pub use crate::catalog::elimination::halving::meetings;
}
pub mod recursive_exchange {
    pub use crate::catalog::recursive_exchange::Sets;
}
pub mod slack_tree {
    pub use crate::catalog::slack_tree::{rate, trees, weight};
}
pub mod two_phase {
    pub use crate::catalog::two_phase::grouped;
}
pub mod two_phase_searched {
    pub use crate::catalog::two_phase_searched::{TwoPhaseSearched, best_group};
}
