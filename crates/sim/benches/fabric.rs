//! Speed of the fabric simulator on large programs: seconds, wavelet-hops and events per second. `make bench` runs it;
//! `cargo bench -p unisono-sim -- snake` runs the cases whose name contains a word.
#![allow(clippy::print_stdout, reason = "a bench prints")]

use std::time::Instant;
use unisono_machine::Wafer;

use unisono_algorithms::{Case, Params, resolve};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::wafer::prove_and_lower;
use unisono_machine::{Grid, Machine};
use unisono_sim::fabric::{Options, run};

fn main() {
    let wafer = Machine::preset("wse2").unwrap().get::<Wafer>().unwrap().clone();
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let cases = [
        ("chain, row of 512, B=32768", Grid::new(1, 512), 32_768, "chain"),
        ("x-y auto-gen, 512x512, B=256", Grid::new(512, 512), 256, "auto-gen"),
        ("kd-tree, 128x128, B=1024", Grid::new(128, 128), 1024, "kd-tree"),
        ("snake, 512x512, B=256", Grid::new(512, 512), 256, "snake"),
        ("x-y auto-gen, 512x512, B=4096", Grid::new(512, 512), 4096, "auto-gen"),
    ];
    for (name, grid, elements, algorithm) in cases {
        if !wanted.is_empty() && !wanted.iter().any(|w| name.contains(w.as_str())) {
            continue;
        }
        let c = Collective::new(Kind::Reduce, grid.count() as u32, elements, 0, Operator::Sum, Dtype::F32);
        let case = Case::on_grid(c.expect("a sound case"), grid, 5.0);
        let (algorithm, params) = resolve(algorithm, &case, &Params::new()).expect("it applies");
        let placed = algorithm.build(&case, &params).expect("it builds");
        let program = prove_and_lower(&placed, &wafer).expect("it fits the wafer");
        let start = Instant::now();
        match run(&program, &Options::default()) {
            Ok(run) => {
                let seconds = start.elapsed().as_secs_f64();
                let (hops, events) = (run.hops as f64 / seconds / 1e6, run.events as f64 / seconds / 1e6);
                println!(
                    "{name}: {} cycles, correct {}, {seconds:.2} s, {hops:.1} M hops/s, {events:.1} M events/s",
                    run.cycles, run.result_correct
                );
            }
            Err(e) => println!("{name}: {e}"),
        }
    }
}
