//! Programs timed by the clock and on machines.

use crate::common::{network, step};

use proptest::prelude::*;
use unisono_collective::Kind;
use unisono_machine::Machine;
use unisono_plan::{
    Part,
    workload::{
        Workload,
        graph::{Clock, GraphReport, Interval, Level, ProgramPrices, Step},
    },
};
use unisono_workload::{
    Accelerator, Collected, Compute, Groups, Queues, RankClass, Work, WorkNode, WorkloadGraph, hlo,
};

const TRANSFORMER: &str = include_str!("../../../../examples/programs/transformer.hlo");

fn compute(seconds: f64, after: &[u32]) -> WorkNode {
    WorkNode::new("compute", Work::Compute(Compute::Measured { seconds }), after.to_vec())
}

fn collective(kind: Kind, bytes: u64, groups: u32, after: &[u32]) -> WorkNode {
    let collected = Collected { kind, bytes, element_bytes: 4, root: 0, groups };
    WorkNode::new("collective", Work::Collective(collected), after.to_vec())
}

fn graph(ranks: u32, groups: Vec<Groups>, classes: Vec<RankClass>) -> WorkloadGraph {
    WorkloadGraph { name: "w".to_owned(), format: "test", ranks, groups, classes, ..WorkloadGraph::default() }
}

/// Draws a program of several classes, with the times of their nodes. Node n of every class has the same kind: compute,
/// or an allreduce within or across classes.
fn random() -> impl Strategy<Value = (WorkloadGraph, Vec<Vec<f64>>)> {
    (1_usize..4, 1_usize..24).prop_flat_map(|(classes, nodes)| {
        let kinds = prop::collection::vec(0_u32..4, nodes);
        let lengths = prop::collection::vec(prop::collection::vec(0_u32..20, nodes), classes);
        let after = prop::collection::vec(prop::collection::vec((0_u32..32, 0_u32..32), nodes), classes);
        (kinds, lengths, after).prop_map(move |(kinds, lengths, after)| {
            let ranks = u32::try_from(2 * classes).unwrap();
            // The groups within the classes, and the groups across all of them.
            let within = Groups::new(ranks, (0..ranks / 2).map(|c| vec![2 * c, 2 * c + 1])).unwrap();
            let node = |class: usize, n: usize| {
                let (a, b) = after[class][n];
                let before: Vec<u32> =
                    if n == 0 { Vec::new() } else { [a, b].map(|x| x % u32::try_from(n).unwrap()).to_vec() };
                match kinds[n] {
                    0 | 1 => compute(f64::from(lengths[class][n]), &before),
                    2 => collective(Kind::Allreduce, 4, 0, &before),
                    _ => collective(Kind::Allreduce, 4, 1, &before),
                }
            };
            let class = |c: u32| RankClass {
                ranks: vec![2 * c, 2 * c + 1],
                nodes: (0..kinds.len()).map(|n| node(c as usize, n)).collect(),
            };
            let classes = (0..ranks / 2).map(class).collect();
            let lengths = lengths.iter().map(|of| of.iter().map(|&length| f64::from(length)).collect()).collect();
            (graph(ranks, vec![within, Groups::all(ranks)], classes), lengths)
        })
    })
}

/// Returns the earliest times that satisfy all constraints. Times are raised until nothing changes. Both sets of groups
/// of [`random`] span all classes, so node n of each class waits for node n of all other classes.
fn relaxed(graph: &WorkloadGraph, lengths: &[Vec<f64>], overlap: bool) -> Vec<Vec<Interval>> {
    let classes = graph.classes.len();
    let mut times: Vec<Vec<Interval>> = lengths.iter().map(|of| vec![Interval::default(); of.len()]).collect();
    loop {
        let before = times.clone();
        for class in 0..classes {
            let nodes = &graph.classes[class].nodes;
            for n in 0..nodes.len() {
                let is_compute = nodes[n].work.is_compute();
                let queue = (0..n).filter(|&m| !overlap || nodes[m].work.is_compute() == is_compute);
                let waits = queue.chain(nodes[n].after.iter().map(|&m| m as usize));
                let mut begin = waits.map(|m| times[class][m].end).fold(times[class][n].begin, f64::max);
                let mut length = lengths[class][n];
                if !is_compute {
                    begin = (0..classes).map(|c| times[c][n].begin).fold(begin, f64::max);
                    length = (0..classes).map(|c| lengths[c][n]).fold(0.0, f64::max);
                }
                times[class][n] = Interval { begin, end: begin + length };
            }
        }
        if times == before {
            return times;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::soak::cases(1000), ..ProptestConfig::default() })]

    #[test]
    fn the_clock_gives_the_earliest_times((graph, lengths) in random(), overlap in any::<bool>()) {
        let clock = Clock::new(&graph, overlap, |class, node| lengths[class][node]).unwrap();
        prop_assert_eq!(clock.0, relaxed(&graph, &lengths, overlap));
    }
}

#[test]
fn the_steps_of_a_workload_hold_each_other_back() {
    let step = |name: &str, us: u32, waits: bool, blocking: &[bool]| {
        let head = format!("[[steps]]\nname = \"{name}\"\ncompute_us = {us}\nwaits = {waits}\n");
        let one = |b: &bool| {
            format!("[[steps.communication]]\ncollective = \"allreduce\"\nelements = 1000\nblocking = {b}\n")
        };
        head + &blocking.iter().map(one).collect::<String>()
    };
    let text = "name = \"w\"\n[[dimensions]]\nname = \"d\"\nsize = 4\n".to_owned()
        + &step("a", 10, false, &[false, true])
        + &step("b", 70, false, &[false, false])
        + &step("c", 5, false, &[])
        + &step("d", 5, true, &[true]);
    let workload = Workload::from_toml(&text, "w.toml").unwrap();
    let program = workload.program();
    let seconds = |_, node: usize| match program.classes[0].nodes[node].work {
        Work::Compute(Compute::Measured { seconds }) => seconds,
        _ => 25e-6,
    };
    // In us: a 0..10, its communication to 35 and, blocking, to 60; b 60..130, its communication to 155 and 180; c
    // 130..135; d waits for all, 180..185, and communicates to 210.
    let end = Clock::new(&program, true, seconds).unwrap().end(0);
    assert!((end - 210e-6).abs() < 1e-12, "{end}");
}

/// Messages to several partners are sent at once, in the workload and in its program: rank 0 of four sends 1 MB on each
/// of two links in 20 us.
#[test]
fn partners_exchange_at_once() {
    let text = "name = \"w\"\n[[dimensions]]\nname = \"d\"\nsize = 4\n[[steps]]\nname = \"s\"\n[[steps.communication]]\n\
                collective = \"exchange\"\nelements = 250000\npartners = [1, 2]\n";
    let workload = Workload::from_toml(text, "w.toml").unwrap();
    let graph = "[topology]\nname = 'graph'\naccelerators = 4\nedges = [[0, 1], [0, 2], [1, 3], [2, 3]]";
    let machine = network(1000, 1_000_000, graph);
    let program = workload.program();
    for level in Level::ALL {
        let report = step(&machine, &program, level, true);
        let seconds = report.iteration.seconds;
        assert!((seconds / 20e-6 - 1.0).abs() < 0.02, "{level:?}: {seconds}");
        assert_eq!((report.collectives[0].kind, report.collectives[0].groups), ("exchange", 8));
    }
    // On a machine without links, a rank sends one message at a time.
    let archer = Machine::preset("archer").unwrap();
    let seconds = |partners: &str| {
        let program = Workload::from_toml(&text.replace("[1, 2]", partners), "w.toml").unwrap().program();
        step(&archer, &program, Level::Model, true).iteration.seconds
    };
    assert!((seconds("[1, 2]") / seconds("[1]") - 2.0).abs() < 1e-9);
}

#[test]
fn classes_that_do_not_meet_are_named() {
    let one = |nodes| RankClass { ranks: vec![0], nodes };
    let other = |nodes| RankClass { ranks: vec![1], nodes };
    let groups = || vec![Groups::all(2), Groups::new(2, [vec![1, 0]]).unwrap()];
    let (a, b) = (collective(Kind::Allreduce, 4, 0, &[]), collective(Kind::Allreduce, 4, 1, &[]));
    let crossed = graph(2, groups(), vec![one(vec![a.clone(), b.clone()]), other(vec![b, a.clone()])]);
    let message = Clock::new(&crossed, true, |_, _| 1.0).unwrap_err().to_string();
    assert!(message.starts_with("rank 0 waits in node 0 ('collective') for ranks that do not come to it"), "{message}");
    let alone = graph(2, groups(), vec![one(vec![compute(1.0, &[])]), other(vec![a])]);
    assert!(Clock::new(&alone, true, |_, _| 1.0).unwrap_err().to_string().starts_with("rank 1 waits in node 0"));
}

fn message(work: Work, after: &[u32]) -> WorkNode {
    WorkNode::new("message", work, after.to_vec())
}

fn send(to: u32, bytes: u64, after: &[u32]) -> WorkNode {
    message(Work::Send { to, bytes, tag: 0 }, after)
}

fn receive(from: u32, bytes: u64, after: &[u32]) -> WorkNode {
    message(Work::Receive { from, bytes, tag: 0 }, after)
}

fn task_graph(nodes: Vec<Vec<WorkNode>>) -> WorkloadGraph {
    let classes: Vec<RankClass> =
        (0..).zip(nodes).map(|(rank, nodes)| RankClass { ranks: vec![rank], nodes }).collect();
    let ranks = u32::try_from(classes.len()).unwrap();
    WorkloadGraph { queues: Queues::AsReady, ..graph(ranks, Vec::new(), classes) }
}

/// Returns the begin and end of each node: compute takes its seconds, a message one second a byte.
fn clocked(program: &WorkloadGraph, overlap: bool) -> Vec<Vec<(f64, f64)>> {
    let seconds = |class: usize, node: usize| match program.classes[class].nodes[node].work {
        Work::Compute(Compute::Measured { seconds }) => seconds,
        Work::Send { bytes, .. } | Work::Receive { bytes, .. } => bytes as f64,
        _ => 1.0,
    };
    let clock = Clock::new(program, overlap, seconds).unwrap();
    clock.0.iter().map(|of| of.iter().map(|time| (time.begin, time.end)).collect()).collect()
}

#[test]
fn stages_of_a_pipeline_wait_for_messages() {
    // Two microbatches: rank 0 computes 3 s on each and sends 2 bytes, rank 1 computes 4 s on each.
    let first = vec![compute(3.0, &[]), send(1, 2, &[0]), compute(3.0, &[0]), send(1, 2, &[2])];
    let second = vec![receive(0, 2, &[]), compute(4.0, &[0]), receive(0, 2, &[]), compute(4.0, &[2])];
    let times = clocked(&task_graph(vec![first, second]), true);
    assert_eq!(times[0], [(0.0, 3.0), (3.0, 5.0), (3.0, 6.0), (6.0, 8.0)]);
    assert_eq!(times[1], [(3.0, 5.0), (5.0, 9.0), (6.0, 8.0), (9.0, 13.0)]);
}

#[test]
fn a_rank_sends_and_receives_one_message_at_a_time() {
    let spread = vec![send(1, 3, &[]), send(2, 5, &[])];
    let times = clocked(&task_graph(vec![spread, vec![receive(0, 3, &[])], vec![receive(0, 5, &[])]]), true);
    assert_eq!(times, [vec![(0.0, 3.0), (3.0, 8.0)], vec![(0.0, 3.0)], vec![(3.0, 8.0)]]);
    let gathered = vec![receive(1, 3, &[]), receive(2, 5, &[])];
    let times = clocked(&task_graph(vec![gathered, vec![send(0, 3, &[])], vec![send(0, 5, &[])]]), true);
    assert_eq!(times[0], [(0.0, 3.0), (3.0, 8.0)]);
}

#[test]
fn a_node_may_wait_for_the_begin_of_another() {
    let mut begun = compute(1.0, &[]);
    begun.begun = vec![0];
    let times = clocked(&task_graph(vec![vec![send(1, 9, &[]), begun], vec![receive(0, 9, &[])]]), true);
    assert_eq!(times[0], [(0.0, 9.0), (0.0, 1.0)]);
    // Without overlap, one queue serves compute and communication.
    let mut begun = compute(1.0, &[]);
    begun.begun = vec![0];
    let times = clocked(&task_graph(vec![vec![send(1, 9, &[]), begun], vec![receive(0, 9, &[])]]), false);
    assert_eq!(times[0], [(0.0, 9.0), (9.0, 10.0)]);
}

#[test]
fn messages_in_a_circle_are_named() {
    let one = |other| vec![receive(other, 4, &[]), send(other, 4, &[0])];
    let program = task_graph(vec![one(1), one(0)]);
    let message = Clock::new(&program, true, |_, _| 1.0).unwrap_err().to_string();
    let begin =
        "rank 0 waits in node 0 ('message') for a message that rank 1 cannot send, because ranks wait for each other";
    assert!(message.starts_with(begin), "{message}");
    // If the sends wait for nothing, there is no cycle, unless a queue works in program order.
    let exchange = |other| vec![receive(other, 4, &[]), send(other, 4, &[])];
    let mut program = task_graph(vec![exchange(1), exchange(0)]);
    assert!(Clock::new(&program, true, |_, _| 1.0).is_ok());
    program.queues = Queues::InOrder;
    assert!(Clock::new(&program, true, |_, _| 1.0).is_err());
}

#[test]
fn a_message_takes_what_a_permutation_of_one_pair_takes() {
    let program = task_graph(vec![vec![send(1, 1 << 20, &[])], vec![receive(0, 1 << 20, &[])]]);
    let permute = message(Work::Permute { bytes: 1 << 20, receivers: 0 }, &[]);
    let mut pair = graph(2, Vec::new(), vec![RankClass { ranks: vec![0, 1], nodes: vec![permute] }]);
    pair.receivers = vec![vec![vec![1, 1]]];
    for machine in ["torus2d-small", "dgx2", "archer"] {
        let report = on(machine, &program, true);
        let [row] = &report.collectives[..] else { panic!("{:?}", report.collectives) };
        assert_eq!((row.kind, row.group, row.bytes, row.count), ("receive", 2, 1 << 20, 1));
        let permuted = on(machine, &pair, true).collectives[0].seconds;
        assert!((row.seconds / permuted - 1.0).abs() < 1e-9, "{machine}: {} {permuted}", row.seconds);
        assert_eq!((report.iteration.seconds, row.exposed_seconds), (row.seconds, row.seconds));
        assert!(row.ratio.unwrap() >= 1.0 - 1e-9);
    }
}

fn on(machine: &str, program: &WorkloadGraph, overlap: bool) -> GraphReport {
    let machine = Machine::preset(machine).unwrap();
    let prices = ProgramPrices::new(program, &machine, &Part::All).unwrap();
    let rates = Accelerator { operations_per_second: 20e12, memory_bytes_per_second: 2e12 };
    Step { prices, accelerator: Some(rates), overlap, level: Level::Model }.report().unwrap()
}

#[test]
fn a_transformer_on_machines() {
    let program = hlo::read(TRANSFORMER, "transformer.hlo", true).unwrap();
    let machines = ["fattree-small", "torus2d-small", "hx2mesh-small", "dragonfly-small"];
    for machine in &machines[..if crate::soak::is_on() { 4 } else { 1 }] {
        let (with, without) = (on(machine, &program, true), on(machine, &program, false));
        for report in [&with, &without] {
            let (sum, of) = (report.iteration.compute_seconds + report.iteration.exposed_seconds, &report.iteration);
            assert!((sum - of.seconds).abs() < 1e-9, "{machine}");
            for row in &report.collectives {
                let ratio = row.ratio.unwrap();
                assert!(ratio >= 1.0 - 1e-9, "{machine}: {} takes {ratio} of its bound", row.kind);
            }
            let counts: Vec<u64> = report.collectives.iter().map(|row| row.count).collect();
            assert_eq!(counts.iter().sum::<u64>(), 32);
            let shown: f64 = report.collectives.iter().map(|row| row.exposed_seconds).sum();
            assert!(shown <= of.exposed_seconds + 1e-9, "{machine}: {shown}, {}", of.exposed_seconds);
            let listed: f64 = report.collectives.iter().map(|row| row.total_seconds).sum();
            assert!((listed - of.communication_seconds).abs() < 1e-9);
        }
        assert!(with.iteration.seconds < without.iteration.seconds);
        assert!(without.iteration.hidden_seconds < 1e-9, "{machine}: nothing is hidden without overlap");
        assert_eq!(with.iteration.compute_seconds, without.iteration.compute_seconds);
    }
}

#[test]
fn a_cheaper_collective_is_priced_beside_the_one_found() {
    let program = hlo::read(TRANSFORMER, "transformer.hlo", true).unwrap();
    let report = on("torus2d-small", &program, true);
    let [row] = &report.second_opinion[..] else { panic!("{:?}", report.second_opinion) };
    assert_eq!((row.kind, row.suffices, row.group, row.count), ("allreduce", "reduce-scatter", 32, 1));
    let found = report.collectives.iter().find(|c| c.bytes == row.bytes).unwrap();
    assert_eq!(row.seconds, found.seconds);
    assert!(row.suffices_seconds < 0.6 * row.seconds);
    assert_eq!(row.saved_seconds, row.seconds - row.suffices_seconds);
}

#[test]
fn one_group_alone_takes_what_its_plan_takes() {
    let program = |bytes| {
        let nodes = vec![collective(Kind::Allreduce, bytes, 0, &[])];
        graph(64, vec![Groups::all(64)], vec![RankClass { ranks: (0..64).collect(), nodes }])
    };
    for bytes in [4, 1 << 20] {
        let machine = Machine::preset("torus2d-small").unwrap();
        let part = Part::Shape(unisono_machine::Shape::line(64));
        let request = unisono_plan::Request::new(Kind::Allreduce, &machine, part, bytes / 4);
        let problem = unisono_plan::Problem::new(&request).unwrap();
        let plan = unisono_plan::plan(problem, None, &unisono_algorithms::Params::new()).unwrap();
        let report = on("torus2d-small", &program(bytes), true);
        assert_eq!(report.iteration.seconds, plan.best().time.seconds);
        assert_eq!(report.collectives[0].algorithm, plan.best().algorithm.name());
    }
}

#[test]
fn groups_of_several_sizes_take_as_long_as_the_slowest() {
    let program = |lists: Vec<Vec<u32>>| {
        let groups = Groups::new(24, lists).unwrap();
        let nodes = vec![collective(Kind::Allgather, 1 << 16, 0, &[])];
        graph(24, vec![groups], vec![RankClass { ranks: (0..24).collect(), nodes }])
    };
    let small: Vec<Vec<u32>> = vec![(0..4).collect(), (4..8).collect()];
    let large: Vec<Vec<u32>> = vec![(8..16).collect(), (16..24).collect()];
    let seconds = |lists| on("fattree-small", &program(lists), true).iteration.seconds;
    let both = [small.clone(), large.clone()].concat();
    assert_eq!(seconds(both), seconds(large).max(seconds(small)));
}

#[test]
fn requests_that_do_not_fit_are_refused() {
    let program = hlo::read(TRANSFORMER, "transformer.hlo", true).unwrap();
    let refused = |name: &str, part: &Part| {
        let machine = Machine::preset(name).unwrap();
        ProgramPrices::new(&program, &machine, part).map(drop).unwrap_err().to_string()
    };
    assert!(refused("dgx-h100", &Part::All).contains("256 ranks do not fit on dgx-h100, which has 8"));
    let part = Part::Shape(unisono_machine::Shape::line(64));
    assert_eq!(
        refused("fattree-small", &part),
        "jit_step has 256 ranks, and the part of the machine has 64; ask for a part with as many"
    );
    assert!(refused("wse2", &Part::All).contains("programs are timed on"));
    let machine = Machine::preset("fattree-small").unwrap();
    let prices = ProgramPrices::new(&program, &machine, &Part::All).unwrap();
    let refused = Step { prices, accelerator: None, overlap: true, level: Level::Model }.report();
    let message = refused.unwrap_err().to_string();
    assert!(message.starts_with("jit_step counts operations; give the rates of the accelerator"), "{message}");
}
