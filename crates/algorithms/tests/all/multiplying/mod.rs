//! Recursive multiplying: its language, its search, and its schedules against the paper's own pseudocode.

mod language;
mod postal;
mod pseudocode;
mod schedules;
mod search;

use unisono_algorithms::{Algorithm, Case, Params, Ranks, find};
use unisono_base::StreamId;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_schedule::{Operand, Operands, Schedule};

/// Returns an allreduce of `elements` elements on ranks whose only costs are a latency and an issue cost, with ratio 4.
fn case(ranks: u32, elements: u64, operator: Operator) -> Case<'static> {
    let collective = Collective::new(Kind::Allreduce, ranks, elements, 0, operator, Dtype::I64).unwrap();
    Case::on_ranks(collective, Ranks { latency_ns: 4.0, issue_ns: 1.0, ..Ranks::default() })
}

fn algorithm() -> &'static dyn Algorithm {
    find("recursive-multiplying").unwrap()
}

/// Builds the schedule with the stages `text`.
fn built(case: &Case, text: &str) -> Schedule {
    let params = Params::new().with("schedule", text);
    algorithm().supports(case, &params).unwrap();
    algorithm().build(case, &params).unwrap().schedule
}

fn streams(operands: Operands<'_>) -> impl Iterator<Item = StreamId> + '_ {
    operands.iter().filter_map(|o| if let Operand::Stream(s) = o { Some(s) } else { None })
}
