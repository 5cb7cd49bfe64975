use proptest::prelude::*;
use unisono_algorithms::{
    Params,
    multiplying::{Stages, list},
};
use unisono_collective::{Collective, Operator};
use unisono_schedule::{
    interpret::{Element, Options, run},
    verify::{Method, Proof, verify},
};

use super::{algorithm, built, case};

fn proves(stages: &Stages) -> Proof {
    let proof = verify(&built(&case(stages.ranks(), 1, Operator::Sum), &stages.to_string()), Method::Exact);
    assert!(proof.holds() && proof.complete && proof.repeatable, "{stages} on {}: {proof:?}", stages.ranks());
    assert_eq!(proof.scratch_bytes_max.0, 0, "{stages}: streams feed the reduction");
    proof
}

/// Proves all 40,275 schedules of 2 to 64 ranks; except in long runs, a fifth of them.
#[test]
fn every_schedule_up_to_64_ranks_proves() {
    let mut listed = 0;
    for ranks in 2..=64 {
        for stages in list(ranks) {
            listed += 1;
            if crate::soak::runs(listed) {
                proves(&stages);
            }
        }
    }
    assert_eq!(listed, 440 + 31_949 + 7_886);
}

/// Returns inputs that differ between ranks and elements. They are affine maps, whose composition does not commute.
fn inputs(c: &Collective) -> Vec<Vec<i64>> {
    let value = |rank: u32, k: u32| i64::from(rank * 7919 + k * 104_729 + 3) << 32 | i64::from(rank * 31 + k + 1);
    (0..c.ranks).map(|rank| (0..c.elements).map(|k| value(rank, k)).collect()).collect()
}

fn computes(stages: &Stages, operator: Operator, elements: u64) {
    let schedule = built(&case(stages.ranks(), elements, operator), &stages.to_string());
    let data = inputs(schedule.collective());
    let sum = |k: usize| data[1..].iter().fold(data[0][k], |sum, x| i64::combine(operator, sum, x[k]));
    let wanted: Vec<i64> = (0..elements as usize).map(sum).collect();
    let out = run(&schedule, &data, Options { chunk: Some(1), seed: 7 }).unwrap();
    assert!(out.iter().all(|o| *o == wanted), "{stages} on {} by {operator}", stages.ranks());
}

#[test]
fn every_schedule_up_to_20_ranks_computes() {
    for ranks in 1..=20 {
        for stages in list(ranks) {
            computes(&stages, Operator::Sum, 3);
            if stages.keeps_order() {
                computes(&stages, Operator::Ordered, 2);
            }
        }
    }
}

/// Schedules that claim to keep the order keep it, and other schedules are refused with the reason.
#[test]
fn order_is_kept_or_refused() {
    for ranks in 2..=16 {
        let case = case(ranks, 1, Operator::Ordered);
        for stages in list(ranks) {
            let params = Params::new().with("schedule", &stages);
            match algorithm().supports(&case, &params) {
                Ok(()) => {
                    let proof = verify(&algorithm().build(&case, &params).unwrap().schedule, Method::Exact);
                    assert!(stages.keeps_order() && proof.holds() && proof.repeatable, "{stages}: {proof:?}");
                }
                Err(e) => {
                    assert!(!stages.keeps_order());
                    let wanted = format!(
                        "recursive-multiplying does not support this case: schedule {stages} reorders operands, and \
                         operator ordered does not commute; merge one rank"
                    );
                    assert_eq!(e.to_string(), wanted);
                }
            }
        }
        for params in algorithm().candidates(&case).into_iter().chain([Params::new()]) {
            algorithm().supports(&case, &params).unwrap();
            assert!(verify(&algorithm().build(&case, &params).unwrap().schedule, Method::Exact).holds());
        }
    }
}

/// The expression class of the result identifies the order of reduction: schedules with different stages give different
/// bits.
#[test]
fn schedules_differ_in_their_expression() {
    let class = |text: &str| proves(&Stages::parse(text, 8).unwrap()).expression_class.unwrap();
    assert_ne!(class("a8"), class("a2,a4"));
    assert_ne!(class("a2,a4"), class("a4,a2"));
}

#[test]
fn what_would_not_fit_memory_is_refused() {
    let case = case(65_537, 1, Operator::Sum);
    let error = algorithm().build(&case, &Params::new().with("schedule", "a65537")).unwrap_err();
    assert!(error.to_string().contains("4295032832 messages; at most 67108864 are made"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::soak::cases(60), ..ProptestConfig::default() })]

    /// Proves random schedules of up to 600 ranks.
    #[test]
    fn larger_schedules_prove(
        kind in 0..3u32,
        a in 2..7u32,
        b in 2..7u32,
        middle in prop::collection::vec(2..4u32, 0..3),
        rest in 1..40u32,
    ) {
        let inner = middle.iter().product::<u32>();
        let text = |s: &[u32]| s.iter().map(|f| format!("a{f}")).collect::<Vec<_>>().join(",");
        let plain = text(&middle);
        let join = |parts: [String; 3]| parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(",");
        let (ranks, text) = match kind {
            0 => (a * inner * b, join([format!("a{a}"), plain, format!("a{b}")])),
            1 => {
                let leaders = rest.min(inner);
                let wrap = format!("{}m{a}", leaders * a);
                (inner + leaders * (a - 1), join([format!("c{wrap}"), plain, format!("e{wrap}")]))
            }
            _ => {
                let first = format!("m{rest}g{}a{a}", inner * b);
                (rest + a * inner * b, join([first, plain, format!("n{rest}g{}a{b}", a * inner)]))
            }
        };
        proves(&Stages::parse(&text, ranks).unwrap());
    }
}
