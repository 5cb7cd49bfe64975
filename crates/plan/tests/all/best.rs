//! Plans that need only the best candidate choose the same candidate as full plans.

use unisono_algorithms::Params;
use unisono_collective::Kind;
use unisono_machine::{Machine, Shape};
use unisono_plan::{Part, Plan, PlanError, Problem, Request, Timed, plan, plan_best};

use crate::common::problems::on_endpoints;

const MACHINES: [&str; 4] = ["archer", "dgx-h100-x8", "hx2mesh-small", "torus2d-small"];

#[test]
fn the_best_is_that_of_all_candidates() {
    is_that_of_all(&MACHINES[..2]);
}

#[test]
fn the_best_is_that_of_all_candidates_on_grids() {
    is_that_of_all(&MACHINES[2..]);
}

#[test]
fn the_best_is_that_of_all_candidates_among_random_ranks() {
    let drawn = |seed| (seed, on_endpoints(u64::from(seed)));
    let dropped = (0..crate::soak::cases(100)).map(drawn).map(|(seed, drawn)| {
        let what = format!("{} of {} on {} (seed {seed})", drawn.kind, drawn.elements, drawn.machine.to_toml());
        dropped_from(|| drawn.problem(), &what)
    });
    assert!(dropped.sum::<usize>() > 0);
}

fn is_that_of_all(machines: &[&str]) {
    let kinds: Vec<Kind> = Kind::ALL.iter().copied().filter(|kind| *kind != Kind::Message).collect();
    let (mut dropped, mut number) = (0, 0);
    for &name in machines {
        let machine = Machine::preset(name).unwrap();
        for ranks in [7, 16] {
            for &kind in &kinds {
                for elements in [1000, 1 << 20] {
                    number += 1;
                    if !crate::soak::runs_often(number) {
                        continue;
                    }
                    let part = Part::Shape(Shape::line(ranks));
                    let elements = if kind == Kind::Barrier { 0 } else { elements };
                    let request = Request::new(kind, &machine, part, elements);
                    dropped +=
                        dropped_from(|| Problem::new(&request), &format!("{kind} of {elements} on {ranks} of {name}"));
                }
            }
        }
    }
    assert!(dropped > crate::soak::cases(50) as usize, "{dropped} candidates were dropped");
}

/// Plans all candidates and the best one, and compares both best candidates. Returns the number of candidates whose
/// timing stopped.
fn dropped_from(problem: impl Fn() -> Result<Problem, PlanError>, what: &str) -> usize {
    let planned = |plan: fn(Problem, Option<&str>, &Params) -> Result<Plan, PlanError>| {
        problem().and_then(|problem| plan(problem, None, &Params::new())).ok()
    };
    let (all, best) = (planned(plan), planned(plan_best));
    assert_eq!(all.is_some(), best.is_some(), "{what}");
    let (Some(all), Some(best)) = (all, best) else { return 0 };
    let facts = |one: &Timed| (one.algorithm.name(), one.params.to_string(), one.time.seconds, one.source);
    assert_eq!(facts(all.best()), facts(best.best()), "{what}");
    all.candidates.len().checked_sub(best.candidates.len()).expect(what)
}
