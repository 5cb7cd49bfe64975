//! Jobs on boards, around boards that failed: virtual sub-meshes, the greedy algorithm with its heuristics, and how
//! much of a machine they use over many samples.
//!
//! It lies beside the topologies because it knows boards and switches only: no collective, no schedule.
//! Source: "HammingMesh", sections 3.3 and 4.2 (virtual sub-HxMeshes, allocation), and simulate_allocation.py of its
//! artifact.

mod jobs;
pub(crate) mod place;
mod study;
mod traffic;

pub use jobs::{Job, Jobs, Sizes, TRACE};
pub use place::{Free, Heuristic, Placed};
pub use study::{Outcome, Sample, Study, study};
pub use traffic::UpperShare;
