//! Allocation of jobs to boards, around failed boards: virtual sub-meshes, the greedy algorithm with its heuristics,
//! and the utilization of a machine over many samples.
//!
//! It is beside the topologies because it depends on boards and switches, not on collectives or schedules. Source:
//! "HammingMesh", sections 3.3 and 4.2 (virtual sub-HxMeshes, allocation), and simulate_allocation.py of its artifact.

mod jobs;
pub(crate) mod place;
mod study;
mod traffic;

pub use jobs::{Job, Jobs, Sizes, TRACE};
pub use place::{Free, Heuristic, Placed};
pub use study::{Outcome, Sample, Study, study};
pub use traffic::UpperShare;
