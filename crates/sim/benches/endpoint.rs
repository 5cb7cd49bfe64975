//! Speed of the endpoint simulator beside LogGOPSim's, on its workloads and its default parameters. `make bench` runs it;
//! `cargo bench -p unisono-sim --bench endpoint -- alltoall` runs the cases whose name contains a word. Each case runs in a
//! process of its own, so that the memory is its own; seconds are those of the CPU.
#![allow(clippy::print_stdout, reason = "a bench prints")]

use std::process::Command;

use unisono_cost::endpoint::Goal;
use unisono_lower::tasks::{TaskError, TaskGraph, pattern};
use unisono_sim::endpoint::{Options, run};

/// Name, pattern, ranks, bytes; LogGOPSim's CPU seconds, finish in ns, and memory in MB, where it was measured.
type Case = (&'static str, fn(u32, u64) -> Result<TaskGraph, TaskError>, u32, u64, Option<(f64, u64, u32)>);

const MI: u64 = 1 << 20;
const CASES: &[Case] = &[
    ("dissemination-8", pattern::dissemination, 65_536, 8, Some((1.83, 88_672, 445))),
    ("dissemination-1Mi", pattern::dissemination, 65_536, MI, Some((2.06, 100_751_200, 445))),
    ("binomial-reduce", pattern::binomial_reduce, 1_048_576, 8, Some((2.03, 110_840, 734))),
    ("halving-doubling", pattern::halving_doubling, 65_536, MI, Some((3.65, 12_758_528, 867))),
    ("ring", pattern::ring, 1024, MI, Some((2.62, 23_811_348, 576))),
    ("linear-alltoall-512", pattern::linear_alltoall, 512, MI, Some((37.9, 3_217_741_450, 113))),
    ("linear-alltoall-1024", pattern::linear_alltoall, 1024, MI, None),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, name] = &words[..]
        && flag == "--only"
    {
        return CASES.iter().filter(|case| case.0 == name).for_each(one);
    }
    println!(
        "workload, ranks, bytes: events, generated + simulated CPU s, M events per CPU s, peak MB, finish ns [LogGOPSim]"
    );
    let program = std::env::current_exe().expect("this program has a path");
    for case in CASES.iter().filter(|case| words.is_empty() || words.iter().any(|w| case.0.contains(w.as_str()))) {
        let status = Command::new(&program).args(["--only", case.0]).status().expect("this program runs");
        assert!(status.success(), "{} failed", case.0);
    }
}

fn one(&(name, pattern, ranks, bytes, peer): &Case) {
    let begin = cpu_seconds();
    let graph = pattern(ranks, bytes).expect("it fits");
    let generated = cpu_seconds();
    let run = run(&graph, &Goal::default(), &Options::default()).expect("it ends");
    let simulated = cpu_seconds();
    let rate = run.events as f64 / (simulated - generated) / 1e6;
    let (make, simulate) = (generated - begin, simulated - generated);
    print!("{name}, {ranks}, {bytes}: {} events, {make:.2} + {simulate:.2} s, {rate:.1} M/s, ", run.events);
    print!("{} MB, {} ns", peak_kb() / 1024, run.makespan);
    match peer {
        None => println!(),
        Some((seconds, finish, mb)) => {
            assert_eq!(run.makespan, finish, "LogGOPSim's finish of {name}");
            println!(" [{seconds} s, {:.1} M/s, {mb} MB, {finish} ns]", run.events as f64 / seconds / 1e6);
        }
    }
}

/// CPU time of this thread, where the system tells it.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).map_or(f64::NAN, |ns| ns / 1e9)
}

/// Peak memory of this process, where the system tells it.
fn peak_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
