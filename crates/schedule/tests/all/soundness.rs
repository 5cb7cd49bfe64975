//! Schedules that once passed the proof wrongly, and other properties of proofs.

use unisono_base::{NodeId, limits};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_schedule::{
    Builder, Operand, Schedule, text,
    verify::{Method, Proof, Seed, verify, verify_seeded},
};

const BOTH: [Method; 2] = [Method::Exact, Method::Fingerprint];

fn read(text: &str) -> Schedule {
    text::parse(text).unwrap().0
}

fn codes(proof: &Proof) -> Vec<&str> {
    proof.diagnostics.iter().map(|d| d.code).collect()
}

/// The schedule adds ranks more than once, so that its sums agree with those of an earlier hash whose seed was known.
#[test]
fn a_sum_that_fitted_known_residues_is_refused() {
    let forged = read(include_str!("forged/fingerprint.sched"));
    for method in [Method::Auto, Method::Exact, Method::Fingerprint] {
        let proof = verify(&forged, method);
        assert!(!proof.complete && proof.race_free && proof.deadlock_free, "{:?}", codes(&proof));
    }
}

#[test]
fn expressions_are_compared_and_not_their_hashes() {
    let forged = read(include_str!("forged/repeatable.sched"));
    for method in [Method::Auto, Method::Exact, Method::Fingerprint] {
        let proof = verify(&forged, method);
        assert!(proof.holds() && !proof.repeatable, "{:?}", codes(&proof));
    }
}

fn allreduce(ranks: u32, operator: Operator, dtype: Dtype) -> Builder {
    Builder::new(Collective::new(Kind::Allreduce, ranks, 8, 0, operator, dtype).unwrap())
}

/// Returns an exchange of two ranks' inputs. Either each rank has its own operand first, or both have rank 0's first.
fn exchange(operator: Operator, dtype: Dtype, own_first: bool) -> Schedule {
    let mut b = allreduce(2, operator, dtype);
    let streams = [b.stream(NodeId(0), &[NodeId(1)]), b.stream(NodeId(1), &[NodeId(0)])].map(Operand::Stream);
    for rank in 0..2 {
        b.combine(NodeId(rank), 0, 8, &[Operand::In(0)], &[streams[rank as usize]]);
        let mut sources = [Operand::In(0), streams[1 - rank as usize]];
        if !own_first && rank == 1 {
            sources.swap(0, 1);
        }
        b.combine(NodeId(rank), 0, 8, &sources, &[Operand::Out(0)]);
    }
    b.finish().unwrap()
}

#[test]
fn minima_of_floats_are_repeatable_in_one_order_only() {
    for dtype in [Dtype::F32, Dtype::I64] {
        for operator in [Operator::Sum, Operator::Prod, Operator::Min, Operator::Max] {
            let picks = matches!(operator, Operator::Min | Operator::Max) && dtype == Dtype::F32;
            for method in BOTH {
                for own_first in [false, true] {
                    let proof = verify(&exchange(operator, dtype, own_first), method);
                    assert!(proof.holds());
                    assert_eq!(proof.repeatable, !(picks && own_first), "{operator:?} {dtype:?} {own_first}");
                }
            }
        }
    }
}

#[test]
fn a_seed_repeats_a_proof() {
    let schedule = exchange(Operator::Sum, Dtype::F32, true);
    let proof = verify(&schedule, Method::Fingerprint);
    let seed = proof.seed.unwrap();
    assert_eq!(verify_seeded(&schedule, Method::Fingerprint, seed), proof);
    assert_ne!(verify(&schedule, Method::Fingerprint).seed, Some(seed));
    // One expression of two ranks was compared.
    assert_eq!(proof.error_probability, Some(2.0 * 2f64.powi(-192)));
    let exact = verify(&schedule, Method::Exact);
    assert_eq!((exact.seed, exact.error_probability), (None, None));
    assert_eq!(exact, verify(&schedule, Method::Exact));
}

/// Returns the expression class of a reduction of three ranks to rank 0 with the given order of sources.
fn reduced(sources: impl Fn(Operand, Operand, Operand) -> [Operand; 3]) -> Option<String> {
    let mut b = Builder::new(Collective::new(Kind::Reduce, 3, 8, 0, Operator::Sum, Dtype::F32).unwrap());
    let streams = [1, 2].map(|rank| b.stream(NodeId(rank), &[NodeId(0)])).map(Operand::Stream);
    for rank in 1..3 {
        b.combine(NodeId(rank), 0, 8, &[Operand::In(0)], &[streams[rank as usize - 1]]);
    }
    b.combine(NodeId(0), 0, 8, &sources(Operand::In(0), streams[0], streams[1]), &[Operand::Out(0)]);
    let schedule = b.finish().unwrap();
    let [exact, other] = BOTH.map(|method| verify(&schedule, method).expression_class);
    assert_eq!(exact, other);
    exact
}

#[test]
fn a_name_is_the_same_for_swapped_operands_only() {
    let name = reduced(|a, b, c| [a, b, c]);
    assert_eq!(name.as_ref().map(String::len), Some(32));
    assert_eq!(reduced(|a, b, c| [b, a, c]), name);
    assert_ne!(reduced(|a, b, c| [b, c, a]), name);
    assert_ne!(reduced(|a, b, c| [a, c, b]), name);
}

/// Rank 0 adds its input twice, into unused memory or into its output.
#[test]
fn a_rank_that_is_added_twice_is_refused_where_it_counts() {
    for (needed, method) in [(false, BOTH[0]), (false, BOTH[1]), (true, BOTH[0]), (true, BOTH[1])] {
        let mut b = allreduce(1, Operator::Sum, Dtype::F32);
        let tmp = Operand::Tmp(b.scratch(NodeId(0), 8));
        b.combine(NodeId(0), 0, 8, &[Operand::In(0), Operand::In(0)], &[tmp]);
        b.combine(NodeId(0), 0, 4, &[Operand::In(0), Operand::In(4)], &[tmp]);
        b.combine(NodeId(0), 0, 8, &[if needed { tmp } else { Operand::In(0) }], &[Operand::Out(0)]);
        let proof = verify(&b.finish().unwrap(), method);
        assert_eq!(proof.holds(), !needed);
        let expected: &[&str] = match (needed, method) {
            (false, _) => &[],
            (true, Method::Exact) => &["misaligned", "twice"],
            (true, _) => &["misaligned", "incomplete"],
        };
        assert_eq!(codes(&proof), expected);
        if method == Method::Exact && needed {
            assert_eq!(proof.diagnostics.iter().map(|d| d.instruction).collect::<Vec<_>>(), [Some(1), Some(0)]);
        }
    }
}

#[test]
fn a_read_of_nothing_is_refused_always() {
    for method in BOTH {
        let mut b = allreduce(1, Operator::Sum, Dtype::F32);
        let tmp = b.scratch(NodeId(0), 16);
        b.combine(NodeId(0), 0, 8, &[Operand::Tmp(tmp)], &[Operand::Tmp(tmp + 8)]);
        b.combine(NodeId(0), 0, 8, &[Operand::In(0)], &[Operand::Out(0)]);
        assert_eq!(codes(&verify(&b.finish().unwrap(), method)), ["undefined"]);
    }
}

/// Each copy is twice as long as the previous one, and no adjacent elements can be merged.
#[test]
fn contents_that_double_with_each_instruction_are_refused() {
    let mut b = Builder::new(Collective::new(Kind::Allreduce, 1, 2, 0, Operator::Sum, Dtype::F32).unwrap());
    let tmp = |start| Operand::Tmp(start);
    b.scratch(NodeId(0), 1 << 31);
    b.combine(NodeId(0), 0, 1, &[Operand::In(1)], &[tmp(0)]);
    b.combine(NodeId(0), 0, 1, &[Operand::In(0)], &[tmp(1)]);
    for n in 1..31 {
        b.combine(NodeId(0), 0, 1 << n, &[tmp(0)], &[tmp(1 << n)]);
    }
    b.combine(NodeId(0), 0, 2, &[Operand::In(0)], &[Operand::Out(0)]);
    let schedule = b.finish().unwrap();
    assert_ne!(limits::get().1, u64::MAX, "limits hold in tests");
    let proof = verify(&schedule, Method::Auto);
    assert_eq!(codes(&proof), ["limit"]);
    assert!(proof.diagnostics[0].message.contains("--no-limit"), "{}", proof.diagnostics[0]);
}

#[test]
fn seeds_are_named_where_they_are_wrong() {
    assert!("no seed".parse::<Seed>().unwrap_err().to_string().contains("'no seed'"));
}
