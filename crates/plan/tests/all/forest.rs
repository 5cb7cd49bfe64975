//! Forests on networks of every family and on graphs with unlike links: proved, never faster than the cut, and as fast in
//! the packet simulator as the model says.

use proptest::prelude::*;
use unisono_algorithms::Params;
use unisono_collective::Kind;
use unisono_lower::VerifiedFile;
use unisono_machine::Machine;
use unisono_plan::{Asked, Part, PlanError, Problem, Root, RunOptions, bounds, plan as plan_of, simulate};
use unisono_schedule::verify::Method;

const KINDS: [Kind; 5] = [Kind::Allgather, Kind::Allreduce, Kind::Broadcast, Kind::Reduce, Kind::ReduceScatter];

fn network(topology: &str) -> Machine {
    let text = format!(
        "name = 'test'\nkind = 'network'\nplanes = 1\nlink_gbps = 400\nlink_latency_ns = 40\ninput_latency_ns = 20\n\
         output_latency_ns = 20\npacket_bytes = 1024\nbuffer_bytes = 33554432\n[topology]\n{topology}\n"
    );
    Machine::from_toml(&text, "test").unwrap()
}

fn problem(machine: &Machine, kind: Kind, part: Part, elements: u64) -> Result<Problem, PlanError> {
    Problem::new(&Asked {
        root: if kind.has_root() { Root::Rank(1) } else { Root::Rank(0) },
        ..Asked::new(kind, machine, part, elements)
    })
}

/// Proves the forest and returns its predicted, its simulated and its least time in seconds; the least is that of the bound
/// `cut`.
fn times(machine: &Machine, kind: Kind, part: Part, elements: u64, params: &Params) -> Result<[f64; 3], PlanError> {
    let problem = problem(machine, kind, part, elements)?;
    let cut = bounds(&problem).iter().filter(|b| b.name == "cut").map(|b| b.seconds).fold(0.0, f64::max);
    let plan = plan_of(problem, Some("forest"), params)?;
    let file = plan.file()?;
    let proven = VerifiedFile::new(&file, Method::Auto).unwrap_or_else(|proof| {
        panic!(
            "{kind} of {elements} with {params} on {}: {:?}",
            machine.get::<unisono_machine::network::Network>().unwrap().topology,
            proof.diagnostics[0]
        )
    });
    let run = simulate(&proven, &RunOptions::default()).unwrap();
    Ok([plan.best().time.seconds, run.seconds, cut])
}

fn chunks(count: u32) -> Params {
    Params::new().with("chunks", count)
}

#[test]
fn forests_are_proved_on_every_family() {
    for topology in [
        "name = 'torus'\ndims = [4, 4]",
        "name = 'torus'\ndims = [3, 5]",
        "name = 'mesh'\ndims = [3, 4]",
        "name = 'hypercube'\ndimensions = 4",
        "name = 'hyperx'\ndims = [3, 4]",
        "name = 'hxmesh'\nboard = [2, 2]\nboards = [2, 2]",
        "name = 'graph'\naccelerators = 5\nedges = [[0, 5], [1, 5], [2, 5], [3, 5], [4, 5], [0, 1]]",
    ] {
        let machine = network(topology);
        for kind in KINDS {
            for (elements, count) in [(0, 1), (1, 2), (7, 3), (4096, 2)] {
                let [_, simulated, cut] = times(&machine, kind, Part::All, elements, &chunks(count)).unwrap();
                assert!(simulated >= cut * (1.0 - 1e-9), "{topology} {kind} {elements}: {simulated} {cut}");
            }
        }
        // A part, whose other accelerators forward.
        let part = Part::Places(vec![3, 0, 2]);
        times(&machine, Kind::Allgather, part, 100, &chunks(1)).unwrap();
    }
}

/// Where every accelerator is linked with its neighbors alone, the links that the model counts are those that packets take.
#[test]
fn long_messages_take_what_the_model_says() {
    // Forests of one root are packed by linear programs, which take 10 s on 64 accelerators.
    for (topology, rooted) in [
        ("name = 'torus'\ndims = [4, 4]", true),
        ("name = 'torus'\ndims = [6, 6]", true),
        ("name = 'hypercube'\ndimensions = 4", true),
        ("name = 'torus'\ndims = [4, 4]", false),
        ("name = 'torus'\ndims = [8, 8]", false),
        ("name = 'hypercube'\ndimensions = 4", false),
    ] {
        let machine = network(topology);
        for kind in KINDS.into_iter().filter(|kind| kind.has_root() == rooted) {
            let elements = if kind == Kind::Allgather || kind == Kind::ReduceScatter { 1 << 16 } else { 1 << 20 };
            let [predicted, simulated, cut] =
                times(&machine, kind, Part::All, elements, &chunks(if kind.has_root() { 64 } else { 4 })).unwrap();
            let ratio = simulated / predicted;
            // With one root, trees that meet in another order than that of the timetable leave links idle: measured up to 1.35.
            let near = if kind.has_root() { 0.75..1.5 } else { 0.9..1.1 };
            assert!(near.contains(&ratio), "{topology} {kind}: {ratio}, over the cut {}", simulated / cut);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn forests_on_random_graphs_are_proved(
        accelerators in 2_u32..7,
        switches in 0_u32..3,
        cables in prop::collection::vec((0_u32..9, 0_u32..9, 0_usize..3), 1..14),
        count in 1_u32..4,
        elements in 1_u64..5000,
    ) {
        let nodes = accelerators + switches;
        let rates = ["", " gbps=100", " gbps=25 ns=500"];
        let line = (0..nodes - 1).map(|n| (n, n + 1, 0));
        let more = cables.into_iter().map(|(a, b, rate)| (a % nodes, b % nodes, rate)).filter(|(a, b, _)| a != b);
        let edges: Vec<String> = line.chain(more).map(|(a, b, rate)| format!("{a} {b}{}", rates[rate])).collect();
        let topology = format!("name = 'graph'\naccelerators = {accelerators}\nedges = \"\"\"\n{}\n\"\"\"", edges.join("\n"));
        let machine = network(&topology);
        for kind in KINDS {
            let [predicted, simulated, cut] = times(&machine, kind, Part::All, elements, &chunks(count)).unwrap();
            prop_assert!(predicted >= cut * (1.0 - 1e-9) && simulated >= cut * (1.0 - 1e-9), "{topology} {kind}");
        }
    }
}
