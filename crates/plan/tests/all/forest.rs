//! Forests on networks of every family and on graphs with different links: each is proved, is never faster than the
//! cut, and takes the same time in the packet simulator as by the model.

use crate::common;

use proptest::prelude::*;
use unisono_algorithms::Params;
use unisono_collective::Kind;
use unisono_lower::VerifiedFile;
use unisono_machine::Machine;
use unisono_plan::{Part, PlanError, Problem, Request, Root, RunOptions, bounds, plan as plan_of, simulate};
use unisono_schedule::verify::Method;

const KINDS: [Kind; 5] = [Kind::Allgather, Kind::Allreduce, Kind::Broadcast, Kind::Reduce, Kind::ReduceScatter];

fn network(topology: &str) -> Machine {
    common::network(1024, 33_554_432, &format!("[topology]\n{topology}"))
}

fn problem(machine: &Machine, kind: Kind, part: Part, elements: u64) -> Result<Problem, PlanError> {
    Problem::new(&Request {
        root: if kind.has_root() { Root::Rank(1) } else { Root::Rank(0) },
        ..Request::new(kind, machine, part, elements)
    })
}

/// Proves the forest. Returns its predicted time, its simulated time and the bound `cut`, in seconds.
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
        // Accelerators outside the list forward messages.
        let part = Part::Places(vec![3, 0, 2]);
        times(&machine, Kind::Allgather, part, 100, &chunks(1)).unwrap();
    }
}

/// If every accelerator has links only to its neighbors, packets use the links that the model counts.
#[test]
fn long_messages_take_what_the_model_says() {
    // Forests of one root are packed by linear programs, which take 10 s for 64 accelerators.
    let large = [("name = 'torus'\ndims = [6, 6]", true), ("name = 'torus'\ndims = [8, 8]", false)];
    let small = [
        ("name = 'torus'\ndims = [4, 4]", true),
        ("name = 'hypercube'\ndimensions = 4", true),
        ("name = 'torus'\ndims = [4, 4]", false),
        ("name = 'hypercube'\ndimensions = 4", false),
    ];
    for (topology, rooted) in small.into_iter().chain(large.into_iter().filter(|_| crate::soak::is_on())) {
        let machine = network(topology);
        for kind in KINDS.into_iter().filter(|kind| kind.has_root() == rooted) {
            let elements = if kind == Kind::Allgather || kind == Kind::ReduceScatter { 1 << 16 } else { 1 << 20 };
            let [predicted, simulated, cut] =
                times(&machine, kind, Part::All, elements, &chunks(if kind.has_root() { 64 } else { 4 })).unwrap();
            let ratio = simulated / predicted;
            // With one root, trees that meet in another order than in the timetable leave links idle. Quotients up to
            // 1.35 were measured.
            let near = if kind.has_root() { 0.75..1.5 } else { 0.9..1.1 };
            assert!(near.contains(&ratio), "{topology} {kind}: {ratio}, over the cut {}", simulated / cut);
        }
    }
}

/// Returns the time of a forest without given depth and chunks, divided by that of the best forest that a plan lists.
fn over_the_best_listed(machine: &Machine, kind: Kind, elements: u64) -> f64 {
    let named = plan_of(problem(machine, kind, Part::All, elements).unwrap(), Some("forest"), &Params::new()).unwrap();
    let all = plan_of(problem(machine, kind, Part::All, elements).unwrap(), None, &Params::new()).unwrap();
    let forests = all.candidates.iter().filter(|one| one.algorithm.name() == "forest");
    let best = forests.map(|one| one.time.seconds).fold(f64::INFINITY, f64::min);
    named.best().time.seconds / best
}

#[test]
fn unnamed_parameters_regard_the_hosts() {
    let (mut compared, mut number) = (0, 0);
    for topology in [
        "name = 'torus'\ndims = [3, 4]",
        "name = 'graph'\naccelerators = 4\nedges = '''\n0 1\n1 2\n2 3\n3 0\n'''",
        "name = 'graph'\naccelerators = 5\nedges = '''\n0 5\n1 5\n2 5\n3 5 gbps=100\n4 5\n0 1\n1 2 gbps=50\n'''",
    ] {
        for overhead in ["0", "100", "1000"] {
            let machine = network(topology).with_value("host_overhead_ns", overhead).unwrap();
            for kind in KINDS {
                for elements in [16, 1 << 10, 1 << 14, 1 << 18] {
                    number += 1;
                    if !crate::soak::runs(number) {
                        continue;
                    }
                    compared += 1;
                    let ratio = over_the_best_listed(&machine, kind, elements);
                    // The planner builds and times the schedules of all candidates; the choice of parameters reads only
                    // timetables.
                    assert!(ratio < 1.25, "{topology} {overhead} ns {kind} of {elements}: {ratio}");
                }
            }
        }
    }
    assert!(compared > crate::soak::cases(120), "{compared}");
}

/// A message of many packets occupies a send machine until its last packet starts.
#[test]
fn accelerators_with_fewer_send_machines_than_links_are_predicted() {
    for (topology, elements) in
        [("name = 'torus'\ndims = [4, 4]", 1 << 16), ("name = 'hypercube'\ndimensions = 4", 1 << 16)]
    {
        for machines in ["1", "2"] {
            let machine = network(topology).with_value("send_machines", machines).unwrap();
            for kind in [Kind::Allgather, Kind::ReduceScatter] {
                for count in [1, 4, 16] {
                    let [predicted, simulated, _] = times(&machine, kind, Part::All, elements, &chunks(count)).unwrap();
                    let ratio = predicted / simulated;
                    assert!((0.9..1.1).contains(&ratio), "{topology} {machines} {kind} {count}: {ratio}");
                }
            }
        }
    }
}

/// The simulator uses the path with the fewest packets, regardless of its latency.
#[test]
fn ways_of_unlike_latency_are_both_used() {
    let machine =
        network("name = 'graph'\naccelerators = 2\nedges = '''\n0 2 ns=100\n2 1 ns=100\n0 3 ns=2000\n3 1 ns=2000\n'''");
    for elements in [1 << 10, 1 << 14] {
        for kind in [Kind::Allgather, Kind::Broadcast] {
            let [predicted, simulated, _] = times(&machine, kind, Part::All, elements, &chunks(4)).unwrap();
            let ratio = predicted / simulated;
            assert!((0.8..1.2).contains(&ratio), "{kind} of {elements}: {ratio}");
        }
    }
}

/// With turns, an allreduce takes no longer than its two directions in sequence, if neither direction leaves links
/// idle.
#[test]
fn turns_keep_the_two_ways_apart() {
    for name in ["ndv2", "mi250"] {
        let (machine, count) = (Machine::preset(name).unwrap(), chunks(64));
        let time = |kind, elements, params: &Params| {
            let [_, simulated, _] = times(&machine, kind, Part::All, elements, params).unwrap();
            simulated
        };
        let elements = 1 << 20;
        let ranks = u64::from(problem(&machine, Kind::Allreduce, Part::All, elements).unwrap().collective.ranks);
        let apart = [Kind::ReduceScatter, Kind::Allgather].map(|kind| time(kind, elements / ranks, &count));
        let ratio = time(Kind::Allreduce, elements, &count.with("turns", "yes")) / apart.iter().sum::<f64>();
        assert!(ratio < 1.02, "{name}: {ratio}");
    }
    let machine = Machine::preset("ndv2").unwrap();
    let turns = Params::new().with("turns", "yes");
    for (kind, given) in [(Kind::Reduce, turns.clone()), (Kind::Allreduce, turns.with("through", "0"))] {
        let refused = plan_of(problem(&machine, kind, Part::All, 64).unwrap(), Some("forest"), &given);
        assert!(refused.err().is_some_and(|error| error.to_string().contains("turns")), "{kind}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::soak::cases(40)))]
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
        let with_turns = chunks(count).with("turns", "yes");
        times(&machine, Kind::Allreduce, Part::All, elements, &with_turns).unwrap();
    }
}
