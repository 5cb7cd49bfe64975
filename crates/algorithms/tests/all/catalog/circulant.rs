//! Tests of `circulant`: each number of ranks is proved.

use unisono_algorithms::{Case, Params, Ranks, find};
use unisono_base::mix;
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_schedule::verify::{Method, verify};

use crate::soak;

fn case(kind: Kind, ranks: u32, elements: u64, root: u32) -> Case<'static> {
    let collective = Collective::new(kind, ranks, elements, root.into(), Operator::Sum, Dtype::I64).unwrap();
    Case::on_ranks(collective, Ranks { latency_ns: 400.0, issue_ns: 100.0, ..Ranks::default() })
}

/// Proves a collective of an arbitrary length and root.
fn proves(kind: Kind, ranks: u32, blocks: u32) {
    let drawn = mix(u64::from(ranks) << 16 | u64::from(blocks));
    let root = if kind.has_root() { (drawn % u64::from(ranks)) as u32 } else { 0 };
    let case = case(kind, ranks, 1 + (drawn >> 32) % 97, root);
    let params = if kind.has_root() { Params::new().with("blocks", blocks) } else { Params::new() };
    let schedule = find("circulant").unwrap().build(&case, &params).unwrap().schedule;
    let proof = verify(&schedule, Method::Exact);
    let holds = proof.holds() && proof.complete && proof.deadlock_free && proof.race_free;
    assert!(holds, "{kind} of {ranks} ranks in {blocks} blocks: {proof:?}");
}

#[test]
fn broadcasts_and_reduces_are_proved_for_each_number_of_ranks() {
    // Proves all numbers of ranks up to `all`, and some numbers up to `most`.
    let (all, most, many) = if soak::is_on() { (512, 4096, 60) } else { (64, 464, 6) };
    let drawn = (0..many).map(|n| all + 1 + (mix(n) % u64::from(most - all)) as u32);
    for ranks in (2..=all).chain(drawn) {
        for kind in [Kind::Broadcast, Kind::Reduce] {
            // The number of blocks is 1, and a number drawn for each number of ranks.
            for blocks in [1, 2 + (mix(ranks.into()) % 19) as u32] {
                proves(kind, ranks, blocks);
            }
        }
    }
}

#[test]
fn collectives_without_root_are_proved_for_each_number_of_ranks() {
    for ranks in (2..=if soak::is_on() { 256 } else { 64 }).chain([100]) {
        for kind in [Kind::Allgather, Kind::ReduceScatter, Kind::Allreduce] {
            proves(kind, ranks, 1);
        }
    }
}
