//! Finish times under the pipelining postal model, by a simulation that shares no code with the library.
//!
//! A put occupies its sender for alpha_r and is delivered alpha_p later. An instruction waits for its sources, and
//! takes the compute time if it reduces. Section 6.2: latency 500 ns, pipeline 100 ns, compute 10 ns, no bytes.

use std::collections::BTreeMap;

use super::{built, case, streams};
use unisono_algorithms::multiplying::{Stage, StagePrices, Stages};
use unisono_base::{InstrId, NodeId};
use unisono_collective::Operator;
use unisono_schedule::Schedule;

const LATENCY: u64 = 500;
const ISSUE: u64 = 100;
const COMPUTE: u64 = 10;

fn finish(schedule: &Schedule) -> Vec<u64> {
    let ranks = schedule.node_count();
    let mut next: Vec<_> = (0..ranks).map(|r| schedule.node_instrs(NodeId::new(r))).collect();
    let mut clock = vec![0; ranks];
    let mut delivered = BTreeMap::new();
    loop {
        let mut waits = true;
        for rank in 0..ranks {
            while let Some(id) = next[rank].clone().next().map(InstrId::new) {
                let sources = schedule.sources(id);
                let arrivals = streams(sources).map(|s| delivered.get(&s).copied());
                let Some(arrivals) = arrivals.collect::<Option<Vec<u64>>>() else { break };
                clock[rank] = arrivals.into_iter().fold(clock[rank], u64::max);
                clock[rank] += if sources.len() > 1 { COMPUTE } else { 0 };
                for stream in streams(schedule.sinks(id)) {
                    clock[rank] += ISSUE;
                    delivered.insert(stream, clock[rank] + LATENCY);
                }
                next[rank].next();
                waits = false;
            }
        }
        if waits {
            assert!(next.iter().all(|rest| rest.is_empty()), "a rank waits for ever");
            return clock;
        }
    }
}

fn run(ranks: u32, text: &str) -> Vec<u64> {
    finish(&built(&case(ranks, 1, Operator::Sum), text))
}

/// The times of Figs. 18 to 22 by the corrected rules. The text of the paper states a skew of about 700 ns for Fig. 20;
/// that is the skew of another split of seven ranks.
#[test]
fn finish_times_of_the_figures() {
    assert_eq!(run(8, "a2,a2,a2"), [1830; 8]);
    assert_eq!(run(8, "a8"), [1210; 8]);
    assert_eq!(run(7, "c6m2,a2,a2,e6m2"), [1930, 1430, 2430, 1930, 2430, 1930, 1830]);
    assert_eq!(run(7, "m1g2a3,n1g3a2"), [1420, 1320, 1320, 1320, 1320, 1320, 1420]);
    assert_eq!(run(7, "m3g2a2,n3g2a2"), [1320, 1420, 1420, 1220, 1320, 1220, 1320]);
    assert_eq!(run(7, "a7"), [1110; 7]);
}

/// A factored schedule takes exactly the sum of the costs of its stages. A schedule with a split or a merge takes at
/// most this sum.
#[test]
fn the_sum_of_stage_costs_bounds_the_time() {
    let prices = StagePrices { latency_ns: LATENCY as f64, send_ns: ISSUE as f64, reduce_ns: 0.0 };
    let computes = |s: &Stages| s.iter().filter(|s| !matches!(s, Stage::Expand { .. })).count() as u64 * COMPUTE;
    for ranks in 2..=16 {
        for stages in unisono_algorithms::multiplying::list(ranks) {
            let time = run(ranks, &stages.to_string()).into_iter().max().unwrap();
            let sum = prices.total_ns(&stages) as u64 + computes(&stages);
            let plain = stages.factors().len() == stages.iter().count();
            assert!(if plain { time == sum } else { time <= sum }, "{stages} on {ranks}: {time} {sum}");
        }
    }
}
