//! GOAL programs under LogGOPS: LogGOPSim's results, and programs at which LogGOPSim stops.

use crate::common;

use unisono_cost::endpoint::{Goal, ZeroBytes};
use unisono_formats::goal::read;
use unisono_lower::tasks::{TaskGraph, pattern};
use unisono_sim::endpoint::{Options, Run, SimError, run};

fn parse(text: &str) -> TaskGraph {
    read(text.as_bytes(), "test").unwrap()
}

fn simulate(graph: &TaskGraph, prices: &Goal) -> Run {
    run(graph, prices, &Options::default()).unwrap()
}

/// Returns a parameter set of the table by name.
fn prices(name: &str) -> Goal {
    match name {
        "default" => Goal::default(),
        "fastnet" => Goal { L: 1000, o: 200, g: 5, G: 1, ..Goal::default() },
        "overhead_per_byte" => Goal { L: 3700, o: 1200, g: 900, G: 5, O: 2, S: 1_000_000_000, ..Goal::default() },
        "rendezvous_all" => Goal { S: 0, ..Goal::default() },
        _ => panic!("{name} is no parameter set"),
    }
}

/// `tests/goal/expected.tsv` holds LogGOPSim's results: events, the greatest finish and its host, the sum over all
/// hosts.
#[test]
fn figures_of_loggopsim() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/goal/");
    let table = std::fs::read_to_string(format!("{folder}expected.tsv")).unwrap();
    let mut rows = 0;
    for row in table.lines().skip(1) {
        let [file, set, _, numbers @ ..] = &row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let numbers: Vec<u64> = numbers.iter().map(|n| n.parse().unwrap()).collect();
        let graph = parse(&std::fs::read_to_string(format!("{folder}{file}")).unwrap());
        let run = simulate(&graph, &prices(set));
        let host = run.finish.iter().position(|&f| f == run.makespan).unwrap() as u64;
        assert_eq!([run.events, run.makespan, host, run.finish.iter().sum()], numbers[..], "{file} {set}");
        rows += 1;
    }
    assert_eq!(rows, 32);
}

/// In picoseconds, the same parameters give the same times, and a fraction of a nanosecond per byte is exact. A message
/// of 1000 bytes takes o + L + o + 999 G, because the receiver's CPU takes the bytes.
#[test]
fn picoseconds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/goal/");
    for file in ["hand_zero_bytes.goal", "gather_P8_d1024.goal", "ring_P4_d4096.goal"] {
        let graph = parse(&std::fs::read_to_string(format!("{folder}{file}")).unwrap());
        for set in ["default", "fastnet", "overhead_per_byte", "rendezvous_all"] {
            let ns = prices(set);
            let (l, o, g, per_byte, cpu) = (1000 * ns.L, 1000 * ns.o, 1000 * ns.g, 1000 * ns.G, 1000 * ns.O);
            let ps = Goal { L: l, o, g, G: per_byte, O: cpu, ticks_per_ns: 1000, ..ns };
            let expected: Vec<u64> = simulate(&graph, &ns).finish.iter().map(|ns| 1000 * ns).collect();
            assert_eq!(simulate(&graph, &ps).finish, expected, "{file} {set}");
        }
    }
    let graph = parse("num_ranks 2\nrank 0 {\nsend 1000b to 1\n}\nrank 1 {\na: recv 1000b from 0\n}\n");
    let half = Goal { L: 2_500_000, o: 1_500_000, g: 1_000_000, G: 500, ticks_per_ns: 1000, ..Goal::default() };
    assert_eq!(simulate(&graph, &half).makespan, 1_500_000 + 2_500_000 + 1_500_000 + 999 * 500);
}

/// From 4000 on, the receiver's CPU is busy for o + 2^64 - G = 1494 (modulo 2^64). If 0 bytes are priced as one byte,
/// it is busy for o.
#[test]
fn zero_bytes() {
    let graph =
        parse("num_ranks 2\nrank 0 {\nsend 0b to 1\n}\nrank 1 {\na: recv 0b from 0\nb: calc 5\nb requires a\n}\n");
    assert_eq!(simulate(&graph, &Goal::default()).makespan, 5499);
    assert_eq!(simulate(&graph, &Goal { zero_bytes: ZeroBytes::Sane, ..Goal::default() }).makespan, 5505);
    // o - min(O, G) if both are positive, o - O if G = 0.
    assert_eq!(simulate(&graph, &Goal { O: 2, ..Goal::default() }).makespan, 4000 + 1498 + 5);
    assert_eq!(simulate(&graph, &Goal { O: 2, G: 0, ..Goal::default() }).makespan, 4000 + 1498 + 5);
}

/// LogGOPSim orders events of the same time in an unstable order, and stops on these programs without a message.
#[test]
fn what_stops_loggopsim_ends() {
    for (graph, ranks) in [
        (pattern::halving_doubling(256, 1 << 20).unwrap(), 256),
        (pattern::halving_doubling(1024, 1 << 20).unwrap(), 1024),
        (pattern::ring(64, 1 << 20).unwrap(), 64),
    ] {
        for prices in ["default", "fastnet", "overhead_per_byte", "rendezvous_all"].map(prices) {
            let run = simulate(&graph, &prices);
            assert_eq!(run.finish.len(), ranks);
            let (finish, events) = common::simulate(&graph, &prices).unwrap();
            assert_eq!((run.finish, run.events), (finish, events));
        }
    }
}

/// A long message that a short receive takes from the list of messages is never completed. LogGOPSim ends without a
/// message.
#[test]
fn a_deadlock_names_the_tasks() {
    let graph = parse(
        "num_ranks 2\nrank 0 {\na: send 1000b to 1\nb: calc 1\nb requires a\n}\nrank 1 {\nc: calc 9000\nr: recv 8b from 0\n\
         r requires c\nq: recv 8b from -1 tag 4\n}\n",
    );
    let error = run(&graph, &Goal { S: 500, ..Goal::default() }, &Options::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "deadlock: 3 tasks are never done, among them rank 0 task 1 (send 1000b to 1, tag 0) is sent and not received; \
         rank 1 task 3 (recv 8b from any, tag 4) gets no message; rank 0 task 2 (calc 1) waits for 1 other task"
    );
    let ring = parse("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n");
    let SimError::Deadlock { count: 2, stuck } = run(&ring, &Goal::default(), &Options::default()).unwrap_err() else {
        panic!("two tasks wait for each other")
    };
    assert_eq!(stuck.len(), 2);
    // If very many tasks are stuck, the error names only the first tasks.
    let unsent = (0..100).map(|n| format!("recv 1b from 0 tag {n}\n")).collect::<String>();
    let error = run(&parse(&format!("num_ranks 1\nrank 0 {{\n{unsent}}}\n")), &Goal::default(), &Options::default());
    let Err(SimError::Deadlock { count: 100, stuck }) = error else { panic!("{error:?}") };
    assert_eq!(stuck.len(), 32);
}

#[test]
fn messages_that_nobody_receives_are_counted() {
    let graph = parse("num_ranks 2\nrank 0 {\nsend 8b to 1\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n");
    assert_eq!(simulate(&graph, &Goal::default()).left_over, 1);
}
