//! The registry of algorithms: each has a file, a `mod` line and an entry in [`ALGORITHMS`], both sorted by name.

mod all_pairs;
pub(crate) mod auto_gen;
mod balanced_shift;
mod bidirectional_ring;
mod binary_tree;
mod binomial;
mod bruck;
mod bucket;
mod chain;
mod circulant;
pub mod composition;
mod concurrent_flow;
mod dissemination;
mod dual_rings;
pub(crate) mod elimination;
mod flood;
mod forest;
pub mod hierarchical;
mod in_network;
mod kd_tree;
mod linear;
mod message;
mod neighbor;
mod pairwise;
mod pipelined_chain;
mod quad_chain;
mod quad_two_phase;
mod rabenseifner;
mod recursive_doubling;
pub(crate) mod recursive_exchange;
mod recursive_halving;
mod recursive_multiplying;
mod reduce_broadcast;
mod reduce_scatter_gather;
mod ring;
mod scatter_allgather;
pub(crate) mod slack_tree;
mod snake;
mod star;
mod swing;
mod torus_trees;
mod tree;
pub(crate) mod two_phase;
pub(crate) mod two_phase_searched;
mod two_way;
mod x_y;
mod x_y_allreduce;
mod x_y_scan;
mod xy_yx;

use crate::{
    Algorithm,
    forest::Over,
    line::Line,
    ranks::{Among, pipelined::Pipelined},
};

pub(crate) use ring::too_large;

pub use auto_gen::{Shape as AutoGenShape, best as auto_gen_best, energy as auto_gen_energy};

pub const ALGORITHMS: &[&dyn Algorithm] = &[
    &Among(all_pairs::AllPairs),
    &Line(auto_gen::AutoGen, &auto_gen::INFO),
    &Among(balanced_shift::BalancedShift),
    &Among(bidirectional_ring::BidirectionalRing),
    &Among(Pipelined(binary_tree::BinaryTree)),
    &Among(binomial::Binomial),
    &Among(bruck::Bruck),
    &Among(bucket::Bucket),
    &Line(chain::Chain, &chain::INFO),
    &Among(circulant::Circulant),
    &Among(composition::Composition),
    &Among(concurrent_flow::ConcurrentFlow),
    &Among(dissemination::Dissemination),
    &Among(dual_rings::DualRings),
    &Among(elimination::Elimination),
    &flood::Flood,
    &Among(forest::Forest),
    &Among(hierarchical::Hierarchical),
    &in_network::InNetwork,
    &Over(kd_tree::KdTree),
    &Among(linear::Linear),
    &message::Message,
    &Among(neighbor::Neighbor),
    &Among(pairwise::Pairwise),
    &Among(Pipelined(pipelined_chain::PipelinedChain)),
    &Over(quad_chain::QuadChain),
    &Over(quad_two_phase::QuadTwoPhase),
    &Among(rabenseifner::Rabenseifner),
    &Among(recursive_doubling::RecursiveDoubling),
    &Among(recursive_exchange::RecursiveExchange),
    &Among(recursive_halving::RecursiveHalving),
    &Among(recursive_multiplying::RecursiveMultiplying),
    &reduce_broadcast::ReduceBroadcast,
    &Among(reduce_scatter_gather::ReduceScatterGather),
    &ring::Ring,
    &Among(scatter_allgather::ScatterAllgather),
    &Over(slack_tree::SlackTree),
    &snake::Snake,
    &Line(star::Star, &star::INFO),
    &Among(swing::Swing),
    &Among(torus_trees::TorusTrees),
    &Line(tree::Tree, &tree::INFO),
    &Line(two_phase::TwoPhase, &two_phase::INFO),
    &Line(two_phase_searched::TwoPhaseSearched, &two_phase_searched::INFO),
    &two_way::TwoWay,
    &x_y::XY,
    &x_y_allreduce::XYAllreduce,
    &x_y_scan::XYScan,
    &Over(xy_yx::XyYx),
];
