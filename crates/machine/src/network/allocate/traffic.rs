//! The share of a job's traffic that passes the upper level of its trees.
//!
//! Boards of one leaf reach each other below the upper level: boards below one leaf of a fat tree or of the tree of a
//! HammingMesh, in one group of a dragonfly, or in one box. In an alltoall along a line of boards, every board sends
//! equally to every other; in an allreduce, each sends to the next one around the line. A job of all 64 boards of a
//! line over leaves of 16 has 48/63 = 76.19 % and 4/64 = 6.25 %, the constants of the artifact (plot_paper.py) for the
//! large Hx4Mesh and for rings.

use serde::Serialize;

use super::Placed;

/// Shares of the traffic that enters the trees.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct UpperShare {
    pub alltoall: f64,
    pub allreduce: f64,
}

impl UpperShare {
    /// Returns the shares of a job, if leaves join `leaf` boards along each dimension.
    pub fn of(placed: &Placed, leaf: &[u32]) -> Self {
        // Weighted by the traffic along the dimension, without the traffic within one position of it.
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

/// Returns the ordered pairs on different leaves of a sorted line.
fn crossing_pairs(line: &[u32], leaf: u32) -> f64 {
    let same: usize = line.chunk_by(|a, b| a / leaf == b / leaf).map(|run| run.len() * run.len()).sum();
    (line.len() * line.len() - same) as f64
}
