//! Speed of the fabric simulator on large programs: CPU seconds, wavelet-hops and events per second, on one thread or
//! on `JOBS`. `make bench` runs it; `cargo bench -p unisono-sim --bench fabric -- snake` runs the cases whose name
//! contains a word. The last case takes minutes and runs only if it is named: `-- kd-tree,.512x512`, where a dot
//! stands for a blank.
#![allow(clippy::print_stdout, reason = "a bench prints")]

use unisono_machine::Wafer;

use unisono_algorithms::{Case, Params, resolve};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::wafer::prove_and_lower;
use unisono_machine::{Grid, Machine};
use unisono_sim::fabric::{Options, run};

const LONG: &str = "kd-tree, 512x512, B=4096";

fn main() {
    let wafer = Machine::preset("wse2").unwrap().get::<Wafer>().unwrap().clone();
    let jobs = std::env::var("JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1);
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|a| !a.starts_with('-')).map(|a| a.replace('.', " ")).collect();
    let cases = [
        ("chain, row of 512, B=32768", Grid::new(1, 512), 32_768, "chain"),
        ("x-y auto-gen, 512x512, B=256", Grid::new(512, 512), 256, "auto-gen"),
        ("kd-tree, 128x128, B=1024", Grid::new(128, 128), 1024, "kd-tree"),
        ("kd-tree, 128x128, B=4096", Grid::new(128, 128), 4096, "kd-tree"),
        ("allreduce of rings, 64x64, B=1024", Grid::new(64, 64), 1024, "ring"),
        ("kd-tree, 256x256, B=4096", Grid::new(256, 256), 4096, "kd-tree"),
        ("snake, 512x512, B=256", Grid::new(512, 512), 256, "snake"),
        ("x-y auto-gen, 512x512, B=4096", Grid::new(512, 512), 4096, "auto-gen"),
        (LONG, Grid::new(512, 512), 4096, "kd-tree"),
    ];
    for (name, grid, elements, algorithm) in cases {
        let kind = if algorithm == "ring" { Kind::Allreduce } else { Kind::Reduce };
        let is_wanted = wanted.iter().any(|w| name.contains(w.as_str()));
        if !is_wanted && (name == LONG || !wanted.is_empty()) {
            continue;
        }
        let c = Collective::new(kind, grid.count() as u32, elements, 0, Operator::Sum, Dtype::F32);
        let case = Case::on_grid(c.expect("a sound case"), grid, 5.0);
        let (algorithm, params) = resolve(algorithm, &case, &Params::new()).expect("it applies");
        let placed = algorithm.build(&case, &params).expect("it builds");
        let program = prove_and_lower(&placed, &wafer).expect("it fits the wafer");
        let (start, begin) = (cpu_seconds(), std::time::Instant::now());
        match run(&program, &Options { jobs, ..Options::default() }) {
            Ok(run) => {
                let (seconds, wall) = (cpu_seconds() - start, begin.elapsed().as_secs_f64());
                let (hops, events) = (run.hops as f64 / seconds / 1e6, run.events as f64 / seconds / 1e6);
                println!(
                    "{name}: {} cycles, correct {}, {seconds:.2} s, {wall:.2} s wall, {hops:.1} M hops/s, \
                     {events:.1} M events/s",
                    run.cycles, run.result_correct
                );
            }
            Err(e) => println!("{name}: {e}"),
        }
    }
}

/// Returns the CPU time of all threads of this process, or NaN if the system does not report it.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().into_iter().flat_map(str::split_whitespace).skip(11).take(2);
    fields.map(|ticks| ticks.parse::<f64>().unwrap_or(f64::NAN) / 100.0).reduce(|a, b| a + b).unwrap_or(f64::NAN)
}
