//! Allocation of jobs to boards, around failed boards: virtual sub-meshes, boxes of tori and blocks of switched
//! networks, with heuristics, and the utilization of a machine over many samples.
//!
//! Allocation is a part of the network module because it depends on boards and switches only, not on collectives or
//! schedules. A family of topologies states its boards and the rule of its jobs in `Topology::jobs`. Source:
//! "HammingMesh", sections 3.3 and 4.2 (virtual sub-HxMeshes, allocation), and simulate_allocation.py of its artifact;
//! each file names further sources.

mod blocks;
mod crossings;
mod free;
mod heuristic;
mod jobs;
pub(crate) mod shapes;
mod space;
mod study;
mod sub_box;
mod traffic;

pub use free::{Free, Placed};
pub use heuristic::Heuristic;
pub use jobs::{Job, Jobs, Sizes, TRACE};
pub use space::{JobSpace, Rule};
pub use study::{Counts, Outcome, Sample, Study, admit, counts, outcome, study};
pub(super) use sub_box::MOST_DIMENSIONS;
pub use traffic::UpperShare;
