//! Tests of `tuning::proposals`.

use std::collections::BTreeSet;

use unisono_algorithms::Params;
use unisono_collective::{Dtype, Kind, Operator};
use unisono_machine::Machine;
use unisono_plan::tuning::{SizeClass, proposals, propose, settings, worthwhile};
use unisono_schedule::verify::{self, Method};

#[test]
fn classes_cover_all_sizes_once() {
    let bounds = |bytes| (SizeClass::of(bytes).first_bytes, SizeClass::of(bytes).last_bytes);
    assert_eq!([0, 1, 2, 3, 4, 1023, 1024].map(bounds)[..5], [(0, 0), (1, 1), (2, 3), (2, 3), (4, 7)]);
    assert_eq!((bounds(1023), bounds(1024)), ((512, 1023), (1024, 2047)));
    assert_eq!(bounds(u64::MAX), (1 << 63, u64::MAX));
}

#[test]
fn proposals_are_the_first_candidates_whose_ranks_end_with_equal_bits() {
    let machine = Machine::preset("archer").unwrap();
    for (kind, operator) in [(Kind::Allreduce, Operator::Sum), (Kind::Allreduce, Operator::Ordered)] {
        let found = proposals(kind, &machine, 6, 1000, 3, operator).unwrap();
        assert_eq!(found.len(), 3);
        let names: BTreeSet<_> = found.iter().map(|plan| plan.best().algorithm.name()).collect();
        assert_eq!(names.len(), 3);
        assert!(found.is_sorted_by(|a, b| a.best().time.seconds <= b.best().time.seconds));
        assert!(found.iter().all(|p| verify::verify(p.schedule().unwrap(), Method::Auto).repeatable));
    }
    for params in [None, Some(&Params::new())] {
        assert!(propose(Kind::Allreduce, &machine, 6, 1000, "dissemination", params).unwrap().is_none());
        assert!(propose(Kind::Allreduce, &machine, 6, 1000, "ring", params).unwrap().is_some());
    }
}

/// Proposals for a measurement are those that a plan lists, with the same parameters and the same time.
#[test]
fn an_algorithm_is_proposed_as_a_plan_lists_it() {
    let mut apart = 0;
    for (machine, kind, ranks, elements) in [
        ("archer", Kind::Broadcast, 9, 174),
        ("archer-median", Kind::Gather, 7, 546_227),
        ("paper-sim", Kind::Reduce, 10, 4),
        ("paper-sim", Kind::Scatter, 8, 5),
    ] {
        let machine = Machine::preset(machine).unwrap();
        for listed in proposals(kind, &machine, ranks, elements, 3, Operator::Sum).unwrap() {
            let (name, best) = (listed.best().algorithm.name(), listed.best());
            let proposed = propose(kind, &machine, ranks, elements, name, None).unwrap().unwrap();
            assert_eq!(proposed.best().params, best.params, "{name} for {kind} on {}", machine.name());
            assert_eq!(proposed.best().time.seconds, best.time.seconds, "{name} for {kind} on {}", machine.name());
            let usual = propose(kind, &machine, ranks, elements, name, Some(&Params::new())).unwrap();
            apart += u32::from(usual.is_some_and(|usual| usual.best().time.seconds > best.time.seconds));
        }
    }
    assert!(apart >= 4, "the best parameters are rarely those that a user gets who names none: {apart}");
}

/// The best parameters of each algorithm come before the second best parameters of any algorithm. The first entry is
/// the fastest proposal, and the default parameters of each algorithm occur.
#[test]
fn settings_try_each_algorithm_before_they_vary_one() {
    let machine = Machine::preset("archer").unwrap();
    for (kind, ranks, elements) in [(Kind::Broadcast, 8, 1 << 20), (Kind::Reduce, 7, 1 << 14), (Kind::Allreduce, 6, 9)]
    {
        let found = settings(kind, &machine, ranks, elements, "openmpi-rules").unwrap();
        let place = |at: usize| found[..at].iter().filter(|of| of.0 == found[at].0).count();
        let places: Vec<usize> = (0..found.len()).map(place).collect();
        assert!(places.is_sorted() && places[found.len() - 1] > 0, "{kind}: {found:?}");
        let best = proposals(kind, &machine, ranks, elements, 1, Operator::Sum).unwrap();
        let first = propose(kind, &machine, ranks, elements, found[0].0, Some(&found[0].1)).unwrap();
        if let Some(first) = first {
            assert_eq!(first.best().time.seconds, best[0].best().time.seconds);
        }
        for (name, _) in &found {
            // The binary tree of Open MPI has another order than the default.
            let own = if *name == "binary-tree" { Params::new().with("order", "levels") } else { Params::new() };
            let usual = propose(kind, &machine, ranks, elements, name, Some(&own)).unwrap();
            assert!(usual.is_none_or(|usual| found.contains(&(name, usual.best().params.clone()))), "{name}");
        }
    }
}

#[test]
fn a_class_is_planned_at_its_middle() {
    let machine = Machine::preset("archer").unwrap();
    let plan = SizeClass::of(5000).plan(Kind::Allreduce, &machine, 4, Operator::Sum, 0).unwrap().unwrap();
    assert_eq!(plan.problem.collective.elements, (4096 + 8191) / 2 / 4);
    let ordered = SizeClass::of(1).plan(Kind::Allreduce, &machine, 4, Operator::Ordered, 0).unwrap().unwrap();
    assert_eq!((ordered.problem.collective.elements, ordered.problem.collective.dtype), (1, Dtype::I64));
}

#[test]
fn what_is_worth_timing_on_one_number_of_ranks_is_timed_on_all() {
    let machine = Machine::preset("archer").unwrap();
    let found = worthwhile(Kind::Broadcast, &machine, &[1, 1 << 20], &[3, 8], 2).unwrap();
    assert_eq!(found.len(), 2);
    for (names, count) in found.iter().zip([1, 1 << 20]) {
        assert!(names.is_sorted());
        for n in [3, 8] {
            for plan in proposals(Kind::Broadcast, &machine, n, count, 2, Operator::Sum).unwrap() {
                assert!(names.contains(&plan.best().algorithm.name()));
            }
        }
    }
}
