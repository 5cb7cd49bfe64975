//! Helpers for tests of all algorithms: cases, data and plain arithmetic.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod problems;

use crate::soak;
use unisono_algorithms::{ALGORITHMS, Algorithm, Case, Means, Params, Ranks};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_machine::{Grid, Machine};
use unisono_plan::{
    Part,
    workload::graph::{GraphReport, Level, ProgramPrices, Step},
};
use unisono_schedule::interpret::Element;
use unisono_workload::WorkloadGraph;

pub const DEPTH_CYCLES: f64 = 5.0;

/// Returns a network of one plane, whose links carry 50 bytes in a nanosecond and have a latency of 80 ns; `lines` are
/// the other lines of its file, from keys to the topology.
pub fn network(packet_bytes: u32, buffer_bytes: u32, lines: &str) -> Machine {
    let text = format!(
        "name = 'test'\nkind = 'network'\nplanes = 1\nlink_gbps = 400\nlink_latency_ns = 40\ninput_latency_ns = 20\n\
         output_latency_ns = 20\npacket_bytes = {packet_bytes}\nbuffer_bytes = {buffer_bytes}\n{lines}\n"
    );
    Machine::from_toml(&text, "test").unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the report of a program at `level`, with compute and communication at the same time if `overlap`.
pub fn step(machine: &Machine, program: &WorkloadGraph, level: Level, overlap: bool) -> GraphReport {
    let prices = ProgramPrices::new(program, machine, &Part::All).unwrap();
    Step { prices, accelerator: None, overlap, level }.report().unwrap()
}

pub fn case(kind: Kind, grid: Grid, elements: u64, root: u32, operator: Operator) -> Case<'static> {
    let ranks = grid.count() as u32;
    let collective = Collective::new(kind, ranks, elements, u64::from(root), operator, Dtype::I64).unwrap();
    Case::on_grid(collective, grid, DEPTH_CYCLES)
}

/// Returns rows of 1 to 17 PEs, some columns, and some grids.
pub fn grids() -> Vec<Grid> {
    let lines = (1..=17).map(|n| Grid::new(1, n)).chain([2, 5, 16].map(|n| Grid::new(n, 1)));
    lines.chain([(2, 2), (3, 4), (4, 4), (7, 5), (2, 9)].map(|(r, c)| Grid::new(r, c))).collect()
}

pub fn roots(kind: Kind, pes: u32) -> Vec<u32> {
    let mut roots = if kind.has_root() { vec![0, pes / 2, pes - 1] } else { vec![0] };
    roots.dedup();
    roots
}

/// Returns a function that returns true if the next test case of an algorithm for a collective with these lengths runs
/// ([`soak::runs_often`]). The cases of other algorithms do not change its answers.
fn thinned(algorithm: &dyn Algorithm, kind: Kind, elements: &[u64]) -> impl FnMut() -> bool {
    let named = algorithm.name().bytes().chain(kind.name().bytes());
    let mut number = named.fold(elements.iter().sum(), |seed, byte| unisono_base::mix(seed ^ u64::from(byte)));
    move || {
        number = number.wrapping_add(1);
        soak::runs_often(number)
    }
}

/// Calls `f` for every algorithm with every supported case of its collectives and all candidate parameters.
pub fn every_case(elements: &[u64], operator: Operator, mut f: impl FnMut(&'static dyn Algorithm, &Case, &Params)) {
    for &algorithm in ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Grid)) {
        for &kind in algorithm.info().collectives {
            let mut runs = thinned(algorithm, kind, elements);
            for grid in grids() {
                for root in roots(kind, grid.count() as u32) {
                    for &n in elements {
                        let case = case(kind, grid, n, root, operator);
                        let mut settings = algorithm.candidates(&case);
                        settings.push(Params::new());
                        if algorithm.name() == "two-phase" {
                            settings.extend((1..=grid.count().min(6)).map(|g| Params::new().with("group", g)));
                        }
                        for params in settings {
                            if algorithm.supports(&case, &params).is_ok() && runs() {
                                f(algorithm, &case, &params);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns a case among ranks, with latencies.
pub fn among(kind: Kind, ranks: u32, elements: u64, root: u32, operator: Operator) -> Case<'static> {
    let collective = Collective::new(kind, ranks, elements, u64::from(root), operator, Dtype::I64).unwrap();
    Case::on_ranks(collective, Ranks { latency_ns: 400.0, issue_ns: 100.0, ..Ranks::default() })
}

/// Returns the parameters of an algorithm among ranks that are worth testing in a case; some may be unsupported.
pub fn settings(algorithm: &dyn Algorithm, case: &Case) -> Vec<Params> {
    let mut settings = algorithm.candidates(case);
    settings.push(Params::new());
    for param in algorithm.info().params {
        // Segments of one element, of several elements, and of a size that is not a multiple of an element. More ways
        // than ranks.
        let values: &[&str] = match param.name {
            "segment" => &["1", "40", "100"],
            "blocks" => &["1", "2", "7"],
            "pieces" => &["1", "3"],
            "radix" => &["3", "5"],
            "ways" => &["1", "2", "3", "4", "40"],
            "root" => &["middle"],
            "order" => &["levels"],
            // This value is a candidate for long vectors only.
            "protocol" => &["halving"],
            "broadcast" => &["binomial", "pipelined-chain", "scatter-allgather"],
            "allgather" => &["bruck", "circulant", "recursive-doubling"],
            "allreduce" => &["circulant", "rabenseifner", "recursive-multiplying"],
            "reduce-scatter" => &["circulant", "recursive-halving"],
            "gather" | "scatter" => &["binomial:radix=4", "linear"],
            "node" => &["1", "2", "3", "5", "8"],
            "dims" => &[
                "4x4", "2x8", "8x2", "3x3", "3x4", "4x3", "3x5", "5x3", "1x7", "2x2x2", "2x2x4", "4x8", "2x4x4", "2x3",
                "6x2", "11x3",
            ],
            _ => &[],
        };
        settings.extend(values.iter().map(|value| Params::new().with(param.name, value)));
    }
    if algorithm.name() == "hierarchical" {
        let lanes = |node: u32, scatter: &str| {
            let params = Params::new().with("mode", "lanes").with("node", node);
            params.with("scatter", scatter).with("among", "ring")
        };
        settings.extend([1, 2, 4, 8].map(|node| lanes(node, "recursive-halving")));
        settings.extend([2, 3, 5].map(|node| lanes(node, "ring")));
        let rooted = |node: u32| Params::new().with("mode", "lanes").with("node", node).with("among", "circulant");
        settings.extend([2, 3, 4, 8].map(rooted));
    }
    settings.sort();
    settings.dedup();
    settings
}

/// Calls `f` for every algorithm among ranks with every supported case of its collectives, 1 to 17 ranks and two larger
/// numbers, and all candidate parameters.
pub fn every_rank_case(
    elements: &[u64],
    operator: Operator,
    mut f: impl FnMut(&'static dyn Algorithm, &Case, &Params),
) {
    for &algorithm in ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Messages)) {
        for &kind in algorithm.info().collectives {
            let mut runs = thinned(algorithm, kind, elements);
            for ranks in (1..=17).chain([32, 33]) {
                for root in roots(kind, ranks) {
                    for &n in if kind == Kind::Barrier { &[1] } else { elements } {
                        // A barrier has no data. Its element is a set of bits that shows which ranks have contributed.
                        let operator = if kind == Kind::Barrier { Operator::Or } else { operator };
                        let case = among(kind, ranks, n, root, operator);
                        for params in settings(algorithm, &case) {
                            if algorithm.supports(&case, &params).is_ok() && runs() {
                                f(algorithm, &case, &params);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns inputs that differ for every rank and element. They are affine maps, whose composition does not commute. For
/// a barrier, each rank has one bit.
pub fn inputs(c: &Collective) -> Vec<Vec<i64>> {
    if c.kind == Kind::Barrier {
        return (0..c.ranks).map(|rank| vec![1 << rank]).collect();
    }
    let value =
        |rank: u32, k: u32| (i64::from(rank * 7919 + k * 104_729 + 3) % 1_000_003) << 32 | i64::from(rank * 31 + k + 1);
    (0..c.ranks).map(|r| (0..c.input_len(r)).map(|k| value(r, k)).collect()).collect()
}

/// Returns the outputs, computed from the definition of the collective.
pub fn expected(c: &Collective, inputs: &[Vec<i64>]) -> Vec<Vec<i64>> {
    let (n, root) = (c.elements as usize, c.root as usize);
    // Combines element k of the inputs of the first `ranks` ranks, in order.
    let reduce = |ranks: usize, k: usize| {
        inputs[1..ranks].iter().fold(inputs[0][k], |sum, x| i64::combine(c.operator, sum, x[k]))
    };
    let all = inputs.len();
    (0..all)
        .map(|rank| match c.kind {
            Kind::Broadcast if rank != root => inputs[root].clone(),
            Kind::Message if rank == root => inputs[c.sender() as usize].clone(),
            Kind::Reduce if rank == root => (0..n).map(|k| reduce(all, k)).collect(),
            Kind::Gather if rank == root => inputs.concat(),
            Kind::Broadcast | Kind::Gather | Kind::Message | Kind::Reduce => Vec::new(),
            Kind::Allreduce | Kind::Barrier => (0..n).map(|k| reduce(all, k)).collect(),
            Kind::Allgather => inputs.concat(),
            Kind::Alltoall => inputs.iter().flat_map(|x| x[rank * n..][..n].to_vec()).collect(),
            Kind::ReduceScatter => (rank * n..(rank + 1) * n).map(|k| reduce(all, k)).collect(),
            Kind::Scan => (0..n).map(|k| reduce(rank + 1, k)).collect(),
            Kind::Scatter => inputs[root][rank * n..][..n].to_vec(),
        })
        .collect()
}

pub fn label(algorithm: &dyn Algorithm, case: &Case, params: &Params) -> String {
    let c = case.collective;
    format!("{} {params} {} on {} root {} of {} elements", algorithm.name(), c.kind, case.grid(), c.root, c.elements)
}
