//! Laws of the points of sweeps for random problems on every kind of machine. Each algorithm has one time in a point,
//! so a baseline among the candidates takes at least as long as the best. A named algorithm takes the time of its plan,
//! on a wafer with its default parameters. On one rank no message is sent, so the ratio is 1.

use unisono_algorithms::Params;
use unisono_machine::Shape;
use unisono_plan::{Part, Point, Problem, plan, plan_at, sweep_point};

use crate::common::problems::{Drawn, on_endpoints, on_networks, on_reducing_switches, on_wafers};

fn point(problem: &Problem, names: &[String], baseline: Option<&str>) -> Point {
    sweep_point(problem.clone(), names, baseline, &Params::new()).unwrap()
}

fn check_ratio(one: &Point, case: &str) {
    if let Some(&seconds) = one.seconds_by_algorithm.get(&one.baseline) {
        let ratio = one.baseline_ratio.unwrap_or_else(|| panic!("{case}: no ratio"));
        assert_eq!(one.baseline_seconds, seconds, "{case}");
        assert_eq!(one.baseline_source, one.source_by_algorithm[&one.baseline], "{case}");
        assert!(ratio >= 1.0 - 1e-9 && (one.best != one.baseline || ratio == 1.0), "{case}: {ratio}");
    }
}

fn check(drawn: fn(u64) -> Drawn, count: u64) {
    for seed in if crate::soak::is_on() { 0..1000 } else { 0..count } {
        let one = drawn(seed);
        let (problem, machine) = (one.problem().unwrap(), one.machine.name());
        let case = format!("{seed}: {} of {} on {} of {machine}", one.kind, one.elements, one.part);
        let customary = point(&problem, &[], None);
        check_ratio(&customary, &case);
        let names: Vec<_> = customary.seconds_by_algorithm.keys().collect();
        let drawn_baseline = names[seed as usize % names.len()];
        check_ratio(&point(&problem, &[], Some(drawn_baseline)), &case);
        let named = point(&problem, std::slice::from_ref(&customary.baseline), None);
        let is_wafer = one.machine.kind() == "wafer";
        let planned = if is_wafer {
            plan_at(problem, &customary.baseline, &Params::new())
        } else {
            plan(problem, Some(&customary.baseline), &Params::new())
        }
        .unwrap();
        assert_eq!(named.seconds, planned.best().time.seconds, "{case}: {}", customary.baseline);
        let alone = Drawn { part: Part::Shape(Shape::line(1)), root: 0, ..one };
        for baseline in [None, Some(drawn_baseline.as_str())] {
            match sweep_point(alone.problem().unwrap(), &[], baseline, &Params::new()) {
                Ok(alone) => assert_eq!(alone.baseline_ratio, Some(1.0), "{case}: alone"),
                Err(e) => assert!(e.is_unsupported(), "{case}: {e}"),
            }
        }
    }
}

#[test]
fn no_baseline_on_endpoints_beats_the_best() {
    check(on_endpoints, 8);
}

#[test]
fn no_baseline_on_networks_beats_the_best() {
    check(on_networks, 8);
}

#[test]
fn no_baseline_on_wafers_beats_the_best() {
    check(on_wafers, 8);
}

#[test]
fn no_baseline_on_reducing_switches_beats_the_best() {
    check(on_reducing_switches, 8);
}
