//! Machine descriptions of all kinds, with the files that they name.
//!
//! A line `=== NAME` ends the description. The text from there to the next such line is the file NAME.

use unisono_collective::Kind;
use unisono_machine::{
    Machine, Shape,
    network::{Network, allocate, deadlock},
};
use unisono_plan::{Part, Plan, Problem, Request, bounds, plan};
use unisono_sim::network;

use crate::{FuzzTarget, uses};

pub const TARGET: FuzzTarget = FuzzTarget::new(
    "machine",
    "reads a machine in TOML with the files it names; plans, checks routing, allocates and simulates on it",
    run,
)
.seeds(&[("machines", ".toml")]);

/// Size of the largest network that is also checked for deadlock and simulated.
const MOST_ACCELERATORS: u32 = 64;

fn run(input: &[u8]) -> bool {
    let text = uses::text(input);
    let mut parts = text.split("\n=== ");
    let toml = parts.next().unwrap_or_default();
    let files: Vec<(&str, &str)> = parts.map(|part| part.split_once('\n').unwrap_or((part, ""))).collect();
    let file = |name: &str| files.iter().find(|(n, _)| *n == name).map(|(_, text)| (*text).to_owned());
    let Some(machine) = uses::read(Machine::from_toml_with(toml, "fuzz", &file)) else { return false };
    let printed = machine.to_toml();
    let again = Machine::from_toml_with(&printed, "printed", &file);
    // A NaN is not equal to itself.
    let prints_nan = printed.contains("nan");
    assert!(prints_nan || again.as_ref() == Ok(&machine), "a machine reads back: {again:?}");
    if let Some(network) = machine.get::<Network>() {
        on_network(&machine, network);
    } else if let Ok(one) = machine.with_nodes(1) {
        if is_small(&one)
            && let Some(plan) = planned(&one, Part::All, Kind::Allreduce)
            && let Ok(file) = plan.file()
        {
            uses::file(&file);
        }
    } else {
        planned(&machine, Part::Shape(Shape::line(5)), Kind::Reduce);
        planned(&machine, Part::Shape(Shape::line(5)), Kind::Allreduce);
        planned(&machine, Part::Shape(Shape::rect(2, 3)), Kind::Allreduce);
        if is_small(&machine) {
            planned(&machine, Part::All, Kind::Allreduce);
        }
    }
    true
}

/// Returns whether the machine's shape has at most twice [`MOST_ACCELERATORS`] ranks.
fn is_small(machine: &Machine) -> bool {
    let few = |shape: Shape| shape.grid.count() <= u64::from(2 * MOST_ACCELERATORS);
    machine.shape(None).is_ok_and(|shape| shape.is_some_and(few))
}

/// Plans a collective of 100 elements, and makes its report; `None` if the planner refuses it.
fn planned(machine: &Machine, part: Part, kind: Kind) -> Option<Plan> {
    let problem = Problem::new(&Request::new(kind, machine, part, 100)).ok()?;
    drop(bounds(&problem));
    let plan = plan(problem, None, &Default::default()).ok()?;
    drop(plan.report());
    Some(plan)
}

fn on_network(description: &Machine, machine: &Network) {
    drop(machine.facts());
    let Ok(topology) = machine.topology(&machine.name) else { return };
    let accelerators = topology.accelerators();
    if accelerators <= 512 {
        planned(description, Part::All, Kind::Allreduce);
        if let Some(space) = topology.jobs() {
            let request = allocate::Study {
                jobs: allocate::Jobs::Drawn(allocate::Sizes::trace()),
                heuristic: allocate::Heuristic::Locality,
                failed: vec![],
                failures: 1,
                seed: 0,
            };
            drop(allocate::study(&space, &machine.name, &request, 2));
        }
    }
    if accelerators > MOST_ACCELERATORS {
        return;
    }
    let Ok(interconnect) = network::Interconnect::new(machine) else { return };
    drop(deadlock::check(&interconnect.plane, &*interconnect.routing));
    drop(network::flow::alltoall(&interconnect, 1000));
    if machine.packet_bytes >= 16
        && let Ok(graph) = unisono_lower::tasks::pattern::linear_alltoall(accelerators, 100)
    {
        drop(network::run(&graph, &interconnect, &network::Options::default()));
    }
}
