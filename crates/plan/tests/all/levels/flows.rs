//! Programs timed by flows, compared with closed forms.

use crate::common::{network, step};

use unisono_collective::Kind;
use unisono_machine::Machine;
use unisono_plan::{
    Part,
    workload::graph::{Level, ProgramPrices, Step},
};
use unisono_workload::{Collected, Compute, Groups, Queues, RankClass, Work, WorkNode, WorkloadGraph};

/// Returns a machine of accelerators in a row, whose links carry 50 bytes in a nanosecond and have a latency of 80 ns.
fn line(accelerators: u32) -> Machine {
    let edges: Vec<String> = (1..accelerators).map(|n| format!("[{}, {n}]", n - 1)).collect();
    let graph = format!("name = 'graph'\naccelerators = {accelerators}\nedges = [{}]", edges.join(", "));
    network(1000, 100_000, &format!("[topology]\n{graph}"))
}

fn program(
    ranks: u32,
    groups: Vec<Groups>,
    receivers: Vec<Vec<u32>>,
    classes: &[(&[u32], Vec<Work>)],
) -> WorkloadGraph {
    let class = |(ranks, works): &(&[u32], Vec<Work>)| RankClass {
        ranks: ranks.to_vec(),
        nodes: works.iter().map(|&work| WorkNode::new("node", work, Vec::new())).collect(),
    };
    WorkloadGraph {
        name: "w".to_owned(),
        format: "test",
        ranks,
        groups,
        receivers: receivers.into_iter().map(|table| vec![table]).collect(),
        classes: classes.iter().map(class).collect(),
        ..WorkloadGraph::default()
    }
}

const BYTES: u64 = 1_000_000;

/// Ranks 0 and 1 send 1 MB to ranks 2 and 3 on the link in the middle. A message alone takes 20 us there, so both
/// together take 40 us.
#[test]
fn unlike_communications_share_a_link() {
    let send = |receivers| Work::Permute { bytes: BYTES, receivers };
    let tables = vec![vec![2, 1, 2, 3], vec![0, 3, 2, 3]];
    let both = program(4, Vec::new(), tables, &[(&[0, 2], vec![send(0)]), (&[1, 3], vec![send(1)])]);
    let seconds = |level| step(&line(4), &both, level, true).iteration.seconds;
    assert!((seconds(Level::Flow) / 40e-6 - 1.0).abs() < 1e-9, "{}", seconds(Level::Flow));
    // The model times each message alone: 20 us and the latency of two links.
    assert!((seconds(Level::Model) / 20.16e-6 - 1.0).abs() < 1e-9, "{}", seconds(Level::Model));
    assert!((seconds(Level::Flow) / seconds(Level::Packet) - 1.0).abs() < 0.02);
}

/// The second message starts when the first has half of its bytes left: 10 us alone, 20 us together, 10 us alone.
#[test]
fn rates_change_when_others_begin_and_end() {
    let send = |receivers| Work::Permute { bytes: BYTES, receivers };
    let wait = Work::Compute(Compute::Measured { seconds: 10e-6 });
    let tables = vec![vec![2, 1, 2, 3], vec![0, 3, 2, 3]];
    let mut both = program(4, Vec::new(), tables, &[(&[0, 2], vec![send(0)]), (&[1, 3], vec![wait, send(1)])]);
    both.classes[1].nodes[1].after = vec![0];
    let report = step(&line(4), &both, Level::Flow, true);
    // Of 20.16 us alone, 10.16 us are left. A message alone keeps the link busy for 20 of 20.16 us, so two messages
    // proceed at a rate of 0.504 each.
    let together = 10.16e-6 / 0.504;
    let alone = 20.16e-6 - 0.504 * together;
    assert!((report.iteration.seconds / (10e-6 + together + alone) - 1.0).abs() < 1e-9, "{}", report.iteration.seconds);
}

/// A single group takes the time of the model. Groups that share no links do too.
#[test]
fn groups_apart_take_what_the_model_says() {
    let torus = Machine::preset("torus2d-small").unwrap();
    let rows = Groups::new(64, (0..2).map(|row| (32 * row..32 * row + 32).collect())).unwrap();
    for kind in [Kind::Allreduce, Kind::Allgather, Kind::Alltoall] {
        for (groups, is_dear) in [(Groups::all(64), kind == Kind::Alltoall), (rows.clone(), kind != Kind::Alltoall)] {
            if is_dear && !crate::soak::is_on() {
                continue;
            }
            let work = Work::Collective(Collected { kind, bytes: BYTES, element_bytes: 4, root: 0, groups: 0 });
            let all: Vec<u32> = (0..64).collect();
            let program = program(64, vec![groups], Vec::new(), &[(&all, vec![work, work])]);
            let [model, flow] =
                [Level::Model, Level::Flow].map(|level| step(&torus, &program, level, true).iteration.seconds);
            assert!((flow / model - 1.0).abs() < 0.02, "{kind}: {flow} s by flows, {model} s by the model");
        }
    }
}

#[test]
fn messages_between_pairs_are_no_flows() {
    let send = Work::Send { to: 1, bytes: 8, tag: 0 };
    let receive = Work::Receive { from: 0, bytes: 8, tag: 0 };
    let mut pair = program(2, Vec::new(), Vec::new(), &[(&[0], vec![send]), (&[1], vec![receive])]);
    pair.queues = Queues::AsReady;
    let machine = line(2);
    let prices = ProgramPrices::new(&pair, &machine, &Part::All).unwrap();
    let by_flows = Step { prices, accelerator: None, overlap: true, level: Level::Flow };
    assert!(by_flows.report().unwrap_err().to_string().starts_with("w has messages between pairs of ranks"));
    // The time is 80 ns, and 8 bytes at 50 bytes a nanosecond.
    assert_eq!(step(&machine, &pair, Level::Packet, true).iteration.seconds, 80.16e-9);
}
