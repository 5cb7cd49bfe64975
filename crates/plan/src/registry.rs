//! The registry of algorithms as a report.

use serde::Serialize;
use unisono_algorithms::{Info, algorithms};
use unisono_collective::Kind;

use crate::targets::TARGETS;

#[derive(Serialize)]
pub struct AlgorithmReport {
    #[serde(flatten)]
    pub info: &'static Info,
    /// The kinds of machines on which the algorithm is a candidate.
    pub machines: Vec<&'static str>,
}

/// Returns reports of all algorithms, or of the algorithms for one collective.
pub fn registry(kind: Option<Kind>) -> Vec<AlgorithmReport> {
    let listed = algorithms().into_iter().map(|a| a.info()).filter(|i| kind.is_none_or(|k| i.collectives.contains(&k)));
    let machines = |info| TARGETS.iter().filter(|kind| kind.lists(info)).map(|kind| kind.name).collect();
    listed.map(|info| AlgorithmReport { info, machines: machines(info) }).collect()
}
