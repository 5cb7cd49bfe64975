//! Collectives through switches of networks that copy and reduce: proved, saved, timed as simulated, never faster than
//! a bound; and placements that switches cannot run.

use crate::common;

use std::collections::BTreeSet;

use proptest::prelude::*;
use unisono_algorithms::Params;
use unisono_collective::{Kind, Operator};
use unisono_lower::{File, Placement, VerifiedFile, parse, print};
use unisono_machine::{Machine, network::Network};
use unisono_plan::{
    Finish, Part, PlanError, Problem, Request, Root, RunOptions, bounds, place, plan as plan_of, simulate,
};
use unisono_schedule::{Builder, Operand, verify::Method};
use unisono_sim::endpoint::Noise;

const KINDS: [Kind; 3] = [Kind::Allreduce, Kind::Broadcast, Kind::Reduce];
const ALL: &str = "[[switches]]\nmulticast = true\noperators = ['sum', 'max']\n";

/// Returns a network whose links carry 50 bytes in a nanosecond; the head of a packet takes 80 ns on a link.
fn network(topology: &str, switches: &str) -> Machine {
    common::network(1024, 33_554_432, &format!("send_machines = 1\n[topology]\n{topology}\n{switches}"))
}

fn star(ranks: u32, switches: &str) -> Machine {
    let edges: Vec<String> = (0..ranks).map(|rank| format!("[{rank}, {ranks}]")).collect();
    network(&format!("name = 'graph'\naccelerators = {ranks}\nedges = [{}]", edges.join(", ")), switches)
}

fn in_network(machine: &Machine, kind: Kind, elements: u64, params: &Params) -> Result<unisono_plan::Plan, PlanError> {
    let root = if kind.has_root() { Root::Rank(1) } else { Root::Rank(0) };
    let problem = Problem::new(&Request { root, ..Request::new(kind, machine, Part::All, elements) })?;
    plan_of(problem, Some("in-network"), params)
}

fn params(embeddings: u32, chunks: u32) -> Params {
    Params::new().with("embeddings", embeddings).with("chunks", chunks)
}

/// Returns the predicted and simulated time of a plan in nanoseconds, after a proof and a round trip through a file.
fn times(plan: &unisono_plan::Plan) -> [f64; 2] {
    let file = plan.file().unwrap();
    let proven = VerifiedFile::new(&file, Method::Auto).unwrap_or_else(|proof| panic!("{:?}", proof.diagnostics[0]));
    let run = simulate(&proven, &RunOptions::default()).unwrap();
    let mut text = String::new();
    print(&file, &mut text).unwrap();
    assert_eq!(parse(&text, "saved").unwrap(), *file);
    let bound = bounds(&plan.problem).iter().map(|bound| bound.seconds).fold(0.0, f64::max);
    assert!(run.seconds >= bound * (1.0 - 1e-9), "{} below {bound}", run.seconds);
    assert!(plan.best().time.seconds >= bound * (1.0 - 1e-9));
    [plan.best().time.seconds * 1e9, run.nanoseconds]
}

/// Switches that copy and reduce do not support collectives in which ranks get different parts.
#[test]
fn other_collectives_are_refused_by_name() {
    let machine = star(4, ALL);
    for kind in [Kind::Allgather, Kind::ReduceScatter, Kind::Alltoall, Kind::Gather, Kind::Scatter, Kind::Barrier] {
        let refused = in_network(&machine, kind, 64, &Params::new()).err().map(|error| error.to_string());
        assert!(refused.as_ref().is_some_and(|message| message.contains(&format!("no {kind}"))), "{kind}: {refused:?}");
    }
}

/// A vector of m bytes takes m/50 + 80 ns up and the same time down. The switch reduces 100 bytes in a nanosecond, and
/// sends the result 35 ns later. If there are several chunks, the last one waits for earlier chunks only on the path
/// up.
#[test]
fn a_star_takes_its_closed_form() {
    let machine = star(6, "[[switches]]\nmulticast = true\noperators = ['sum']\nreduce_gbps = 800\nlatency_ns = 35\n");
    let m = 4.0 * 25_600.0;
    let plan = in_network(&machine, Kind::Allreduce, 25_600, &params(1, 1)).unwrap();
    assert_eq!(times(&plan), [2.0 * (m / 50.0 + 80.0) + m / 100.0 + 35.0; 2]);
    let plan = in_network(&machine, Kind::Allreduce, 25_600, &params(1, 4)).unwrap();
    let expected = m / 50.0 + 80.0 + m / 4.0 / 100.0 + 35.0 + m / 4.0 / 50.0 + 80.0;
    let [predicted, simulated] = times(&plan);
    assert!((predicted - expected).abs() < 1e-6 && (simulated - expected).abs() < 1e-6, "{predicted} {simulated}");
    // A broadcast is copied without a reduction: 35 ns in the switch.
    let plan = in_network(&machine, Kind::Broadcast, 25_600, &params(1, 1)).unwrap();
    assert_eq!(times(&plan), [2.0 * (m / 50.0 + 80.0) + 35.0; 2]);
}

/// Two trees share one switch. If it has one engine, the second reduction waits for the first; if it has two engines,
/// it does not wait.
#[test]
fn engines_reduce_side_by_side() {
    let of = |engines: u32| {
        let class =
            format!("[[switches]]\nmulticast = true\noperators = ['sum']\nreduce_gbps = 8\nengines = {engines}\n");
        // Each rank has two links to the switch, so both trees arrive at the same time.
        let edges = "[[0, 2], [0, 2], [1, 2], [1, 2]]";
        let machine = network(&format!("name = 'graph'\naccelerators = 2\nedges = {edges}"), &class);
        let [predicted, simulated] = times(&in_network(&machine, Kind::Allreduce, 2560, &params(2, 1)).unwrap());
        assert!((predicted - simulated).abs() < 0.05 * simulated, "{predicted} {simulated}");
        simulated
    };
    // A part has 5,120 bytes. An engine takes 5,120 ns to reduce it.
    let difference = of(1) - of(2);
    assert!((difference - 5120.0).abs() < 200.0, "{difference}");
}

#[test]
fn every_family_with_switches_reduces_in_them() {
    for topology in [
        "name = 'fattree'\naccelerators = 8\nlevels = 2\ndown = 4\nup = 4",
        "name = 'hxmesh'\nboard = [2, 2]\nboards = [2, 2]",
        "name = 'hyperx'\ndims = [3, 4]",
        "name = 'boxes'\nboxes = 2\naccelerators = 2\ninside = \"0 2\\n1 2\"\nuplinks = '2 0'",
    ] {
        let machine = network(topology, ALL);
        for kind in KINDS {
            for (elements, cuts) in [(0, params(1, 1)), (1, params(2, 3)), (4096, params(2, 2)), (4096, Params::new())]
            {
                times(
                    &in_network(&machine, kind, elements, &cuts).unwrap_or_else(|e| panic!("{topology} {kind}: {e}")),
                );
            }
        }
    }
}

/// The best plan of a box whose switch reduces uses the switch. Its bound is half of the bound of ranks that reduce.
#[test]
fn a_switch_that_reduces_lowers_the_bound_and_the_plan() {
    let plan = |switches: &str| {
        let machine = star(8, switches);
        plan_of(
            Problem::new(&Request::new(Kind::Allreduce, &machine, Part::All, 1 << 20)).unwrap(),
            None,
            &Params::new(),
        )
    };
    let (with, without) = (plan(ALL).unwrap(), plan("").unwrap());
    assert_eq!(with.best().algorithm.name(), "in-network");
    assert!(without.candidates.iter().all(|one| one.algorithm.name() != "in-network"));
    let ratio = without.best().time.seconds / with.best().time.seconds;
    assert!(ratio > 1.7 && ratio < 1.8, "{ratio}");
}

#[test]
fn what_switches_cannot_do_is_refused() {
    let refused = |machine: &Machine, kind: Kind, operator: Operator| {
        let request = Request { operator, ..Request::new(kind, machine, Part::All, 64) };
        let plan = plan_of(Problem::new(&request).unwrap(), Some("in-network"), &Params::new());
        plan.err().map(|e| e.to_string())
    };
    let sums = star(4, "[[switches]]\noperators = ['sum']\n");
    assert!(refused(&sums, Kind::Reduce, Operator::Sum).is_none());
    let message = refused(&sums, Kind::Reduce, Operator::Max).unwrap();
    assert!(message.contains("no switch between the ranks reduces with max over f32"), "{message}");
    let message = refused(&sums, Kind::Allreduce, Operator::Sum).unwrap();
    assert!(message.contains("copies messages and reduces with sum"), "{message}");
    let message = refused(&star(4, ""), Kind::Allreduce, Operator::Sum).unwrap();
    assert!(message.contains("switches that reduce"), "{message}");
    let message = refused(&star(4, ALL), Kind::Scan, Operator::Sum).unwrap();
    assert!(message.contains("makes no scan"), "{message}");
}

/// Every fault of a placement on switches is found and named.
#[test]
fn wrong_placements_are_found() {
    let good = File::clone(&in_network(&star(4, ALL), Kind::Allreduce, 64, &params(1, 1)).unwrap().file().unwrap());
    let findings = |file: &File| file.check().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    assert_eq!(findings(&good), "");
    let placed = |nodes: &[u32]| File { placement: Some(Placement::Nodes(nodes.to_vec())), ..good.clone() };
    let on = |machine: Machine| File { machine: Some(machine), ..good.clone() };
    let unplaced = |name: &str| File { placement: None, ..on(Machine::preset(name).unwrap()) };
    let other = network("name = 'graph'\naccelerators = 4\nedges = [[0, 4], [1, 4], [2, 4], [3, 5], [4, 5]]", ALL);
    for (file, words) in [
        (placed(&[0, 1, 2, 3]), "has 5 nodes, and 4 are placed"),
        (placed(&[0, 1, 2, 3, 3]), "accepted are the switches 4 to 4"),
        (placed(&[0, 1, 2, 2, 4]), "the place of two ranks is 2"),
        (placed(&[0, 1, 2, 3, 9]), "accepted are the switches 4 to 4"),
        (on(star(4, "")), "switch 4 does not reduce with sum over f32"),
        (on(star(4, "[[switches]]\noperators = ['sum']\n")), "switch 4 does not copy a message to several nodes"),
        (on(star(4, "[[switches]]\nmulticast = true\n")), "switch 4 does not reduce with sum"),
        (on(star(4, &ALL.replace("operators", "dtypes = ['i32']\noperators"))), "does not reduce with sum over f32"),
        (on(other), "from node 3 to node 4 of the network, which no link joins"),
        (File { placement: None, ..good.clone() }, "no place for them"),
        (unplaced("archer"), "without a placement archer has no place for them"),
        (unplaced("piuma"), "without a placement piuma has no place for them"),
        (unplaced("wse2"), "without a placement wse2 has no place for them"),
    ] {
        let found = findings(&file);
        assert!(found.contains(words), "{words}: {found}");
        assert!(VerifiedFile::new(&file, Method::Auto).is_err());
    }
}

/// A switch that cannot copy sends a message to one node only.
#[test]
fn switches_that_do_not_copy_have_one_receiver() {
    for ranks in 2..5 {
        let sums = || Some(star(ranks, "[[switches]]\noperators = ['sum']\n"));
        let made = |kind| File::clone(&in_network(&star(ranks, ALL), kind, 64, &params(1, 1)).unwrap().file().unwrap());
        let findings = |kind| File { machine: sums(), ..made(kind) }.check();
        assert!(findings(Kind::Reduce).is_empty(), "{ranks}");
        let found = findings(Kind::Allreduce);
        assert!(found.iter().any(|one| one.to_string().contains("does not copy a message")), "{ranks}: {found:?}");
    }
}

/// A placement in which a switch stores a vector in memory is refused, although its schedule is right.
#[test]
fn switches_have_no_memory() {
    let good = File::clone(&in_network(&star(2, ALL), Kind::Reduce, 8, &params(1, 1)).unwrap().file().unwrap());
    let mut b = Builder::new(*good.schedule.collective());
    let switch = b.switch();
    let [zero, one] = [0, 1].map(unisono_base::NodeId);
    let kept = b.scratch(switch, 8);
    let (up, down) = (b.stream(zero, &[switch]), b.stream(switch, &[one]));
    b.combine(zero, 0, 8, &[Operand::In(0)], &[Operand::Stream(up)]);
    b.combine(switch, 0, 8, &[Operand::Stream(up)], &[Operand::Tmp(kept)]);
    b.combine(switch, 0, 8, &[Operand::Tmp(kept)], &[Operand::Stream(down)]);
    b.combine(one, 0, 8, &[Operand::In(0), Operand::Stream(down)], &[Operand::Out(0)]);
    let file = File { schedule: b.finish().unwrap(), ..good };
    let found = file.check();
    assert!(found.iter().any(|one| one.to_string().contains("switch 2 has no memory")), "{found:?}");
}

#[test]
fn entries_of_switches_are_checked() {
    let refused = |switches: &str| {
        let text = format!(
            "name = 'test'\nkind = 'network'\nplanes = 1\nlink_gbps = 400\nlink_latency_ns = 40\ninput_latency_ns = 20\n\
             output_latency_ns = 20\npacket_bytes = 1024\nbuffer_bytes = 33554432\n[topology]\nname = 'graph'\n\
             accelerators = 2\nedges = [[0, 2], [1, 2]]\n[[switches]]\n{switches}\n"
        );
        Machine::from_toml(&text, "test").err().map(|e| e.to_string()).unwrap_or_default()
    };
    for (switches, words) in [
        ("nodes = [3]", "lists node 3; accepted are the switches 2 to 2"),
        ("nodes = [1]", "lists node 1"),
        ("inside = [2]", "the topology is graph: list nodes"),
        ("operators = ['ordered']", "switches.operators is 'ordered'; accepted is sum"),
        ("dtypes = ['f8']", "switches.dtypes is 'f8'"),
        ("engines = 0", "switches.engines is 0"),
        ("reduce_gbps = 0.0", "switches.reduce_gbps is 0.0"),
        ("latency_ns = -1.0", "switches.latency_ns is -1.0"),
        ("latency_ns = nan", "switches.latency_ns is NaN"),
        ("speed = 3", "unknown field"),
    ] {
        let message = refused(switches);
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn entries_of_boxes_name_nodes_of_a_box_and_shared_switches() {
    let boxes = "name = 'boxes'\nboxes = 2\naccelerators = 2\ninside = \"0 2\\n1 2\"\nuplinks = '2 0'";
    let refused = |switches: &str| {
        let text = network(boxes, "").to_toml() + "\n[[switches]]\n" + switches;
        Machine::from_toml(&text, "test").err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(refused("inside = [2]\noutside = [0]\nmulticast = true\n"), "");
    assert!(refused("inside = [1]\n").contains("lists node 1 inside a box; accepted are its switches 2 to 2"));
    assert!(refused("outside = [1]\n").contains("lists shared switch 1 outside the boxes; accepted are 0 to 0"));
}

/// After a failure, the remaining switches keep their entries even if their indices change.
#[test]
fn failures_keep_the_entries_of_switches() {
    // Switches 4 and 5 join all ranks, and only 5 reduces.
    let edges: Vec<String> = (0..4).flat_map(|rank| [4, 5].map(|switch| format!("[{rank}, {switch}]"))).collect();
    let topology = format!("name = 'graph'\naccelerators = 4\nedges = [{}]", edges.join(", "));
    let machine = network(&topology, "[[switches]]\nnodes = [5]\nmulticast = true\noperators = ['sum']\n");
    times(&in_network(&machine, Kind::Allreduce, 64, &Params::new()).unwrap());
    let left = machine.with_failures(&["4".to_owned()]).unwrap();
    times(&in_network(&left, Kind::Allreduce, 64, &Params::new()).unwrap());
    let left = machine.with_failures(&["5".to_owned()]).unwrap();
    assert!(in_network(&left, Kind::Allreduce, 64, &Params::new()).is_err());
    let network: &Network = machine
        .with_failures(&["0".to_owned(), "4".to_owned()])
        .unwrap()
        .get()
        .cloned()
        .map(Box::new)
        .map(Box::leak)
        .unwrap();
    let topology = network.topology("test").unwrap();
    let computing = network.computing(&*topology).unwrap();
    assert!(computing.class(3).is_some() && computing.class(2).is_none());
}

/// The run has start and end times of ranks but not of switches, and noise lengthens only work on the CPUs of ranks.
#[test]
fn a_run_states_times_of_ranks() {
    let file = in_network(&star(4, ALL), Kind::Reduce, 64, &params(1, 1)).unwrap().file().unwrap();
    let proven = VerifiedFile::new(&file, Method::Auto).unwrap();
    let run = |options: &RunOptions| simulate(&proven, options);
    let plain = run(&RunOptions::default()).unwrap();
    let late = RunOptions { start_ns: Some(vec![1000.0; 4]), ..RunOptions::default() };
    assert_eq!(run(&late).unwrap().nanoseconds, plain.nanoseconds + 1000.0);
    let late = RunOptions { start_ns: Some(vec![1000.0; 5]), ..RunOptions::default() };
    let message = run(&late).err().map(|e| e.to_string()).unwrap();
    assert!(message.contains("5") && message.contains("one for each of 4 ranks"), "{message}");
    assert!(matches!(&plain.finish, Finish::Nanoseconds(ends) if ends.len() == 4));
    // A send, a receive and a reduction run in sequence; noise lengthens each by at most 7 ns.
    let noise = Some(Noise::Uniform { most: 7.0 });
    let noisy = run(&RunOptions { noise, ..RunOptions::default() }).unwrap();
    let more = noisy.nanoseconds - plain.nanoseconds;
    assert!(more > 0.0 && more <= 21.0, "{more}");
}

/// A schedule with nodes on switches runs only on the switches of its plan. The error states this.
#[test]
fn schedules_on_switches_do_not_move() {
    let file = in_network(&star(4, ALL), Kind::Allreduce, 64, &params(1, 1)).unwrap().file().unwrap();
    for (machine, words) in
        [(star(5, ALL), "was planned for; plan it for test"), (Machine::preset("archer").unwrap(), "has none")]
    {
        let moved = place(&file, &machine, &Part::All);
        let message = moved.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(message.contains(words), "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::soak::cases(60)))]
    #[test]
    fn random_networks_are_proved_and_timed(
        accelerators in 2_u32..7,
        cables in prop::collection::vec((0_u32..11, 0_u32..11, 0_usize..3), 1..16),
        kinds in prop::collection::vec(0_usize..3, 4),
        embeddings in 1_u32..4,
        chunks in 1_u32..4,
        elements in 1_u64..3000,
    ) {
        let nodes = accelerators + 4;
        let rates = ["", " gbps=100", " gbps=25 ns=500"];
        // Every accelerator has a link to the first switch.
        let star = (0..accelerators).map(|rank| (rank, accelerators, 0));
        let more = cables.into_iter().map(|(a, b, rate)| (a % nodes, b % nodes, rate)).filter(|(a, b, _)| a != b);
        let line = (accelerators..nodes - 1).map(|switch| (switch, switch + 1, 1));
        // On unlike cables between two nodes, packets alternate by rate, not by latency, which timetables do not model.
        // So nodes are joined by one cable only.
        let mut joined = BTreeSet::new();
        let mut is_first = |a: u32, b: u32| joined.insert((a.min(b), a.max(b)));
        let edges: Vec<String> = star.chain(line).chain(more).filter(|&(a, b, _)| is_first(a, b)).map(|(a, b, rate)| format!("{a} {b}{}", rates[rate])).collect();
        let topology = format!("name = 'graph'\naccelerators = {accelerators}\nedges = \"\"\"\n{}\n\"\"\"", edges.join("\n"));
        let classes: Vec<String> = (accelerators..).zip(&kinds).enumerate().filter_map(|(at, (switch, kind))| {
            let kind = if at == 0 { 0 } else { *kind };
            let abilities = ["multicast = true\noperators = ['sum']\nreduce_gbps = 300\nlatency_ns = 15", "operators = ['sum']", ""];
            (kind < 2).then(|| format!("[[switches]]\nnodes = [{switch}]\n{}\n", abilities[kind]))
        }).collect();
        let machine = network(&topology, &classes.concat());
        for kind in KINDS {
            let [predicted, simulated] = times(&in_network(&machine, kind, elements, &params(embeddings, chunks)).unwrap());
            let ratio = predicted / simulated;
            // Simultaneous messages of one node share a link packet by packet, or part by part.
            prop_assert!((0.6..1.67).contains(&ratio), "{} {}", ratio, topology);
        }
    }
}
