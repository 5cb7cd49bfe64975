//! Programs of tasks on machines of all kinds: priced as plans of their collectives, or refused in one sentence.

use std::collections::HashMap;

use unisono_algorithms::{Means, Params};
use unisono_collective::{Dtype, Kind};
use unisono_discover::{Discovery, Example, Options, Rules};
use unisono_machine::{Machine, Shape};
use unisono_plan::{
    Part, Problem, Request, TARGETS, plan,
    program::{MovedData, Pricing},
};

const NODES: u32 = 4;

fn moved(example: Example, rules: Rules) -> Vec<MovedData> {
    let mut discovery = Discovery::new(Options::report(NODES, rules)).unwrap();
    example.submit(&mut discovery, 64, 6).unwrap();
    MovedData::all(&discovery, &HashMap::new())
}

#[test]
fn programs_are_priced_wherever_ranks_send_messages() {
    for name in ["archer", "paper-sim", "hx2mesh-small", "torus2d-small", "piuma", "wse2"] {
        let machine = Machine::preset(name).unwrap();
        let kind = TARGETS.iter().find(|kind| kind.name == machine.kind()).unwrap();
        let made = Pricing::new(&machine, &Part::All, NODES, None, true);
        if !kind.offers.contains(&Means::Messages) {
            let error = made.err().unwrap();
            assert!(error.is_unsupported());
            assert!(error.to_string().starts_with(&format!("{name} is of kind {}, which offers ", kind.name)));
            continue;
        }
        let mut pricing = made.unwrap();
        for example in Example::ALL {
            let data = moved(example, Rules::Full);
            let found = pricing.predict(&data.iter().collect::<Vec<_>>(), false).unwrap();
            assert!(!found.operations.is_empty(), "{example} on {name}");
            let tasks: f64 = found.tasks.iter().map(|task| task.seconds).sum();
            assert!((tasks - found.seconds).abs() <= 1e-12 * found.seconds, "{example} on {name}");
            assert!(found.simulated_seconds.unwrap() > 0.0);
            for row in found.operations.iter().filter(|row| row.messages.is_none()) {
                let (kind, dtype) = (row.pattern.parse::<Kind>().unwrap(), Dtype::F64);
                let request =
                    Request::new(kind, &machine, Part::Shape(Shape::line(NODES)), row.part_bytes / dtype.bytes());
                let plan = plan(Problem::new(&Request { dtype, ..request }).unwrap(), None, &Params::new()).unwrap();
                assert_eq!((row.seconds, row.ratio), (plan.best().time.seconds, plan.ratio()), "{example} on {name}");
            }
        }
    }
}

#[test]
fn equal_messages_cost_the_same_under_all_rules() {
    let machine = Machine::preset("hx2mesh-small").unwrap();
    let mut pricing = Pricing::new(&machine, &Part::All, NODES, None, false).unwrap();
    let data = moved(Example::NBody, Rules::Off);
    let rows: Vec<_> = data.iter().collect();
    let first = pricing.predict(&rows, true).unwrap();
    assert!(first.operations.iter().all(|row| row.algorithm == "messages" && row.places == "own"));
    assert_eq!(pricing.predict(&rows, true).unwrap(), first);
}

#[test]
fn no_nodes_and_other_models_are_refused() {
    let machine = Machine::preset("archer").unwrap();
    let refused = |nodes, model| Pricing::new(&machine, &Part::All, nodes, model, false).err().unwrap().to_string();
    assert_eq!(refused(0, None), "the number of nodes is 0; accepted are 1 or more");
    assert!(refused(4, Some("links")).starts_with("'links' is not a model"));
}
