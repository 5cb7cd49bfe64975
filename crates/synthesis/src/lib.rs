//! Forests and flows of the highest throughput on any network, and bounds on the throughput.
//!
//! The block of each root travels along arborescences: trees of messages from the root to all ranks. A [`Graph`] holds
//! the links. [`cut`] computes the exact least time of any forest, and [`packing`] finds a forest that attains it or
//! comes near, with a limit on its depth; forests of many ranks are grown tree by tree. A [`Forest`] sends whole
//! chunks, each on one tree. A [`Certificate`] holds prices of links, from which a bound can be checked independently.
//!
//! In an all-to-all, the blocks of every pair of ranks flow along paths. A [`ConcurrentFlow`] holds the prices that
//! bound its time, and a [`Scatter`] the trees along which every rank sends its blocks.
//!
//! Times of cuts, packings and forests are times of a fluid model: the load of the busiest link divided by its rate.
//! Timetables add latencies, and simulators packets.
//!
//! The linear programs are solved by `microlp`, a simplex method in Rust without further libraries. HiGHS is faster on
//! large programs, but its bindings require a C++ compiler, CMake and libclang to build Unisono, and the programs here
//! have only some thousand columns.

// Numbers that do not fit are refused on input; see `unisono_base::narrow`.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

pub mod arborescence;
mod arrivals;
mod certificate;
pub mod concurrent;
pub mod cut;
mod fabric;
mod flow;
mod forest;
mod graph;
mod growth;
#[doc(hidden)]
pub mod internals;
mod jobs;
mod least_price;
mod loads;
pub mod packing;
pub mod partition;
mod pricing;
mod relaying;
mod replay;
mod root_trees;
mod rounding;
mod scatter;
mod slots;
mod soonest;
mod spanning;
mod sums;
mod symmetry;
mod timetable;
mod translated;
mod tree_cache;

pub use certificate::{Certificate, CertificateError};
pub use concurrent::ConcurrentFlow;
pub use fabric::{Fabric, NoForest, Roots, Runs};
pub use forest::{Forest, Message, TreeEdge};
pub use graph::{Arc, Graph, Way, Ways};
pub use replay::HostWork;
pub use scatter::{Hop, Passed, Scatter, ScatterMessage, ScatterTree};
pub use spanning::{Role, SpanningTree, SpanningTrees};
