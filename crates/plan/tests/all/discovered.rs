//! Programs of tasks as programs of ranks: what discovery counts is what the ranks do.

use unisono_discover::{Program, Rules, report};
use unisono_machine::Machine;
use unisono_plan::{
    Part,
    workload::{
        discovered,
        graph::{Level, Prices, Step},
        is_program_of_tasks,
    },
};
use unisono_workload::{Accelerator, Work, WorkloadGraph};

const NBODY: &str = include_str!("../../../../examples/programs/nbody.json");

/// Two steps of a stencil on a square that is split into tiles.
fn stencil() -> String {
    let access = |buffer: &str, mode: &str, mapper: &str| {
        format!("{{\"buffer\": \"{buffer}\", \"mode\": \"{mode}\", \"mapper\": {{\"kind\": {mapper}}}}}")
    };
    let task = |from: &str, to: &str| {
        let reads = access(from, "read", "\"neighborhood\", \"halo\": [1, 1]");
        let writes = access(to, "write", "\"one_to_one\"");
        format!(
            "{{\"name\": \"s\", \"range\": [256, 256], \"split\": \"2d\", \"operations\": 6, \"accesses\": [{reads}, {writes}]}}"
        )
    };
    let buffer = |name: &str| format!("{{\"name\": \"{name}\", \"shape\": [256, 256], \"host_initialized\": true}}");
    let tasks = [task("A", "B"), task("B", "A"), task("A", "B")].join(", ");
    format!("{{\"buffers\": [{}, {}], \"tasks\": [{tasks}]}}", buffer("A"), buffer("B"))
}

fn seconds(program: &WorkloadGraph, machine: &Machine, level: Level) -> f64 {
    let accelerator = Some(Accelerator { operations_per_second: 1e12, memory_bytes_per_second: 1e12 });
    let prices = Prices::new(program, machine, &Part::All).unwrap();
    Step { prices, accelerator, overlap: true, level }.report().unwrap().iteration.seconds
}

#[test]
fn ranks_do_what_discovery_counts() {
    for text in [NBODY.to_owned(), stencil()] {
        assert!(is_program_of_tasks(text.as_bytes()));
        for ranks in [1, 2, 3, 7, 16, 64] {
            let program = discovered(&text, "p", ranks, false).unwrap();
            program.check_messages().unwrap();
            let found = report(&Program::parse(&text).unwrap(), ranks, Rules::Full).unwrap().messages;
            let (mut sends, mut bytes, mut collectives) = (0, 0, 0);
            for class in &program.classes {
                for node in &class.nodes {
                    match node.work {
                        Work::Send { bytes: own, .. } => (sends, bytes) = (sends + 1, bytes + own),
                        // All ranks of these programs take part in each collective.
                        Work::Collective(_) if class.ranks == [0] => collectives += 1,
                        _ => {}
                    }
                }
            }
            assert_eq!((sends, bytes, collectives), (found.p2p, found.p2p_bytes, found.collective), "{ranks} ranks");
        }
    }
}

/// A rank that computes and exchanges the borders of its tile: the model and packets agree, also where tiles have neighbors in
/// other rows of the machine.
#[test]
fn the_model_is_near_packets() {
    for name in ["torus2d-small", "hx2mesh-small", "fattree-small"] {
        let machine = Machine::preset(name).unwrap();
        for (text, ranks) in [(NBODY.to_owned(), 16), (NBODY.to_owned(), 64), (stencil(), 16), (stencil(), 64)] {
            let program = discovered(&text, "p", ranks, false).unwrap();
            let [model, packets] = [Level::Model, Level::Packet].map(|level| seconds(&program, &machine, level));
            assert!((model / packets - 1.0).abs() < 0.15, "{name}, {ranks} ranks: {model} s, {packets} s by packets");
        }
    }
}

#[test]
fn tasks_without_operations_are_named() {
    let program = discovered(NBODY, "p", 4, false).unwrap();
    assert_eq!(program.unknown.into_iter().collect::<Vec<_>>(), [("check".to_owned(), 4)]);
    let refused = |text: &str, strict| discovered(text, "p", 4, strict).unwrap_err().to_string();
    assert!(refused(NBODY, true).starts_with("task 'check' states no operations"));
    assert!(refused(&NBODY.replace("\"operations\": 6", "\"operations\": -6"), false).contains("operations is -6"));
    assert!(!is_program_of_tasks(b"{\"traceEvents\": []}"));
}
