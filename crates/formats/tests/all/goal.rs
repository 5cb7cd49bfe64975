//! Tests of GOAL: a written graph reads back as the same graph, errors name the line of a mistake, and no text makes
//! the reader panic or allocate more memory than the text needs.

mod labels;

use std::io::BufReader;

use proptest::prelude::*;
use unisono_algorithms::{ALGORITHMS, Case, Means, Params, Ranks};
use unisono_base::TaskId;
use unisono_collective::{Collective, Dtype, Kind as CollectiveKind, Operator};
use unisono_formats::{
    Emitter,
    goal::{Goal, read, write},
};
use unisono_lower::{
    File, VerifiedFile,
    tasks::{ANY, Builder, Kind, Task, TaskGraph, draft, pattern},
};
use unisono_machine::Machine;
use unisono_schedule::verify::Method;

const FILES: [(&str, &str); 8] = [
    ("alltoall", include_str!("../../../../tests/goal/a2a_P8_d1024.goal")),
    ("binomial", include_str!("../../../../tests/goal/binred_P13_d8.goal")),
    ("dissemination", include_str!("../../../../tests/goal/dissem_P16_d8.goal")),
    ("gather", include_str!("../../../../tests/goal/gather_P8_d1024.goal")),
    ("zero", include_str!("../../../../tests/goal/hand_zero_bytes.goal")),
    ("n-way", include_str!("../../../../tests/goal/nway2_P8_d8.goal")),
    ("halving", include_str!("../../../../tests/goal/recdoub_P4_d1048576.goal")),
    ("ring", include_str!("../../../../tests/goal/ring_P4_d4096.goal")),
];

fn parse(text: &str) -> Result<TaskGraph, String> {
    read(text.as_bytes(), "a.goal").map_err(|e| e.to_string())
}

fn print(graph: &TaskGraph) -> String {
    let mut text = String::new();
    write(graph, |task| task.amount, &mut text).unwrap();
    text
}

#[test]
fn files_read_back() {
    for (name, text) in FILES {
        let graph = parse(text).unwrap();
        assert_eq!(parse(&print(&graph)).unwrap(), graph, "{name}");
    }
}

#[test]
fn patterns_are_those_of_the_files() {
    let file = |name: &str| parse(FILES.iter().find(|f| f.0 == name).unwrap().1).unwrap();
    assert_eq!(pattern::linear_alltoall(8, 1024).unwrap(), file("alltoall"));
    assert_eq!(pattern::binomial_reduce(13, 8).unwrap(), file("binomial"));
    assert_eq!(pattern::dissemination(16, 8).unwrap(), file("dissemination"));
    assert_eq!(pattern::linear_gather(8, 1024).unwrap(), file("gather"));
    assert_eq!(pattern::halving_doubling(4, 1 << 20).unwrap(), file("halving"));
    assert_eq!(pattern::ring(4, 4096).unwrap(), file("ring"));
}

#[test]
fn everything_that_the_language_has() {
    let text = "// head\n/* of two\nlines */ num_ranks 2\nrank 0 {\r\n \ta : send 1024 b to 1 tag 7 cpu 1 nic 2  \r\n\
        recv 0b from -1 tag -1\n// remark\n/* one */ l_2: calc 18446744073709551615 cpu 3\nl_2 requires a\nl_2 irequires a\n\
        a: calc 5\nl_2 requires a\nan_uncommonly_long_label: calc 1\nan_uncommonly_long_label requires l_2\n}rank 1 { } /* end */\n\n// of file";
    let graph = parse(text).unwrap();
    assert_eq!((graph.rank_count(), graph.task_count(), graph.cpus(), graph.nics()), (2, 5, 4, 3));
    assert_eq!(graph.task(TaskId(0)), Task::send(1, 1024, 7).on(1, 2));
    assert_eq!(graph.task(TaskId(1)), Task::receive(ANY, 0, ANY));
    assert_eq!(graph.task(TaskId(2)), Task::calc(u64::MAX).on(3, 0));
    // If a label is defined twice, the first definition counts. Tasks that wait for the start of a task are listed
    // before tasks that wait for its end.
    assert_eq!(
        graph.waiting(TaskId(0)).collect::<Vec<_>>(),
        [(TaskId(2), true), (TaskId(2), false), (TaskId(2), false)]
    );
    assert_eq!(graph.waiting(TaskId(2)).collect::<Vec<_>>(), [(TaskId(4), false)]);
    assert_eq!(parse(&print(&graph)).unwrap(), graph);
}

#[test]
fn mistakes_are_named_with_their_line() {
    let rank = |body: &str| format!("num_ranks 1\nrank 0 {{\n{body}\n}}\n");
    let cases = [
        (String::new(), "a.goal, at its end: no 'num_ranks N' is there; it stands before the first rank"),
        ("rank 0 {\n}".into(), "a.goal, line 1: found 'rank 0 {' where 'num_ranks' is expected"),
        ("num_ranks 0".into(), "line 1: num_ranks is 0; at least 1 is needed"),
        ("num_ranks -1".into(), "line 1: found '-1' where the number of ranks is expected"),
        ("num_ranks 4294967295".into(), "the number of ranks is 4294967295; at most 4294967294 fits"),
        ("num_ranks 4000000000".into(), "at its end: 0 of 4000000000 ranks are there; give each its 'rank N { ... }'"),
        (
            "num_ranks 2\nrank 1 {\n}".into(),
            "line 2: rank 1 stands where rank 0 is expected; ranks ascend from 0, each once",
        ),
        ("num_ranks 2\nrank 0 {\n}\nrank 0 {\n}".into(), "line 4: rank 0 stands where rank 1 is expected"),
        ("num_ranks 2\nrank 0 {\n}".into(), "at its end: 1 of 2 ranks are there"),
        ("num_ranks 1\nrank 0 {\ncalc 5".into(), "line 2: rank 0, which begins here, does not end; close it with '}'"),
        ("num_ranks 1\n\n/* rank".into(), "line 3: the comment that begins here does not end; close it with '*/'"),
        (
            "num_ranks 1\nrank 0 {\n}\n\n// remark\nrank 1 {\n}".into(),
            "line 6: found 'rank 1 {' where the end of the file is expected, after the last of 1 ranks",
        ),
        (rank("calc 5").repeat(2), "line 5: found 'num_ranks 1' where the end of the file is expected"),
        (rank("calc 5") + "\0", "line 5: found '\\0' where the end of the file is expected"),
        (rank("calc 5") + "/* end", "line 5: the comment that begins here does not end"),
        ("num_ranks 1 rank 0 { } }".into(), "line 1: found '}' where the end of the file is expected"),
        (rank("send 8b to 1 tag 0"), "line 3: rank 1 does not exist; the ranks are 0 to 0"),
        (rank("recv 8b from 99999999999"), "line 3: rank 99999999999 does not exist"),
        (rank("send 8 to 0"), "line 3: found 'to 0' where 'b' is expected"),
        (rank("send 8b from 0"), "line 3: found 'from 0' where 'to' is expected"),
        (rank("recv b from 0"), "line 3: found 'b from 0' where a number of bytes is expected"),
        (rank("calc 18446744073709551616"), "a time is 18446744073709551616; at most 18446744073709551615 fits"),
        (rank("calc 5 nic 1"), "line 3: found 'nic 1' where the end of the line is expected"),
        (rank("send 8b to 0 cpu 1 tag 2"), "line 3: found 'tag 2' where the end of the line is expected"),
        (rank("send 8b to 0 cpu 256"), "line 3: the number of a CPU is 256; at most 255 fits"),
        (rank("send 8b to 0 // remark"), "line 3: found '// remark' where the end of the line is expected"),
        ("num_ranks 1\nrank 0 {\ncalc 5 }".into(), "line 3: found '}' where the end of the line is expected"),
        (rank("a: calc 5\na requires b"), "line 4: label 'b' is not defined in this rank so far"),
        (rank("a requires a\na: calc 5"), "line 3: label 'a' is not defined in this rank so far"),
        (rank("a: calc 5\na requires"), "line 4: a label is missing after requires or irequires"),
        (rank("a: calc 5\na needs a"), "line 4: after 'a' comes ':', requires or irequires"),
        (rank("a: b: calc 5"), "line 3: found 'b' where send, recv or calc is expected"),
        (rank("send: calc 5"), "line 3: 'send' is a keyword and no label"),
        (rank("rank: calc 5"), "line 3: 'rank' is a keyword and no label"),
        (rank("7: calc 5"), "line 3: found '7: calc 5' where an operation, a label or '}' is expected"),
        (rank(&"a".repeat(70_000)), "line 3: the line is longer than 65536 bytes"),
    ];
    for (text, expected) in cases {
        let found = parse(&text).unwrap_err();
        assert!(found.contains(expected), "found: {found}\nexpected: {expected}");
    }
}

/// The reader takes a buffer of any size.
#[test]
fn buffers_of_any_size() {
    for (name, text) in FILES {
        let whole = parse(text).unwrap();
        for size in [1, 7, 64] {
            let parts = BufReader::with_capacity(size, text.as_bytes());
            assert_eq!(read(parts, name).unwrap(), whole);
        }
    }
}

#[test]
fn emitted_for_a_machine() {
    let c = Collective::new(CollectiveKind::Allreduce, 2, 4, 0, Operator::Sum, Dtype::F32).unwrap();
    let algorithm = ALGORITHMS.iter().find(|a| a.name() == "recursive-doubling").unwrap();
    let mut schedule = algorithm.build(&Case::on_ranks(c, Ranks::default()), &Params::new()).unwrap().schedule;
    schedule.set_origin("by hand");
    let emit = |machine| {
        let file = File { schedule: schedule.clone(), placement: None, machine, blocks: None };
        Goal.emit(&VerifiedFile::new(&file, Method::Auto).unwrap()).unwrap().remove(0).1.text().unwrap().to_owned()
    };
    assert!(emit(None).starts_with("// allreduce of 4 f32 among 2 ranks, by hand; a reduction takes no time"));
    let machine = "kind = \"endpoint\"\nname = \"pair\"\nmodel = \"postal\"\nalpha_ns = 5\nbeta_ns_per_byte = 1\n\
                   gamma_ns_per_byte = 0.5\ncompute_ns = 10\n";
    let rank = |own: u32, other: u32| {
        format!(
            "\nrank {own} {{\nl1: send 16b to {other} tag {own}\nl2: recv 16b from {other} tag {other}\nl3: calc 18\n\
             l2 irequires l1\nl3 requires l2\n}}\n"
        )
    };
    let head = "// allreduce of 4 f32 among 2 ranks, by hand; a reduction takes 10 ns and 0.5 ns a byte on pair\nnum_ranks 2\n";
    let machine = Machine::from_toml(machine, "pair.toml").unwrap();
    assert_eq!(emit(Some(machine)), format!("{head}{}{}", rank(0, 1), rank(1, 0)));
}

/// Every schedule among ranks becomes GOAL, which reads back as its task graph with calcs for reductions.
#[test]
fn schedules_among_ranks() {
    let mut emitted = 0;
    for algorithm in ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Messages)) {
        for &kind in algorithm.info().collectives {
            for ranks in [1, 2, 5, 8] {
                let c = Collective::new(kind, ranks, 8, 0, Operator::Sum, Dtype::F32).unwrap();
                let case = Case::on_ranks(c, Ranks::default());
                if algorithm.supports(&case, &Params::new()).is_err() {
                    continue;
                }
                let schedule = algorithm.build(&case, &Params::new()).unwrap().schedule;
                let graph = draft(&schedule).unwrap();
                let again = parse(&print(&graph)).unwrap();
                assert_eq!(again.task_count(), graph.task_count());
                for task in (0..graph.task_count()).map(TaskId::new) {
                    let (mut one, other) = (graph.task(task), again.task(task));
                    if one.kind == Kind::Reduce {
                        one.kind = Kind::Calc;
                    }
                    assert_eq!(one, other);
                    assert!(graph.waiting(task).eq(again.waiting(task)));
                }
                emitted += 1;
            }
        }
    }
    assert!(emitted > 20, "{emitted}");
}

prop_compose! {
    fn task(ranks: u32)(
        kind in 0u8..3, peer in 0..ranks, any in 0u8..6, tag in prop_oneof![0u32..3, Just(ANY)],
        amount in prop_oneof![0u64..100, any::<u64>()], cpu in 0u8..3, nic in 0u8..3,
    ) -> Task {
        match kind {
            0 => Task::send(peer, amount, tag).on(cpu, nic),
            1 => Task::receive(if any == 0 { ANY } else { peer }, amount, tag).on(cpu, nic),
            _ => Task::calc(amount).on(cpu, 0),
        }
    }
}

prop_compose! {
    fn graph()(ranks in 1u32..5)(
        tasks in prop::collection::vec(prop::collection::vec(task(ranks), 0..8), ranks as usize),
        edges in prop::collection::vec((0u32..8, 0u32..8, any::<bool>()), 0..12),
    ) -> TaskGraph {
        let mut b = Builder::new();
        for tasks in tasks {
            b.rank();
            let ids: Vec<_> = tasks.iter().map(|&t| b.task(t)).collect();
            for &(later, earlier, started) in &edges {
                let (Some(&l), Some(&e)) = (ids.get(later as usize), ids.get(earlier as usize)) else { continue };
                if started { b.irequires(l, e) } else { b.requires(l, e) }
            }
        }
        b.finish().unwrap()
    }
}

proptest! {
    #[test]
    fn written_then_read_is_the_same(graph in graph()) {
        prop_assert_eq!(parse(&print(&graph)).unwrap(), graph);
    }

    /// Damaged files are either read or refused, in the same way through buffers of any size.
    #[test]
    fn damaged_files(
        file in 0usize..8, damages in prop::collection::vec((any::<u16>(), any::<u8>(), 0u8..4), 1..6), size in 1usize..99,
    ) {
        let mut text = FILES[file].1.as_bytes().to_vec();
        for (at, byte, how) in damages {
            let at = usize::from(at) % text.len();
            match how {
                0 => text[at] = byte,
                1 => drop(text.drain(at..(at + usize::from(byte)).min(text.len()))),
                2 => text.insert(at, b"0123456789-{}/*: \n\rab"[usize::from(byte) % 21]),
                _ => text.truncate(at + 1),
            }
            if text.is_empty() {
                break;
            }
        }
        let whole = read(&text[..], "a.goal").map_err(|e| e.to_string());
        let parts = BufReader::with_capacity(size, &text[..]);
        let read_in_parts = read(parts, "a.goal").map_err(|e| e.to_string());
        prop_assert_eq!(&read_in_parts, &whole);
        if let Ok(graph) = whole {
            prop_assert_eq!(parse(&print(&graph)).unwrap(), graph);
        }
    }

    #[test]
    fn numbers_have_the_value_of_their_digits(digits in "[0-9]{1,24}", after in "[ \r]?\n?") {
        let read = parse(&format!("num_ranks 1\nrank 0 {{ calc {digits}{after}\n}}"));
        match digits.parse::<u64>() {
            Ok(value) => prop_assert_eq!(read.unwrap().task(TaskId(0)).amount, value),
            Err(_) => {
                let (found, expected) = (read.unwrap_err(), format!("a time is {digits}; at most"));
                prop_assert!(found.contains(&expected), "{}", found);
            }
        }
    }

    #[test]
    fn any_text(text in "(num_ranks 2\n)?(rank 0 \\{\n)?[ -~\n]{0,80}") {
        let _ = parse(&text);
    }
}
