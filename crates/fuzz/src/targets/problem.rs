//! Whole problems: a collective on a machine, planned, proved, stored and simulated.

use std::sync::OnceLock;

use unisono_algorithms::{ALGORITHMS, Params};
use unisono_collective::{Dtype, Kind, Operator};
use unisono_lower::{File, switches};
use unisono_machine::{Machine, PRESETS, Shape};
use unisono_plan::{
    PlanError, Request, bounds,
    endpoint::{EndpointRequest, endpoint_bounds, plan_endpoint},
    in_network::{InNetworkRequest, Part, in_network_bounds, plan_in_network},
    network::{NetworkRequest, network_bounds, plan_network},
};
use unisono_schedule::verify::{Method, verify};
use unisono_sim::collective_engine;

use crate::{Draws, Form, Target, uses};

pub const TARGET: Target = Target::new(
    "problem",
    "plans a drawn collective on a preset; the schedule is proved, stored, emitted and simulated",
    run,
)
.form(Form::Draws)
.quick_runs(150);

/// Values of parameters that some algorithm takes, and others.
const VALUES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "8",
    "16",
    "40",
    "100",
    "1024",
    "4294967295",
    "-1",
    "",
    "middle",
    "binomial",
    "ring",
    "chain",
    "tree",
    "lanes",
    "2x2",
    "4x4",
    "3x4",
    "2x2x2",
    "1x7",
    "a2",
    "a2,a2",
    "a3,a2",
    "m1g2a3,n1g3a2",
    "scatter",
    "pipelined-chain",
    "recursive-halving",
    "scatter-allgather",
    "two-phase",
    "yes",
    "no",
];

/// All presets, read once.
fn presets() -> &'static [Machine] {
    static READ: OnceLock<Vec<Machine>> = OnceLock::new();
    READ.get_or_init(|| PRESETS.iter().map(|p| Machine::preset(p.name).expect("a preset reads")).collect())
}

/// What all requests have in common.
struct Asked {
    kind: Kind,
    elements: u64,
    root: u64,
    operator: Operator,
    dtype: Dtype,
    algorithm: Option<&'static str>,
    params: Params,
}

fn run(input: &[u8]) -> bool {
    let mut d = Draws::new(input);
    let named = (!d.once_in(4)).then(|| d.pick(ALGORITHMS));
    // A machine of a kind that the algorithm runs on, or in one of eight draws any.
    let any = named.is_none() || d.once_in(8);
    let fits = |machine: &Machine| any || named.is_some_and(|a| a.runs_on().iter().any(|k| k.name() == machine.kind()));
    let machines: Vec<&Machine> = presets().iter().filter(|machine| fits(machine)).collect();
    let machine = machines[d.below(machines.len() as u32) as usize];
    let kind = match named {
        Some(algorithm) => d.pick(algorithm.collectives()),
        None => d.pick(Kind::ALL),
    };
    let mut params = Params::new();
    let count = if d.once_in(2) { 1 + d.below(2) } else { 0 };
    for _ in 0..count {
        let of = named.map_or(&[][..], |algorithm| algorithm.params());
        let name = if of.is_empty() { "group" } else { d.pick(of).name };
        params = params.with(name, d.pick(VALUES));
    }
    let operator = if d.once_in(3) { d.pick(Operator::ALL) } else { Operator::Sum };
    let asked = Asked {
        kind,
        elements: d.pick(&[1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 64, 100, 0, 1000, 4096, u64::from(u32::MAX), 1 << 40]),
        root: if d.once_in(3) { u64::from(d.below(9)) } else { 0 },
        operator,
        dtype: d.pick(Dtype::ALL),
        algorithm: named.map(|algorithm| algorithm.name()),
        params,
    };
    asked.run(machine, &mut d).is_ok()
}

impl Asked {
    fn run(&self, machine: &Machine, d: &mut Draws<'_>) -> Result<(), PlanError> {
        let Self { kind, elements, root, operator, dtype, algorithm, ref params } = *self;
        match machine {
            Machine::Wafer(wafer) => {
                let shape = match d.below(4) {
                    0 => Shape::rect(1 + d.below(6), 1 + d.below(6)),
                    1 => Shape::rect(1 + d.below(17), 1),
                    _ => Shape::line(1 + d.below(17)),
                };
                let request = Request::new(kind, wafer, Some(shape), elements, root, operator, dtype)?;
                drop(bounds(&request));
                let plan = unisono_plan::plan(request, algorithm, params, None)?;
                drop(plan.report());
                if elements > 5000 {
                    return Ok(());
                }
                let placed = plan.placed()?.clone();
                holds(&placed.schedule);
                let machine = Some(machine.clone());
                uses::file(&File { schedule: placed.schedule, placement: Some(placed.placement), machine });
            }
            Machine::Endpoint(endpoint) => {
                let ranks = Some(1 + d.below(17));
                let request = EndpointRequest::new(kind, endpoint, ranks, elements, root, operator, dtype, None)?;
                drop(endpoint_bounds(&request));
                let plan = plan_endpoint(request, algorithm, params, &uses::Simulated)?;
                drop(plan.report());
                // Operators that no MPI library has and collectives that no plan serves are refused.
                drop(plan.stored());
                let schedule = plan.schedule()?.clone();
                holds(&schedule);
                uses::file(&File { schedule, placement: None, machine: Some(machine.clone()) });
            }
            Machine::InNetwork(in_network) => {
                let part = Part::Cores(1 + d.below(64));
                let nodes = in_network.with_nodes(1 + d.below(2)).unwrap_or_else(|_| in_network.clone());
                let request =
                    InNetworkRequest::new(kind, &nodes, &part, elements.min(100_000), root, operator, dtype, None)?;
                drop(in_network_bounds(&request));
                let plan = plan_in_network(request, algorithm, params)?;
                drop(plan.report());
                if elements > 5000 {
                    return Ok(());
                }
                if let Some(registers) = plan.registers()? {
                    let layout = &plan.request.site.layout;
                    let found = switches::check(&nodes, layout, registers);
                    assert!(found.is_empty(), "registers of a plan are wrong: {}", found[0].message);
                    if let Ok(run) = collective_engine::run(&nodes, layout, registers) {
                        assert!(run.data.result_correct, "switches give {:?}", run.data.mismatch);
                    }
                }
                holds(plan.schedule()?);
            }
            Machine::Network(network) => {
                let accelerators = network.topology(&network.name).map_or(0, |t| t.accelerators());
                let shape = Some(match d.below(3) {
                    0 => Shape::rect(1 + d.below(5), 1 + d.below(5)),
                    _ => Shape::line(1 + d.below(17)),
                });
                let request =
                    NetworkRequest::new(kind, network, shape, elements.min(1 << 20), root, operator, dtype, None)?;
                // Planning looks at the whole machine.
                if accelerators <= 2048 {
                    drop(network_bounds(&request));
                }
                let plan = plan_network(request, algorithm, params)?;
                drop(plan.report());
                drop(plan.stored());
                let schedule = plan.schedule()?.clone();
                holds(&schedule);
                let simulated = (accelerators <= 2048).then(|| machine.clone());
                uses::file(&File { schedule, placement: None, machine: simulated });
            }
        }
        Ok(())
    }
}

/// The schedule of a plan is proved.
fn holds(schedule: &unisono_schedule::Schedule) {
    let proof = verify(schedule, Method::Auto);
    assert!(proof.holds(), "a planned schedule is not proved: {:?}", proof.diagnostics.first());
}
