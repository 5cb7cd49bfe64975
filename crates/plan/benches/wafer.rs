//! The speed of planning and proving on a wafer, and of proving among ranks, as median seconds. `make bench` runs the
//! benchmark; `cargo bench -p unisono-plan -- sweep` runs the cases whose name contains a word.
#![allow(clippy::print_stdout, reason = "a bench prints")]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use unisono_algorithms::{Case, Params, Ranks, catalog::auto_gen_best, find, resolve};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::wafer::{bounds::PaperTable, measure};
use unisono_machine::{Grid, Machine, Shape};
use unisono_plan::{Part, Problem, Request, sweep_point};
use unisono_schedule::verify::{Method, verify};

/// The words of the command line, which select cases by name. Without words, all cases run.
struct Bench {
    wanted: Vec<String>,
}

impl Bench {
    /// Runs the work once without timing, then for at least two seconds and ten times.
    fn time<R>(&self, name: &str, mut work: impl FnMut() -> R) {
        if !self.wanted.is_empty() && !self.wanted.iter().any(|word| name.contains(word.as_str())) {
            return;
        }
        black_box(work());
        let begin = Instant::now();
        let mut seconds = Vec::new();
        while seconds.len() < 10 || begin.elapsed() < Duration::from_secs(2) {
            let start = Instant::now();
            black_box(work());
            seconds.push(start.elapsed().as_secs_f64());
        }
        seconds.sort_by(f64::total_cmp);
        println!("{name}: {:.3e} s, median of {}", seconds[seconds.len() / 2], seconds.len());
    }
}

fn case(kind: Kind, grid: Grid, elements: u64) -> Case<'static> {
    let collective =
        Collective::new(kind, grid.count() as u32, elements, 0, Operator::Sum, Dtype::F32).expect("a sound case");
    Case::on_grid(collective, grid, 5.0)
}

fn auto_gen(bench: &Bench) {
    bench.time("auto-gen, P=512, 16 lengths", || {
        (0..16).map(|k| auto_gen_best(512, 1 << k, 5.0).map_or(0.0, |s| s.cycles)).sum::<f64>()
    });
    bench.time("auto-gen, P=65536, 1 length", || auto_gen_best(black_box(65_536), 4096, 5.0));
    let tree = find("auto-gen").ok().and_then(|a| a.line_tree()).expect("auto-gen is a tree on a line");
    bench.time("auto-gen tree, P=262144", || {
        tree.sides(0, 262_143, black_box(256), 5.0, &Params::new()).expect("it takes no parameters")
    });
    bench.time("paper's bound, table for P=512", || PaperTable::new(black_box(512)));
}

fn wafer(bench: &Bench) {
    let case = case(Kind::Reduce, Grid::new(512, 512), 256);
    let (algorithm, params) = resolve("auto-gen", &case, &Params::new()).expect("x-y takes it");
    bench.time("512x512 x-y auto-gen reduce: build", || algorithm.build(&case, &params));
    let placed = algorithm.build(&case, &params).expect("it builds");
    bench.time("512x512 x-y auto-gen reduce: verify, exact", || verify(&placed.schedule, Method::Exact).holds());
    bench.time("512x512 x-y auto-gen reduce: verify, fingerprint", || {
        verify(&placed.schedule, Method::Fingerprint).holds()
    });
    bench.time("512x512 x-y auto-gen reduce: terms on the grid", || measure(placed.grid().unwrap()).map(|p| p.len()));
}

fn ranks(bench: &Bench) {
    for (kind, name, elements) in [
        (Kind::Allreduce, "ring", 1 << 18),
        (Kind::Allreduce, "rabenseifner", 1 << 18),
        (Kind::Alltoall, "pairwise", 1),
    ] {
        let collective = Collective::new(kind, 512, elements, 0, Operator::Sum, Dtype::F32).expect("a sound case");
        let case = Case::on_ranks(collective, Ranks::default());
        let schedule = find(name).and_then(|a| a.build(&case, &Params::new())).expect("it builds").schedule;
        for method in [Method::Exact, Method::Fingerprint] {
            let label = format!("verify among 512 ranks: {kind} by {name}, {method:?}");
            bench.time(&label, || verify(&schedule, method).holds());
        }
    }
}

fn sweep(bench: &Bench) {
    let wafer = Machine::preset("wse2").expect("a built-in preset");
    let names = ["star", "tree", "two-phase", "chain", "ring"].map(str::to_owned);
    bench.time("sweep of Fig. 8 (8 sizes x 16 lengths)", || {
        for n in 2..10 {
            for k in 0..16 {
                let request = Request::new(Kind::Allreduce, &wafer, Part::Shape(Shape::line(1 << n)), 1 << k);
                let problem = Problem::new(&request).expect("a sound request");
                black_box(sweep_point(problem, &names, None, &Params::new())).ok();
            }
        }
    });
}

fn main() {
    let bench = Bench { wanted: std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect() };
    auto_gen(&bench);
    wafer(&bench);
    ranks(&bench);
    sweep(&bench);
}
