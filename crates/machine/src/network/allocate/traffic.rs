//! The fraction of a job's traffic that uses the upper level of switches.
//!
//! Boards of one leaf communicate below the upper level. A leaf is the boards below one leaf switch of a fat tree or of
//! a HammingMesh's tree, one group of a dragonfly, or one box. In an alltoall along a line of boards, every board sends
//! equally to every other; in an allreduce, each sends to the next around the line. For a job on all 64 boards of a
//! line with leaves of 16, 48/63 = 76.19 % and 4/64 = 6.25 % of the traffic leave their leaf, the constants for the
//! large Hx4Mesh and for rings in the artifact of "HammingMesh" (plot_paper.py).

use serde::Serialize;

use super::Placed;

/// The fractions of traffic that use the upper level, from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct UpperShare {
    pub alltoall: f64,
    pub allreduce: f64,
}

impl UpperShare {
    /// Returns the fractions for a job on leaves of `leaf` boards along each dimension.
    pub fn of(placed: &Placed, leaf: &[u32]) -> Self {
        // The alltoall is weighted by the traffic that changes position along each dimension; the allreduce counts each
        // dimension equally.
        let (mut all, mut weights, mut rings, mut ringed) = (0.0, 0.0, 0.0, 0.0);
        for (line, &leaf) in placed.positions.iter().zip(leaf) {
            let n = line.len() as f64;
            if line.len() < 2 {
                continue;
            }
            let weight = 1.0 - 1.0 / n;
            all += weight * crossing_pairs(line, leaf) / (n * (n - 1.0));
            weights += weight;
            let next = line.iter().cycle().skip(1);
            rings += line.iter().zip(next).filter(|(a, b)| *a / leaf != *b / leaf).count() as f64 / n;
            ringed += 1.0;
        }
        let share = |sum: f64, of: f64| if of > 0.0 { sum / of } else { 0.0 };
        Self { alltoall: share(all, weights), allreduce: share(rings, ringed) }
    }
}

/// Returns the number of ordered pairs of boards of a sorted line on different leaves.
fn crossing_pairs(line: &[u32], leaf: u32) -> f64 {
    let same: usize = line.chunk_by(|a, b| a / leaf == b / leaf).map(|run| run.len() * run.len()).sum();
    (line.len() * line.len() - same) as f64
}
