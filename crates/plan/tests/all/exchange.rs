//! Messages as schedules: proved, run with data, and refused where anything is missing or in the wrong place.

use unisono_collective::{Collective, Dtype, Kind, Operator, Required, Source};
use unisono_plan::exchange::{Message, direct_reduction, messages_schedule, whole_elements};
use unisono_schedule::{
    interpret,
    verify::{Method, Seed, verify, verify_with},
};

/// Every pair with some length, or nothing, drawn by a small generator.
fn random(ranks: u32, seed: u64) -> Vec<Message> {
    let mut state = seed;
    let mut draw = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let pairs = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to))).filter(|(from, to)| from != to);
    pairs.map(|(from, to)| Message { from, to, elements: draw(6) }).filter(|m| m.elements % 3 > 0).collect()
}

#[test]
fn messages_are_proved_and_arrive() {
    for (ranks, seed) in [(2, 1), (3, 2), (5, 3), (8, 4), (8, 5)] {
        let messages = random(ranks, seed);
        let (schedule, required) = messages_schedule(ranks, Dtype::I64, &messages).unwrap();
        for method in [Method::Exact, Method::Fingerprint] {
            let proof = verify_with(&schedule, method, Seed::random(), &required);
            assert!(proof.holds() && proof.complete && proof.race_free, "{:?}", proof.diagnostics);
        }
        // The collective is no alltoall of whole blocks, and the usual proof says so.
        assert!(!verify(&schedule, Method::Auto).holds());

        // Number every element that is sent; what arrives is counted out from the list of messages alone.
        let len = schedule.collective().input_len(0) as usize;
        let inputs: Vec<Vec<i64>> =
            (0..i64::from(ranks)).map(|r| (0..len as i64).map(|k| 1000 * r + k).collect()).collect();
        let outputs = interpret::run(&schedule, &inputs, interpret::Options { chunk: Some(1), seed }).unwrap();
        for to in 0..ranks {
            let mut expected = Vec::new();
            for m in messages.iter().filter(|m| m.to == to) {
                let before = messages.iter().filter(|o| o.from == m.from && o.to < to).map(|o| o.elements).sum::<u64>();
                expected.extend((before..before + m.elements).map(|k| i64::from(1000 * m.from) + k as i64));
            }
            assert_eq!(outputs[to as usize][..expected.len()], expected);
        }
    }
}

#[test]
fn a_proof_notices_what_is_wrong() {
    let messages = [Message { from: 0, to: 1, elements: 4 }, Message { from: 2, to: 1, elements: 3 }];
    let (schedule, required) = messages_schedule(3, Dtype::F64, &messages).unwrap();
    let refused = |change: &dyn Fn(&mut Vec<Vec<Required>>)| {
        let mut other = required.clone();
        change(&mut other);
        !verify_with(&schedule, Method::Auto, Seed::random(), &other).holds()
    };
    assert!(!refused(&|_| {}));
    assert!(refused(&|r| r[1][0].source = Source::Copy { rank: 2 }), "from another rank");
    assert!(refused(&|r| r[1][0].input_start += 1), "another element");
    assert!(refused(&|r| r[1][1].span.len += 1), "more than arrives");
    assert!(refused(&|r| r[0].push(required[1][0])), "to another rank");
}

#[test]
fn reductions_by_messages_are_proved() {
    for kind in [Kind::Reduce, Kind::Allreduce, Kind::ReduceScatter] {
        for ranks in 2..7 {
            let root = if kind == Kind::Reduce { u64::from(ranks) / 2 } else { 0 };
            let collective = Collective::new(kind, ranks, 3, root, Operator::Ordered, Dtype::I64).unwrap();
            let proof = verify(&direct_reduction(collective).unwrap(), Method::Exact);
            assert!(proof.holds() && proof.repeatable, "{kind} among {ranks}: {:?}", proof.diagnostics);
        }
    }
    let wrong = Collective::new(Kind::Gather, 4, 3, 0, Operator::Sum, Dtype::I64).unwrap();
    assert!(direct_reduction(wrong).is_err());
}

#[test]
fn elements_of_any_size_are_whole_ones() {
    assert_eq!(whole_elements(8, 5), (Dtype::F64, 5));
    assert_eq!(whole_elements(24, 5), (Dtype::F64, 15));
    assert_eq!(whole_elements(4, 5), (Dtype::F32, 5));
    assert_eq!(whole_elements(2, 5), (Dtype::F16, 5));
    assert_eq!(whole_elements(1, 5), (Dtype::F16, 3));
    let huge = [Message { from: 0, to: 1, elements: 1 << 33 }];
    assert!(messages_schedule(2, Dtype::F64, &huge).unwrap_err().to_string().contains("elements"));
}
