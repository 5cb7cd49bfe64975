//! Machine descriptions of all kinds, with the files that they name.
//!
//! A line `=== NAME` ends the description; what follows, up to the next such line, is the text of the file NAME.

use unisono_collective::{Dtype, Kind, Operator};
use unisono_machine::{
    Machine, Shape,
    network::{Network, allocate, deadlock},
};
use unisono_plan::{
    Request, bounds,
    endpoint::{EndpointRequest, endpoint_bounds, plan_endpoint},
    in_network::{InNetworkRequest, Part, plan_in_network},
    network::{NetworkRequest, network_bounds, plan_network},
};
use unisono_sim::{collective_engine, network};

use crate::{Target, uses};

pub const TARGET: Target = Target::new(
    "machine",
    "reads a machine in TOML with the files it names; plans, checks routing, allocates and simulates on it",
    run,
)
.seeds(&[("machines", ".toml")]);

/// Networks above it are described and planned on, and no more.
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
    // A number that is no number is not equal to itself.
    let prints_nan = printed.contains("nan");
    assert!(prints_nan || again.as_ref() == Ok(&machine), "a machine reads back: {again:?}");
    let (sum, f32) = (Operator::Sum, Dtype::F32);
    let kind = Kind::Allreduce;
    match &machine {
        Machine::Wafer(wafer) => {
            for (shape, kind) in [(Shape::line(5), Kind::Reduce), (Shape::rect(2, 3), kind)] {
                if let Ok(request) = Request::new(kind, wafer, Some(shape), 100, 0, sum, f32) {
                    drop(bounds(&request));
                    drop(unisono_plan::plan(request, None, &Default::default(), None).map(|plan| plan.report()));
                }
            }
        }
        Machine::Endpoint(endpoint) => {
            for ranks in [None, Some(5)].into_iter().filter(|r| r.is_some() || endpoint.ranks.is_none_or(|n| n <= 64)) {
                if let Ok(request) = EndpointRequest::new(kind, endpoint, ranks, 100, 0, sum, f32, None) {
                    drop(endpoint_bounds(&request));
                    let plan = plan_endpoint(request, None, &Default::default(), &uses::Simulated);
                    drop(plan.map(|plan| plan.report()));
                }
            }
        }
        Machine::InNetwork(in_network) => {
            if let Ok(one) = in_network.with_nodes(1)
                && one.cores() <= 2 * MOST_ACCELERATORS
                && let Ok(request) = InNetworkRequest::new(kind, &one, &Part::All, 64, 0, sum, f32, None)
                && let Ok(plan) = plan_in_network(request, None, &Default::default())
                && let Ok(Some(registers)) = plan.registers()
            {
                drop(collective_engine::run(&one, &plan.request.site.layout, registers));
            }
        }
        Machine::Network(network) => on_network(network),
    }
    true
}

fn on_network(machine: &Network) {
    drop(machine.facts());
    let Ok(topology) = machine.topology(&machine.name) else { return };
    let accelerators = topology.accelerators();
    if accelerators <= 512 {
        if let Ok(request) =
            NetworkRequest::new(Kind::Allreduce, machine, None, 1000, 0, Operator::Sum, Dtype::F32, None)
        {
            drop(network_bounds(&request));
            drop(plan_network(request, None, &Default::default()).map(|plan| plan.report()));
        }
        if let Some(boards) = topology.boards() {
            let asked = allocate::Study {
                jobs: allocate::Jobs::Trace,
                heuristic: allocate::Heuristic::Locality,
                failures: 1,
                samples: 2,
                seed: 0,
            };
            drop(allocate::study(&boards, &machine.name, &asked));
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
