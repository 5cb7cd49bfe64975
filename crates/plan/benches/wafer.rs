//! Speed of planning and proving on a wafer, and of proving among ranks. `make bench` runs it; tests never depend on time.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use unisono_algorithms::{Case, Params, Ranks, catalog::auto_gen_best, find, resolve};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_cost::wafer::{bounds::PaperTable, measure};
use unisono_machine::{Grid, Machine, Shape};
use unisono_plan::{Asked, Part, Problem, sweep_point};
use unisono_schedule::verify::{Method, verify};

fn case(kind: Kind, grid: Grid, elements: u64) -> Case<'static> {
    let collective =
        Collective::new(kind, grid.count() as u32, elements, 0, Operator::Sum, Dtype::F32).expect("a sound case");
    Case::on_grid(collective, grid, 5.0)
}

fn auto_gen(c: &mut Criterion) {
    c.bench_function("auto-gen, P=512, 16 lengths", |b| {
        b.iter(|| (0..16).map(|k| auto_gen_best(512, 1 << k, 5.0).map_or(0.0, |s| s.cycles)).sum::<f64>());
    });
    c.bench_function("auto-gen, P=65536, 1 length", |b| b.iter(|| auto_gen_best(black_box(65_536), 4096, 5.0)));
    let tree = find("auto-gen").ok().and_then(|a| a.line_tree()).expect("auto-gen is a tree on a line");
    c.bench_function("auto-gen tree, P=262144", |b| {
        b.iter(|| tree.sides(0, 262_143, black_box(256), 5.0, &Params::new()).expect("it takes no parameters"));
    });
    c.bench_function("paper's bound, table for P=512", |b| b.iter(|| PaperTable::new(black_box(512))));
}

fn wafer(c: &mut Criterion) {
    let case = case(Kind::Reduce, Grid::new(512, 512), 256);
    let (algorithm, params) = resolve("auto-gen", &case, &Params::new()).expect("x-y takes it");
    let mut group = c.benchmark_group("512x512 x-y auto-gen reduce");
    group.sample_size(10);
    group.bench_function("build", |b| b.iter(|| algorithm.build(&case, &params)));
    let placed = algorithm.build(&case, &params).expect("it builds");
    group.bench_function("verify, exact", |b| b.iter(|| verify(&placed.schedule, Method::Exact).holds()));
    group.bench_function("verify, fingerprint", |b| b.iter(|| verify(&placed.schedule, Method::Fingerprint).holds()));
    group.bench_function("terms on the grid", |b| b.iter(|| measure(placed.grid().unwrap()).map(|p| p.len())));
    group.finish();
}

fn ranks(c: &mut Criterion) {
    let mut group = c.benchmark_group("verify among 512 ranks");
    group.sample_size(10);
    for (kind, name, elements) in [
        (Kind::Allreduce, "ring", 1 << 18),
        (Kind::Allreduce, "rabenseifner", 1 << 18),
        (Kind::Alltoall, "pairwise", 1),
    ] {
        let collective = Collective::new(kind, 512, elements, 0, Operator::Sum, Dtype::F32).expect("a sound case");
        let case = Case::on_ranks(collective, Ranks::default());
        let schedule = find(name).and_then(|a| a.build(&case, &Params::new())).expect("it builds").schedule;
        for method in [Method::Exact, Method::Fingerprint] {
            let label = format!("{kind} by {name}, {method:?}");
            group.bench_function(label, |b| b.iter(|| verify(&schedule, method).holds()));
        }
    }
    group.finish();
}

fn sweep(c: &mut Criterion) {
    let wafer = Machine::preset("wse2").expect("a built-in preset");
    let names = ["star", "tree", "two-phase", "chain", "ring"].map(str::to_owned);
    c.bench_function("sweep of Fig. 8 (8 sizes x 16 lengths)", |b| {
        b.iter(|| {
            for n in 2..10 {
                for k in 0..16 {
                    let asked = Asked::new(Kind::Allreduce, &wafer, Part::Shape(Shape::line(1 << n)), 1 << k);
                    let problem = Problem::new(&asked).expect("a sound request");
                    black_box(sweep_point(problem, &names, None, &Params::new())).ok();
                }
            }
        });
    });
}

criterion_group!(benches, auto_gen, wafer, ranks, sweep);
criterion_main!(benches);
