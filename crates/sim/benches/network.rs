//! Speed of the packet simulator on one plane of a network. `make bench` runs it; `cargo bench -p unisono-sim --bench
//! network -- alltoall` runs the cases whose name contains a word. Each case runs in its own process, so that memory is
//! measured per case; seconds are CPU seconds. With `UNISONO_BENCH_JOBS=N` the packets are simulated on N threads, and
//! seconds are those of the first thread.
#![allow(clippy::print_stdout, reason = "a bench prints")]

use std::process::Command;

use unisono_lower::tasks::{TaskError, TaskGraph, pattern};
use unisono_machine::Machine;
use unisono_sim::network::{Interconnect, Options, flow, run};

/// Case name, machine, traffic, and bytes of a message, summed over all planes.
type Workload = (&'static str, &'static str, fn(u32, u64) -> Result<TaskGraph, TaskError>, u64);

const KI: u64 = 1 << 10;
const MI: u64 = 1 << 20;
const CASES: &[Workload] = &[
    ("alltoall-hx2mesh-4Ki", "hx2mesh-small", pattern::linear_alltoall, 4 * KI),
    ("alltoall-hx2mesh-64Ki", "hx2mesh-small", pattern::linear_alltoall, 64 * KI),
    ("alltoall-hx2mesh-1Mi", "hx2mesh-small", pattern::linear_alltoall, MI),
    ("alltoall-hx4mesh-1Mi", "hx4mesh-small", pattern::linear_alltoall, MI),
    ("alltoall-torus-64Ki", "torus2d-small", pattern::linear_alltoall, 64 * KI),
    ("alltoall-hyperx-64Ki", "hyperx2d-small", pattern::linear_alltoall, 64 * KI),
    ("permutation-hx2mesh-2x32Mi", "hx2mesh-small", two_permutations, 32 * MI),
    ("permutation-torus-2x32Mi", "torus2d-small", two_permutations, 32 * MI),
];

fn two_permutations(ranks: u32, bytes: u64) -> Result<TaskGraph, TaskError> {
    pattern::permutation(ranks, bytes, 2, 1)
}

/// Machines on which an alltoall and a permutation are computed as flows.
const FLOWS: &[&str] = &["hx2mesh-small", "hx2mesh-large", "hx4mesh-large", "hyperx2d-large", "torus2d-large"];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, name] = &words[..]
        && flag == "--only"
    {
        CASES.iter().filter(|case| case.0 == name).for_each(one);
        FLOWS.iter().filter(|machine| flow_name(machine) == *name).for_each(|machine| flows(machine));
        return;
    }
    println!(
        "workload: packets, packet-hops, ns simulated, CPU s, M packet-hops per CPU s, M events per CPU s, peak MB"
    );
    let program = std::env::current_exe().expect("this program has a path");
    let names = CASES.iter().map(|case| case.0.to_owned()).chain(FLOWS.iter().map(|machine| flow_name(machine)));
    for name in names.filter(|name| words.is_empty() || words.iter().any(|w| name.contains(w.as_str()))) {
        let status = Command::new(&program).args(["--only", &name]).status().expect("this program runs");
        assert!(status.success(), "{name} failed");
    }
}

fn one(&(name, machine, traffic, bytes): &Workload) {
    let interconnect = interconnect(machine);
    let graph = traffic(interconnect.plane.accelerators(), bytes).expect("it fits");
    let begin = cpu_seconds();
    let jobs = std::env::var("UNISONO_BENCH_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1);
    let run = run(&graph, &interconnect, &Options { jobs, ..Options::default() }).expect("it ends");
    let seconds = cpu_seconds() - begin;
    let rate = |count: u64| count as f64 / seconds / 1e6;
    print!("{name}: {} packets, {} hops, {} ns, ", run.packets, run.hops, run.hosts.makespan / 1000);
    println!(
        "{seconds:.2} s, {:.2} M hops/s, {:.1} M events/s, {} MB",
        rate(run.hops),
        rate(run.events),
        peak_kb() / 1024
    );
}

fn flow_name(machine: &str) -> String {
    format!("flows-{machine}")
}

fn flows(machine: &str) {
    let net = interconnect(machine);
    let injection = f64::from(net.planes) * net.plane.leaving(0).len() as f64 / net.timing.links[0].ps_per_byte;
    let begin = cpu_seconds();
    match flow::alltoall(&net, MI) {
        Ok(alltoall) => {
            let seconds = cpu_seconds() - begin;
            let bytes = f64::from(net.plane.accelerators() - 1) * MI as f64;
            let share = bytes / injection / alltoall.makespan_ps;
            println!("flows-{machine}: alltoall of 1 MiB blocks {share:.4} of injection in {seconds:.2} s");
        }
        // An alltoall on a large network may need more steps than the limit.
        Err(refusal) => println!("flows-{machine}: no alltoall: {refusal}"),
    }
    let begin = cpu_seconds();
    let permutation = flow::permutation(&net, &pattern::cycle(net.plane.accelerators(), 1), 64 * MI).unwrap();
    let seconds = cpu_seconds() - begin;
    let rate = |ps: f64| 64.0 * MI as f64 / injection / ps;
    let mean = permutation.finish_ps.iter().map(|&ps| rate(ps)).sum::<f64>() / permutation.finish_ps.len() as f64;
    println!("flows-{machine}: permutation mean {mean:.4} in {seconds:.2} s, {} MB", peak_kb() / 1024);
}

fn interconnect(machine: &str) -> Interconnect {
    let machine = Machine::preset(machine).expect("a built-in preset");
    Interconnect::new(machine.get().expect("the preset is a network")).expect("a preset closes")
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
