//! Messages between pairs, timed at several levels, and the sums that every report must satisfy.

use crate::common::{network, step as on};

use unisono_machine::Machine;
use unisono_plan::workload::graph::{GraphReport, Level};
use unisono_workload::{Compute, Queues, RankClass, Work, WorkNode, WorkloadGraph};

use super::random::{Random, Style, program};

fn tasks(nodes: Vec<Vec<WorkNode>>) -> WorkloadGraph {
    let ranks = u32::try_from(nodes.len()).unwrap();
    let class = |(rank, nodes)| RankClass { ranks: vec![rank], nodes };
    WorkloadGraph {
        name: "messages".to_owned(),
        format: "test",
        ranks,
        classes: (0..).zip(nodes).map(class).collect(),
        queues: Queues::AsReady,
        ..WorkloadGraph::default()
    }
}

fn send(to: u32, bytes: u64, tag: u32) -> WorkNode {
    WorkNode::new("send", Work::Send { to, bytes, tag }, Vec::new())
}

fn receive(from: u32, bytes: u64, tag: u32) -> WorkNode {
    WorkNode::new("receive", Work::Receive { from, bytes, tag }, Vec::new())
}

/// Returns messages of random pairs, in rounds: every rank computes, sends and receives after random earlier nodes.
fn pairs(r: &mut Random) -> WorkloadGraph {
    waiting_pairs(r, 1 << 18, 0)
}

/// Returns messages like [`pairs`], of at most `most_bytes` bytes. Of 4 nodes, `waiting` wait for the last node of
/// their rank, mostly a send.
fn waiting_pairs(r: &mut Random, most_bytes: u64, waiting: u64) -> WorkloadGraph {
    let ranks = 2 + r.below(7) as u32;
    let mut nodes: Vec<Vec<WorkNode>> = vec![Vec::new(); ranks as usize];
    for tag in 0..1 + r.below(12) as u32 {
        let from = r.below(u64::from(ranks)) as u32;
        let to = (from + 1 + r.below(u64::from(ranks) - 1) as u32) % ranks;
        let bytes = 1 + r.below(most_bytes);
        let microseconds = (1 + r.below(30)) as f64;
        let computes =
            WorkNode::new("compute", Work::Compute(Compute::Measured { seconds: microseconds * 1e-6 }), Vec::new());
        for (rank, node) in [(from, computes), (from, send(to, bytes, tag)), (to, receive(from, bytes, tag))] {
            let of = &mut nodes[rank as usize];
            let count = of.len() as u64;
            let mut after: Vec<u32> = (0..count.min(2)).map(|_| r.below(count) as u32).collect();
            if count > 0 && r.below(4) < waiting {
                after.push(count as u32 - 1);
            }
            of.push(WorkNode { after, ..node });
        }
    }
    tasks(nodes)
}

/// Checks the sums in a report: each moment is compute, exposed communication or waiting, and is counted once.
fn check(report: &GraphReport) {
    let of = &report.iteration;
    let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-9 * of.seconds.max(1e-12), "{a} and {b} of {}", of.seconds);
    near(of.exposed_seconds + of.hidden_seconds, of.communication_seconds);
    near(of.compute_seconds + of.exposed_seconds + of.waiting_seconds, of.seconds);
    let most = of.seconds * (1.0 + 1e-9);
    for seconds in [of.exposed_seconds, of.hidden_seconds, of.waiting_seconds] {
        assert!((0.0..=most).contains(&seconds), "{seconds} of {}", of.seconds);
    }
    assert!(of.communication_seconds <= most && of.hidden_seconds <= of.compute_seconds * (1.0 + 1e-9));
    let rows = &report.collectives;
    let (mut total, mut exposed) = (0.0, 0.0);
    for row in rows {
        assert!(row.share <= 1.0 + 1e-9, "a {} is {} of the step", row.kind, row.share);
        assert!(row.exposed_seconds <= row.total_seconds + 1e-9 * of.seconds);
        assert!(row.total_seconds <= most);
        (total, exposed) = (total + row.total_seconds, exposed + row.exposed_seconds);
    }
    // The communications of rows may overlap in time. Together they cover all communication.
    assert!(total >= of.communication_seconds - 1e-9 * of.seconds, "{total} {}", of.communication_seconds);
    assert!(exposed >= of.exposed_seconds - 1e-9 * of.seconds, "{exposed} {}", of.exposed_seconds);
}

#[test]
fn a_moment_counts_once() {
    let machines = ["torus2d-small", "fattree-small", "archer", "dgx-h100"].map(|name| Machine::preset(name).unwrap());
    let style = Style { sides: &[1, 2, 2], nodes: 8, bytes: 8..17, microseconds: 50, uneven: false };
    for seed in 0..if crate::soak::is_on() { 300 } else { 8 } {
        let mut r = Random(seed);
        let machine = &machines[r.below(machines.len() as u64) as usize];
        let overlap = r.below(4) > 0;
        for level in [Level::Model, Level::Packet] {
            check(&on(machine, &pairs(&mut r), level, overlap));
        }
        let program = program(&mut r, &style);
        for level in Level::ALL {
            check(&on(machine, &program, level, overlap));
        }
    }
}

#[test]
fn a_send_takes_until_its_message_has_left() {
    // 1 MB takes 20 us at 400 Gb/s on the only link between the two ranks.
    let program = tasks(vec![vec![send(1, 1_000_000, 0)], vec![receive(0, 1_000_000, 0)]]);
    let machine = pair("");
    let report = on(&machine, &program, Level::Packet, true);
    assert_eq!(report.rank, 1);
    let [row] = &report.collectives[..] else { panic!("{:?}", report.collectives) };
    assert!((row.seconds - 20e-6).abs() < 1e-6, "{}", row.seconds);
    assert_eq!(row.slowest_seconds, row.seconds);
    // The rank that sends also computes for a long time, and ends last.
    let compute = WorkNode::new("compute", Work::Compute(Compute::Measured { seconds: 1e-3 }), Vec::new());
    let program = tasks(vec![vec![send(1, 1_000_000, 0), compute], vec![receive(0, 1_000_000, 0)]]);
    for level in [Level::Model, Level::Packet] {
        let report = on(&machine, &program, level, true);
        assert_eq!(report.rank, 0);
        assert!((report.iteration.hidden_seconds - 20e-6).abs() < 1e-9, "{level:?}: {:?}", report.iteration);
        assert_eq!((report.iteration.exposed_seconds, report.iteration.waiting_seconds), (0.0, 0.0));
    }
}

/// Without overlap, a rank does nothing else until its message has left. Both computes run in sequence after both
/// messages, although they do not wait for the messages.
#[test]
fn without_overlap_a_send_holds_its_rank() {
    let both = || vec![send(1, 1_000_000, 0), send(1, 1_000_000, 1), compute(15.0, Vec::new()), compute(5.0, vec![0])];
    let program = tasks(vec![both(), vec![receive(0, 1_000_000, 0), receive(0, 1_000_000, 1)]]);
    for machine in [pair(""), pair("send_machines = 2"), Machine::preset("archer").unwrap()] {
        let seconds = |level, overlap| on(&machine, &program, level, overlap).iteration.seconds;
        let [model, packets] = [Level::Model, Level::Packet].map(|level| seconds(level, false));
        assert!((model / packets - 1.0).abs() < 0.01, "{model} by the model, {packets} by packets");
        assert!(packets > seconds(Level::Packet, true));
    }
    assert!((on(&pair(""), &program, Level::Packet, false).iteration.seconds - 60e-6).abs() < 1e-8);
}

/// Messages of 1 MB in both directions of a link: one leaves at once, the other arrives 30 us later.
#[test]
fn sends_and_receives_have_rows_of_their_own() {
    let one = vec![send(1, 1_000_000, 0), receive(1, 1_000_000, 1), compute(100.0, vec![1])];
    let other = vec![compute(30.0, Vec::new()), WorkNode { after: vec![0], ..send(0, 1_000_000, 1) }];
    let program = tasks(vec![one, [other, vec![receive(0, 1_000_000, 0)]].concat()]);
    for level in [Level::Model, Level::Packet] {
        let report = on(&pair(""), &program, level, true);
        assert_eq!(report.rank, 0);
        let row = |kind| report.collectives.iter().find(|row| row.kind == kind).unwrap();
        let (sent, received) = (row("send"), row("receive"));
        assert_eq!((report.collectives.len(), sent.count, received.count), (2, 1, 1));
        // A send ends 80 ns before its message arrives.
        assert!((sent.seconds - 20e-6).abs() < 1e-9, "{level:?}: {}", sent.seconds);
        assert!((received.seconds - 20.08e-6).abs() < 1e-9, "{level:?}: {}", received.seconds);
        assert_eq!((sent.ratio, sent.bound), (None, None));
        assert!(received.ratio.is_some_and(|ratio| ratio >= 1.0 - 1e-9));
    }
}

/// Returns two accelerators joined by a link. `more` adds lines to the machine file.
fn pair(more: &str) -> Machine {
    star(1, more)
}

/// Returns an accelerator that has a link to each of `leaves` other accelerators.
fn star(leaves: u32, more: &str) -> Machine {
    let edges: String = (1..=leaves).map(|leaf| format!("0 {leaf}\n")).collect();
    let graph = format!("name = 'graph'\naccelerators = {}\nedges = '''\n{edges}'''", leaves + 1);
    network(1000, 1_000_000, &format!("{more}\n[topology]\n{graph}"))
}

#[test]
fn links_send_at_the_same_time() {
    // Rank 0 sends 1 MB to each of 6 ranks on separate links; then each sends 1 MB back.
    let spread = (1..7).map(|to| send(to, 1_000_000, 0)).collect();
    let leaves = (1..7).map(|_| vec![receive(0, 1_000_000, 0)]);
    let program = tasks(std::iter::once(spread).chain(leaves).collect());
    let gathered = (1..7).map(|from| receive(from, 1_000_000, 0)).collect();
    let leaves = (1..7).map(|_| vec![send(0, 1_000_000, 0)]);
    let back = tasks(std::iter::once(gathered).chain(leaves).collect());
    for (more, serial) in [
        ("send_machines_per = 'link'", 1.0),
        ("send_machines = 6", 1.0),
        ("send_machines = 1", 6.0),
        ("send_machines = 3", 2.0),
    ] {
        let machine = star(6, more);
        for (program, times) in [(&program, serial), (&back, 1.0)] {
            let [model, packets] =
                [Level::Model, Level::Packet].map(|level| on(&machine, program, level, true).iteration.seconds);
            assert!((model / packets - 1.0).abs() < 0.02, "{more}: {model} by the model, {packets} by packets");
            assert!((packets / (20e-6 * times) - 1.0).abs() < 0.02, "{more}: {packets}");
        }
    }
}

/// A host takes 2 us to send a message and 2 us to receive a message, with 81 ns between. With n messages through the
/// busiest host, the time is (n + 1) times 2 us, plus 81 ns.
#[test]
fn short_messages_wait_for_hosts() {
    let machine = star(6, "host_overhead_ns = 2000\nsend_machines_per = 'link'");
    let each = |leaf: u32| (0..10).map(move |tag| (leaf, tag));
    let spread = tasks(
        std::iter::once((1..7).flat_map(each).map(|(to, tag)| send(to, 8, tag)).collect())
            .chain((1..7).map(|leaf| each(leaf).map(|(_, tag)| receive(0, 8, tag)).collect()))
            .collect(),
    );
    let gathered = tasks(
        std::iter::once((1..7).flat_map(each).map(|(from, tag)| receive(from, 8, tag)).collect())
            .chain((1..7).map(|leaf| each(leaf).map(|(_, tag)| send(0, 8, tag)).collect()))
            .collect(),
    );
    for program in [&spread, &gathered] {
        by_levels(program, &machine, 61.0 * 2e-6 + 81e-9);
    }
    // Among ranks, the machine's own overheads and gaps are used.
    let row = |rank: u32| (0..100).map(move |tag| if rank == 0 { send(1, 8, tag) } else { receive(0, 8, tag) });
    let program = tasks(vec![row(0).collect(), row(1).collect()]);
    let archer = Machine::preset("archer").unwrap();
    let packets = on(&archer, &program, Level::Packet, true).iteration.seconds;
    by_levels(&program, &archer, packets);
}

/// Returns for random messages the model's time divided by that of packets, ascending.
fn ratios(seeds: u64, overlap: bool, program: impl Fn(&mut Random) -> WorkloadGraph) -> Vec<f64> {
    let machines = ["fattree-small", "hx2mesh-small", "torus2d-small", "dragonfly-small", "dgx-h100", "archer"]
        .map(|name| Machine::preset(name).unwrap());
    let ratio = |seed| {
        let mut r = Random(seed);
        let (machine, program) = (&machines[r.below(6) as usize], program(&mut r));
        let [model, packets] =
            [Level::Model, Level::Packet].map(|level| on(machine, &program, level, overlap).iteration.seconds);
        model / packets
    };
    let mut ratios: Vec<f64> = (0..seeds).map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

/// The model's time of random messages is within 15 % of that of packets for most programs, even if compute waits for
/// long sends.
#[expect(clippy::print_stdout, reason = "the figures of the documentation")]
#[test]
fn the_model_of_messages_is_near_packets() {
    for (most_bytes, waiting, overlap, percent) in
        [(1 << 18, 0, true, 95), (1 << 22, 3, true, 95), (1 << 22, 0, true, 95), (1 << 20, 2, false, 95)]
    {
        let programs = if crate::soak::is_on() { 400_u32 } else { 20 };
        let ratios = ratios(programs.into(), overlap, |r| waiting_pairs(r, most_bytes, waiting));
        let near = ratios.iter().filter(|ratio| (*ratio - 1.0).abs() <= 0.15).count();
        let what = format!("{most_bytes} bytes, {waiting} of 4 nodes wait, overlap {overlap}");
        let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
        println!("{what}: {near} of {programs} within 15 %, {least:.3} to {most:.3} times packets");
        assert!(near * 100 >= ratios.len() * percent, "{what}: {near} of {programs}");
    }
}

/// Times a program of two ranks on a link by the model and by packets. 1 MB takes 20 us.
fn by_levels(program: &WorkloadGraph, machine: &Machine, seconds: f64) -> [GraphReport; 2] {
    [Level::Model, Level::Packet].map(|level| {
        let report = on(machine, program, level, true);
        let found = report.iteration.seconds;
        assert!((found / seconds - 1.0).abs() < 0.01, "{level:?}: {found} s, expected {seconds} s");
        report
    })
}

fn compute(microseconds: f64, after: Vec<u32>) -> WorkNode {
    WorkNode::new("compute", Work::Compute(Compute::Measured { seconds: microseconds * 1e-6 }), after)
}

#[test]
fn compute_after_a_send_waits_until_its_message_has_left() {
    let receives = || vec![receive(0, 1_000_000, 0), receive(0, 1_000_000, 1)];
    let one = vec![receive(0, 1_000_000, 0)];
    let program = tasks(vec![vec![send(1, 1_000_000, 0), compute(15.0, vec![0])], one.clone()]);
    by_levels(&program, &pair(""), 35e-6);
    // A node that waits for the start of a send begins when the send is posted, even if the only send machine is busy.
    let begun = |before| WorkNode { begun: vec![before], ..compute(30.0, Vec::new()) };
    let program = tasks(vec![vec![send(1, 1_000_000, 0), begun(0)], one]);
    by_levels(&program, &pair(""), 30e-6);
    let both = || vec![send(1, 1_000_000, 0), send(1, 1_000_000, 1)];
    let machine = pair("send_machines = 1");
    let program =
        tasks(vec![[both(), vec![WorkNode { begun: vec![1], ..compute(50.0, Vec::new()) }]].concat(), receives()]);
    by_levels(&program, &machine, 50e-6);
    // A send begins when a send machine takes the message, so each of the two sends takes 20 us.
    let program = tasks(vec![[both(), vec![compute(50.0, vec![1])]].concat(), receives()]);
    for report in by_levels(&program, &machine, 90e-6) {
        assert_eq!(report.rank, 0);
        let [row] = &report.collectives[..] else { panic!("{:?}", report.collectives) };
        assert!((row.seconds / 20e-6 - 1.0).abs() < 0.01, "{}", row.seconds);
    }
}

/// A send in a task graph ends when it begins, so later compute overlaps with the message.
#[test]
fn sends_of_goal_are_done_when_they_start() {
    let text = "num_ranks 2\nrank 0 {\na: send 1000000b to 1 tag 0\nb: calc 15000\nb requires a\n}\n\
                rank 1 {\nc: recv 1000000b from 0 tag 0\n}\n";
    let files = [("a.goal".to_owned(), text.as_bytes().to_vec())];
    let program = (unisono_formats::goal::FORMAT.read)(&files, true).unwrap();
    by_levels(&program, &pair(""), 20e-6);
}
