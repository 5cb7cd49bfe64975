//! Programs in JSON for several tests, and helpers that read their results.
#![allow(dead_code, reason = "each test file uses its part")]

use unisono_discover::{Action, Discovery, Options, Pattern, Program, Report, Rules, report};

pub const NODES: [u32; 7] = [1, 2, 3, 4, 7, 8, 64];

pub struct Programs;

/// Formats a task in the JSON form; accesses are `(buffer, mode, mapper)`.
pub fn task(name: &str, range: &str, accesses: &[(&str, &str, &str)]) -> String {
    let access = |(buffer, mode, mapper): &(&str, &str, &str)| {
        let mapper = if mapper.starts_with('{') { (*mapper).to_owned() } else { format!(r#"{{"kind":"{mapper}"}}"#) };
        format!(r#"{{"buffer":"{buffer}","mode":"{mode}","mapper":{mapper}}}"#)
    };
    let accesses = accesses.iter().map(access).collect::<Vec<_>>().join(",");
    format!(r#"{{"name":"{name}","range":{range},"accesses":[{accesses}]}}"#)
}

/// Parses a program; buffers are `(name, shape, initialized)`.
pub fn program(buffers: &[(&str, &str, bool)], tasks: &[String]) -> Program {
    let buffer = |(name, shape, there): &(&str, &str, bool)| {
        format!(r#"{{"name":"{name}","shape":{shape},"host_initialized":{there}}}"#)
    };
    let buffers = buffers.iter().map(buffer).collect::<Vec<_>>().join(",");
    Program::parse(&format!(r#"{{"buffers":[{buffers}],"tasks":[{}]}}"#, tasks.join(","))).expect("it is well-formed")
}

impl Programs {
    pub fn n_body(n: i64, steps: u64) -> Program {
        let range = format!("[{n}]");
        let tasks: Vec<String> = (0..steps)
            .flat_map(|_| {
                [
                    task("time_step", &range, &[("P", "read", "all"), ("V", "read_write", "one_to_one")]),
                    task("update_p", &range, &[("V", "read", "one_to_one"), ("P", "read_write", "one_to_one")]),
                ]
            })
            .collect();
        program(&[("P", &range, true), ("V", &range, true)], &tasks)
    }

    /// A loop of tasks `step(k, from, to)` that swaps two buffers.
    fn swapping(shape: &str, steps: u64, step: impl Fn(&str, &str) -> Vec<String>) -> Program {
        let names = [("A", "B"), ("B", "A")];
        let tasks: Vec<String> =
            (0..steps).flat_map(|k| step(names[k as usize % 2].0, names[k as usize % 2].1)).collect();
        program(&[("A", shape, true), ("B", shape, true)], &tasks)
    }

    pub fn all_gather(n: i64, steps: u64) -> Program {
        let range = format!("[{n}]");
        Self::swapping(&range, steps, |from, to| {
            vec![task("gather", &range, &[(from, "read", "all"), (to, "write", "one_to_one")])]
        })
    }

    pub fn gather_scatter(n: i64, steps: u64) -> Program {
        Self::gathering(n, steps, "one_to_one")
    }

    pub fn gather_bcast(n: i64, steps: u64) -> Program {
        Self::gathering(n, steps, "all")
    }

    /// Returns a program of several rounds. In each, one work item reads all of A, and many work items read B by
    /// `mapper`.
    fn gathering(n: i64, steps: u64, mapper: &str) -> Program {
        let range = format!("[{n}]");
        let round = [
            task("one", "[1]", &[("A", "read", "all"), ("B", "write", "all")]),
            task("many", &range, &[("B", "read", mapper), ("A", "write", "one_to_one")]),
        ];
        let tasks: Vec<String> = (0..steps).flat_map(|_| round.clone()).collect();
        program(&[("A", &range, true), ("B", &range, true)], &tasks)
    }

    pub fn all_to_all(n: i64, steps: u64) -> Program {
        let range = format!("[{n},{n}]");
        Self::swapping(&range, steps, |from, to| {
            let read = (from, "read", r#"{"kind":"transposed","perm":[1,0]}"#);
            vec![task("turn", &range, &[read, (to, "write", "one_to_one")])]
        })
    }

    pub fn stencil(n: i64, steps: u64) -> Program {
        let range = format!("[{n},{n}]");
        Self::swapping(&range, steps, |from, to| {
            let read = (from, "read", r#"{"kind":"neighborhood","halo":[1,1]}"#);
            vec![task("relax", &range, &[read, (to, "write", "one_to_one")])]
        })
    }

    /// Eight tasks write an eighth of a buffer each, and one task reads the whole buffer.
    pub fn eight_producers(n: i64) -> Program {
        let part = n / 8;
        let mut tasks: Vec<String> = (0..8)
            .map(|k| {
                let mapper = format!(r#"{{"kind":"shift","offset":[{}]}}"#, k * part);
                task(&format!("write {k}"), &format!("[{part}]"), &[("A", "write", &mapper)])
            })
            .collect();
        tasks.push(task("read", &format!("[{n}]"), &[("A", "read", "all")]));
        program(&[("A", &format!("[{n}]"), false)], &tasks)
    }
}

pub fn report_of(program: &Program, nodes: u32, rules: Rules) -> Report {
    report(program, nodes, rules).expect("the program is sound")
}

pub fn patterns(report: &Report) -> Vec<Pattern> {
    report.forwards.iter().filter_map(|f| f.collective).collect()
}

pub fn run(program: &Program, nodes: u32, rank: u32, rules: Rules) -> Discovery {
    let mut options = Options::commands(nodes, rank, rules);
    options.report = true;
    let mut discovery = Discovery::new(options).expect("the options are sound");
    program.submit(&mut discovery).expect("the program is sound");
    discovery
}

pub fn commands_of(program: &Program, nodes: u32, rank: u32, rules: Rules) -> Vec<String> {
    let mut discovery = run(program, nodes, rank, rules);
    let name = |action: Action| match action {
        Action::Push { buffer, to, region, .. } => format!("push {buffer} to {to}: {region}"),
        Action::AwaitPush { buffer, from, .. } => format!("await {buffer} from {}", from.len()),
        Action::Collective { buffer, group, operation, .. } => format!("{} {buffer} group {group}", operation.pattern),
        Action::Execute { chunk } => format!("execute {}", chunk.text(1)),
    };
    discovery.take_commands().into_iter().map(|c| name(c.action)).collect()
}

/// Returns the forwards and the operations that a rank computes.
pub fn order_of(program: &Program, nodes: u32, rank: u32, rules: Rules) -> (Vec<String>, Vec<u32>) {
    let mut discovery = run(program, nodes, rank, rules);
    let forwards = discovery.take_forwards().iter().map(|f| format!("{f:?}")).collect();
    let groups: Vec<u32> = discovery
        .take_commands()
        .iter()
        .filter_map(|c| match &c.action {
            Action::Collective { group, .. } => Some(*group),
            _ => None,
        })
        .collect();
    (forwards, groups)
}
