//! All-to-all, scatter and gather by concurrent flow on networks of every family and on graphs with different links:
//! proved, never faster than their bounds, and near these for long messages.

use crate::common;

use proptest::prelude::*;
use unisono_algorithms::Params;
use unisono_collective::Kind;
use unisono_lower::VerifiedFile;
use unisono_machine::Machine;
use unisono_plan::{Part, PlanError, Problem, Request, Root, RunOptions, bounds, plan as plan_of, simulate};
use unisono_schedule::verify::Method;

fn network(topology: &str) -> Machine {
    common::network(1024, 33_554_432, &format!("send_machines = 8\n[topology]\n{topology}"))
}

/// Proves the schedule. Returns its predicted time, its simulated time and its bound, in seconds.
fn times(
    (kind, root): (Kind, u32),
    machine: &Machine,
    part: Part,
    elements: u64,
    chunks: u32,
    batch: u32,
) -> Result<[f64; 3], PlanError> {
    let problem =
        Problem::new(&Request { root: Root::Rank(u64::from(root)), ..Request::new(kind, machine, part, elements) })?;
    let bounds = bounds(&problem);
    assert_eq!(bounds.iter().any(|b| b.name == "flow"), kind == Kind::Alltoall);
    let least = bounds.iter().filter(|b| kind != Kind::Alltoall || b.name == "flow").map(|b| b.seconds);
    let least = if elements == 0 { 0.0 } else { least.fold(0.0, f64::max) };
    let params = Params::new().with("chunks", chunks).with("batch", batch);
    let plan = plan_of(problem, Some("concurrent-flow"), &params)?;
    let file = plan.file()?;
    let proven = VerifiedFile::new(&file, Method::Auto)
        .unwrap_or_else(|proof| panic!("{elements} with {params}: {:?}", proof.diagnostics[0]));
    let run = simulate(&proven, &RunOptions::default()).unwrap();
    Ok([plan.best().time.seconds, run.seconds, least])
}

#[test]
fn flows_are_proved_on_every_family() {
    let kinds = [(Kind::Alltoall, 0), (Kind::Scatter, 0), (Kind::Scatter, 3), (Kind::Gather, 0), (Kind::Gather, 3)];
    let sizes = [(0, 1, 1), (1, 2, 3), (7, 3, 2), (4096, 2, 100)];
    for topology in [
        "name = 'torus'\ndims = [4, 4]",
        "name = 'torus'\ndims = [3, 5]",
        "name = 'torus'\ndims = [3, 4, 3]",
        "name = 'mesh'\ndims = [3, 4]",
        "name = 'hypercube'\ndimensions = 4",
        "name = 'hyperx'\ndims = [3, 4]",
        "name = 'hxmesh'\nboard = [2, 2]\nboards = [2, 2]",
        "name = 'graph'\naccelerators = 5\nedges = [[0, 5], [1, 5], [2, 5], [3, 5], [4, 5], [0, 1]]",
    ] {
        let machine = network(topology);
        for (kind, (elements, chunks, batch)) in kinds.into_iter().flat_map(|kind| sizes.map(|size| (kind, size))) {
            let [predicted, simulated, flow] = times(kind, &machine, Part::All, elements, chunks, batch).unwrap();
            assert!(predicted >= flow * (1.0 - 1e-9), "{topology} {elements}: {predicted} {flow}");
            assert!(simulated >= flow * (1.0 - 1e-9), "{topology} {elements}: {simulated} {flow}");
        }
        // Accelerators outside the list forward messages.
        for kind in kinds.map(|(kind, root)| (kind, root.min(2))) {
            times(kind, &machine, Part::Places(vec![3, 0, 2]), 100, 1, 2).unwrap();
        }
    }
}

/// Links of tori and cubes are busy from start to end in packet simulations. A single root has few blocks, so each has
/// four chunks.
#[test]
fn long_messages_come_near_the_bound() {
    for (topology, chunks) in [
        ("name = 'torus'\ndims = [4, 4]", 4),
        ("name = 'torus'\ndims = [8, 8]", 1),
        ("name = 'torus'\ndims = [4, 6, 3]", 1),
        ("name = 'hypercube'\ndimensions = 4", 4),
    ] {
        for (kind, chunks, batch) in [(Kind::Alltoall, chunks, 4), (Kind::Scatter, 4, 1), (Kind::Gather, 4, 1)] {
            let found = times((kind, 0), &network(topology), Part::All, 1 << 16, chunks, batch).unwrap();
            let [predicted, simulated, least] = found;
            let (predicted, simulated) = (predicted / least, simulated / least);
            assert!(predicted < 1.1 && simulated < 1.1, "{kind} {topology} {predicted} {simulated}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::soak::cases(60)))]
    #[test]
    fn flows_on_random_graphs_are_proved(
        accelerators in 2_u32..7,
        switches in 0_u32..3,
        cables in prop::collection::vec((0_u32..9, 0_u32..9, 0_usize..3), 1..14),
        chunks in 1_u32..4,
        batch in 1_u32..5,
        elements in 1_u64..5000,
        kind in prop::sample::select(vec![Kind::Alltoall, Kind::Scatter, Kind::Gather]),
    ) {
        let nodes = accelerators + switches;
        let rates = ["", " gbps=100", " gbps=25 ns=500"];
        let line = (0..nodes - 1).map(|n| (n, n + 1, 0));
        let more = cables.into_iter().map(|(a, b, rate)| (a % nodes, b % nodes, rate)).filter(|(a, b, _)| a != b);
        let edges: Vec<String> = line.chain(more).map(|(a, b, rate)| format!("{a} {b}{}", rates[rate])).collect();
        let topology = format!("name = 'graph'\naccelerators = {accelerators}\nedges = \"\"\"\n{}\n\"\"\"", edges.join("\n"));
        let [predicted, simulated, flow] =
            times((kind, if kind.has_root() { 1 } else { 0 }), &network(&topology), Part::All, elements, chunks, batch).unwrap();
        prop_assert!(predicted >= flow * (1.0 - 1e-9) && simulated >= flow * (1.0 - 1e-9), "{topology}");
    }
}
