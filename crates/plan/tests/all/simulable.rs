//! The schedule that a plan chooses runs on the simulator of its machine.

use unisono_algorithms::Params;
use unisono_collective::Kind;
use unisono_lower::VerifiedFile;
use unisono_machine::{Machine, Shape};
use unisono_plan::{Part, PlanError, Problem, Request, RunOptions, plan, simulate};
use unisono_schedule::verify::Method;

#[test]
fn the_best_candidate_can_be_simulated() {
    let mut number = 0;
    for name in ["archer", "hx2mesh-small", "paper-sim", "piuma", "torus2d-small", "wse2"] {
        let machine = Machine::preset(name).unwrap();
        for (kind, ranks, elements) in [Kind::Allreduce, Kind::Reduce, Kind::Broadcast, Kind::Barrier]
            .into_iter()
            .flat_map(|kind| [1, 2, 3, 8].map(|ranks| (kind, ranks)))
            .flat_map(|(kind, ranks)| [1, 100].map(|elements| (kind, ranks, elements)))
        {
            number += 1;
            if !crate::soak::runs_often(number) {
                continue;
            }
            let request = Request::new(kind, &machine, Part::Shape(Shape::line(ranks)), elements);
            let made = match Problem::new(&request).and_then(|problem| plan(problem, None, &Params::new())) {
                Err(e @ PlanError::NoCandidate { .. }) => {
                    assert!(kind == Kind::Barrier && name == "wse2", "{e}");
                    continue;
                }
                made => made.unwrap(),
            };
            let file = made.file().unwrap();
            let proven = VerifiedFile::new(&file, Method::Auto).unwrap();
            let run = simulate(&proven, &RunOptions::default());
            assert!(run.is_ok(), "{kind} on {ranks} ranks of {name}: {}", run.err().unwrap());
        }
    }
}
