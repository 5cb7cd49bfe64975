//! Plans that need only the best candidate choose the same candidate as full plans.

use unisono_algorithms::Params;
use unisono_collective::Kind;
use unisono_machine::{Machine, Shape};
use unisono_plan::{Part, Plan, PlanError, Problem, Request, plan, plan_best};

const MACHINES: [&str; 4] = ["archer", "dgx-h100-x8", "hx2mesh-small", "torus2d-small"];

#[test]
fn the_best_is_that_of_all_candidates() {
    is_that_of_all(&MACHINES[..2]);
}

#[test]
fn the_best_is_that_of_all_candidates_on_grids() {
    is_that_of_all(&MACHINES[2..]);
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
                    let problem = || {
                        let part = Part::Shape(Shape::line(ranks));
                        Problem::new(&Request::new(
                            kind,
                            &machine,
                            part,
                            if kind == Kind::Barrier { 0 } else { elements },
                        ))
                    };
                    let planned = |plan: fn(Problem, Option<&str>, &Params) -> Result<Plan, PlanError>| {
                        problem().and_then(|problem| plan(problem, None, &Params::new())).ok()
                    };
                    let (all, best) = (planned(plan), planned(plan_best));
                    assert_eq!(all.is_some(), best.is_some());
                    let (Some(all), Some(best)) = (all, best) else { continue };
                    let facts = |plan: &Plan| {
                        let best = plan.best();
                        (best.algorithm.name(), best.params.to_string(), best.time.seconds, best.source)
                    };
                    assert_eq!(facts(&all), facts(&best), "{kind} of {elements} on {ranks} of {name}");
                    assert!(best.candidates.len() <= all.candidates.len());
                    dropped += all.candidates.len() - best.candidates.len();
                }
            }
        }
    }
    assert!(dropped > crate::soak::cases(50) as usize, "{dropped} candidates were dropped");
}
