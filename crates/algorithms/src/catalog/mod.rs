//! The registry: one file a unit, its `mod` line and its entry in [`ALGORITHMS`], both sorted by name.

mod auto_gen;
mod chain;
mod flood;
mod hierarchical;
mod kd_tree;
mod message;
mod quad_chain;
mod quad_two_phase;
mod recursive_doubling;
mod recursive_multiplying;
mod reduce_broadcast;
mod ring;
mod snake;
mod star;
mod tree;
mod two_phase;
mod two_phase_searched;
mod x_y;
mod x_y_allreduce;
mod xy_yx;

use crate::{Algorithm, line::Line, ranks::Among};

pub use auto_gen::{Shape as AutoGenShape, best as auto_gen_best, energy as auto_gen_energy};

pub const ALGORITHMS: &[&dyn Algorithm] = &[
    &Line(auto_gen::AutoGen),
    &Line(chain::Chain),
    &flood::Flood,
    &Among(hierarchical::Hierarchical),
    &kd_tree::KdTree,
    &message::Message,
    &quad_chain::QuadChain,
    &quad_two_phase::QuadTwoPhase,
    &Among(recursive_doubling::RecursiveDoubling),
    &Among(recursive_multiplying::RecursiveMultiplying),
    &reduce_broadcast::ReduceBroadcast,
    &ring::Ring,
    &snake::Snake,
    &Line(star::Star),
    &Line(tree::Tree),
    &Line(two_phase::TwoPhase),
    &Line(two_phase_searched::TwoPhaseSearched),
    &x_y::XY,
    &x_y_allreduce::XYAllreduce,
    &xy_yx::XyYx,
];
