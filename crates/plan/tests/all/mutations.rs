//! Mutations of proved schedules: one instruction is dropped, repeated or redirected, or two are swapped.
//!
//! The interpreter is the oracle: if a mutant stops or has a wrong result under some order and granularity, verify must
//! refuse the mutant. Dropping an instruction or pushing a stream twice is always wrong here, so it must be refused.

use crate::common;

use std::collections::BTreeMap;

use common::{case, expected, inputs};
use unisono_algorithms::{ALGORITHMS, Means, Params};
use unisono_base::{InstrId, LaneId, NodeId, StreamId};
use unisono_collective::{Kind, Operator};
use unisono_machine::Grid;
use unisono_schedule::{
    Builder, Operand, Schedule,
    interpret::{Options, run},
    verify::{Method, verify},
};

/// An instruction that can be changed, with its node and lane.
#[derive(Clone)]
struct Raw {
    /// The instruction's id before any change.
    id: InstrId,
    /// The instructions that it waits for.
    after: Vec<InstrId>,
    node: NodeId,
    lane: u32,
    len: u32,
    sources: Vec<Operand>,
    sinks: Vec<Operand>,
}

fn open(schedule: &Schedule) -> Vec<Raw> {
    let mut all = Vec::new();
    for node in schedule.all_nodes() {
        for (lane, id) in schedule.lanes(node).enumerate() {
            for id in schedule.lane_instrs(LaneId::new(id)).map(InstrId::new) {
                all.push(Raw {
                    id,
                    after: schedule.after(id).iter().map(|d| d.1).collect(),
                    node,
                    lane: lane as u32,
                    len: schedule.instr(id).len,
                    sources: schedule.sources(id).to_vec(),
                    sinks: schedule.sinks(id).to_vec(),
                });
            }
        }
    }
    all
}

/// Builds the schedule of the given instructions, with the streams and memory of `like`.
fn close(like: &Schedule, raws: &[Raw]) -> Schedule {
    let mut b = Builder::new(*like.collective());
    for node in like.all_nodes() {
        b.scratch(node, like.scratch_elements(node));
    }
    for s in like.all_streams() {
        b.stream(like.stream(s).source, like.stream_sinks(s));
    }
    let mut made: BTreeMap<InstrId, Vec<InstrId>> = BTreeMap::new();
    for r in raws {
        made.entry(r.id).or_default().push(b.combine(r.node, r.lane, r.len, &r.sources, &r.sinks));
    }
    for r in raws {
        for earlier in r.after.iter().filter_map(|id| made.get(id)).flatten() {
            made[&r.id].iter().for_each(|&instr| b.after(instr, *earlier));
        }
    }
    b.finish().unwrap()
}

/// Returns true if the interpreter computes the right result under several orders and granularities.
fn works(schedule: &Schedule) -> bool {
    let c = schedule.collective();
    let data = inputs(c);
    let want = expected(c, &data);
    let settings = [(None, 1), (Some(1), 2), (Some(2), 3), (Some(1), 4), (None, 5)];
    settings.iter().all(|&(chunk, seed)| run(schedule, &data, Options { chunk, seed }).is_ok_and(|out| out == want))
}

/// Verifies a mutant, and compares the result with the interpreter. Returns true if the mutant was refused.
fn judge(what: &str, mutant: &Schedule, always_wrong: bool) -> bool {
    let proof = verify(mutant, Method::Exact);
    let accepted = proof.holds();
    // Fingerprints cannot prove that a contribution occurs "at least once", as a barrier requires.
    if mutant.collective().kind != Kind::Barrier {
        let by_fingerprint = verify(mutant, Method::Fingerprint);
        assert_eq!(accepted, by_fingerprint.holds(), "{what}: the methods differ: {proof:?} {by_fingerprint:?}");
    }
    assert!(!(accepted && always_wrong), "{what} was accepted");
    assert!(!accepted || works(mutant), "{what} was accepted and computes the wrong result");
    !accepted
}

/// Returns schedules of two ranks, of an even and an odd number of ranks with an inner root, and of a power of two
/// ranks.
fn rank_subjects() -> Vec<(String, Schedule)> {
    let mut all = Vec::new();
    for &algorithm in ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Messages)) {
        for &kind in algorithm.info().collectives {
            for (ranks, root) in [(2, 1), (6, 5), (7, 3), (8, 0)] {
                let operators: &[Operator] = match kind {
                    Kind::Barrier => &[Operator::Or],
                    _ if kind.reduces() => &[Operator::Sum, Operator::Ordered],
                    _ => &[Operator::Sum],
                };
                for &operator in operators {
                    let case = common::among(kind, ranks, 3, if kind.has_root() { root } else { 0 }, operator);
                    for params in common::settings(algorithm, &case) {
                        if algorithm.supports(&case, &params).is_ok() {
                            let name = common::label(algorithm, &case, &params);
                            all.push((name, algorithm.build(&case, &params).unwrap().schedule));
                        }
                    }
                }
            }
        }
    }
    all
}

fn subjects() -> Vec<(String, Schedule)> {
    let mut all = rank_subjects();
    for &algorithm in ALGORITHMS {
        for &kind in algorithm.info().collectives {
            for (grid, root) in [(Grid::new(1, 2), 0), (Grid::new(1, 6), 0), (Grid::new(1, 7), 3), (Grid::new(3, 3), 4)]
            {
                for operator in [Operator::Sum, Operator::Ordered] {
                    let root = if kind.has_root() { root } else { 0 };
                    let case = case(kind, grid, 5, root, operator);
                    let settings = [Params::new(), Params::new().with("root", "middle")];
                    for params in &settings {
                        let unused = params.get("root").is_some() && algorithm.name() != "reduce-broadcast";
                        if !unused && algorithm.supports(&case, params).is_ok() {
                            let name = common::label(algorithm, &case, params);
                            all.push((name, algorithm.build(&case, params).unwrap().schedule));
                        }
                    }
                }
            }
        }
    }
    all
}

#[test]
fn dropped_and_repeated_instructions_are_refused() {
    let (mut number, mut tried, mut useless) = (0, 0, 0);
    for (name, schedule) in subjects() {
        let raws = open(&schedule);
        assert!(verify(&close(&schedule, &raws), Method::Exact).holds(), "{name}: nothing is changed");
        for i in 0..raws.len() {
            number += 1;
            if !crate::soak::runs(number) {
                continue;
            }
            let mut dropped = raws.clone();
            dropped.remove(i);
            // A composition may store a block that a later step overwrites before it is read. Without this instruction
            // the result is right, as the interpreter confirms.
            tried += 1;
            useless += u32::from(!judge(&format!("{name}: i{i} dropped"), &close(&schedule, &dropped), false));

            let mut repeated = raws.clone();
            repeated.insert(i, raws[i].clone());
            let streams = raws[i].sources.iter().chain(&raws[i].sinks).any(|o| matches!(o, Operand::Stream(_)));
            judge(&format!("{name}: i{i} repeated"), &close(&schedule, &repeated), streams);
        }
    }
    assert!(useless * 200 <= tried, "{useless} of {tried} instructions are useless");
}

#[test]
fn swapped_and_redirected_instructions_are_refused_where_it_matters() {
    let (mut refused, mut tried, mut number) = (0, 0, 0);
    for (name, schedule) in subjects() {
        let raws = open(&schedule);
        for i in 0..raws.len() {
            number += 1;
            if !crate::soak::runs(number) {
                continue;
            }
            for j in i + 1..raws.len().min(i + 4) {
                // A swap within a lane changes the order. A swap between nodes changes their programs.
                let mut swapped = raws.clone();
                swapped.swap(i, j);
                let (a, b) = ((raws[i].node, raws[i].lane), (raws[j].node, raws[j].lane));
                (swapped[i].node, swapped[i].lane) = a;
                (swapped[j].node, swapped[j].lane) = b;
                tried += 1;
                refused +=
                    u32::from(judge(&format!("{name}: i{i} and i{j} swapped"), &close(&schedule, &swapped), false));
            }
            for (side, n) in [(true, raws[i].sources.len()), (false, raws[i].sinks.len())] {
                for k in 0..n {
                    for redirected in others(&schedule, if side { raws[i].sources[k] } else { raws[i].sinks[k] }) {
                        let mut mutant = raws.clone();
                        if side {
                            mutant[i].sources[k] = redirected;
                        } else {
                            mutant[i].sinks[k] = redirected;
                        }
                        let what = format!("{name}: operand {k} of i{i} becomes {redirected:?}");
                        tried += 1;
                        refused += u32::from(judge(&what, &close(&schedule, &mutant), false));
                    }
                }
            }
        }
    }
    assert!(refused * 10 > tried * 8, "{refused} of {tried} mutants were refused");
}

fn others(schedule: &Schedule, operand: Operand) -> Vec<Operand> {
    match operand {
        Operand::In(x) => vec![Operand::In(x + 1), Operand::Out(x), Operand::Tmp(x)],
        Operand::Out(x) => vec![Operand::Out(x + 1), Operand::In(x), Operand::Tmp(x)],
        Operand::Tmp(x) => vec![Operand::Tmp(x + 1), Operand::In(x), Operand::Out(x)],
        Operand::Stream(s) => {
            let other = StreamId((s.0 + 1) % schedule.stream_count() as u32);
            if other == s { vec![Operand::Tmp(0)] } else { vec![Operand::Stream(other), Operand::Out(0)] }
        }
    }
}

#[test]
fn swapped_operands_are_refused_only_where_the_operator_does_not_commute() {
    for operator in [Operator::Sum, Operator::Ordered] {
        let case = case(Kind::Reduce, Grid::new(1, 5), 3, 2, operator);
        for name in ["chain", "star", "tree", "auto-gen"] {
            let schedule = unisono_algorithms::find(name).unwrap().build(&case, &Params::new()).unwrap().schedule;
            let raws = open(&schedule);
            for (i, raw) in raws.iter().enumerate().filter(|(_, r)| r.sources.len() == 2) {
                let mut mutant = raws.clone();
                mutant[i].sources = vec![raw.sources[1], raw.sources[0]];
                let refused = judge(&format!("{name}: operands of i{i} swapped"), &close(&schedule, &mutant), false);
                assert_eq!(refused, !operator.commutative(), "{name} i{i}");
            }
        }
    }
}
