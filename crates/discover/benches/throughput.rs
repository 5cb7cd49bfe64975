//! Measures the tasks per second that one core reads for rank 0, without kernels, for the programs of Table 3 and
//! listing 1 of the paper. Each figure is the best of seven runs, each with a new `Discovery`; on a busy machine the
//! best run is close to the CPU time.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use unisono_discover::{Discovery, Example, Options, Rules};

const TASKS: usize = 20_000;
const RUNS: usize = 7;
const NODES: [u32; 6] = [1, 4, 16, 64, 256, 1024];

fn rate(example: Example, nodes: u32, rules: Rules) -> f64 {
    // Point-to-point rules make one command per task and rank.
    let tasks = if rules == Rules::Off { TASKS / nodes.max(10) as usize * 10 } else { TASKS };
    let once = || {
        let start = Instant::now();
        let mut discovery = Discovery::new(Options::commands(nodes, 0, rules)).expect("the options are sound");
        example.submit(&mut discovery, 1 << 12, tasks).expect("the program is sound");
        tasks as f64 / start.elapsed().as_secs_f64()
    };
    (0..RUNS).map(|_| once()).fold(0.0, f64::max)
}

fn main() {
    println!("{:<16}{:>6}  {:>12}  {:>12}  {:>12}", "tasks per second", "nodes", "off", "paper", "full");
    for example in Example::ALL {
        for nodes in NODES {
            let [off, paper, full] = [Rules::Off, Rules::Paper, Rules::Full].map(|rules| rate(example, nodes, rules));
            let example = example.name();
            println!("{example:<16}{nodes:>6}  {off:>12.0}  {paper:>12.0}  {full:>12.0}");
        }
    }
}
