//! The second opinion on a program: the communications that the program does not need, or that a cheaper communication
//! could replace, with the time and bytes that this saves.

use serde::Serialize;
use unisono_collective::Kind;
use unisono_workload::{
    Collected, Work, WorkloadGraph,
    hlo::{Finding, Redundancy, Sufficient},
};

use super::{ProgramPrices, prices::Communication};
use crate::PlanError;

/// A communication of a program, and the cheaper communication that suffices.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename = "SecondOpinion")]
pub struct OpinionRow {
    pub name: String,
    pub kind: &'static str,
    /// The kind of the cheaper collective, or `nothing` if the program does not need the communication.
    pub suffices: &'static str,
    /// The reason why the cheaper communication suffices.
    pub reason: String,
    /// The number of ranks in a group.
    pub group: u32,
    pub count: u64,
    pub bytes: u64,
    pub suffices_bytes: u64,
    pub seconds: f64,
    pub suffices_seconds: f64,
    /// The seconds saved by all executions in a step.
    pub saved_seconds: f64,
    /// The bytes that each rank of a group no longer sends, in all executions in a step.
    pub saved_bytes: u64,
}

/// Returns the findings of the reader that save time, in descending order of the saving.
pub(super) fn second_opinion(graph: &WorkloadGraph, prices: &mut ProgramPrices) -> Result<Vec<OpinionRow>, PlanError> {
    let mut rows = Vec::new();
    for finding in &graph.findings {
        let suffices = match finding.suffices {
            Sufficient::Part(collected) => prices.of(Work::Collective(collected))?,
            Sufficient::Nothing(_) => None,
        };
        let Some(found) = prices.of(finding.found)? else { continue };
        let row = OpinionRow::new(finding, &found, suffices.as_ref());
        if row.saved_seconds > 0.0 {
            rows.push(row);
        }
    }
    rows.sort_by(|a, b| b.saved_seconds.total_cmp(&a.saved_seconds));
    Ok(rows)
}

impl OpinionRow {
    fn new(finding: &Finding, found: &Communication, suffices: Option<&Communication>) -> Self {
        let (suffices_bytes, suffices_seconds) = suffices.map_or((0, 0.0), |other| (other.bytes, other.seconds));
        let less = sent(finding.found, found.ranks).saturating_sub(match finding.suffices {
            Sufficient::Part(collected) => sent(Work::Collective(collected), found.ranks),
            Sufficient::Nothing(_) => 0,
        });
        Self {
            name: finding.name.clone(),
            kind: found.kind,
            suffices: suffices.map_or("nothing", |other| other.kind),
            reason: reason(&finding.suffices),
            group: found.ranks,
            count: finding.count,
            bytes: found.bytes,
            suffices_bytes,
            seconds: found.seconds,
            suffices_seconds,
            saved_seconds: (found.seconds - suffices_seconds) * finding.count as f64,
            saved_bytes: less.saturating_mul(finding.count),
        }
    }
}

fn reason(suffices: &Sufficient) -> String {
    match suffices {
        Sufficient::Part(_) => "each rank uses one part of it".to_owned(),
        Sufficient::Nothing(Redundancy::Repeats(other)) => format!("it repeats {other}"),
        Sufficient::Nothing(Redundancy::Undoes(other)) => format!("it undoes {other}"),
        Sufficient::Nothing(Redundancy::Uniform) => "its operand is equal on all ranks of a group".to_owned(),
    }
}

/// Returns the least bytes that each of n ranks sends if all ranks send equally much: blocks to n - 1 others, or in an
/// allreduce the parts of a reduce-scatter and of an allgather.
fn sent(work: Work, ranks: u32) -> u64 {
    let others = u64::from(ranks.saturating_sub(1));
    match work {
        Work::Collective(Collected { kind, bytes, .. }) => {
            let part = bytes.div_ceil(u64::from(ranks.max(1)));
            match kind {
                Kind::Allreduce => part.saturating_mul(2 * others),
                Kind::Allgather | Kind::ReduceScatter | Kind::Alltoall | Kind::Gather | Kind::Scatter => {
                    bytes.saturating_mul(others)
                }
                Kind::Broadcast | Kind::Reduce => part.saturating_mul(others),
                _ => 0,
            }
        }
        Work::Permute { bytes, .. } => bytes,
        _ => 0,
    }
}
