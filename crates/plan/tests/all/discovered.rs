//! Programs of tasks as programs of ranks: the ranks perform the operations that discovery counts.

use std::collections::HashMap;

use unisono_base::BufferId;
use unisono_discover::{
    Access, Box3, Buffer, Geometry, ListedTask, Mapper, Mode, Program, Rules, Submitted, TaskList, report,
};
use unisono_machine::Machine;
use unisono_plan::{
    Part,
    workload::{
        TaskProgram, discovered,
        graph::{Level, ProgramPrices, Step},
        is_program_of_tasks,
    },
};
use unisono_workload::{Accelerator, Compute, Work, WorkloadGraph};

const NBODY: &str = include_str!("../../../../examples/programs/nbody.json");

/// Returns two steps of a stencil on a square that is divided into tiles.
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
    let prices = ProgramPrices::new(program, machine, &Part::All).unwrap();
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
                        // In these programs, all ranks take part in every collective.
                        Work::Collective(_) if class.ranks == [0] => collectives += 1,
                        _ => {}
                    }
                }
            }
            assert_eq!((sends, bytes, collectives), (found.p2p, found.p2p_bytes, found.collective), "{ranks} ranks");
        }
    }
}

/// The model and packets agree for ranks that compute and exchange the borders of their tiles, even if neighboring
/// tiles are in different rows of the machine.
#[test]
fn the_model_is_near_packets() {
    for name in ["torus2d-small", "hx2mesh-small", "fattree-small"] {
        let machine = Machine::preset(name).unwrap();
        for (text, ranks) in [(NBODY.to_owned(), 16), (NBODY.to_owned(), 64), (stencil(), 16), (stencil(), 64)] {
            if ranks == 64 && (name != "torus2d-small" || text == NBODY) && !crate::soak::is_on() {
                continue;
            }
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

/// Returns a task that writes `A`, a fence on `A`, and a task that does not use `A`.
fn fenced() -> TaskList {
    let task = |name: &str, mode, mapper, buffer| ListedTask {
        name: name.to_owned(),
        operations: Some(1e3),
        on_host: false,
        submitted: Submitted::Task {
            geometry: Geometry::of(&[64]),
            accesses: vec![Access::new(BufferId(buffer), mode, mapper)],
        },
    };
    let window = Box3::of_size([64, 1, 1]);
    let fence = Submitted::Fence { buffer: BufferId(0), window };
    TaskList {
        rows: false,
        buffers: ["A", "B"].map(|name| Buffer::new(name, &[64], 8, true).unwrap()).into(),
        tasks: vec![
            task("first", Mode::Write, Mapper::OneToOne, 0),
            ListedTask { name: "fetch of A".to_owned(), operations: None, on_host: false, submitted: fence },
            task("second", Mode::ReadWrite, Mapper::OneToOne, 1),
        ],
    }
}

fn of_list(tasks: &TaskList, reduced: &HashMap<u32, u64>) -> WorkloadGraph {
    TaskProgram { name: "p", tasks, ranks: 4, reduced, strict: true }.discovered().unwrap()
}

#[test]
fn a_program_waits_for_a_fence() {
    let program = of_list(&fenced(), &HashMap::new());
    assert!(program.unknown.is_empty());
    for class in &program.classes {
        let named = |name: &str, computes: bool| {
            class.nodes.iter().position(|node| &*node.name == name && node.work.is_compute() == computes).unwrap()
                as u32
        };
        let [first, gathers, fence, second] =
            [("first", true), ("fetch of A", false), ("fetch of A", true), ("second", true)].map(|(n, c)| named(n, c));
        let waits = |node: u32, before: u32| class.nodes[node as usize].after.contains(&before);
        assert!(waits(gathers, first) && waits(fence, gathers) && waits(second, fence));
        let fence = &class.nodes[fence as usize].work;
        assert!(matches!(fence, Work::Compute(Compute::Measured { seconds: 0.0 })), "{fence:?}");
    }
}

/// An allreduce of elements that no library combines consists of messages, whose elements carry the operator's number.
#[test]
fn sums_that_no_library_makes_are_messages() {
    let sum = |buffer: u32, mode, mapper| Access::new(BufferId(buffer), mode, mapper);
    let task = |name: &str, accesses| ListedTask {
        name: name.to_owned(),
        operations: Some(1.0),
        on_host: false,
        submitted: Submitted::Task { geometry: Geometry::of(&[64]), accesses },
    };
    let tasks = TaskList {
        rows: false,
        buffers: vec![Buffer::new("S", &[10], 8, true).unwrap()],
        tasks: vec![
            task("sum", vec![sum(0, Mode::Reduce, Mapper::All)]),
            task("use", vec![sum(0, Mode::Read, Mapper::All)]),
        ],
    };
    let count = |program: &WorkloadGraph| {
        let works = program.classes.iter().flat_map(|class| &class.nodes).map(|node| node.work);
        let (mut collectives, mut bytes) = (0, Vec::new());
        for work in works {
            match work {
                Work::Collective(_) => collectives += 1,
                Work::Send { bytes: own, .. } => bytes.push(own),
                _ => {}
            }
        }
        (collectives, bytes)
    };
    assert_eq!(count(&of_list(&tasks, &HashMap::new())), (4, Vec::new()));
    let (collectives, bytes) = count(&of_list(&tasks, &HashMap::from([(0, 1)])));
    // Ten elements of 9 bytes go from each of three ranks to one rank and back, or to both other ranks.
    assert_eq!(collectives, 0);
    assert!(!bytes.is_empty() && bytes.iter().all(|bytes| bytes % 9 == 0), "{bytes:?}");
}
