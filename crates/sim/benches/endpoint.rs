//! Speed of the endpoint simulator compared with LogGOPSim, on LogGOPSim's workloads and default parameters. `make
//! bench` runs the benchmark; `cargo bench -p unisono-sim --bench endpoint -- alltoall` runs the cases whose name
//! contains a word. Each case runs in its own process, so that memory is measured per case. Seconds are CPU seconds.
#![allow(clippy::print_stdout, reason = "a bench prints")]

use std::{io::BufReader, process::Command};

use unisono_algorithms::{Case, Params, Ranks, resolve};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::endpoint::{Goal, LevelPrices};
use unisono_formats::goal;
use unisono_lower::tasks::{TaskError, TaskGraph, draft, pattern};
use unisono_machine::{Endpoint, Machine};
use unisono_schedule::verify::{Method, verify};
use unisono_sim::endpoint::{Options, run};

/// The name of a case, its pattern, ranks and bytes of a message. If measured, also the CPU seconds of LogGOPSim, the
/// finish in ns and the memory in MB.
type Workload = (&'static str, fn(u32, u64) -> Result<TaskGraph, TaskError>, u32, u64, Option<(f64, u64, u32)>);

const MI: u64 = 1 << 20;
const CASES: &[Workload] = &[
    ("dissemination-8", pattern::dissemination, 65_536, 8, Some((1.83, 88_672, 445))),
    ("dissemination-1Mi", pattern::dissemination, 65_536, MI, Some((2.06, 100_751_200, 445))),
    ("binomial-reduce", pattern::binomial_reduce, 1_048_576, 8, Some((2.03, 110_840, 734))),
    ("halving-doubling", pattern::halving_doubling, 65_536, MI, Some((3.65, 12_758_528, 867))),
    ("ring", pattern::ring, 1024, MI, Some((2.62, 23_811_348, 576))),
    ("linear-alltoall-512", pattern::linear_alltoall, 512, MI, Some((37.9, 3_217_741_450, 113))),
    ("linear-alltoall-1024", pattern::linear_alltoall, 1024, MI, None),
];

/// Cases other than a pattern on LogGOPSim's default parameters, by name.
const OTHERS: &[(&str, fn())] =
    &[("goal-file", goal_file), ("machine-prices", machine_prices), ("schedule-binomial", schedule_binomial)];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, name] = &words[..]
        && flag == "--only"
    {
        CASES.iter().filter(|case| case.0 == name).for_each(one);
        OTHERS.iter().filter(|case| case.0 == name).for_each(|case| case.1());
        return;
    }
    println!(
        "workload, ranks, bytes: events, generated + simulated CPU s, M events per CPU s, peak MB, bytes a task beyond the process, finish ns [LogGOPSim]"
    );
    let program = std::env::current_exe().expect("this program has a path");
    let names = CASES.iter().map(|case| case.0).chain(OTHERS.iter().map(|case| case.0));
    for name in names.filter(|name| words.is_empty() || words.iter().any(|w| name.contains(w.as_str()))) {
        if name == "goal-file" {
            write_goal_file();
        }
        let status = Command::new(&program).args(["--only", name]).status().expect("this program runs");
        assert!(status.success(), "{name} failed");
    }
}

fn one(&(name, pattern, ranks, bytes, peer): &Workload) {
    let begin = cpu_seconds();
    let before_kb = peak_kb();
    let graph = pattern(ranks, bytes).expect("it fits");
    let generated = cpu_seconds();
    let run = run(&graph, &Goal::default(), &Options::default()).expect("it ends");
    let simulated = cpu_seconds();
    let rate = run.events as f64 / (simulated - generated) / 1e6;
    let (make, simulate) = (generated - begin, simulated - generated);
    print!("{name}, {ranks}, {bytes}: {} events, {make:.2} + {simulate:.2} s, {rate:.1} M/s, ", run.events);
    let each = (peak_kb() - before_kb) as f64 * 1024.0 / graph.task_count() as f64;
    print!("{} MB, {each:.1} B a task, {} ns", peak_kb() / 1024, run.makespan);
    match peer {
        None => println!(),
        Some((seconds, finish, mb)) => {
            assert_eq!(run.makespan, finish, "LogGOPSim's finish of {name}");
            println!(" [{seconds} s, {:.2} M/s, {mb} MB, {finish} ns]", run.events as f64 / seconds / 1e6);
        }
    }
}

const GOAL_FILE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/dissemination.goal");

fn write_goal_file() {
    let graph = pattern::dissemination(65_536, 8).expect("it fits");
    let mut text = String::new();
    goal::write(&graph, |task| task.amount, &mut text).expect("a string takes all");
    std::fs::write(GOAL_FILE, text).expect("the folder is there");
}

/// Reads the first case from a GOAL file and runs it. LogGOPSim needs 1.83 s, without the conversion of its text.
fn goal_file() {
    let begin = cpu_seconds();
    let file = std::fs::File::open(GOAL_FILE).expect("just written");
    let mb = file.metadata().map_or(0, |m| m.len() >> 20);
    let graph = goal::read(BufReader::with_capacity(1 << 16, file), GOAL_FILE).expect("it is GOAL");
    let read = cpu_seconds();
    let run = run(&graph, &Goal::default(), &Options::default()).expect("it ends");
    let (reading, simulating) = (read - begin, cpu_seconds() - read);
    println!(
        "dissemination-8 from {mb} MB of GOAL: read {reading:.2} s + {simulating:.2} s, {} MB, {} ns",
        peak_kb() / 1024,
        run.makespan
    );
}

/// Runs the first case at the prices of a machine, in picoseconds.
fn machine_prices() {
    let graph = pattern::dissemination(65_536, 8).expect("it fits");
    let text = "kind = \"endpoint\"\nname = \"m\"\nmodel = \"loggops\"\nL_ns = 2500\no_ns = 1500\ng_ns = 1000\n\
                G_ns_per_byte = 6\nO_ns_per_byte = 0\nS_bytes = 65535\n";
    let machine = Machine::from_toml(text, "m.toml").expect("the text is a machine");
    let machine: &Endpoint = machine.get().expect("the text is of an endpoint machine");
    let prices = LevelPrices::new(machine, machine.model, 65_536).expect("it says all");
    let begin = cpu_seconds();
    let run = run(&graph, &prices, &Options::default()).expect("it ends");
    let seconds = cpu_seconds() - begin;
    println!(
        "dissemination-8 at a machine's prices: {seconds:.2} s, {:.1} M/s, {} ps",
        run.events as f64 / seconds / 1e6,
        run.makespan
    );
}

/// Runs a reduce among 2^20 ranks from its algorithm: built, proved, lowered, simulated.
fn schedule_binomial() {
    let c = Collective::new(Kind::Reduce, 1 << 20, 2, 0, Operator::Sum, Dtype::F32).expect("a sound case");
    let case = Case::on_ranks(c, Ranks::default());
    let begin = cpu_seconds();
    let (algorithm, params) = resolve("binomial", &case, &Params::new()).expect("it applies");
    let schedule = algorithm.build(&case, &params).expect("it builds").schedule;
    let built = cpu_seconds();
    let proof = verify(&schedule, Method::Fingerprint);
    assert!(proof.holds());
    let proved = cpu_seconds();
    let graph = draft(&schedule).expect("it fits");
    let lowered = cpu_seconds();
    let run = run(&graph, &Goal::default(), &Options::default()).expect("it ends");
    let end = cpu_seconds();
    println!(
        "schedule binomial, {} ranks: build {:.2} s, prove {:.2} s, lower {:.2} s, simulate {:.2} s, in all {:.2} s, {} MB, {} ns",
        c.ranks,
        built - begin,
        proved - built,
        lowered - proved,
        end - lowered,
        end - begin,
        peak_kb() / 1024,
        run.makespan
    );
}

/// Returns the CPU time of this thread, or NaN if the system does not report it.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).map_or(f64::NAN, |ns| ns / 1e9)
}

/// Returns the peak memory of this process, or 0 if the system does not report it.
fn peak_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
