//! Every registered algorithm on lines of 1 to 17 PEs and on grids, with lengths that do not divide evenly, every
//! distinct root and all candidate parameters: it is proved, it computes the right result at every granularity, and its
//! closed-form terms equal those of its schedule.

use crate::{common, soak};

use common::{DEPTH_CYCLES, every_case, expected, inputs, label};
use unisono_algorithms::Profile;
use unisono_collective::{Kind, Operator};
use unisono_cost::wafer::{MODELS, measure};
use unisono_lower::Phase;
use unisono_schedule::{
    interpret::{Options, run},
    verify::{Method, verify},
};

fn proves_and_computes(elements: u64) {
    let mut cases = 0;
    every_case(&[elements], Operator::Sum, |algorithm, case, params| {
        let name = label(algorithm, case, params);
        let placed = algorithm.build(case, params).unwrap();
        assert_eq!(placed.grid().unwrap().check(), [], "{name}");
        let proof = verify(&placed.schedule, Method::Exact);
        assert!(proof.holds() && proof.complete && proof.deadlock_free && proof.race_free, "{name}: {proof:?}");
        assert!(proof.repeatable, "{name}: all algorithms so far give the same bits everywhere");
        let by_fingerprint = verify(&placed.schedule, Method::Fingerprint);
        assert!(by_fingerprint.holds() && by_fingerprint.repeatable, "{name}: {by_fingerprint:?}");
        assert_eq!(by_fingerprint.expression_class, proof.expression_class, "{name}");

        let c = placed.schedule.collective();
        let data = inputs(c);
        for (chunk, seed) in [(None, 1), (Some(1), 2), (Some(3), 3)] {
            let out = run(&placed.schedule, &data, Options { chunk, seed }).unwrap();
            assert_eq!(out, expected(c, &data), "{name} in chunks of {chunk:?}");
        }
        cases += 1;
    });
    assert!(cases > soak::cases(1800), "the sweep covers {cases} cases only");
}

#[test]
fn proves_and_computes_nothing() {
    proves_and_computes(0);
}

#[test]
fn proves_and_computes_one_element() {
    proves_and_computes(1);
}

#[test]
fn proves_and_computes_two_elements() {
    proves_and_computes(2);
}

#[test]
fn proves_and_computes_5_elements() {
    proves_and_computes(5);
}

#[test]
fn proves_and_computes_19_elements() {
    proves_and_computes(19);
}

#[test]
fn keeps_the_order_where_the_operator_does_not_commute() {
    let mut cases = 0;
    every_case(&[3], Operator::Ordered, |algorithm, case, params| {
        let name = label(algorithm, case, params);
        let placed = algorithm.build(case, params).unwrap();
        for method in [Method::Exact, Method::Fingerprint] {
            let proof = verify(&placed.schedule, method);
            assert!(proof.holds(), "{name}: {proof:?}");
        }
        let c = placed.schedule.collective();
        let data = inputs(c);
        assert_eq!(run(&placed.schedule, &data, Options::default()).unwrap(), expected(c, &data), "{name}");
        cases += 1;
    });
    assert!(cases > soak::cases(1000), "the sweep covers {cases} cases only");
}

#[test]
fn closed_form_terms_are_those_of_the_schedule() {
    every_case(&[0, 1, 4, 19, 64], Operator::Sum, |algorithm, case, params| {
        let name = label(algorithm, case, params);
        let Some(Profile::Terms(estimate)) = algorithm.profile(case, params) else {
            return;
        };
        let placed = algorithm.build(case, params).unwrap();
        let measured = measure(placed.grid().unwrap()).unwrap();
        let stated: Vec<&Phase> = estimate.phases.iter().filter(|p| p.terms.depth > 0.0).collect();
        for model in MODELS {
            let slowest = model.slowest(measured.clone(), DEPTH_CYCLES);
            assert_eq!(slowest.phases.len(), stated.len(), "{name}");
            for (a, b) in slowest.phases.iter().zip(&stated) {
                assert_eq!(a.name, b.name, "{name}");
                let pairs = [
                    ("energy", a.terms.energy, b.terms.energy),
                    ("distance", a.terms.distance, b.terms.distance),
                    ("depth", a.terms.depth, b.terms.depth),
                    ("contention", a.terms.contention, b.terms.contention),
                    ("links", a.terms.links, b.terms.links),
                    ("link load", a.terms.max_link_load, b.terms.max_link_load),
                    ("datapath", a.terms.datapath, b.terms.datapath),
                ];
                for (what, computed, stated) in pairs {
                    assert!((computed - stated).abs() < 1e-6, "{name}, {}: {what} {computed} {stated}", a.name);
                }
            }
        }
    });
}

#[test]
fn each_collective_is_made_by_some_algorithm() {
    for kind in [Kind::Allreduce, Kind::Broadcast, Kind::Message, Kind::Reduce] {
        assert!(unisono_algorithms::ALGORITHMS.iter().any(|a| a.info().collectives.contains(&kind)), "{kind}");
    }
}
